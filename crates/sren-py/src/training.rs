//! Training and evaluation of runs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sren_data::Source;
use sren_lab::inference::Model;
use sren_lab::training::{EpochMetrics, Event, Outcome, RunFolder, Trainer, TrainingRequest};
use sren_lab::{EvaluationRequest, Subset, Transform};

use crate::failure::{Failure, Result};
use crate::watch::{Report, watch};

/// A step or an epoch that is done.
enum Done {
    Step { epoch: [usize; 2], step: [usize; 2], figures: [f64; 4] },
    Epoch(EpochMetrics),
}

impl From<Event<'_>> for Done {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Step { epoch, step, loss, accuracy, images_per_second, seconds_left } => {
                let figures = [loss, accuracy, images_per_second, seconds_left];
                Self::Step { epoch, step, figures }
            }
            Event::Epoch(metrics) => Self::Epoch(metrics.clone()),
        }
    }
}

/// The folder of the run, whether it is done, and the files that are not trained on.
type Trained = (PathBuf, bool, Vec<String>);

/// Trains a new run. `on_report(kind, values)` hears of every step, epoch and task; if it returns
/// `False`, training stops.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
    on_report: &Bound<'_, PyAny>,
) -> Result<Trained> {
    let request = request(options)?;
    run(py, on_report, move |ignored| {
        let started = request.start(|broken, others| {
            let others = others.iter().map(|path| format!("{}: no image", path.display()));
            ignored.extend(broken.iter().map(ToString::to_string).chain(others));
        });
        Ok(started?)
    })
}

/// Trains the run in a folder on, from where it stopped.
#[pyfunction]
pub(crate) fn resume(
    py: Python<'_>,
    path: PathBuf,
    epochs: Option<usize>,
    on_report: &Bound<'_, PyAny>,
) -> Result<Trained> {
    run(py, on_report, move |_| Ok(Trainer::reopen(&path, epochs)?))
}

fn run(
    py: Python<'_>,
    on_report: &Bound<'_, PyAny>,
    start: impl FnOnce(&mut Vec<String>) -> Result<(Trainer, RunFolder)> + Send,
) -> Result<Trained> {
    let stop = AtomicBool::new(false);
    let work = |sender: &SyncSender<Done>| {
        let mut ignored = Vec::new();
        let (mut trainer, folder) = start(&mut ignored)?;
        // The receiver outlives the training.
        let outcome = trainer.run(&stop, &mut |event| drop(sender.send(event.into())))?;
        Ok((folder.path().to_path_buf(), outcome == Outcome::Done, ignored))
    };
    let on_report = |report| {
        let values = PyDict::new(py);
        let kind = match report {
            Report::Event(Done::Step { epoch, step, figures }) => {
                values.set_item("epoch", epoch[0])?;
                values.set_item("epochs", epoch[1])?;
                values.set_item("step", step[0])?;
                values.set_item("steps", step[1])?;
                let names = ["loss", "accuracy", "images_per_second", "seconds_left"];
                for (name, value) in names.into_iter().zip(figures) {
                    values.set_item(name, value)?;
                }
                "step"
            }
            Report::Event(Done::Epoch(metrics)) => {
                values.set_item("epoch", metrics.epoch)?;
                values.set_item("loss", metrics.loss)?;
                values.set_item("accuracy", metrics.accuracy)?;
                values.set_item("validation_accuracy", metrics.validation_accuracy)?;
                values.set_item("learning_rate", metrics.learning_rate)?;
                values.set_item("images_per_second", metrics.images_per_second)?;
                "epoch"
            }
            Report::Task(task, done, total) => task_values(&values, &task, done, total)?,
        };
        if on_report.call1((kind, values))?.is(pyo3::types::PyBool::new(py, false)) {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    watch(py, &stop, on_report, work)
}

fn task_values(
    values: &Bound<'_, PyDict>,
    task: &str,
    done: usize,
    total: usize,
) -> Result<&'static str> {
    values.set_item("task", task)?;
    values.set_item("done", done)?;
    values.set_item("total", total)?;
    Ok("task")
}

fn request(options: &Bound<'_, PyDict>) -> Result<TrainingRequest> {
    let text = |name: &str| -> Result<Option<String>> { option(options, name) };
    let augment = text("augment")?;
    Ok(TrainingRequest {
        data: text("data")?.map(Source::from),
        size: option(options, "size")?,
        preset: text("preset")?.map(|name| name.parse()).transpose()?,
        config: option(options, "config")?,
        model: text("model")?.map(|name| name.parse()).transpose()?,
        arch: text("arch")?.map(|name| name.parse()).transpose()?,
        augment: augment.map(|name| name.parse()).transpose()?,
        no_augment: option(options, "no_augment")? == Some(true),
        epochs: option(options, "epochs")?,
        batch: option(options, "batch")?,
        images: option(options, "images")?,
        seed: option(options, "seed")?,
        out: option(options, "out")?,
        from: option(options, "start")?,
        freeze_backbone: option(options, "freeze_backbone")? == Some(true),
    })
}

/// An option that may be absent or `None`.
fn option<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> Result<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let Some(value) = options.get_item(name)?.filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    let got = value.repr()?.to_string();
    let wrong =
        |e: PyErr| Failure::value(format!("{name}: expected another value, got {got} ({e})"));
    value.extract().map(Some).map_err(wrong)
}

/// The results of a run on test sets, as JSON. `on_report(kind, values)` hears of the progress.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    path: PathBuf,
    sets: Vec<String>,
    images: usize,
    data: Option<String>,
    held_out: bool,
    on_report: &Bound<'_, PyAny>,
) -> Result<(String, Vec<String>)> {
    let sets = sets.iter().map(|set| set.parse()).collect::<Result<Vec<_>, _>>()?;
    let subset = if held_out { Subset::HeldOut } else { Subset::Test };
    let request = EvaluationRequest { transforms: Transform::named(&sets), subset, images };
    let stop = AtomicBool::new(false);
    let work = |_: &SyncSender<()>| {
        let mut model = Model::open(&path)?;
        if let Some(data) = data {
            model.config.replace_data(&Source::from(data))?;
        }
        let mut ignored = Vec::new();
        let report = request.run(&path, &model, &stop, |broken, _| {
            ignored.extend(broken.iter().map(ToString::to_string));
        })?;
        Ok((serde_json::to_string(&report).map_err(Failure::value)?, ignored))
    };
    let on_report = |report| {
        if let Report::Task(task, done, total) = report {
            let values = PyDict::new(py);
            let kind = task_values(&values, &task, done, total)?;
            on_report.call1((kind, values))?;
        }
        Ok(())
    };
    watch(py, &stop, on_report, work)
}
