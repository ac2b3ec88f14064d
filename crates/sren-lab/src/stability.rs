//! Accuracy against the angle and the scale of the test images.

use serde::Serialize;
use sren::Similarity;
use sren::models::Network;
use sren_data::Dataset;

use crate::error::Result;
use crate::evaluation::accuracy;
use crate::plot::{LineChart, Series};
use crate::progress::Task;

/// Degrees between two angles.
const ANGLE_STEP: usize = 15;
/// The scales. From about 2 on, digits begin to leave their canvas.
const SCALES: [f64; 12] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0];

/// The accuracy for one transform.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StabilityPoint {
    /// Degrees, or scale.
    pub at: f64,
    /// In per cent.
    pub accuracy: f64,
}

/// The accuracy of one network over angles and scales.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stability {
    /// The run.
    pub run: String,
    /// The equivariance group.
    pub model: String,
    /// Test images for each point.
    pub images: usize,
    /// Every 15 degrees of the circle.
    pub angle: Vec<StabilityPoint>,
    /// Scales 0.5 to 3.
    pub scale: Vec<StabilityPoint>,
}

/// Evaluates `network`, of the run called `run`, on the test images `indices`, rotated and scaled.
pub fn stability(
    run: &str,
    network: &Network,
    images: &Dataset,
    indices: &[usize],
) -> Result<Stability> {
    let task = Task::new("measuring stability", 360 / ANGLE_STEP + SCALES.len());
    let point = |at: f64, scale: f64, angle: f64| -> Result<StabilityPoint> {
        let transform = Similarity::new(scale, angle.to_radians(), [0.0; 2])?;
        let found = accuracy(network, images, indices, |_| Ok(transform))?;
        task.advance(1);
        Ok(StabilityPoint { at, accuracy: found.accuracy })
    };
    let angles = (0..360).step_by(ANGLE_STEP).map(|degrees| degrees as f64);
    Ok(Stability {
        run: run.into(),
        model: network.equivariance().name().into(),
        images: indices.len(),
        angle: angles.map(|degrees| point(degrees, 1.0, degrees)).collect::<Result<_>>()?,
        scale: SCALES.iter().map(|scale| point(*scale, *scale, 0.0)).collect::<Result<_>>()?,
    })
}

/// Accuracy against the angle, one line per run.
pub fn angle_chart(runs: &[Stability]) -> LineChart {
    chart(runs, "Accuracy against angle", "degrees", |run| {
        // The circle closes.
        let closing = run.angle.first().map(|first| [360.0, first.accuracy]);
        run.angle.iter().map(|p| [p.at, p.accuracy]).chain(closing).collect()
    })
}

/// Accuracy against the scale, one line per run.
pub fn scale_chart(runs: &[Stability]) -> LineChart {
    chart(runs, "Accuracy against scale", "scale", |run| {
        run.scale.iter().map(|p| [p.at, p.accuracy]).collect()
    })
}

fn chart(
    runs: &[Stability],
    title: &str,
    x_label: &str,
    points: fn(&Stability) -> Vec<[f64; 2]>,
) -> LineChart {
    let series = |run: &Stability| Series {
        name: if runs.len() == 1 {
            run.model.clone()
        } else {
            format!("{} {}", run.model, run.run)
        },
        points: points(run),
        dashed: false,
    };
    LineChart {
        title: title.into(),
        x_label: x_label.into(),
        y_label: "accuracy, per cent".into(),
        log_y: false,
        y_range: Some([0.0, 100.0]),
        series: runs.iter().map(series).collect(),
    }
}
