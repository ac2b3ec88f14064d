//! Batch norm against numeric gradients of its definition in f64, with and without active rows, gate,
//! ReLU and residual; running averages; errors.

mod definition;

use definition::{Random, close};
use sren_kernels::norm::{Affine, BatchNorm, Mask, Statistics};

const EPSILON: f64 = 1e-3;

/// One batch and what is done to it.
#[derive(Clone)]
struct Case {
    channels: usize,
    relu: bool,
    x: Vec<f64>,
    gamma: Vec<f64>,
    beta: Vec<f64>,
    residual: Option<Vec<f64>>,
    active: Option<Vec<u32>>,
    gate: Option<Vec<f32>>,
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

impl Case {
    fn random(random: &mut Random, rows: usize, channels: usize, options: u32) -> Self {
        let mut values =
            |count: usize| -> Vec<f64> { random.values(count).iter().map(|&v| v as f64).collect() };
        let x = values(rows * channels).iter().map(|v| 3.0 + 2.0 * v).collect();
        let (gamma, beta) = (values(channels), values(channels));
        let residual = (options & 2 > 0).then(|| values(rows * channels));
        let active =
            (options & 4 > 0).then(|| (0..rows as u32).filter(|_| random.unit() < 0.4).collect());
        let gate = (options & 8 > 0).then(|| (0..rows).map(|_| 0.1 + random.unit()).collect());
        Self { channels, relu: options & 1 > 0, x, gamma, beta, residual, active, gate }
    }

    fn rows(&self) -> Vec<usize> {
        match &self.active {
            Some(list) => list.iter().map(|&row| row as usize).collect(),
            None => (0..self.x.len() / self.channels).collect(),
        }
    }

    /// The definition.
    fn output(&self) -> Vec<f64> {
        let (rows, c) = (self.rows(), self.channels);
        let mut out = vec![0.0; self.x.len()];
        for i in 0..c {
            let values: Vec<f64> = rows.iter().map(|row| self.x[row * c + i]).collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            for (row, value) in rows.iter().zip(values) {
                let at = row * c + i;
                let normed = (value - mean) / (variance + EPSILON).sqrt();
                let residual = self.residual.as_ref().map_or(0.0, |r| r[at]);
                let sum = self.gamma[i] * normed + self.beta[i] + residual;
                let gate = self.gate.as_ref().map_or(1.0, |gate| gate[*row] as f64);
                out[at] = gate * if self.relu { sum.max(0.0) } else { sum };
            }
        }
        out
    }

    fn loss(&self, grad: &[f32]) -> f64 {
        self.output().iter().zip(grad).map(|(o, g)| o * *g as f64).sum()
    }

    /// Central differences by one part of the case.
    fn numeric(&self, grad: &[f32], part: fn(&mut Self) -> &mut Vec<f64>) -> Vec<f64> {
        let mut case = self.clone();
        (0..part(&mut case).len())
            .map(|index| {
                const STEP: f64 = 1e-6;
                let value = part(&mut case)[index];
                let mut at = |offset: f64| {
                    part(&mut case)[index] = value + offset;
                    case.loss(grad)
                };
                let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                part(&mut case)[index] = value;
                slope
            })
            .collect()
    }
}

#[test]
fn outputs_and_gradients_follow_the_definition() {
    let mut random = Random::new(11);
    for options in 0..16 {
        for (rows, channels) in [(40, 3), (9, 17)] {
            let case = Case::random(&mut random, rows, channels, options);
            let grad = random.values(rows * channels);
            let label = |part: &str| format!("{part} of {rows}x{channels}, options {options}");
            let norm = BatchNorm::new(channels, EPSILON as f32, case.relu).unwrap();
            let (x, gamma, beta) = (single(&case.x), single(&case.gamma), single(&case.beta));
            let residual = case.residual.as_deref().map(single);
            let mask = Mask { active: case.active.as_deref(), gate: case.gate.as_deref() };
            let affine = Affine { gamma: &gamma, beta: &beta };
            let statistics = norm.statistics(&x, mask.active).unwrap();
            assert_eq!(statistics.count, case.rows().len());
            let output = norm.forward(&x, affine, &statistics, residual.as_deref(), mask).unwrap();
            close(&output, &case.output(), 1e-5, &label("output"));
            let need = residual.is_some();
            let got = norm.backward(&x, &output, affine, &statistics, &grad, need, mask).unwrap();
            close(&got.input, &case.numeric(&grad, |c| &mut c.x), 2e-5, &label("input"));
            close(&got.gamma, &case.numeric(&grad, |c| &mut c.gamma), 2e-5, &label("gamma"));
            close(&got.beta, &case.numeric(&grad, |c| &mut c.beta), 2e-5, &label("beta"));
            assert_eq!(got.residual.is_some(), need);
            if let Some(got) = &got.residual {
                let expected = case.numeric(&grad, |c| c.residual.as_mut().unwrap());
                close(got, &expected, 2e-5, &label("residual"));
            }
            for row in (0..rows).filter(|row| !case.rows().contains(row)) {
                let zero = |v: &[f32]| v[row * channels..][..channels].iter().all(|&v| v == 0.0);
                assert!(zero(&output) && zero(&got.input), "{}", label("inactive row"));
            }
        }
    }
}

#[test]
fn large_means_keep_the_variance() {
    let norm = BatchNorm::new(2, 1e-5, false).unwrap();
    let mut random = Random::new(12);
    let x: Vec<f32> = random.values(20_000).iter().map(|v| 1000.0 + v).collect();
    let statistics = norm.statistics(&x, None).unwrap();
    let exact = |channel: usize| {
        let values = || x.iter().skip(channel).step_by(2).map(|&v| v as f64);
        let mean = values().sum::<f64>() / 10_000.0;
        (mean, values().map(|v| (v - mean).powi(2)).sum::<f64>() / 10_000.0)
    };
    for channel in 0..2 {
        let (mean, variance) = exact(channel);
        assert!((statistics.mean[channel] as f64 - mean).abs() < 1e-4);
        assert!((statistics.variance[channel] as f64 / variance - 1.0).abs() < 1e-4);
    }
}

#[test]
fn statistics_do_not_depend_on_threads() {
    let norm = BatchNorm::new(24, 1e-5, true).unwrap();
    let x = Random::new(13).values(24 * 5000);
    let runs: Vec<Statistics> = [1, 2, 5]
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| norm.statistics(&x, None).unwrap())
        })
        .into();
    assert!(runs.iter().all(|run| *run == runs[0]));
}

