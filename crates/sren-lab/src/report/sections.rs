//! The page, part by part.

use std::fmt::Write;

use sren_data::TestSet;

use super::base64::base64;
use super::predictions::{Prediction, confusion, worst};
use super::{Measured, Report, Words};
use crate::canvas::Canvas;
use crate::equivariance::{EquivarianceResult, figure};
use crate::error::Result;
use crate::paper::paper_row;
use crate::plot::{CHART_STYLE, LineChart, Series, escape};
use crate::stability::{angle_chart, scale_chart};
use crate::training::EpochMetrics;

/// Mistakes shown of each test set.
const MISTAKES: usize = 16;
/// Most classes that a matrix is drawn of, and letters of their names above its columns.
const MATRIX_CLASSES: usize = 40;
const HEAD_LETTERS: usize = 4;

/// The whole page.
pub(super) fn page(report: &Report, measured: &Measured) -> Result<String> {
    let config = report.config;
    let plus = if config.augment { "+" } else { "" };
    let title = format!("{}{plus} on {}: {}", config.model, config.data, config.arch);
    let words = Words::of(config);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{0}</title><style>{1}{CHART_STYLE}</style></head><body>\n<h1>{0}</h1>\n",
        escape(&title),
        include_str!("style.css"),
    );
    page.push_str(&summary(report, &words, &measured.metrics));
    page.push_str(&match config.image_folder {
        None => table(report),
        Some(_) => by_class(measured, &words)?,
    });
    page.push_str(&curves(&measured.metrics));
    page.push_str(&matrices(measured, &words)?);
    page.push_str(&stability(measured, &words));
    page.push_str(&equivariance(&measured.equivariance, &words));
    page.push_str(&features(measured, &words));
    page.push_str(&mistakes(measured, &words)?);
    page.push_str(&repeat(report)?);
    let _ = write!(page, "<footer>sren {}</footer>\n</body></html>\n", env!("CARGO_PKG_VERSION"));
    Ok(page)
}

fn summary(report: &Report, words: &Words, metrics: &[EpochMetrics]) -> String {
    let (config, evaluation) = (report.config, report.evaluation);
    let follows = match config.model.as_str() {
        "sren" => "It follows rotations and scalings of the image.",
        "so2" => "It follows rotations of the image.",
        "scale" => "It follows scalings of the image.",
        _ => "It follows no transform of the image: a plain CNN.",
    };
    let how = match config.augment {
        true => "turned by up to 30 degrees and scaled by 0.8 to 1.2",
        false => "upright only",
    };
    let mut text = format!(
        "<p class=\"soft\">Trained on {} {}s, {how}, for {}. {follows}</p>\n\
         <div class=\"facts\">",
        config.training_images,
        words.image,
        if metrics.len() == 1 { "1 epoch".into() } else { format!("{} epochs", metrics.len()) },
    );
    let mut fact = |value: String, name: &str| {
        let _ = write!(text, "<div><b>{value}</b><span>{name}</span></div>");
    };
    for (set, name) in [("upright", "upright"), (words.moved.name(), words.how_moved)] {
        if let Some(found) = evaluation.sets.get(set) {
            fact(format!("{:.2} %", found.accuracy), name);
        }
    }
    let best = metrics.iter().map(|m| m.validation_accuracy).fold(0.0, f64::max);
    fact(format!("{best:.2} %"), "best validation");
    fact(evaluation.parameters.to_string(), "parameters");
    text.push_str("</div>\n");
    text
}

fn table(report: &Report) -> String {
    let mut text = String::from(
        "<h2>Table 1</h2>\n<div class=\"scroll\"><table class=\"figures\"><tr><th>per cent</th><th>upright</th><th>R</th><th>S</th><th>SRT</th></tr><tr class=\"ours\"><td>this \
         run</td>",
    );
    let mut images = 0;
    for set in TestSet::ALL {
        let found = report.evaluation.sets.get(set.name());
        images = images.max(found.map_or(0, |found| found.n));
        let value = found.map_or("-".into(), |found| format!("{:.2}", found.accuracy));
        let _ = write!(text, "<td>{value}</td>");
    }
    let own = paper_row(&report.config.model, report.config.augment);
    let rows = own.into_iter().chain(paper_row("cnn", false));
    let mut names = Vec::new();
    for (name, values) in rows {
        if !names.contains(&name) {
            names.push(name);
            let cells = values.map(|value| format!("<td>{value:.2}</td>")).concat();
            let _ = write!(text, "</tr><tr><td>{} of the paper</td>{cells}", escape(name));
        }
    }
    let _ = writeln!(
        text,
        "</tr></table></div><p class=\"soft\">{images} test digits; R: rotated by any angle, S: \
         scaled by 1 to 2, SRT: both and moved by up to 10 pixels. The paper's networks have 11.7 \
         million parameters and 200 epochs.</p>"
    );
    text
}

