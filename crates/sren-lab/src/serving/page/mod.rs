//! The page: its files, which are part of the program, and what it asks for. Its routes are not part
//! of the API and may change.

mod digits;
pub(super) mod rotations;
pub(super) mod view;

use std::sync::Arc;

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};

use super::router::App;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the page.
macro_rules! file {
    ($name:literal, $kind:expr) => {
        get(|| async {
            let content = include_str!(concat!("../../../page/", $name));
            ([(header::CONTENT_TYPE, $kind)], content).into_response()
        })
    };
}

/// The routes of the page.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<App>>); 12] {
    [
        ("/", file!("index.html", HTML)),
        ("/page/style.css", file!("style.css", CSS)),
        ("/page/app.js", file!("app.js", SCRIPT)),
        ("/page/stage.js", file!("stage.js", SCRIPT)),
        ("/page/source.js", file!("source.js", SCRIPT)),
        ("/page/drawing.js", file!("drawing.js", SCRIPT)),
        ("/page/server.js", file!("server.js", SCRIPT)),
        ("/page/bars.js", file!("bars.js", SCRIPT)),
        ("/page/polar.js", file!("polar.js", SCRIPT)),
        ("/page/view", post(view::view)),
        ("/page/rotations", post(rotations::rotations)),
        ("/page/digits/{number}", get(digits::digit)),
    ]
}
