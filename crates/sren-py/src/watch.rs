//! Long work that Python watches: events and progress reach a Python function, and Ctrl-C stops it.
//!
//! The work runs on a pool of its own. The calling thread waits for it, hands its reports to Python and looks
//! for signals, several times a second.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;
use sren_lab::progress::{Observer, set_observer};

use crate::failure::{Failure, Result};
use crate::pool::own_pool;

/// Between two looks for signals.
const TICK: Duration = Duration::from_millis(100);

/// What work says while it is under way.
pub(crate) enum Report<T> {
    /// An event of its own.
    Event(T),
    /// So many of so many steps of a task are done; 0 in all if that is unknown.
    Task(String, usize, usize),
}

/// The task that was last heard of. Never waited for, so that a fork cannot leave it locked.
static TASK: Mutex<Option<(String, usize, usize)>> = Mutex::new(None);

struct Last;

impl Observer for Last {
    fn update(&self, task: &str, done: usize, total: usize) {
        if let Ok(mut last) = TASK.try_lock() {
            *last = Some((task.into(), done, total));
        }
    }

    fn finish(&self, _task: &str) {}
}

/// Listens to the progress of all measurements.
pub(crate) fn install() {
    set_observer(&Last);
}

/// Runs `work`, which sends its events and ends early once `stop` is set. `on_report` gets every
/// event. If it fails, or a signal raises an exception, `stop` is set, the end of `work` awaited, and
/// the exception raised.
pub(crate) fn watch<T: Send, E: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    mut on_report: impl FnMut(Report<E>) -> Result<()>,
    work: impl FnOnce(&SyncSender<E>) -> Result<T> + Send,
) -> Result<T> {
    let pool = own_pool(py)?;
    // What an earlier call has left.
    TASK.try_lock().ok().and_then(|mut last| last.take());
    // One event at a time: work does not run ahead of who watches it.
    let (sender, mut receiver) = sync_channel(1);
    let (result, raised) = std::thread::scope(|scope| {
        let worker = scope.spawn(move || pool.install(|| work(&sender)));
        let mut raised: Option<Failure> = None;
        loop {
            let (given_back, received) = py.detach(move || {
                let received = receiver.recv_timeout(TICK);
                (receiver, received)
            });
            receiver = given_back;
            let report = match received {
                Ok(event) => Some(Report::Event(event)),
                Err(RecvTimeoutError::Timeout) => {
                    let last = TASK.try_lock().ok().and_then(|mut last| last.take());
                    last.map(|(task, done, total)| Report::Task(task, done, total))
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if raised.is_none() {
                let heard = py.check_signals().map_err(Failure::from);
                let heard = heard.and_then(|()| report.map_or(Ok(()), &mut on_report));
                if let Err(failure) = heard {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(failure);
                }
            }
        }
        (py.detach(|| worker.join()), raised)
    });
    match (raised, result) {
        (Some(failure), _) => Err(failure),
        (None, Ok(result)) => result,
        (None, Err(payload)) => Err(Failure::panic(&*payload)),
    }
}
