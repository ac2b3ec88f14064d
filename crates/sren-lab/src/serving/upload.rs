//! The images of a request: the body itself, or the parts of a multipart body. They stay in memory, of
//! which all requests together have a bounded amount.

use axum::body::Bytes;
use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::error::{ApiError, Code};
use super::router::App;

/// Most images of a request.
pub(super) const MAX_IMAGES: usize = 64;
/// Content types of one image, and of bytes of any kind.
const IMAGES: [&str; 9] = [
    "image/png",
    "image/jpeg",
    "image/jpg",
    "image/webp",
    "image/bmp",
    "image/gif",
    "image/tiff",
    "image/*",
    "application/octet-stream",
];
/// Longest name of an image that is kept.
const MAX_NAME: usize = 200;
/// Bytes for which one unit of memory is reserved.
pub(super) const MEMORY_UNIT: usize = 1 << 10;

/// An image as it was sent.
#[derive(Debug)]
pub(super) struct Upload {
    /// Its file name, or that of its part.
    pub(super) name: String,
    pub(super) bytes: Bytes,
}

/// All images of a request.
#[derive(Debug)]
pub(super) struct Uploads {
    pub(super) images: Vec<Upload>,
    /// Memory for the body, until the answer.
    _memory: OwnedSemaphorePermit,
}

impl Uploads {
    /// The image of a request for one.
    pub(super) fn one(self) -> Result<(Upload, OwnedSemaphorePermit), ApiError> {
        let Self { images, _memory } = self;
        match <[Upload; 1]>::try_from(images) {
            Ok([image]) => Ok((image, _memory)),
            Err(images) => {
                let message = format!("expected one image, got {}", images.len());
                Err(ApiError::new(Code::InvalidRequest, message))
            }
        }
    }
}

impl FromRequest<std::sync::Arc<App>> for Uploads {
    type Rejection = ApiError;

    async fn from_request(
        request: Request,
        app: &std::sync::Arc<App>,
    ) -> Result<Self, Self::Rejection> {
        let kind = content_type(request.headers())?;
        let memory = app.memory(content_length(request.headers()))?;
        let images = match kind.as_str() {
            "multipart/form-data" => parts(request, app).await?,
            _ => {
                let bytes = Bytes::from_request(request, app).await.map_err(|rejection| {
                    let code = match rejection.status() {
                        StatusCode::PAYLOAD_TOO_LARGE => Code::BodyTooLarge,
                        _ => Code::InvalidRequest,
                    };
                    ApiError::new(code, rejection.body_text())
                })?;
                vec![Upload { name: "image".into(), bytes }]
            }
        };
        if images.is_empty() {
            return Err(ApiError::new(Code::InvalidRequest, "expected an image, got none"));
        }
        Ok(Self { images, _memory: memory })
    }
}

/// The content type without parameters, in lower case. Without one, the body is taken for an image.
fn content_type(headers: &HeaderMap) -> Result<String, ApiError> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok("image/*".into()) };
    let text = String::from_utf8_lossy(value.as_bytes()).to_lowercase();
    let kind = text.split(';').next().unwrap_or_default().trim();
    if kind == "multipart/form-data" || IMAGES.contains(&kind) {
        return Ok(kind.to_string());
    }
    let expected = "png, jpeg, webp, bmp, gif or tiff as image/*, or multipart/form-data";
    let message = format!("expected {expected}, got {kind}");
    Err(ApiError::new(Code::UnsupportedMediaType, message))
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The parts of a multipart body: each is an image.
async fn parts(request: Request, app: &std::sync::Arc<App>) -> Result<Vec<Upload>, ApiError> {
    let mut body = Multipart::from_request(request, app)
        .await
        .map_err(|rejection| ApiError::new(Code::InvalidRequest, rejection.body_text()))?;
    let broken = |error: MultipartError| {
        let code = match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Code::BodyTooLarge,
            _ => Code::InvalidRequest,
        };
        ApiError::new(code, format!("multipart: {}", error.body_text()))
    };
    let mut images = Vec::new();
    while let Some(part) = body.next_field().await.map_err(broken)? {
        if images.len() == MAX_IMAGES {
            let message = format!("expected at most {MAX_IMAGES} images, got more");
            return Err(ApiError::new(Code::InvalidRequest, message));
        }
        let name = part.file_name().or(part.name()).unwrap_or("image");
        let name = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
        images.push(Upload { name, bytes: part.bytes().await.map_err(broken)? });
    }
    Ok(images)
}
