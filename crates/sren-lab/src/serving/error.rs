//! Errors of the API: a status by its meaning, a code that stays the same, and a line for people.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::LabError;

/// Seconds after which a refused client may try again: a full queue is computed by then.
const RETRY_AFTER: u64 = 1;

/// What went wrong. Codes do not change between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Code {
    /// 400: a query or a multipart body that cannot be read, no image, or too many.
    InvalidRequest,
    /// 400: bytes that are no image.
    InvalidImage,
    /// 400: a layer that the model does not have.
    UnknownLayer,
    /// 400: poses of a model that estimates none.
    NoFrames,
    /// 404: no such path.
    NotFound,
    /// 405: a path that is used with another method.
    MethodNotAllowed,
    /// 408: a request that took too long to arrive or to compute.
    Timeout,
    /// 413: a body over the limit.
    BodyTooLarge,
    /// 413: an image of more pixels than are decoded, by its header.
    ImageTooLarge,
    /// 415: a content type that is no image.
    UnsupportedMediaType,
    /// 429: this client alone fills half of the queue.
    TooManyRequests,
    /// 500: a fault of the service.
    Internal,
    /// 503: the queue is full.
    Overloaded,
}

impl Code {
    fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::InvalidImage | Self::UnknownLayer | Self::NoFrames => {
                StatusCode::BAD_REQUEST
            }
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge | Self::ImageTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// An error of the API.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ApiError {
    /// What went wrong, for programs.
    pub(super) code: Code,
    /// What went wrong, for people: one line.
    pub(super) message: String,
}

/// The body of an answer that is an error.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorBody {
    error: ApiError,
}

impl ApiError {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        let message: String = message.into();
        let words: Vec<&str> = message.lines().map(str::trim).collect();
        Self { code, message: words.join(" ") }
    }

    /// The error that a layer in front of the routes answered with.
    pub(super) fn of_status(status: StatusCode) -> Self {
        let (code, message) = match status {
            StatusCode::NOT_FOUND => (Code::NotFound, "no such path; see /openapi.json"),
            StatusCode::METHOD_NOT_ALLOWED => {
                (Code::MethodNotAllowed, "this path takes another method; see /openapi.json")
            }
            StatusCode::REQUEST_TIMEOUT => (Code::Timeout, "the request took too long"),
            StatusCode::PAYLOAD_TOO_LARGE => {
                (Code::BodyTooLarge, "the body is larger than this server reads")
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                (Code::UnsupportedMediaType, "expected an image, or multipart/form-data of images")
            }
            status if status.is_client_error() => (Code::InvalidRequest, "an invalid request"),
            _ => (Code::Internal, "a fault of the service"),
        };
        Self::new(code, message)
    }
}

/// A network or a picture that fails on images that were read is a fault of the service.
impl From<LabError> for ApiError {
    fn from(error: LabError) -> Self {
        tracing::error!("{error}");
        Self::new(Code::Internal, error.to_string())
    }
}

impl From<sren::Error> for ApiError {
    fn from(error: sren::Error) -> Self {
        LabError::from(error).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.code;
        let mut response = (code.status(), Json(ErrorBody { error: self })).into_response();
        if matches!(code, Code::Overloaded | Code::TooManyRequests) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        }
        response
    }
}