fn by_class(measured: &Measured, words: &Words) -> Result<String> {
    let mut text = format!(
        "<h2>Classes</h2>\n<div class=\"scroll\"><table class=\"figures\"><tr><th>per cent</th><th>\
         upright</th><th>{}</th></tr>",
        words.how_moved
    );
    let count = measured.classes.len();
    let upright = confusion(&measured.upright, count)?;
    let moved = confusion(&measured.moved, count)?;
    let mut row = |style: &str, name: &str, values: [Option<f64>; 2]| {
        let cell = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
        let [a, b] = values.map(cell);
        let name = escape(name);
        let _ = write!(text, "<tr{style}><td>{name}</td><td>{a}</td><td>{b}</td></tr>");
    };
    let all = [&upright, &moved].map(|found| Some(found.accuracy().accuracy));
    row(" class=\"ours\"", "all", all);
    let each = upright.by_class().into_iter().zip(moved.by_class());
    for (class, (upright, moved)) in measured.classes.iter().zip(each) {
        row("", class, [upright, moved]);
    }
    let _ = writeln!(
        text,
        "</table></div><p class=\"soft\">{} test photographs; {}: by any angle and 1 to 2.</p>",
        measured.upright.len(),
        words.how_moved
    );
    Ok(text)
}

fn curves(metrics: &[EpochMetrics]) -> String {
    let line = |name: &str, value: fn(&EpochMetrics) -> f64, dashed: bool| Series {
        name: name.into(),
        points: metrics.iter().map(|m| [m.epoch as f64, value(m)]).collect(),
        dashed,
    };
    let chart = |title: &str, y_label: &str, series: Vec<Series>| LineChart {
        title: title.into(),
        x_label: "epoch".into(),
        y_label: y_label.into(),
        log_y: false,
        y_range: None,
        series,
    };
    let accuracy = chart(
        "Accuracy",
        "per cent",
        vec![
            line("training", |m| m.accuracy, false),
            line("validation", |m| m.validation_accuracy, false),
        ],
    );
    let loss = chart("Loss", "mean of the epoch", vec![line("training", |m| m.loss, false)]);
    format!("<h2>Training</h2>\n{}", pair(&loss, &accuracy))
}

fn pair(a: &LineChart, b: &LineChart) -> String {
    format!("<div class=\"pair\"><figure>{}</figure><figure>{}</figure></div>\n", a.svg(), b.svg())
}

fn matrices(measured: &Measured, words: &Words) -> Result<String> {
    if measured.classes.len() > MATRIX_CLASSES {
        return Ok(String::new());
    }
    let moved = format!("{} ({})", words.how_moved, words.moved.name());
    Ok(format!(
        "<h2>Confusion</h2>\n<p class=\"soft\">{} test {}s. Rows: what it is; columns: what the \
         network takes it for.</p><div class=\"pair\">{}{}</div>\n",
        measured.upright.len(),
        words.image,
        matrix("upright", &measured.upright, &measured.classes)?,
        matrix(&moved, &measured.moved, &measured.classes)?,
    ))
}

fn matrix(name: &str, predictions: &[Prediction], classes: &[String]) -> Result<String> {
    let mut text = format!(
        "<div class=\"scroll\"><table class=\"confusion\"><caption>{name}</caption><tr><th></th>"
    );
    for class in classes {
        let head: String = class.chars().take(HEAD_LETTERS).collect();
        let _ = write!(text, "<th title=\"{}\">{}</th>", escape(class), escape(&head));
    }
    let found = confusion(predictions, classes.len())?;
    for (class, row) in found.counts().iter().enumerate() {
        let _ = write!(text, "</tr><tr><th>{}</th>", escape(&classes[class]));
        let all = row.iter().sum::<usize>().max(1) as f64;
        for (told, count) in row.iter().enumerate() {
            // Mistakes are few: their colour grows faster.
            let share = *count as f64 / all;
            let (colour, share) = match told == class {
                true => ("59,130,214", 0.65 * share),
                false => ("224,120,47", (4.0 * share).min(0.9)),
            };
            let shown = if *count == 0 { String::new() } else { count.to_string() };
            let _ = write!(text, "<td style=\"background:rgba({colour},{share:.3})\">{shown}</td>");
        }
    }
    text.push_str("</tr></table></div>");
    Ok(text)
}

