//! Confusion matrices.

use burn::tensor::{Tensor, TensorData};
use serde::Serialize;
use sren::Similarity;
use sren::models::Network;
use sren_data::Dataset;

use crate::error::{LabError, Result};
use crate::evaluation::Accuracy;
use crate::inference::inference_device;
use crate::progress::Task;

/// Images per batch: so few that the allocator reuses the memory of their largest tensors.
pub(crate) const BATCH: usize = 32;

/// How often each class is predicted as each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Confusion {
    /// By true class, then by predicted class.
    counts: Vec<Vec<usize>>,
}

impl Confusion {
    /// One of `classes` classes without images.
    pub fn new(classes: usize) -> Self {
        Self { counts: vec![vec![0; classes]; classes] }
    }

    /// Counts an image of class `truth` that is predicted as `predicted`.
    pub fn count(&mut self, truth: usize, predicted: usize) -> Result<()> {
        let classes = self.counts.len();
        let place = self.counts.get_mut(truth).and_then(|row| row.get_mut(predicted));
        *place.ok_or_else(|| {
            let expected = format!("classes below {classes}");
            LabError::invalid("confusion", expected, format!("{truth} and {predicted}"))
        })? += 1;
        Ok(())
    }

    /// By true class, then by predicted class.
    pub fn counts(&self) -> &[Vec<usize>] {
        &self.counts
    }

    /// How often the network is right.
    pub fn accuracy(&self) -> Accuracy {
        let n: usize = self.counts.iter().flatten().sum();
        let right: usize = self.counts.iter().enumerate().map(|(class, row)| row[class]).sum();
        Accuracy { accuracy: 100.0 * right as f64 / n.max(1) as f64, n }
    }

    /// How often it is right on images of each class, in per cent; `None` where there are none.
    pub fn by_class(&self) -> Vec<Option<f64>> {
        let part = |(class, row): (usize, &Vec<usize>)| {
            let n: usize = row.iter().sum();
            (n > 0).then(|| 100.0 * row[class] as f64 / n as f64)
        };
        self.counts.iter().enumerate().map(part).collect()
    }
}

/// The confusion matrix of `network`, in inference mode, on the images `indices`, each transformed by
/// `transform`.
pub fn confusion(
    network: &Network,
    images: &Dataset,
    indices: &[usize],
    transform: impl Fn(usize) -> sren_data::Result<Similarity> + Sync,
) -> Result<Confusion> {
    let device = inference_device();
    let mut found = Confusion::new(images.classes().len());
    let task = Task::new("evaluating", indices.len());
    for indices in indices.chunks(BATCH) {
        let batch = images.batch(indices, &transform)?;
        let input = Tensor::from_data(TensorData::new(batch.images, batch.shape), &device);
        let predicted = network.forward(input)?.argmax(1).into_data();
        for (predicted, label) in predicted.iter::<i64>().zip(&batch.labels) {
            found.count(*label as usize, usize::try_from(predicted).unwrap_or(usize::MAX))?;
        }
        task.advance(indices.len());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_follow_from_the_counts() {
        let mut confusion = Confusion::new(3);
        for (truth, predicted) in [(0, 0), (0, 1), (1, 1), (1, 1)] {
            confusion.count(truth, predicted).unwrap();
        }
        assert_eq!(confusion.accuracy(), Accuracy { accuracy: 75.0, n: 4 });
        assert_eq!(confusion.by_class(), [Some(50.0), Some(100.0), None]);
        assert_eq!(confusion.counts()[0], [1, 1, 0]);
        assert!(confusion.count(3, 0).is_err() && confusion.count(0, 3).is_err());
        assert_eq!(Confusion::new(2).accuracy().accuracy, 0.0);
    }
}
