//! Gradients through the modules against central differences.

mod support;

use burn::module::Param;
use burn::tensor::{Device, Tensor};
use sren::{
    Equivariance, FeatureMap, Frames, Grid, Mask, MaskedBatchNormConfig, Result, SimConv2dConfig,
    pool,
};
use support::{assert_close, device, poses, tensor, values};

/// d loss / d x by central differences, loss summed in f64.
fn numeric<const D: usize>(x: &Tensor<D>, step: f32, loss: impl Fn(Tensor<D>) -> f64) -> Tensor<D> {
    let base = values(x);
    let at = |index: usize, value: f32| {
        let mut moved = base.clone();
        moved[index] = value;
        let data = burn::tensor::TensorData::new(moved, x.dims());
        loss(Tensor::from_data(data, &x.device()))
    };
    let slope = |i: usize| {
        let (up, down) = (base[i] + step, base[i] - step);
        ((at(i, up) - at(i, down)) / (up as f64 - down as f64)) as f32
    };
    let data: Vec<f32> = (0..base.len()).map(slope).collect();
    Tensor::from_data(burn::tensor::TensorData::new(data, x.dims()), &x.device())
}

fn weighted_sum<const D: usize>(output: &Tensor<D>, upstream: &Tensor<D>) -> f64 {
    let pairs = values(output).into_iter().zip(values(upstream));
    pairs.map(|(o, u)| o as f64 * u as f64).sum()
}

fn check_simconv(relative_pose: bool, active_only: bool, stride: usize) -> Result<()> {
    let (device, n, channels) = (device(), 2, [3, 4]);
    let image = Grid::pixels(5, 6);
    let fine = poses(10, image, n, 0.6);
    let mut fields = vec![fine];
    if stride > 1 {
        fields.push(poses(20, image.cell_centred(stride)?, n, 0.6));
    }
    let frames = Frames::new(fields, Equivariance::Similarity)?.with_active_only(active_only);
    let layer = SimConv2dConfig::new(channels, 3)
        .with_stride(stride)
        .with_reference_scale(1.4)
        .with_relative_pose(relative_pose)
        .init(&device)?;
    let taps = layer.taps(&frames, &image)?;
    let x = tensor(1, [n, 5, 6, 3], &device).require_grad();
    let with = |weight: Tensor<4>, bias: Tensor<1>| {
        let mut layer = layer.clone();
        layer.weight = Param::from_tensor(weight);
        layer.bias = Some(Param::from_tensor(bias));
        layer
    };
    let weight = tensor(2, layer.weight.dims(), &device);
    let bias = tensor(3, [4], &device);
    let layer = with(weight.clone(), bias.clone());

    let output = layer.convolve(x.clone(), &taps)?;
    let upstream = tensor(4, output.dims(), &device);
    let gradients = (output * upstream.clone()).sum().backward();
    let loss = |output: Tensor<4>| weighted_sum(&output, &upstream);

    let what = format!("relative {relative_pose}, active {active_only}, stride {stride}");
    let dx = numeric(&x, 0.5, |x| loss(layer.convolve(x, &taps).unwrap()));
    assert_close(&format!("{what}: input's"), &x.grad(&gradients).unwrap(), &dx, 1e-4);
    let dw =
        numeric(&weight, 0.5, |w| loss(with(w, bias.clone()).convolve(x.clone(), &taps).unwrap()));
    let got = layer.weight.grad(&gradients).unwrap();
    assert_close(&format!("{what}: weight's"), &got, &dw, 1e-4);
    let db =
        numeric(&bias, 0.5, |b| loss(with(weight.clone(), b).convolve(x.clone(), &taps).unwrap()));
    let got = layer.bias.as_ref().unwrap().grad(&gradients).unwrap();
    assert_close(&format!("{what}: bias's"), &got, &db, 1e-4);
    Ok(())
}

#[test]
fn of_the_similarity_convolution() -> Result<()> {
    for relative_pose in [false, true] {
        for active_only in [false, true] {
            for stride in [1, 2] {
                check_simconv(relative_pose, active_only, stride)?;
            }
        }
    }
    Ok(())
}

