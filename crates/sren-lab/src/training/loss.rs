//! What training makes small.

use std::f64::consts::TAU;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor, TensorData};
use sren::models::{SecondLook, over_turns};

/// Which way training images are turned, learned beside their class.
pub(super) struct Turn {
    /// Scores of turns and classes, `[n, turns, classes]`.
    scores: Tensor<3>,
    /// What it counts, the class counting 1.
    weight: f64,
}

impl Turn {
    /// The features learn it too: only from images that are turned at random. Where all stand upright,
    /// they would learn to tell the turn by what does not turn with the image, its pixels.
    pub(super) fn of_features(scores: Tensor<3>) -> Self {
        Self { scores, weight: 0.5 }
    }

    /// The head alone learns it, by its scores of features that do not learn.
    pub(super) fn of_head(scores: Tensor<3>) -> Self {
        Self { scores, weight: 0.25 }
    }
}

/// What a network says of the training images.
pub(super) struct Told<'a> {
    /// Scores of turns and classes, `[n, turns, classes]`.
    pub(super) scores: Tensor<3>,
    /// What is learned of the turn, where turns are told apart.
    pub(super) turn: Option<Turn>,
    /// The second look, and its logits `[n, classes]` of the images as they are.
    pub(super) second: Option<(&'a SecondLook, Tensor<2>)>,
}

/// The loss, and how many images are told right. The images are turned by `angles`; classes may have
/// weights.
///
/// It is the cross entropy of the class, whatever the turn; where turns are told apart, that of the
/// turn, given the class; and that of the second look.
pub(super) fn loss(
    told: Told,
    targets: Tensor<1, Int>,
    angles: &[f64],
    class_weights: Option<Vec<f32>>,
) -> (Tensor<1>, usize) {
    let [n, turns, _] = told.scores.dims();
    let device = told.scores.device();
    let mut logits = over_turns(told.scores, 0.0);
    let classes = CrossEntropyLossConfig::new().with_weights(class_weights).init(&device);
    let mut loss = classes.forward(logits.clone(), targets.clone());
    if let Some((look, second)) = told.second {
        loss = loss + classes.forward(second.clone(), targets.clone());
        logits = look.together(logits, second);
    }
    let best = logits.argmax(1).squeeze_dim::<1>(1);
    let right = best.equal(targets.clone()).int().sum().into_scalar::<i64>() as usize;
    let Some(turn) = told.turn.filter(|_| turns > 1) else {
        return (loss, right);
    };
    // [n, turns, classes] -> [n, turns]: those of the true class.
    let own = targets.reshape([n, 1, 1]).expand([n, turns, 1]);
    let own = log_softmax(turn.scores.gather(2, own).reshape([n, turns]), 1);
    let turned_back = angles.iter().flat_map(|angle| turned_back(*angle, turns)).collect();
    let turned_back =
        Tensor::<2>::from_data(TensorData::new::<f32, _>(turned_back, [n, turns]), &device);
    let turn_loss = (own * turned_back).sum_dim(1).mean().neg();
    (loss + turn_loss.mul_scalar(turn.weight), right)
}

/// How likely each of `turns` turns makes an image upright that is turned by `angle`: half of it the
/// nearest one, the rest its neighbours, for nobody writes quite upright.
fn turned_back(angle: f64, turns: usize) -> impl Iterator<Item = f32> {
    let (count, steps) = (turns as f64, -angle / TAU * turns as f64);
    (0..turns).map(move |turn| {
        let away = (turn as f64 - steps).rem_euclid(count);
        (0.5 - 0.25 * away.min(count - away)).max(0.0) as f32
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn value(scores: &[[f32; 2]], target: i32, angle: f64) -> (f32, usize) {
        let device = Device::flex();
        let flat: Vec<f32> = scores.iter().flatten().copied().collect();
        let scores = Tensor::from_data(TensorData::new(flat, [1, scores.len(), 2]), &device);
        let target = Tensor::from_data(TensorData::new(vec![target], [1]), &device);
        let turn = Some(Turn::of_head(scores.clone()));
        let (loss, right) = loss(Told { scores, turn, second: None }, target, &[angle], None);
        (loss.into_scalar::<f32>(), right)
    }

    #[test]
    fn one_turn_is_the_cross_entropy_of_the_class() {
        let (loss, right) = value(&[[0.0, 3f32.ln()]], 1, 0.0);
        assert!((loss - (4.0f32 / 3.0).ln()).abs() < 1e-6);
        assert_eq!(right, 1);
    }

    #[test]
    fn the_right_class_turned_the_wrong_way_costs_more() {
        let turned = |turn: usize, angle: f64| {
            let mut scores = [[0.0f32; 2]; 8];
            scores[turn][0] = 6.0;
            value(&scores, 0, angle)
        };
        // An image that is turned by two steps is upright after six more.
        for (angle, back) in [(0.0, 0), (TAU / 4.0, 6)] {
            let [there, aside, over] = [0, 1, 4].map(|more| turned((back + more) % 8, angle));
            assert_eq!([there.1, aside.1, over.1], [1, 1, 1]);
            assert!(there.0 < aside.0 && aside.0 < over.0, "{there:?} {aside:?} {over:?}");
        }
        let sum: f32 = turned_back(1.234, 24).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        // The class alone does not depend on the turn.
        assert_eq!(value(&[[0.0, 5.0]; 8], 0, 0.0).1, 0);
    }
}
