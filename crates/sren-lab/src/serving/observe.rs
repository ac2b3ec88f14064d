//! What every answer goes through: it is counted, and errors of layers in front of the routes become
//! errors of the API.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::ApiError;
use super::router::Shared;

/// The route of requests that have none.
const NO_ROUTE: &str = "none";

pub(super) async fn observe(State(app): Shared, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_string());
    let response = as_json(next.run(request).await);
    let status = response.status().as_u16();
    app.metrics.answered(route.as_deref().unwrap_or(NO_ROUTE), status, begin.elapsed());
    response
}

/// An error without a body of the API gets one.
fn as_json(response: Response) -> Response {
    let status = response.status();
    let json = |value: &axum::http::HeaderValue| value.as_bytes().starts_with(b"application/json");
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(json);
    if !(status.is_client_error() || status.is_server_error()) || is_json {
        return response;
    }
    let allowed = response.headers().get(header::ALLOW).cloned();
    let mut answer = ApiError::of_status(status).into_response();
    *answer.status_mut() = status;
    if let Some(allowed) = allowed {
        answer.headers_mut().insert(header::ALLOW, allowed);
    }
    answer
}