#[test]
fn running_averages_follow_the_momentum_and_need_rows() {
    let norm = BatchNorm::new(1, 1e-5, false).unwrap();
    let statistics = norm.statistics(&[1.0, 3.0, 5.0], None).unwrap();
    let (mut mean, mut variance) = ([1.0], [1.0]);
    statistics.update_running(&mut mean, &mut variance, 0.1).unwrap();
    assert!((mean[0] - 1.2).abs() < 1e-6 && (variance[0] - 1.3).abs() < 1e-6);
    let none = norm.statistics(&[1.0, 3.0, 5.0], Some(&[])).unwrap();
    none.update_running(&mut mean, &mut variance, 0.1).unwrap();
    assert!((mean[0] - 1.2).abs() < 1e-6 && (variance[0] - 1.3).abs() < 1e-6);
    assert!(none.update_running(&mut [0.0; 2], &mut variance, 0.1).is_err());
}

#[test]
fn wrong_arguments_are_errors() {
    assert!(BatchNorm::new(0, 1e-5, false).is_err());
    assert!(BatchNorm::new(3, 0.0, false).is_err());
    assert!(BatchNorm::new(3, f32::NAN, false).is_err());
    let norm = BatchNorm::new(3, 1e-5, true).unwrap();
    assert!(norm.statistics(&[0.0; 4], None).is_err());
    assert!(norm.statistics(&[0.0; 6], Some(&[1, 0])).is_err());
    assert!(norm.statistics(&[0.0; 6], Some(&[2])).is_err());
    let good = norm.statistics(&[0.0; 6], None).unwrap();
    let affine = Affine { gamma: &[1.0; 3], beta: &[0.0; 3] };
    let short = Affine { gamma: &[1.0; 2], beta: &[0.0; 3] };
    let x = [0.5; 6];
    assert!(norm.forward(&x, short, &good, None, Mask::default()).is_err());
    assert!(norm.forward(&x, affine, &good, Some(&[0.0; 3]), Mask::default()).is_err());
    assert!(norm.backward(&x, &[0.0; 5], affine, &good, &x, false, Mask::default()).is_err());
    assert!(norm.backward(&x, &x, affine, &good, &x[..3], false, Mask::default()).is_err());
    let one = Mask { active: Some(&[0]), gate: None };
    assert!(norm.backward(&x, &x, affine, &good, &x, false, one).is_err());
    let long = Mask { active: None, gate: Some(&[1.0; 3]) };
    assert!(norm.forward(&x, affine, &good, None, long).is_err());
}

#[test]
fn not_a_number_is_not_hidden_by_the_relu() {
    let norm = BatchNorm::new(1, 1e-5, true).unwrap();
    let statistics = Statistics { mean: vec![0.0], variance: vec![1.0], count: 0 };
    let affine = Affine { gamma: &[1.0], beta: &[0.0] };
    let output =
        norm.forward(&[f32::NAN, -1.0], affine, &statistics, None, Mask::default()).unwrap();
    assert!(output[0].is_nan() && output[1] == 0.0);
}
