//! Figures of the service, in the text format of Prometheus.

use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::error::{ApiError, Code};
use super::router::Shared;

const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A route, and the status of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

type Seconds = Family<Route, Histogram, fn() -> Histogram>;

/// The figures.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Seconds,
    /// Images that wait or are computed.
    pub(super) queue: Gauge,
    /// Jobs of each batch.
    pub(super) batch_images: Histogram,
    /// Time that each batch took.
    pub(super) batch_seconds: Histogram,
}

/// From a millisecond to half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("sren");
        let requests = Family::default();
        let latency: Seconds = Family::new_with_constructor(seconds);
        let queue = Gauge::default();
        let batch_images = Histogram::new(exponential_buckets(1.0, 2.0, 6));
        let batch_seconds = seconds();
        registry.register("requests", "Answers, by route and status", requests.clone());
        registry.register_with_unit(
            "request",
            "Time from the headers of a request to its answer",
            Unit::Seconds,
            latency.clone(),
        );
        registry.register("queue_images", "Images that wait or are computed", queue.clone());
        registry.register(
            "batch_images",
            "Requests that were computed together",
            batch_images.clone(),
        );
        registry.register_with_unit(
            "batch",
            "Time that a batch took",
            Unit::Seconds,
            batch_seconds.clone(),
        );
        Self { registry, requests, seconds: latency, queue, batch_images, batch_seconds }
    }
}

impl Metrics {
    /// Counts an answer.
    pub(super) fn answered(&self, route: &str, status: u16, time: Duration) {
        let route = route.to_string();
        self.seconds.get_or_create(&Route { route: route.clone() }).observe(time.as_secs_f64());
        self.requests.get_or_create(&Answered { route, status }).inc();
    }
}

/// Figures for Prometheus
///
/// Requests by route and status, latency, batch sizes, queue.
#[utoipa::path(get, path = "/metrics", responses(
    (status = 200, description = "OpenMetrics text", body = String,
        content_type = "application/openmetrics-text"),
))]
pub(super) async fn metrics(State(app): Shared) -> Result<impl IntoResponse, ApiError> {
    let mut text = String::new();
    encode(&mut text, &app.metrics.registry)
        .map_err(|e| ApiError::new(Code::Internal, e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, TEXT)], text))
}
