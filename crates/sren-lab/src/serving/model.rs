//! `GET /v1/model`: what is served, and within which limits.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::networks::Served;
use super::router::Shared;
use super::upload::MAX_IMAGES;
use super::work::MAX_PIXELS;

/// The model that is served.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelInfo {
    /// Version of sren.
    version: &'static str,
    #[serde(flatten)]
    network: NetworkInfo,
    /// The names of the classes.
    classes: Vec<String>,
    /// The names of the layers, for `/v1/features`.
    layers: Vec<String>,
    input: Input,
    limits: Limits,
    /// The plain CNN that the page shows beside it.
    plain: NetworkInfo,
    /// Whether it reads digits: the page then offers test digits and a pen.
    reads_digits: bool,
}

/// A network.
#[derive(Debug, Serialize, ToSchema)]
struct NetworkInfo {
    /// The name of the run.
    name: String,
    architecture: String,
    /// The equivariance group: sren (rotation and scale), so2, scale or cnn (none).
    equivariance: &'static str,
    parameters: usize,
    /// Where the weights come from.
    weights: &'static str,
}

/// How an image becomes what the network sees.
#[derive(Debug, Serialize, ToSchema)]
struct Input {
    /// Side of the square that an image is brought to, the aspect ratio preserved.
    side: usize,
    /// Height and width of the canvas that the square stands on.
    canvas: [usize; 2],
    /// 1 for grey, 3 for colour.
    channels: usize,
    /// Whether the image has a circular mask.
    circular_mask: bool,
}

/// What a request may take.
#[derive(Debug, Serialize, ToSchema)]
struct Limits {
    /// Largest body in bytes.
    body: usize,
    /// Most images of a request.
    images: usize,
    /// Most pixels of an image.
    pixels: usize,
}

impl NetworkInfo {
    fn of(served: &Served) -> Self {
        Self {
            name: served.name.clone(),
            architecture: served.architecture.clone(),
            equivariance: served.group().name(),
            parameters: served.parameters,
            weights: served.weights,
        }
    }
}

/// What is served
///
/// The classes, the layers and the limits of requests.
#[utoipa::path(get, path = "/v1/model", responses((status = 200, body = ModelInfo)))]
pub(super) async fn model(State(app): Shared) -> Json<ModelInfo> {
    let served = &app.networks.served;
    let preprocessing = served.predictor.preprocessing();
    Json(ModelInfo {
        version: env!("CARGO_PKG_VERSION"),
        network: NetworkInfo::of(served),
        classes: served.predictor.classes().to_vec(),
        layers: served.layers.clone(),
        input: Input {
            side: preprocessing.letterbox.side,
            canvas: preprocessing.padding.canvas,
            channels: preprocessing.letterbox.channels,
            circular_mask: preprocessing.padding.circular_mask,
        },
        limits: Limits { body: app.max_body, images: MAX_IMAGES, pixels: MAX_PIXELS },
        plain: NetworkInfo::of(&app.networks.plain),
        reads_digits: app.networks.digits.is_some(),
    })
}
