//! The sections of the page of a run.

use data_encoding::BASE64;
use maud::{Markup, html};
use sren_data::{AugmentationPolicy, TestSet};

use super::page_frame::{about_digits, frame};
use super::predictions::{Prediction, confusion, most_confident_errors};
use super::{Measured, Report, Words};
use crate::canvas::Canvas;
use crate::equivariance::{EquivarianceResult, figure};
use crate::error::Result;
use crate::grouped::grouped;
use crate::paper::paper_row;
use crate::plot::{LineChart, Series};
use crate::stability::{angle_chart, scale_chart};
use crate::training::{EpochMetrics, kept_epoch};

/// Errors shown per test set.
const ERRORS: usize = 16;
/// Most classes that a matrix is drawn of, and letters of their names that have room above its columns;
/// longer ones are rotated.
const MATRIX_CLASSES: usize = 40;
const HEAD_LETTERS: usize = 4;

/// The whole page.
pub(super) fn page(report: &Report, measured: &Measured) -> Result<String> {
    let config = report.config;
    let suffix = config.augment.suffix();
    let title = format!("{}{suffix} on {}: {}", config.model, config.data, config.arch);
    let words = Words::of(config);
    let content = html! {
        (summary(report, &words, &measured.metrics))
        @if config.image_folder.is_none() {
            (table(report))
        } @else {
            (by_class(measured, &words)?)
        }
        (curves(&measured.metrics))
        @if measured.classes.len() <= MATRIX_CLASSES {
            (matrices(measured, &words)?)
        }
        (stability(measured, &words))
        (equivariance(&measured.equivariance, &words))
        (features(measured, &words))
        (errors(measured, &words)?)
        (repeat(report)?)
    };
    Ok(frame(&title, &content).into_string())
}

fn summary(report: &Report, words: &Words, metrics: &[EpochMetrics]) -> Markup {
    let (config, evaluation) = (report.config, report.evaluation);
    let group = match config.model.as_str() {
        "sren" => "It is equivariant to rotation and scale.",
        "so2" => "It is equivariant to rotation.",
        "scale" => "It is equivariant to scale.",
        _ => "It is a plain CNN, equivariant to translation only.",
    };
    let how = match config.augment {
        AugmentationPolicy::None => "upright only",
        AugmentationPolicy::Paper => "rotated by up to 30 degrees and scaled by 0.8 to 1.2",
        _ => "rotated, scaled and moved as the test images are",
    };
    let sets = [("upright", "upright"), (words.moved.name(), words.how_moved)];
    let kept = kept_epoch(metrics, config.validation_images);
    let fact = |value: &str, name: &str| html! { div { b { (value) } span { (name) } } };
    let of = |images: usize| format!(", {} {}s", grouped(images), words.image);
    html! {
        p.soft {
            "Trained on " (grouped(config.training_images)) " " (words.image) "s, " (how) ", for "
            (metrics.len()) " epoch" @if metrics.len() != 1 { "s" } ". " (group)
        }
        div.facts {
            @for (set, name) in sets {
                @if let Some(found) = evaluation.sets.get(set) {
                    (fact(&format!("{:.2} %", found.accuracy), &(name.to_string() + &of(found.n))))
                }
            }
            @if let Some(kept) = kept {
                (fact(&format!("{:.2} %", kept.validation_accuracy),
                    &format!("validation, epoch {}{}", kept.epoch, of(config.validation_images))))
            }
            (fact(&grouped(evaluation.parameters), "parameters"))
        }
    }
}

fn table(report: &Report) -> Markup {
    let found = TestSet::ALL.map(|set| report.evaluation.sets.get(set.name()));
    let images = found.iter().flatten().map(|found| found.n).max().unwrap_or(0);
    let mut rows: Vec<_> = paper_row(&report.config.model, report.config.augment)
        .into_iter()
        .chain(paper_row("cnn", AugmentationPolicy::None))
        .collect();
    rows.dedup_by_key(|(name, _)| *name);
    html! {
        h2 { "Table 1" }
        div.scroll {
            table.figures {
                tr { th { "per cent" } th { "upright" } th { "R" } th { "S" } th { "SRT" } }
                tr.ours {
                    td { "this run" }
                    @for found in found { (percentage(found.map(|found| found.accuracy), 2)) }
                }
                @for (name, values) in rows {
                    tr {
                        td { (name) " of the paper" }
                        @for value in values { (percentage(Some(value), 2)) }
                    }
                }
            }
        }
        (about_digits(images))
    }
}

