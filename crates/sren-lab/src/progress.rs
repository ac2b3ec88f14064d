//! Progress of long work, for whoever shows it.
//!
//! As with logging, one observer serves the whole process and there is none by default: the
//! functions of this crate report to it without a parameter for it.
//!
//! ```
//! use sren_lab::progress::{Observer, Task, set_observer};
//!
//! struct Lines;
//! impl Observer for Lines {
//!     fn update(&self, task: &str, done: usize, total: usize) {
//!         eprintln!("{task}: {done} of {total}");
//!     }
//!     fn finish(&self, task: &str) {
//!         eprintln!("{task}: done");
//!     }
//! }
//!
//! set_observer(&Lines);
//! let task = Task::new("counting", 3);
//! (0..3).for_each(|_| task.advance(1));
//! ```

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shows progress. Calls come from any thread.
pub trait Observer: Sync {
    /// `done` of `total` steps of a task are done; of a total of 0, nobody knows how many there are.
    fn update(&self, task: &str, done: usize, total: usize);

    /// A task has ended, completed or not.
    fn finish(&self, task: &str);
}

static OBSERVER: OnceLock<&'static dyn Observer> = OnceLock::new();

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Reports all progress of the process to `observer`. Only the first call has an effect.
pub fn set_observer(observer: &'static dyn Observer) {
    let _ = OBSERVER.set(observer);
}

/// Work of `total` steps, 0 if that is unknown. A task that begins while another of the same thread is under way is part
/// of it and reports nothing.
pub struct Task {
    name: String,
    total: usize,
    done: AtomicUsize,
    observer: Option<&'static dyn Observer>,
}

impl Task {
    /// Begins a task of `total` steps.
    pub fn new(name: impl Into<String>, total: usize) -> Self {
        let depth = DEPTH.replace(DEPTH.get() + 1);
        let observer = OBSERVER.get().copied().filter(|_| depth == 0);
        let task = Self { name: name.into(), total, done: AtomicUsize::new(0), observer };
        task.advance(0);
        task
    }

    /// So many more steps are done.
    pub fn advance(&self, steps: usize) {
        let done = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        if let Some(observer) = self.observer {
            let most = if self.total == 0 { usize::MAX } else { self.total };
            observer.update(&self.name, done.min(most), self.total);
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
        if let Some(observer) = self.observer {
            observer.finish(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Record;
    static RECORDED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    impl Observer for Record {
        fn update(&self, task: &str, done: usize, total: usize) {
            // Other tests of this process report as well.
            if task.starts_with("test") {
                RECORDED.lock().unwrap().push(format!("{task} {done}/{total}"));
            }
        }
        fn finish(&self, task: &str) {
            if task.starts_with("test") {
                RECORDED.lock().unwrap().push(format!("{task} ends"));
            }
        }
    }

    #[test]
    fn the_outer_task_reports_and_inner_ones_do_not() {
        set_observer(&Record);
        let outer = Task::new("test outer", 2);
        let inner = Task::new("test inner", 5);
        inner.advance(5);
        drop(inner);
        outer.advance(1);
        outer.advance(7);
        drop(outer);
        drop(Task::new("test next", 1));
        let expected = [
            "test outer 0/2",
            "test outer 1/2",
            "test outer 2/2",
            "test outer ends",
            "test next 0/1",
            "test next ends",
        ];
        assert_eq!(*RECORDED.lock().unwrap(), expected);
    }
}
