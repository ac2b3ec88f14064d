//! The bundled test digits.

use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::serving::error::ApiError;
use crate::serving::router::Shared;

/// What the digit is.
const LABEL: HeaderName = HeaderName::from_static("x-label");

/// Digit number `number` of the test set: 28 x 28 grey bytes.
pub(in crate::serving) async fn digit(
    State(app): Shared,
    Path(number): Path<String>,
) -> Result<Response, ApiError> {
    let digit = |number: usize| {
        let digits = app.networks.digits.as_ref()?;
        Some((digits.image(number)?, digits.label(number)?))
    };
    let found = number.parse().ok().and_then(digit);
    let (image, label) = found.ok_or_else(|| ApiError::of_status(StatusCode::NOT_FOUND))?;
    let bytes: Vec<u8> = image.data().iter().map(|v| (255.0 * v).round() as u8).collect();
    let kind = HeaderValue::from_static("application/octet-stream");
    Ok(([(header::CONTENT_TYPE, kind), (LABEL, u16::from(label).into())], bytes).into_response())
}
