//! The training loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor, TensorData};
use sren::models::{Network, TrainingBatch, TrainingLoss};
use sren::pose::Pose;
use sren::{Grid, PoseField, Similarity, Weights};
use sren_data::{Dataset, Loaded, Split, TrainingSplit};

use super::config::TrainingConfig;
use super::drawn_positions::with_positions;
use super::image_folder::class_weights;
use super::optimiser::Optimiser;
use super::pose_cache::PoseCache;
use super::run_folder::{Checkpoint, EpochMetrics, RunFolder, kept_epoch, out_of_patience};
use crate::error::{LabError, Result};
use crate::evaluation::accuracy;

/// Progress of a run.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A step is done.
    Step {
        /// Epoch, from 1, and how many there are.
        epoch: [usize; 2],
        /// Step of the epoch, from 1, and how many there are.
        step: [usize; 2],
        /// Mean loss of the epoch so far.
        loss: f64,
        /// Accuracy of the epoch so far, in per cent.
        accuracy: f64,
        /// Images trained on per second since training began or went on.
        images_per_second: f64,
        /// Seconds that training will still take.
        seconds_left: f64,
    },
    /// An epoch is done.
    Epoch(&'a EpochMetrics),
}

/// How training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs are done, or patience is at its end.
    Done,
    /// It was asked to stop, and saved where it stands.
    Stopped,
}

/// A run under way.
#[derive(Debug)]
pub struct Trainer {
    config: TrainingConfig,
    folder: RunFolder,
    images: Dataset,
    split: TrainingSplit,
    class_weights: Option<Vec<f32>>,
    device: Device,
    network: Network,
    poses: PoseCache,
    optimiser: Optimiser,
    metrics: Vec<EpochMetrics>,
    step: usize,
    loss: f64,
    right: usize,
    previous_threads: Option<usize>,
}

impl Trainer {
    /// A new run in `folder`.
    pub fn start(config: TrainingConfig, folder: RunFolder) -> Result<Self> {
        let images = config.load(Split::Train)?;
        Self::start_on(images, config, folder)
    }

    /// A new run in `folder`, on the training images of its config.
    pub fn start_on(images: Loaded, config: TrainingConfig, folder: RunFolder) -> Result<Self> {
        folder.save_manifest(&images.manifest)?;
        Self::prepare(images.images, config, folder)?.with_first_weights()
    }

    /// The run of `folder`, from where it stopped. A run that was stopped before its first
    /// checkpoint starts over.
    pub fn resume(config: TrainingConfig, mut folder: RunFolder) -> Result<Self> {
        folder.lock()?;
        if config.classes().is_empty() {
            let name = folder.path().join("config.toml").display().to_string();
            return Err(LabError::invalid(name, "the names of the classes", "none"));
        }
        let images = config.load(Split::Train)?;
        folder.check_images(&config, &images)?;
        let kind = config.optimiser;
        if !folder.path().join("checkpoint/state.safetensors").exists() {
            return Self::start_on(images, config, folder);
        }
        let mut run = Self::prepare(images.images, config, folder)?;
        let checkpoint = run.folder.load_checkpoint(kind)?;
        run.metrics = run.folder.load_metrics()?;
        if run.metrics.len() < checkpoint.epoch {
            let name = run.folder.path().join("metrics.jsonl").display().to_string();
            let expected = format!("{} epochs", checkpoint.epoch);
            return Err(LabError::invalid(name, expected, run.metrics.len().to_string()));
        }
        if checkpoint.step > run.epoch_steps() {
            let name = run.folder.path().join("checkpoint/state.safetensors");
            let expected = format!("at most step {}", run.epoch_steps());
            let got = checkpoint.step.to_string();
            return Err(LabError::invalid(name.display().to_string(), expected, got));
        }
        run.metrics.truncate(checkpoint.epoch);
        run.network = checkpoint.weights.apply(run.network)?;
        run.optimiser = checkpoint.optimiser;
        (run.step, run.loss, run.right) = (checkpoint.step, checkpoint.loss, checkpoint.right);
        run.previous_threads = Some(checkpoint.threads).filter(|threads| *threads > 0);
        Ok(run)
    }

