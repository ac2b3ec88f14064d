//! Progress on standard error: a bar on a terminal, a line every few seconds elsewhere.

use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sren_lab::progress::{Observer, set_observer};
use sren_lab::training::{Event, Outcome, Trainer};
use sren_lab::{LabError, interrupt_flag};

/// Between two lines where standard error is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// A task, and a step of training, whose message holds everything.
const TASK: &str = "[{bar:20}] {msg}  {pos}/{len}  {eta} left";
const TRAINING: &str = "[{bar:20}] {msg}";

/// The bar of the process. It is hidden where standard error is no terminal.
static BAR: LazyLock<ProgressBar> = LazyLock::new(ProgressBar::no_length);
static SHOWN: Mutex<Option<Shown>> = Mutex::new(None);

/// What is shown now.
struct Shown {
    task: String,
    begin: Instant,
    line: Instant,
}

struct Display;

/// Shows the progress of all measurements.
pub(crate) fn install() {
    set_observer(&Display);
}

impl Observer for Display {
    fn update(&self, task: &str, done: usize, total: usize) {
        show(task, TASK, [done, total], |begin| {
            let left = begin.elapsed().as_secs_f64() * (total - done) as f64 / done.max(1) as f64;
            format!("{task}: {done}/{total}, {} left", clock(left))
        });
    }

    fn finish(&self, _: &str) {
        clear();
    }
}

/// Trains to the end, or until a signal interrupts it, and shows every step.
pub(crate) fn train(run: &mut Trainer) -> Result<Outcome, LabError> {
    let outcome = run.run(interrupt_flag(), &mut |event| match event {
        Event::Step { epoch, step, loss, accuracy, images_per_second, seconds_left } => {
            let done = (epoch[0] - 1) * step[1] + step[0];
            let line = format!(
                "epoch {}/{} step {}/{}  loss {loss:.4}  accuracy {accuracy:.2} %  \
                 {images_per_second:.0} images/s  {} left",
                epoch[0],
                epoch[1],
                step[0],
                step[1],
                clock(seconds_left),
            );
            BAR.set_message(line.clone());
            show("training", TRAINING, [done, epoch[1] * step[1]], |_| line);
        }
        Event::Epoch(metrics) => BAR.suspend(|| {
            eprintln!(
                "epoch {}: loss {:.4}  accuracy {:.2} %  validation {:.2} %  {:.0} images/s",
                metrics.epoch,
                metrics.loss,
                metrics.accuracy,
                metrics.validation_accuracy,
                metrics.images_per_second,
            );
        }),
    });
    clear();
    outcome
}

/// Moves the bar, or prints `line` if it is time for one.
fn show(
    task: &str,
    template: &str,
    [done, total]: [usize; 2],
    line: impl FnOnce(Instant) -> String,
) {
    let Ok(mut shown) = SHOWN.lock() else { return };
    if shown.as_ref().is_none_or(|shown| shown.task != task) {
        let begin = Instant::now();
        BAR.reset();
        if let Ok(style) = ProgressStyle::with_template(template) {
            BAR.set_style(style.progress_chars("#-"));
        }
        if template == TASK {
            BAR.set_message(task.to_string());
        }
        // Training is interrupted by validation and its lines go on.
        let line = shown.as_ref().map_or(begin, |shown| shown.line);
        *shown = Some(Shown { task: task.into(), begin, line });
    }
    BAR.set_length(total as u64);
    BAR.set_position(done as u64);
    if let Some(shown) = shown.as_mut().filter(|shown| shown.line.elapsed() >= LINE_EVERY) {
        shown.line = Instant::now();
        if BAR.is_hidden() {
            eprintln!("{}", line(shown.begin));
        }
    }
}

/// Removes the bar.
fn clear() {
    BAR.finish_and_clear();
    if let Ok(mut shown) = SHOWN.lock()
        && let Some(shown) = shown.as_mut()
    {
        shown.task.clear();
    }
}

/// Minutes and seconds.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_in_minutes_and_seconds() {
        assert_eq!([clock(61.4), clock(0.2), clock(3599.6)], ["1:01", "0:00", "60:00"]);
    }

    #[test]
    fn templates_are_valid() {
        for template in [TASK, TRAINING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
