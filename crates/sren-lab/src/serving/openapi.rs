//! `GET /openapi.json`: the API described by the types that it is made of.

use axum::Json;
use utoipa::OpenApi;

use super::{features, metrics, model, poses, predict, router};

/// The document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "sren serve",
        description = "A scale and rotation equivariant network as a service. Errors are JSON with a \
            stable code. The routes of the page are not part of the API.",
    ),
    paths(
        predict::predict,
        poses::poses,
        features::features,
        model::model,
        router::health,
        metrics::metrics,
        openapi,
    ),
    components(schemas(super::error::ErrorBody))
)]
struct Document;

/// This document
#[utoipa::path(get, path = "/openapi.json", responses(
    (status = 200, description = "An OpenAPI document", body = Object),
))]
pub(super) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_describes_every_route_and_no_other() {
        let mut routes = router::api().map(|(path, _)| path.to_string());
        routes.sort();
        let described: Vec<String> = Document::openapi().paths.paths.into_keys().collect();
        assert_eq!(described, routes);
    }
}
