//! What a training run shows while it goes on.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use sren_lab::training::Event;

/// Between two lines where the output is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar that grows on a terminal, a line every few seconds elsewhere.
#[derive(Default)]
pub(crate) struct Progress {
    shown: Option<Instant>,
}

impl Progress {
    pub(crate) fn show(&mut self, event: &Event) {
        let terminal = std::io::stderr().is_terminal();
        match event {
            Event::Step { epoch, step, loss, accuracy, images_per_second, seconds_left } => {
                let wait = if terminal { Duration::from_millis(200) } else { LINE_EVERY };
                let since = self.shown.get_or_insert_with(Instant::now);
                if since.elapsed() < wait {
                    return;
                }
                *since = Instant::now();
                let done = (epoch[0] - 1) * step[1] + step[0];
                let bar = if terminal { bar(done, epoch[1] * step[1]) } else { String::new() };
                let text = format!(
                    "{bar}epoch {}/{} step {}/{}  loss {loss:.4}  accuracy {accuracy:.2} %  \
                     {images_per_second:.0} images/s  {} left",
                    epoch[0],
                    epoch[1],
                    step[0],
                    step[1],
                    clock(*seconds_left),
                );
                if terminal { eprint!("\r\x1b[K{text}") } else { eprintln!("{text}") }
            }
            Event::Epoch(metrics) => eprintln!(
                "{}epoch {}: loss {:.4}  accuracy {:.2} %  validation {:.2} %  {:.0} images/s",
                if terminal { "\r\x1b[K" } else { "" },
                metrics.epoch,
                metrics.loss,
                metrics.accuracy,
                metrics.validation_accuracy,
                metrics.images_per_second,
            ),
        }
    }
}

/// `[####----] `: how much of the whole run is done.
fn bar(done: usize, all: usize) -> String {
    const WIDTH: usize = 20;
    let full = (WIDTH * done / all.max(1)).min(WIDTH);
    format!("[{}{}] ", "#".repeat(full), "-".repeat(WIDTH - full))
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_grows_from_empty_to_full() {
        assert_eq!(bar(0, 40), "[--------------------] ");
        assert_eq!(bar(20, 40), "[##########----------] ");
        assert_eq!(bar(40, 40), "[####################] ");
        assert_eq!(clock(61.4), "1:01");
    }
}