/// A cell with a percentage, or a dash.
fn percentage(value: Option<f64>, digits: usize) -> Markup {
    let text = value.map_or("-".into(), |value| format!("{value:.digits$}"));
    html! { td { (text) } }
}

fn by_class(measured: &Measured, words: &Words) -> Result<Markup> {
    let count = measured.classes.len();
    let found = [confusion(&measured.upright, count)?, confusion(&measured.moved, count)?];
    let [upright, moved] = [found[0].by_class(), found[1].by_class()];
    let images = found[0].counts().iter().map(|row| row.iter().sum::<usize>());
    let classes = measured.classes.iter().zip(images).zip(upright.into_iter().zip(moved));
    Ok(html! {
        h2 { "Classes" }
        div.scroll {
            table.figures {
                tr { th { "per cent" } th { "images" } th { "upright" } th { (words.how_moved) } }
                tr.ours {
                    td { "all" } td { (grouped(measured.upright.len())) }
                    @for found in &found { (percentage(Some(found.accuracy().accuracy), 1)) }
                }
                @for ((class, images), (upright, moved)) in classes {
                    tr { td { (class) } td { (grouped(images)) } (percentage(upright, 1)) (percentage(moved, 1)) }
                }
            }
        }
        p.soft {
            (grouped(measured.upright.len())) " test photographs; " (words.how_moved)
            ": by any angle and 1 to 2."
        }
    })
}

fn curves(metrics: &[EpochMetrics]) -> Markup {
    let line = |name: &str, value: fn(&EpochMetrics) -> f64| Series {
        name: name.into(),
        points: metrics.iter().map(|m| [m.epoch as f64, value(m)]).collect(),
        dashed: false,
    };
    let chart = |title: &str, y_label: &str, series: Vec<Series>| LineChart {
        title: title.into(),
        x_label: "epoch".into(),
        y_label: y_label.into(),
        log_y: false,
        y_range: None,
        series,
    };
    let accuracy =
        vec![line("training", |m| m.accuracy), line("validation", |m| m.validation_accuracy)];
    let accuracy = chart("Accuracy", "per cent", accuracy);
    let loss = chart("Loss", "mean of the epoch", vec![line("training", |m| m.loss)]);
    html! { h2 { "Training" } (pair(&loss, &accuracy)) }
}

fn pair(a: &LineChart, b: &LineChart) -> Markup {
    html! { div.pair { figure { (a.draw(false)) } figure { (b.draw(false)) } } }
}

fn matrices(measured: &Measured, words: &Words) -> Result<Markup> {
    let moved = format!("{} ({})", words.how_moved, words.moved.name());
    Ok(html! {
        h2 { "Confusion" }
        p.soft {
            (grouped(measured.upright.len())) " test " (words.image)
            "s. Rows: true class; columns: predicted class."
        }
        div.pair {
            (matrix("upright", &measured.upright, &measured.classes)?)
            (matrix(&moved, &measured.moved, &measured.classes)?)
        }
    })
}

fn matrix(name: &str, predictions: &[Prediction], classes: &[String]) -> Result<Markup> {
    let found = confusion(predictions, classes.len())?;
    let long = classes.iter().any(|class| class.chars().count() > HEAD_LETTERS);
    let background = |row: &[usize], class: usize, predicted: usize| {
        // Errors are few: their colour grows faster.
        let share = row[predicted] as f64 / row.iter().sum::<usize>().max(1) as f64;
        let (colour, share) = match predicted == class {
            true => ("59,130,214", 0.65 * share),
            false => ("224,120,47", (4.0 * share).min(0.9)),
        };
        format!("background:rgba({colour},{share:.3})")
    };
    Ok(html! {
        div.scroll {
            table.confusion {
                caption { (name) }
                tr {
                    th {}
                    @for class in classes {
                        th title=(class) { span.rotated[long] { (class) } }
                    }
                }
                @for (class, row) in found.counts().iter().enumerate() {
                    tr {
                        th title=(classes[class]) { (classes[class]) }
                        @for (predicted, count) in row.iter().enumerate() {
                            td style=(background(row, class, predicted)) {
                                @if *count > 0 { (count) }
                            }
                        }
                    }
                }
            }
        }
    })
}

