//! Dynamic batching: jobs that arrive within a few milliseconds are computed together.
//!
//! One thread gathers: it takes the first job, waits for others until the batch is full or the first
//! has waited for [`WINDOW`], and has the batch computed. While a batch is computed the next one
//! gathers by itself. The number of images that wait or are computed is bounded.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::clients::{Clients, Share};
use super::error::{ApiError, Code};
use super::metrics::Metrics;
use crate::error::{LabError, Result};

/// Most jobs of a batch. Larger ones are no faster per image, and make everyone wait.
const MAX_BATCH: usize = 32;
/// Longest time that a job waits for others.
const WINDOW: Duration = Duration::from_millis(3);

/// A bounded queue of jobs that are computed in batches. Its thread ends when all handles are dropped.
#[derive(Debug)]
pub(super) struct Queue<J> {
    jobs: Sender<(Instant, J)>,
    room: Arc<Semaphore>,
    clients: Clients,
    capacity: usize,
    metrics: Arc<Metrics>,
}

/// Room in the queue for the images of one job, held until it is computed.
#[derive(Debug)]
pub(super) struct Place {
    room: OwnedSemaphorePermit,
    _share: Share,
    metrics: Arc<Metrics>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.metrics.queue.dec_by(self.room.num_permits() as i64);
    }
}

impl<J: Send + 'static> Queue<J> {
    /// A queue for `capacity` images. `compute` answers the jobs of a batch.
    pub(super) fn start(
        capacity: usize,
        metrics: Arc<Metrics>,
        compute: impl Fn(Vec<J>) + Send + 'static,
    ) -> Result<Self> {
        let (jobs, waiting) = channel();
        let recorded = metrics.clone();
        std::thread::Builder::new()
            .name("batches".into())
            .spawn(move || run(&waiting, &recorded, compute))
            .map_err(|e| LabError::invalid("queue", "a thread", e.to_string()))?;
        let room = Arc::new(Semaphore::new(capacity));
        // Half for each client, rounded up: alone it can always use the service.
        let clients = Clients::new(capacity.div_ceil(2));
        Ok(Self { jobs, room, clients, capacity, metrics })
    }

    /// Room for `images` images of `client`, now or not at all.
    pub(super) fn reserve(&self, client: IpAddr, images: usize) -> Result<Place, ApiError> {
        let count = u32::try_from(images).unwrap_or(u32::MAX);
        let Some(share) = self.clients.share(client, images) else {
            let message = format!(
                "expected at most {} images of a client at a time",
                self.capacity.div_ceil(2)
            );
            return Err(ApiError::new(Code::TooManyRequests, message));
        };
        let Ok(room) = self.room.clone().try_acquire_many_owned(count) else {
            let message = format!("the queue of {} images is full", self.capacity);
            return Err(ApiError::new(Code::Overloaded, message));
        };
        self.metrics.queue.inc_by(i64::from(count));
        Ok(Place { room, _share: share, metrics: self.metrics.clone() })
    }

    /// Adds a job, which holds its [`Place`].
    pub(super) fn push(&self, job: J) -> Result<(), ApiError> {
        let gone = |_| ApiError::new(Code::Internal, "the queue has ended");
        self.jobs.send((Instant::now(), job)).map_err(gone)
    }
}

/// Computes batches until all senders are gone.
fn run<J>(waiting: &Receiver<(Instant, J)>, metrics: &Metrics, compute: impl Fn(Vec<J>)) {
    while let Ok((arrived, first)) = waiting.recv() {
        let mut batch = vec![first];
        while batch.len() < MAX_BATCH {
            let left = WINDOW.saturating_sub(arrived.elapsed());
            match waiting.recv_timeout(left) {
                Ok((_, job)) => batch.push(job),
                Err(_) => break,
            }
        }
        metrics.batch_images.observe(batch.len() as f64);
        let begin = Instant::now();
        // Jobs of a batch that panics are dropped: their clients get an error, the next ones an answer.
        if catch_unwind(AssertUnwindSafe(|| compute(batch))).is_err() {
            tracing::error!("a batch panicked");
        }
        metrics.batch_seconds.observe(begin.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);

    #[test]
    fn jobs_that_wait_are_computed_together() {
        let (sizes, computed) = sync_channel(100);
        let (go, gate) = sync_channel::<()>(0);
        let gate = Mutex::new(gate);
        let queue = Queue::start(1000, Arc::default(), move |batch: Vec<usize>| {
            sizes.send(batch).unwrap();
            gate.lock().unwrap().recv().unwrap();
        })
        .unwrap();
        queue.push(0).unwrap();
        assert_eq!(computed.recv().unwrap(), [0]);
        // While the first is computed, the others gather.
        (1..=MAX_BATCH + 5).for_each(|job| queue.push(job).unwrap());
        go.send(()).unwrap();
        let full = computed.recv().unwrap();
        assert_eq!(full, (1..=MAX_BATCH).collect::<Vec<_>>());
        go.send(()).unwrap();
        assert_eq!(computed.recv().unwrap().len(), 5);
        drop(queue);
        go.send(()).unwrap();
        assert!(computed.recv().is_err(), "its thread ends");
    }

    #[test]
    fn one_client_may_have_half_and_all_together_the_whole() {
        let queue = Queue::start(4, Arc::default(), |_: Vec<Place>| {}).unwrap();
        let code = |place: Result<Place, ApiError>| place.map(drop).unwrap_err().code;
        let first = queue.reserve(CLIENT, 2).unwrap();
        assert_eq!(code(queue.reserve(CLIENT, 1)), Code::TooManyRequests);
        let second = queue.reserve(OTHER, 2).unwrap();
        let third = "10.0.0.3".parse().unwrap();
        assert_eq!(code(queue.reserve(third, 1)), Code::Overloaded);
        assert_eq!(queue.metrics.queue.get(), 4);
        drop(first);
        assert!(queue.reserve(third, 2).is_ok());
        drop(second);
        assert_eq!(queue.metrics.queue.get(), 0);
    }

    #[test]
    fn a_batch_that_panics_does_not_end_the_service() {
        let (answers, computed) = sync_channel(1);
        let queue = Queue::start(4, Arc::default(), move |batch: Vec<bool>| {
            assert!(batch[0], "as intended");
            answers.send(()).unwrap();
        })
        .unwrap();
        queue.push(false).unwrap();
        std::thread::sleep(10 * WINDOW);
        queue.push(true).unwrap();
        computed.recv().unwrap();
    }
}
