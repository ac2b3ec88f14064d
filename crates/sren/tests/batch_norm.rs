//! The batch norm against Burn's own, which has its channels on axis 1.

mod support;

use burn::module::{Module, Param};
use burn::nn::BatchNormConfig;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use sren::{Mask, MaskedBatchNormConfig, Result};
use support::{assert_close, device, tensor, values};

#[test]
fn equals_burns_forward_backward_and_running_averages() -> Result<()> {
    let (device, shape) = (device(), [4, 6, 5, 19]);
    for fused in [false, true] {
        let mut ours = MaskedBatchNormConfig::new(19).with_relu(fused).init(&device)?;
        let mut burns = BatchNormConfig::new(19).init(&device);
        let (gamma, beta) = (tensor(1, [19], &device), tensor(2, [19], &device));
        ours.gamma = Param::from_tensor(gamma.clone());
        ours.beta = Param::from_tensor(beta.clone());
        burns.gamma = Param::from_tensor(gamma);
        burns.beta = Param::from_tensor(beta);

        for step in 0..3 {
            let x = (tensor(3 + step, shape, &device) * 2.0 + 0.7).detach().require_grad();
            let residual = tensor(13 + step, shape, &device).require_grad();
            let upstream = tensor(23 + step, shape, &device);

            let got = ours.forward_residual(x.clone(), residual.clone(), &Mask::default())?;
            let gradients = (got.clone() * upstream.clone()).sum().backward();
            let channels_first = burns.forward(x.clone().permute([0, 3, 1, 2]));
            let mut expected = channels_first.permute([0, 2, 3, 1]) + residual.clone();
            if fused {
                expected = relu(expected);
            }
            let reference = (expected.clone() * upstream).sum().backward();

            assert_close("output", &got, &expected, 1e-5);
            for (name, leaf) in [("x", &x), ("residual", &residual)] {
                let expected = leaf.grad(&reference).unwrap();
                assert_close(name, &leaf.grad(&gradients).unwrap(), &expected, 1e-5);
            }
            let pairs = [(&ours.gamma, &burns.gamma), (&ours.beta, &burns.beta)];
            for (ours, burns) in pairs {
                let expected = burns.grad(&reference).unwrap();
                assert_close("affine", &ours.grad(&gradients).unwrap(), &expected, 1e-5);
            }
        }
        let (mean, var) = (ours.running_mean.value_sync(), ours.running_var.value_sync());
        assert_close("running mean", &mean, &burns.running_mean.value_sync(), 1e-5);
        assert_close("running variance", &var, &burns.running_var.value_sync(), 1e-5);

        let x = tensor(40, shape, &Device::flex());
        let expected = burns.valid().forward(x.clone().permute([0, 3, 1, 2]));
        let mut expected = expected.permute([0, 2, 3, 1]);
        if fused {
            expected = relu(expected);
        }
        assert_close("inference", &ours.valid().forward(x, &Mask::default())?, &expected, 1e-5);
    }
    Ok(())
}

/// Those positions alone, gate open.
fn mask(active: &std::sync::Arc<[u32]>) -> Mask {
    Mask { active: Some(active.clone()), gate: None }
}

#[test]
fn statistics_are_those_of_the_active_positions() -> Result<()> {
    let device = device();
    let norm = MaskedBatchNormConfig::new(3).init(&device)?;
    let x = tensor(1, [2, 4, 4, 3], &device);
    let active: std::sync::Arc<[u32]> = (0..32).filter(|i| i % 2 == 0).collect();
    let got = values(&norm.forward(x.clone(), &mask(&active))?);
    // Every second position alone, as a batch of its own.
    let chosen = x.reshape([16, 2, 3]).slice([0..16, 0..1, 0..3]).reshape([16, 1, 1, 3]);
    let alone =
        values(&MaskedBatchNormConfig::new(3).init(&device)?.forward(chosen, &Mask::default())?);
    for position in 0..32 {
        for channel in 0..3 {
            let value = got[position * 3 + channel];
            match position % 2 {
                0 => assert!((value - alone[position / 2 * 3 + channel]).abs() < 1e-6),
                _ => assert_eq!(value, 0.0),
            }
        }
    }
    Ok(())
}

#[test]
fn a_batch_without_active_positions_moves_nothing() -> Result<()> {
    let device = device();
    let norm = MaskedBatchNormConfig::new(3).init(&device)?;
    let nothing: std::sync::Arc<[u32]> = [].into();
    let output = norm.forward(tensor(1, [1, 2, 2, 3], &device), &mask(&nothing))?;
    assert_eq!(values(&output), [0.0; 12]);
    assert_eq!(values(&norm.running_mean.value_sync()), [0.0; 3]);
    assert_eq!(values(&norm.running_var.value_sync()), [1.0; 3]);
    Ok(())
}

#[test]
fn frozen_layers_use_running_averages_and_pass_gradients() -> Result<()> {
    let device = device();
    let norm = MaskedBatchNormConfig::new(3).with_relu(true).init(&device)?;
    let x: Tensor<4> = tensor(1, [2, 4, 4, 3], &device);
    let active: std::sync::Arc<[u32]> = (0..32).filter(|i| i % 3 != 0).collect();
    norm.forward(x.clone(), &mask(&active))?;
    let expected = norm.valid().forward(x.clone().without_autodiff(), &mask(&active))?;
    let frozen = norm.freeze();
    let before = values(&frozen.running_mean.value_sync());
    let x = x.detach().require_grad();
    let got = frozen.forward(x.clone(), &mask(&active))?;
    assert_close("frozen", &got.clone().without_autodiff(), &expected, 1e-5);
    let gradients = got.sum().backward();
    assert!(values(&x.grad(&gradients).unwrap()).iter().any(|&g| g != 0.0));
    assert_eq!(values(&frozen.running_mean.value_sync()), before);
    Ok(())
}