    /// A run with random weights.
    fn prepare(images: Dataset, config: TrainingConfig, mut folder: RunFolder) -> Result<Self> {
        folder.lock()?;
        let optimiser = Optimiser::new(config.optimiser);
        let split = config.split(&images)?;
        let class_weights = config.image_folder.as_ref().filter(|p| p.balance).map(|_| {
            let labels = split.training.iter().map(|index| images.labels()[*index]);
            class_weights(labels, images.classes().len())
        });
        let device = Device::flex().autodiff();
        device.seed(config.seed);
        let mut network = config.network()?.init(&device)?;
        // Burn draws weights when they are first read: now.
        Weights::of(&network);
        if config.fine_tuning.as_ref().is_some_and(|tuning| tuning.freeze_backbone) {
            network = network.with_frozen_backbone();
        }
        let metrics = Vec::new();
        let (step, loss, right) = (0, 0.0, 0);
        Ok(Self {
            config,
            folder,
            images,
            split,
            class_weights,
            device,
            network,
            poses: PoseCache::default(),
            optimiser,
            metrics,
            step,
            loss,
            right,
            previous_threads: None,
        })
    }

    /// With the weights of the run that it is to start from.
    fn with_first_weights(mut self) -> Result<Self> {
        if let Some(tuning) = &self.config.fine_tuning {
            self.network = tuning.start(self.network, &self.config.classes())?;
        }
        Ok(self)
    }

    /// The number of threads before a run was resumed, and now, if they are not the same: then sums
    /// are made in another order, and the last bits differ.
    pub fn changed_threads(&self) -> Option<[usize; 2]> {
        let now = rayon::current_num_threads();
        self.previous_threads.filter(|before| *before != now).map(|before| [before, now])
    }

    /// The metrics of all epochs so far.
    pub fn metrics(&self) -> &[EpochMetrics] {
        &self.metrics
    }

