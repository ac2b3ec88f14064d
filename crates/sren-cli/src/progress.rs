//! Progress on standard error: a bar on a terminal, a line every few seconds elsewhere.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sren_lab::progress::{Observer, set_observer};
use sren_lab::training::{Event, Outcome, Trainer};
use sren_lab::{LabError, end_on_interrupt, interrupt_flag};

use crate::output::{is_quiet, note};

/// Between two lines where standard error is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How a task is shown, one of unknown length, and a step of training, whose message holds everything.
const TASK: &str = "[{bar:20}] {msg}  {pos}/{len}  {eta} left";
const COUNT: &str = "{msg}  {pos}";
const TRAINING: &str = "[{bar:20}] {msg}";

static SHOWN: Mutex<Shown> = Mutex::new(Shown { bar: None, line: None });

/// What is shown now.
struct Shown {
    /// The task and its bar, which draws nothing where standard error is no terminal.
    bar: Option<(String, ProgressBar)>,
    /// When the last line was printed, or work began.
    line: Option<Instant>,
}

struct Display;

/// Shows the progress of all measurements.
pub(crate) fn install() {
    set_observer(&Display);
}

impl Observer for Display {
    fn update(&self, task: &str, done: usize, total: usize) {
        if total == 0 {
            let line = |_: &ProgressBar| format!("{task}: {done}");
            return show(task, COUNT, task, [done, 0], line);
        }
        show(task, TASK, task, [done, total], |bar| {
            let left = bar.elapsed().as_secs_f64() * (total - done) as f64 / done.max(1) as f64;
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
            let line = format!(
                "epoch {}/{} step {}/{}  loss {loss:.4}  accuracy {accuracy:.2} %  \
                 {images_per_second:.0} images/s  {} left",
                epoch[0],
                epoch[1],
                step[0],
                step[1],
                clock(seconds_left),
            );
            let done = [(epoch[0] - 1) * step[1] + step[0], epoch[1] * step[1]];
            show("training", TRAINING, &line, done, |_| line.clone());
        }
        Event::Epoch(metrics) => {
            clear();
            note(&format!(
                "epoch {}: loss {:.4}  accuracy {:.2} %  validation {:.2} %  {:.0} images/s",
                metrics.epoch,
                metrics.loss,
                metrics.accuracy,
                metrics.validation_accuracy,
                metrics.images_per_second,
            ));
        }
    });
    end_on_interrupt();
    clear();
    outcome
}

/// Moves the bar, or prints `line` if it is time for one.
fn show(
    task: &str,
    template: &str,
    message: &str,
    [done, total]: [usize; 2],
    line: impl FnOnce(&ProgressBar) -> String,
) {
    let Ok(mut shown) = SHOWN.lock() else { return };
    if is_quiet() {
        return;
    }
    if shown.bar.as_ref().is_none_or(|(name, _)| name != task) {
        if let Some((_, bar)) = shown.bar.take() {
            bar.finish_and_clear();
        }
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("#-");
        let bar = ProgressBar::new(total as u64).with_style(style);
        shown.bar = Some((task.into(), bar));
    }
    let Shown { bar: Some((_, bar)), line: printed } = &mut *shown else { return };
    if bar.is_hidden() {
        let printed = printed.get_or_insert_with(Instant::now);
        if printed.elapsed() >= LINE_EVERY {
            *printed = Instant::now();
            note(&line(bar));
        }
        return;
    }
    if template == TRAINING || done == 0 {
        bar.set_message(message.to_string());
    }
    bar.set_position(done as u64);
}

/// Removes the bar.
fn clear() {
    if let Ok(mut shown) = SHOWN.lock()
        && let Some((_, bar)) = shown.bar.take()
    {
        bar.finish_and_clear();
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
        for template in [TASK, COUNT, TRAINING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
