//! The routes and the layers around them: limits, timeouts, compression, tracing, security headers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate, SizeAbove};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::{DefaultMakeSpan, DefaultOnResponse, TraceLayer};
use tracing::Level;
use utoipa::ToSchema;

use super::error::{ApiError, Code};
use super::metrics::Metrics;
use super::networks::Networks;
use super::observe::observe;
use super::queue::Queue;
use super::upload::{MEMORY_UNIT, Upload};
use super::work::{Asked, Job, compute};
use super::{ServeOptions, features, metrics, model, openapi, page, poses, predict};
use crate::error::Result;
use crate::threads;

/// Bodies of this many largest requests are in memory at once, at most.
const BODIES: usize = 32;
/// Answers below this many bytes are not compressed.
const COMPRESSED: u64 = 4 << 10;
/// The page has no inline script or style and loads nothing from elsewhere.
const SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// What all requests share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) networks: Arc<Networks>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) max_body: usize,
    queue: Queue<Job>,
    timeout: Duration,
    /// Memory for bodies, in units.
    bodies: Arc<Semaphore>,
}

/// The state of a handler.
pub(super) type Shared = State<Arc<App>>;

/// The address of a client.
pub(super) struct Client(IpAddr);

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let known = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(known.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip())))
    }
}

impl App {
    pub(super) fn new(networks: Networks, options: &ServeOptions) -> Result<Self> {
        let (networks, metrics) = (Arc::new(networks), Arc::new(Metrics::default()));
        let (pool, used) = (threads::pool(options.threads)?, networks.clone());
        let queue = Queue::start(options.queue, metrics.clone(), move |jobs| {
            pool.install(|| compute(jobs, &used));
        })?;
        let bodies = Arc::new(Semaphore::new(BODIES * options.max_body.div_ceil(MEMORY_UNIT)));
        let (max_body, timeout) = (options.max_body, options.timeout);
        Ok(Self { networks, metrics, max_body, queue, timeout, bodies })
    }

    /// Memory for a body of `length` bytes, or of any length below the limit.
    pub(super) fn memory(&self, length: Option<usize>) -> Result<OwnedSemaphorePermit, ApiError> {
        let length = length.unwrap_or(self.max_body).min(self.max_body);
        let units = u32::try_from(length.div_ceil(MEMORY_UNIT)).unwrap_or(u32::MAX);
        let full = |_| ApiError::new(Code::Overloaded, "too many bodies are in memory");
        self.bodies.clone().try_acquire_many_owned(units).map_err(full)
    }

    /// Has `question` answered about each image, `weight` times the work of a prediction each.
    pub(super) async fn ask<Q: Clone, A>(
        &self,
        Client(client): Client,
        images: Vec<Upload>,
        (question, weight): (Q, usize),
        job: fn(Asked<Q, A>) -> Job,
    ) -> Result<Vec<A>, ApiError> {
        // All or none of them.
        let places = images.iter().map(|_| self.queue.reserve(client, weight));
        let places: Vec<_> = places.collect::<Result<_, _>>()?;
        let mut replies = Vec::with_capacity(images.len());
        for (image, place) in images.into_iter().zip(places) {
            let (reply, answer) = oneshot::channel();
            self.queue.push(job(Asked { image, question: question.clone(), reply, place }))?;
            replies.push(answer);
        }
        let mut answers = Vec::with_capacity(replies.len());
        for answer in replies {
            let lost = |_| ApiError::new(Code::Internal, "the computation failed");
            answers.push(answer.await.map_err(lost)??);
        }
        Ok(answers)
    }
}

/// The routes of the API. All of them are in the OpenAPI document.
pub(super) fn api() -> [(&'static str, MethodRouter<Arc<App>>); 7] {
    [
        ("/v1/predict", post(predict::predict)),
        ("/v1/poses", post(poses::poses)),
        ("/v1/features", post(features::features)),
        ("/v1/model", get(model::model)),
        ("/healthz", get(health)),
        ("/metrics", get(metrics::metrics)),
        ("/openapi.json", get(openapi::openapi)),
    ]
}

/// Whether the service answers
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health)))]
pub(super) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// The service answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    status: &'static str,
}

/// The whole service.
pub(super) fn router(app: Arc<App>) -> Router {
    let header = |name: HeaderName, value: &'static str| {
        SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value))
    };
    // A line per request. Faults are logged where they happen, and a full queue is none.
    let trace = TraceLayer::new_for_http()
        .make_span_with(DefaultMakeSpan::new().level(Level::INFO))
        .on_response(DefaultOnResponse::new().level(Level::INFO))
        .on_failure(());
    let layers = ServiceBuilder::new()
        .layer(trace)
        .layer(header(header::CONTENT_SECURITY_POLICY, SECURITY_POLICY))
        .layer(header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(header(header::REFERRER_POLICY, "no-referrer"))
        .layer(header(header::CACHE_CONTROL, "no-cache"))
        .layer(
            CompressionLayer::new()
                .compress_when(DefaultPredicate::new().and(SizeAbove::new(COMPRESSED))),
        )
        .layer(from_fn_with_state(app.clone(), observe))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, app.timeout))
        .layer(RequestBodyLimitLayer::new(app.max_body))
        // The limit is that of the layer.
        .layer(DefaultBodyLimit::disable());
    let routes = api().into_iter().chain(page::routes());
    routes
        .fold(Router::new(), |router, (path, method)| router.route(path, method))
        .fallback(|| async { ApiError::of_status(StatusCode::NOT_FOUND) })
        .layer(layers)
        .with_state(app)
}

/// A fault of a handler.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR).into_response()
}
