//! The evaluation of a run: which of its images, under which transforms, and the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use sren::Similarity;
use sren::models::parameter_count;
use sren_data::{DataError, Dataset, Source, Split, TestSet};

use crate::confusion::confusion;
use crate::error::{LabError, Result};
use crate::evaluation::{Evaluation, PhotographEvaluation, Transform, accuracy, spread};
use crate::inference::Model;
use crate::progress::Task;
use crate::training::{RunFolder, TrainingConfig};

/// The images that a run is evaluated on.
#[derive(Debug, Clone)]
pub enum Subset {
    /// Test images.
    Test,
    /// These of the bundled test digits.
    Digits(Vec<usize>),
    /// Training images that were held out for validation.
    HeldOut,
}

/// An evaluation to make.
#[derive(Debug, Clone)]
pub struct EvaluationRequest {
    /// The transforms by name; the default test sets if there are none.
    pub transforms: Vec<(String, Transform)>,
    /// The images.
    pub subset: Subset,
    /// Most images per transform: the first ones or, where they are sorted by class, evenly spaced
    /// ones.
    pub images: usize,
}

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum EvaluationReport {
    /// Of a network for digits.
    Digits(Evaluation),
    /// Of one for other images.
    Photographs(PhotographEvaluation),
}

impl EvaluationRequest {
    /// On at most `images` test images, under the default transforms.
    pub fn test(images: usize) -> Self {
        Self { transforms: Vec::new(), subset: Subset::Test, images }
    }

    /// Evaluates `model`, that of the run in `path`. `on_ignored` gets why each unreadable file is
    /// left out, and the files that are no images by their names. Returns an error once `stop` is
    /// set.
    pub fn run(
        &self,
        path: &Path,
        model: &Model,
        stop: &AtomicBool,
        on_ignored: impl FnOnce(&[DataError], &[PathBuf]),
    ) -> Result<EvaluationReport> {
        let Model { network, config } = model;
        let digits = config.image_folder.is_none();
        if matches!(self.subset, Subset::Digits(_)) && !digits {
            let (name, got) = (path.display().to_string(), "one for images of your own");
            return Err(LabError::invalid(name, "a network for digits", got));
        }
        let loaded = config.load(match self.subset {
            Subset::Test | Subset::Digits(_) => Split::Test,
            Subset::HeldOut => Split::Train,
        })?;
        on_ignored(&loaded.broken, &loaded.others);
        if matches!(self.subset, Subset::HeldOut) && !digits {
            RunFolder::open(path)?.0.check_images(config, &loaded)?;
        }
        let mut indices = match &self.subset {
            Subset::Test => test_subset(&loaded.images, self.images, !digits),
            Subset::Digits(digits) => digits.clone(),
            Subset::HeldOut => config.split(&loaded.images)?.validation,
        };
        indices.truncate(self.images);
        let (images, indices) = (&loaded.images, &indices[..]);
        let (group, augment) = (config.model.clone(), config.augment);
        let parameters = parameter_count(network);
        if digits {
            let evaluate = |at: Transforms| accuracy(network, images, indices, at);
            let sets = self.each(&TestSet::ALL, indices.len(), stop, evaluate)?;
            let found = Evaluation { model: group, augment, parameters, sets };
            return Ok(EvaluationReport::Digits(found));
        }
        let evaluate = |at: Transforms| Ok(confusion(network, images, indices, at)?.into());
        Ok(EvaluationReport::Photographs(PhotographEvaluation {
            model: group,
            augment,
            parameters,
            data: config.data.to_string(),
            classes: config.classes(),
            sets: self.each(&TestSet::PHOTOGRAPHS, indices.len(), stop, evaluate)?,
        }))
    }

    /// The result of `evaluate` under each transform, or under those of `default`.
    fn each<T>(
        &self,
        default: &[TestSet],
        images: usize,
        stop: &AtomicBool,
        evaluate: impl Fn(Transforms) -> Result<T>,
    ) -> Result<BTreeMap<String, T>> {
        let transforms = match self.transforms.is_empty() {
            true => Transform::named(default),
            false => self.transforms.clone(),
        };
        let one = |(name, transform): (String, Transform)| {
            let task = Task::new(format!("evaluating {name}"), images);
            let counted = |index: usize| {
                if stop.load(Ordering::Relaxed) {
                    return Err(DataError::format("evaluation", "no interrupt", "one"));
                }
                task.advance(1);
                transform.at(index)
            };
            Ok((name, evaluate(&counted)?))
        };
        transforms.into_iter().map(one).collect()
    }
}

/// The transform of each image by its number.
type Transforms<'a> = &'a (dyn Fn(usize) -> sren_data::Result<Similarity> + Sync);

/// The first `count` images or, where they are sorted by class, `count` evenly spaced ones.
pub fn test_subset(images: &Dataset, count: usize, sorted: bool) -> Vec<usize> {
    if sorted { spread(images.len(), count) } else { (0..images.len().min(count)).collect() }
}

impl TrainingConfig {
    /// Reads the images of the run from `data` from now on.
    pub fn replace_data(&mut self, data: &Source) -> Result<()> {
        if data.is_mnist() != self.image_folder.is_none() {
            let expected = format!("images like those of {}", self.data);
            return Err(LabError::invalid("--data", expected, data.to_string()));
        }
        (self.data, self.data_absolute) = (data.clone(), None);
        Ok(())
    }
}
