//! What all pages share: head, style and footer.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::grouped::grouped;
use crate::plot::CHART_STYLE;

/// A page with its title and `content`.
pub(super) fn frame(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) (PreEscaped(CHART_STYLE)) }
            }
            body {
                h1 { (title) }
                (content)
                footer { "sren " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

/// What the columns of the paper's Table 1 mean.
pub(super) fn about_digits(images: usize) -> Markup {
    html! {
        p.soft {
            (grouped(images)) " test digits; R: rotated by any angle, S: scaled by 1 to 2, SRT: both and "
            "translated by up to 10 pixels. The paper's networks have 11.7 million parameters and "
            "200 epochs."
        }
    }
}