fn stability(measured: &Measured, words: &Words) -> Markup {
    let runs = std::slice::from_ref(&measured.stability);
    html! {
        h2 { "Stability" }
        p.soft {
            "Accuracy of " (grouped(measured.stability.images)) " test " (words.image)
            "s, all rotated by the same angle or scaled by the same factor. From a scale of about "
            (words.too_large) " on, " (words.image) "s leave their canvas."
        }
        (pair(&angle_chart(runs), &scale_chart(runs)))
    }
}

fn equivariance(result: &EquivarianceResult, words: &Words) -> Markup {
    let cnn = result.cnn.as_ref().map(|cnn| ("CNN ", &cnn.survey));
    html! {
        h2 { "Equivariance" }
        p.soft {
            "Relative error |F(Tx)(Tp) - F(x)(p)|² / |F(x)|² of the features F of an image x under "
            "a transform T, on " (result.images) " " (words.image) "s, at positions p within "
            (result.radius) " pixels of the centre. 0 is equivariant, about 1 unrelated."
            @if let Some(cnn) = &result.cnn { " CNN: " (cnn.weights) "." }
        }
        (pair(&result.angle_chart(), &result.scale_chart()))
        div.scroll {
            table.figures {
                tr {
                    th { "layer" } th { "rotation" } th { "scale 0.7 to 1.4" } th { "both" }
                    th { "90 degrees" }
                }
                @for (prefix, survey) in std::iter::once(("", &result.survey)).chain(cnn) {
                    @for layer in &survey.layers {
                        @let e = &layer.errors;
                        tr {
                            td { (prefix) (layer.name) }
                            @for error in [e.rotation, e.scale, e.both, e.rot90] {
                                td { (figure(error)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn features(measured: &Measured, words: &Words) -> Markup {
    html! {
        h2 { "Features" }
        p.soft {
            "The same " (words.image) " rotated and scaled, its local frames if the network uses "
            "them, and the features transformed back (three channels as red, green and blue). "
            "Equivariant features look the same in every column."
            @if measured.equivariance.cnn.is_some() {
                " Rows named CNN: the same weights in a plain CNN, whose taps lie on the pixel grid "
                "everywhere. Its features do not turn and grow with the image, so transformed back "
                "they differ from column to column."
            }
        }
        div.scroll tabindex="0" role="region" aria-label="picture of features" {
            img.picture src=(data_url(&measured.features))
                alt={ "features of a transformed " (words.image) ", transformed back" };
        }
    }
}

fn data_url(png: &[u8]) -> String {
    format!("data:image/png;base64,{}", BASE64.encode(png))
}

fn errors(measured: &Measured, words: &Words) -> Result<Markup> {
    let moved = words.moved.name().to_uppercase();
    Ok(html! {
        h2 { "Most confident errors" }
        @for (name, predictions) in [("Upright", &measured.upright), (&moved, &measured.moved)] {
            @let wrong = predictions.iter().filter(|p| p.predicted != p.label).count();
            h3 { (name) ": " (grouped(wrong)) " of " (grouped(predictions.len())) " wrong, most confident first" }
            div.mistakes {
                @for error in most_confident_errors(predictions, ERRORS) {
                    (one_error(error, measured)?)
                }
            }
        }
    })
}

fn one_error(error: &Prediction, measured: &Measured) -> Result<Markup> {
    let classes = &measured.classes;
    let name = measured.names.get(&error.index).map_or("", String::as_str);
    let png = Canvas::enlarge(&error.image, 2, [0.0, 1.0]).png()?;
    let [label, predicted] = [error.label, error.predicted].map(|class| &classes[class]);
    Ok(html! {
        figure {
            img alt={ (label) " predicted as " (predicted) } src=(data_url(&png));
            figcaption {
                (label) " predicted as " b { (predicted) } br;
                (format!("{:.0} %", 100.0 * error.probability)) ", " span.file { (name) }
            }
        }
    })
}

fn repeat(report: &Report) -> Result<Markup> {
    let config = report.folder.path().join("config.toml");
    Ok(html! {
        h2 { "To repeat it" }
        p.soft { "This page was written by" }
        pre { (report.command) }
        p.soft { "The same run is repeated, in another folder, by" }
        pre { "sren train --config " (config.display()) " --out FOLDER" }
        h3 { "config.toml" }
        pre { (report.config.to_toml()?) }
    })
}