#[test]
fn of_the_batch_norm() -> Result<()> {
    const STEP: f32 = 5e-4; // small, to step over few of the ReLU's kinks
    let (device, shape) = (device(), [2, 3, 4, 5]);
    let active: std::sync::Arc<[u32]> = (0..24).filter(|i| i % 3 != 1).collect();
    let gate: std::sync::Arc<[f32]> = (0..24).map(|i| 0.2 + 0.03 * i as f32).collect();
    for (relu, residual, mask) in [
        (false, false, Mask::default()),
        (false, true, Mask::default()),
        (true, true, Mask::default()),
        (false, true, Mask { active: Some(active.clone()), gate: None }),
        (true, true, Mask { active: Some(active.clone()), gate: None }),
        (false, false, Mask { active: None, gate: Some(gate.clone()) }),
        (true, true, Mask { active: Some(active), gate: Some(gate) }),
    ] {
        let norm = MaskedBatchNormConfig::new(5).with_relu(relu).init(&device)?;
        let with = |gamma: &Tensor<1>, beta: &Tensor<1>| {
            let mut norm = norm.clone();
            norm.gamma = Param::from_tensor(gamma.clone());
            norm.beta = Param::from_tensor(beta.clone());
            norm
        };
        let (gamma, beta) = (tensor(1, [5], &device), tensor(2, [5], &device));
        let x = tensor(3, shape, &device).require_grad();
        let r = tensor(4, shape, &device).require_grad();
        let run = |norm: &sren::MaskedBatchNorm, x: Tensor<4>, r: Tensor<4>| match residual {
            true => norm.forward_residual(x, r, &mask).unwrap(),
            false => norm.forward(x, &mask).unwrap(),
        };
        let upstream = tensor(5, shape, &device);
        let loss = |output: Tensor<4>| weighted_sum(&output, &upstream);
        let trained = with(&gamma, &beta);
        let output = run(&trained, x.clone(), r.clone());
        let gradients = (output * upstream.clone()).sum().backward();

        let what = format!("relu {relu}, residual {residual}, {mask:?}");
        let frozen = |x: &Tensor<4>| x.clone().detach();
        let dx = numeric(&x, STEP, |x| loss(run(&trained, x, frozen(&r))));
        assert_close(&format!("{what}: x"), &x.grad(&gradients).unwrap(), &dx, 1e-2);
        if residual {
            let dr = numeric(&r, STEP, |r| loss(run(&trained, frozen(&x), r)));
            assert_close(&format!("{what}: residual"), &r.grad(&gradients).unwrap(), &dr, 1e-2);
        }
        let dg = numeric(&gamma, STEP, |g| loss(run(&with(&g, &beta), frozen(&x), frozen(&r))));
        let got = trained.gamma.grad(&gradients).unwrap();
        assert_close(&format!("{what}: gamma"), &got, &dg, 1e-2);
        let db = numeric(&beta, STEP, |b| loss(run(&with(&gamma, &b), frozen(&x), frozen(&r))));
        let got = trained.beta.grad(&gradients).unwrap();
        assert_close(&format!("{what}: beta"), &got, &db, 1e-2);
    }
    Ok(())
}

#[test]
fn of_the_pools() -> Result<()> {
    let device: Device = device();
    let x = tensor(1, [2, 3, 4, 5], &device).require_grad();
    let frames = Frames::new(vec![poses(2, Grid::pixels(3, 4), 2, 0.8)], Equivariance::Similarity)?;
    let upstream = tensor(3, [2, 5], &device);
    let pools: [&dyn Fn(Tensor<4>) -> Tensor<2>; 2] =
        [&|x| pool::global_max(&FeatureMap::from_images(x)).unwrap(), &|x| {
            pool::gated_mean(&FeatureMap::from_images(x), &frames).unwrap()
        }];
    for (index, pool) in pools.into_iter().enumerate() {
        let gradients = (pool(x.clone()) * upstream.clone()).sum().backward();
        let expected = numeric(&x, 1e-3, |x| weighted_sum(&pool(x), &upstream));
        assert_close(&format!("pool {index}"), &x.grad(&gradients).unwrap(), &expected, 2e-3);
    }
    Ok(())
}