    /// Trains to the end, or until `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool, on_event: &mut dyn FnMut(Event)) -> Result<Outcome> {
        let begin = Instant::now();
        let steps = self.epoch_steps();
        let todo = steps * (self.config.epochs - self.metrics.len().min(self.config.epochs));
        let todo = todo.saturating_sub(self.step);
        let mut done = 0;
        while self.metrics.len() < self.config.epochs
            && !out_of_patience(&self.config, &self.metrics)
        {
            let epoch = self.metrics.len() + 1;
            let order = self.split.order(self.config.seed, epoch);
            let (epoch_begin, epoch_step) = (Instant::now(), self.step);
            while self.step < steps {
                if stop.load(Ordering::Relaxed) {
                    self.save_checkpoint()?;
                    return Ok(Outcome::Stopped);
                }
                let size = self.batch_size();
                self.train_step(epoch, &order[self.step * size..(self.step + 1) * size])?;
                done += 1;
                let seconds = begin.elapsed().as_secs_f64();
                on_event(Event::Step {
                    epoch: [epoch, self.config.epochs],
                    step: [self.step, steps],
                    loss: self.loss / self.step as f64,
                    accuracy: 100.0 * self.right as f64 / (self.step * size) as f64,
                    images_per_second: (done * size) as f64 / seconds,
                    seconds_left: seconds / done as f64 * (todo - done) as f64,
                });
            }
            let images = (self.step - epoch_step) * self.batch_size();
            self.end_epoch(images as f64 / epoch_begin.elapsed().as_secs_f64())?;
            on_event(Event::Epoch(&self.metrics[self.metrics.len() - 1]));
        }
        Ok(Outcome::Done)
    }

    /// Images per step: all, if there are fewer than configured.
    fn batch_size(&self) -> usize {
        self.config.batch.min(self.split.training.len())
    }

    /// Steps of an epoch; what is left over when the images are dealt into batches waits for the
    /// next order.
    fn epoch_steps(&self) -> usize {
        self.split.training.len() / self.batch_size()
    }

    fn rate(&self) -> f64 {
        let epoch_steps = self.epoch_steps();
        let at = self.metrics.len() * epoch_steps + self.step;
        let part = self.config.schedule.at(at, self.config.epochs * epoch_steps, epoch_steps);
        self.config.learning_rate * part
    }

    fn train_step(&mut self, epoch: usize, indices: &[usize]) -> Result<()> {
        let seed = self.config.seed;
        let batch = self.config.training_batch(&self.images, epoch, indices)?;
        // What Burn draws, for dropout, depends on the step alone.
        let place = (epoch * self.epoch_steps() + self.step) as u64;
        self.device.seed(seed.rotate_left(32) ^ place);
        let labels: Vec<i32> = batch.labels.iter().map(|label| *label as i32).collect();
        let images = Tensor::from_data(TensorData::new(batch.images, batch.shape), &self.device);
        let targets = TensorData::new(labels, [batch.labels.len()]);
        let targets = Tensor::<1, Int>::from_data(targets, &self.device);
        let fields = self.pose_fields(epoch, indices, &images)?;
        let mut frames = self.network.frames_of(fields)?;
        if self.config.positions > 0 {
            frames = frames.with_active_only(true);
        }
        let batch = TrainingBatch { images, targets, transforms: batch.transforms };
        let TrainingLoss { loss, correct } =
            self.network.loss(batch, &frames, self.class_weights.clone())?;
        let value = f64::from(loss.clone().into_scalar::<f32>());
        if !value.is_finite() {
            let at = format!("{value} in epoch {epoch}, step {}", self.step + 1);
            return Err(LabError::invalid("loss", "a number", at));
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &self.network);
        let rate = self.rate();
        self.network = self.optimiser.step(rate, self.network.clone(), gradients)?;
        self.step += 1;
        self.loss += value;
        self.right += correct;
        Ok(())
    }

    /// The pose fields of `images`, number `indices` of the training set: cached where the images are
    /// the same in every epoch, and with pose jitter if configured.
    fn pose_fields(
        &mut self,
        epoch: usize,
        indices: &[usize],
        images: &Tensor<4>,
    ) -> Result<Vec<PoseField>> {
        let [_, h, w, _] = images.dims();
        let cacheable =
            self.config.has_constant_images() && self.network.classifier().computes_active_only();
        let grids = self.network.grids(&Grid::pixels(h, w))?;
        let cached = if cacheable { self.poses.fields(indices, &grids)? } else { None };
        let fields = match cached {
            Some(fields) => fields,
            None => {
                let fields = self.network.pose_fields(images)?;
                if cacheable {
                    self.poses.insert(indices, &fields);
                }
                fields
            }
        };
        let fields = match self.config.positions as usize {
            0 => fields,
            count => with_positions(fields, count, self.config.seed, epoch, indices)?,
        };
        let Some(jitter) = self.config.pose_jitter else {
            return Ok(fields);
        };
        let by: Vec<Pose> =
            indices.iter().map(|index| jitter.draw(self.config.seed, epoch, *index)).collect();
        let jittered = fields.into_iter().map(|field| field.composed(&by));
        Ok(jittered.collect::<Result<_, _>>().map_err(sren::Error::from)?)
    }

    /// Validates, saves the weights if they are as good as the best, and a checkpoint.
    fn end_epoch(&mut self, images_per_second: f64) -> Result<()> {
        let learning_rate = self.rate();
        let network = self.network.valid();
        let upright = |_| Ok(Similarity::IDENTITY);
        let validation = accuracy(&network, &self.images, &self.split.validation, upright)?;
        self.metrics.push(EpochMetrics {
            epoch: self.metrics.len() + 1,
            loss: self.loss / self.step as f64,
            accuracy: 100.0 * self.right as f64 / (self.step * self.batch_size()) as f64,
            validation_accuracy: validation.accuracy,
            learning_rate,
            images_per_second,
        });
        (self.step, self.loss, self.right) = (0, 0.0, 0);
        // The checkpoint last: whatever is interrupted here is repeated from the previous one.
        let kept = kept_epoch(&self.metrics, validation.n);
        if kept.is_some_and(|kept| kept.epoch == self.metrics.len()) {
            self.folder.save_model(&Weights::of(&self.network))?;
        }
        self.folder.save_metrics(&self.metrics)?;
        self.save_checkpoint()
    }

    fn save_checkpoint(&self) -> Result<()> {
        self.folder.save_checkpoint(&Checkpoint {
            weights: Weights::of(&self.network),
            optimiser: self.optimiser.clone(),
            epoch: self.metrics.len(),
            step: self.step,
            loss: self.loss,
            right: self.right,
            threads: rayon::current_num_threads(),
        })
    }
}