fn stability(measured: &Measured, words: &Words) -> String {
    let runs = std::slice::from_ref(&measured.stability);
    format!(
        "<h2>Stability</h2>\n<p class=\"soft\">Accuracy of {} test {image}s, all turned or scaled \
         alike. From a scale of about {} on, {image}s leave their canvas.</p>{}",
        measured.stability.images,
        words.too_large,
        pair(&angle_chart(runs), &scale_chart(runs)),
        image = words.image,
    )
}

fn equivariance(result: &EquivarianceResult, words: &Words) -> String {
    let beside = match &result.cnn {
        Some(cnn) => format!(" CNN: {}.", escape(&cnn.weights)),
        None => String::new(),
    };
    let mut text = format!(
        "<h2>Equivariance</h2>\n<p class=\"soft\">How far features are from moving with the image: \
         |F(Tx)(Tp) - F(x)(p)|² / |F(x)|², on {} {}s, within {} pixels of the centre. 0 is \
         equivariant, about 1 unrelated.{beside}</p>{}<div class=\"scroll\"><table \
         class=\"figures\"><tr><th>layer</th><th>rotation</th><th>scale 0.7 to 1.4</th><th>both\
         </th><th>90 degrees</th></tr>",
        result.images,
        words.image,
        result.radius,
        pair(&result.angle_chart(), &result.scale_chart())
    );
    let cnn = result.cnn.as_ref().map(|cnn| ("CNN ", &cnn.survey));
    for (prefix, survey) in std::iter::once(("", &result.survey)).chain(cnn) {
        for layer in &survey.layers {
            let e = &layer.errors;
            let cells = [e.rotation, e.scale, e.both, e.rot90]
                .map(|error| format!("<td>{}</td>", figure(error)))
                .concat();
            let _ = write!(text, "<tr><td>{prefix}{}</td>{cells}</tr>", escape(&layer.name));
        }
    }
    text.push_str("</table></div>\n");
    text
}

fn features(measured: &Measured, words: &Words) -> String {
    let beside = match measured.equivariance.cnn {
        Some(_) => " The CNN has the same weights, without frames.",
        None => "",
    };
    format!(
        "<h2>Features</h2>\n<p class=\"soft\">The same {image} turned and scaled, the local frames \
         if there are any, and the features turned and scaled back (three channels as red, green \
         and blue). What is equivariant looks the same in every column.{beside}</p><div class=\"scroll\"><img class=\"picture\" alt=\"features of a transformed \
         {image}, transformed back\" src=\"{}\"></div>\n",
        picture(&measured.features),
        image = words.image,
    )
}

fn picture(png: &[u8]) -> String {
    format!("data:image/png;base64,{}", base64(png))
}

fn mistakes(measured: &Measured, words: &Words) -> Result<String> {
    let mut text = String::from("<h2>Worst mistakes</h2>\n");
    let moved = words.moved.name().to_uppercase();
    for (name, predictions) in [("Upright", &measured.upright), (&moved, &measured.moved)] {
        let found = worst(predictions, MISTAKES);
        let wrong = predictions.iter().filter(|p| p.told != p.label).count();
        let _ = write!(
            text,
            "<h3>{name}: {wrong} of {} wrong, the surest first</h3><div class=\"mistakes\">",
            predictions.len()
        );
        for mistake in found {
            let png = Canvas::enlarge(&mistake.image, 2, [0.0, 1.0]).png()?;
            let [label, told] =
                [mistake.label, mistake.told].map(|class| escape(&measured.classes[class]));
            let _ = write!(
                text,
                "<figure><img alt=\"{label} taken for {told}\" src=\"{}\"><figcaption>{label} \
                 taken for <b>{told}</b><br>{:.0} %, {} {}</figcaption></figure>",
                picture(&png),
                100.0 * mistake.probability,
                words.image,
                mistake.index
            );
        }
        text.push_str("</div>\n");
    }
    Ok(text)
}

fn repeat(report: &Report) -> Result<String> {
    let config = report.folder.path().join("config.toml");
    Ok(format!(
        "<h2>To repeat it</h2>\n<p class=\"soft\">This page was written by</p><pre>{}</pre><p \
         class=\"soft\">and the same run is made anew, in another folder, by</p><pre>sren train \
         --config {} --out FOLDER</pre>\n<h3>config.toml</h3><pre>{}</pre>\n",
        escape(report.command),
        escape(&config.display().to_string()),
        escape(&report.config.to_toml()?)
    ))
}
