//! The global pools: values, gradients, errors.

mod definition;

use definition::{Random, close};
use sren_kernels::pool::{GATE_EPSILON, GlobalPool};

const BATCH: usize = 3;
const POSITIONS: usize = 13;
const CHANNELS: usize = 9;

#[test]
fn the_gradient_of_the_maximum_goes_to_its_position() {
    let pool = GlobalPool::new(BATCH, POSITIONS, CHANNELS).unwrap();
    let mut random = Random::new(21);
    let x = random.values(BATCH * POSITIONS * CHANNELS);
    let grad = random.values(BATCH * CHANNELS);
    let max = pool.max(&x).unwrap();
    let back = pool.max_backward(&max.position, &grad).unwrap();
    for image in 0..BATCH {
        for channel in 0..CHANNELS {
            let at = |position: usize| (image * POSITIONS + position) * CHANNELS + channel;
            let out = image * CHANNELS + channel;
            let best = (0..POSITIONS).map(|p| x[at(p)]).fold(f32::MIN, f32::max);
            assert_eq!(max.output[out], best);
            for position in 0..POSITIONS {
                let expected = if x[at(position)] == best { grad[out] } else { 0.0 };
                assert_eq!(back[at(position)], expected);
            }
        }
    }
}

#[test]
fn of_equal_maxima_the_first_counts() {
    let max = GlobalPool::new(1, 3, 1).unwrap().max(&[0.0, 2.0, 2.0]).unwrap();
    assert_eq!((max.output, max.position), (vec![2.0], vec![1]));
}

#[test]
fn the_gated_mean_divides_by_the_gates() {
    let pool = GlobalPool::new(BATCH, POSITIONS, CHANNELS).unwrap();
    let mut random = Random::new(22);
    let z = random.values(BATCH * POSITIONS * CHANNELS);
    let grad = random.values(BATCH * CHANNELS);
    let mut gate: Vec<f32> = (0..BATCH * POSITIONS).map(|_| random.unit()).collect();
    gate[..POSITIONS].fill(0.0);
    let denominator = |image: usize| {
        let gates = &gate[image * POSITIONS..][..POSITIONS];
        gates.iter().map(|&g| g as f64).sum::<f64>() + GATE_EPSILON as f64
    };
    let value = |z: &[f32], image: usize, channel: usize| {
        let at = |p: usize| z[(image * POSITIONS + p) * CHANNELS + channel] as f64;
        (0..POSITIONS).map(at).sum::<f64>() / denominator(image)
    };
    let expected: Vec<f64> =
        (0..BATCH * CHANNELS).map(|i| value(&z, i / CHANNELS, i % CHANNELS)).collect();
    close(&pool.gated_mean(&z, &gate).unwrap(), &expected, 1e-6, "gated mean");
    let slope: Vec<f64> = (0..z.len())
        .map(|i| {
            let (image, channel) = (i / CHANNELS / POSITIONS, i % CHANNELS);
            grad[image * CHANNELS + channel] as f64 / denominator(image)
        })
        .collect();
    close(&pool.gated_mean_backward(&gate, &grad).unwrap(), &slope, 1e-6, "gradient");
}

#[test]
fn wrong_arguments_are_errors() {
    assert!(GlobalPool::new(1, 0, 4).is_err());
    assert!(GlobalPool::new(1, 4, 0).is_err());
    let pool = GlobalPool::new(2, 3, 4).unwrap();
    assert!(pool.max(&[0.0; 23]).is_err());
    assert!(pool.max_backward(&[0; 8], &[0.0; 7]).is_err());
    assert!(pool.max_backward(&[0; 7], &[0.0; 8]).is_err());
    assert!(pool.max_backward(&[3; 8], &[0.0; 8]).is_err());
    assert!(pool.gated_mean(&[0.0; 24], &[0.0; 5]).is_err());
    assert!(pool.gated_mean_backward(&[0.0; 6], &[0.0; 9]).is_err());
    assert!(GlobalPool::new(0, 3, 4).unwrap().max(&[]).unwrap().output.is_empty());
}
