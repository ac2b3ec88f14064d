//! Upright frames of scale 1 make the similarity convolution a plain one: Burn's own is the
//! reference, forward and gradients.

mod support;

use burn::module::Param;
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use sren::{Equivariance, FeatureMap, Frames, Grid, PoseField, Result, SimConv2dConfig, TapTable};
use support::{assert_close, device, tensor};

fn compare(k: usize, stride: usize, [h, w]: [usize; 2], channels: [usize; 2]) {
    let what = format!("k {k}, stride {stride}, {h}x{w}, channels {channels:?}");
    let (device, n, [c_in, c_out]) = (device(), 2, channels);
    let input_grid = Grid::pixels(h, w);
    let grid = input_grid.corner_aligned(stride).unwrap();
    let taps =
        TapTable::new(&PoseField::identity(grid, n).unwrap(), &input_grid, k, 1.0, false).unwrap();

    let mut layer = SimConv2dConfig::new(channels, k).with_stride(stride).init(&device).unwrap();
    let weight = tensor(1, [k, k, c_in, c_out], &device).require_grad();
    let bias = tensor(2, [c_out], &device).require_grad();
    let x = tensor(3, [n, h, w, c_in], &device).require_grad();
    let upstream = tensor(4, [n, grid.height, grid.width, c_out], &device);

    layer.weight = Param::from_tensor(weight.clone());
    layer.bias = Some(Param::from_tensor(bias.clone()));
    let ours = layer.convolve(x.clone(), &taps).unwrap();
    let gradients = (ours.clone() * upstream.clone()).sum().backward();
    let (dx, dw) = (x.grad(&gradients).unwrap(), layer.weight.grad(&gradients).unwrap());
    let db = layer.bias.as_ref().unwrap().grad(&gradients).unwrap();

    // [n, h, w, c] -> [n, c, h, w]; [k, k, c_in, c_out] -> [c_out, c_in, k, k]
    let plain = conv2d(
        x.clone().permute([0, 3, 1, 2]),
        weight.clone().permute([3, 2, 0, 1]),
        Some(bias.clone()),
        ConvOptions::new([stride; 2], [k / 2; 2], [1, 1], 1),
    )
    .permute([0, 2, 3, 1]);
    let gradients = (plain.clone() * upstream).sum().backward();
    assert_close(&format!("{what}: output"), &ours, &plain, 1e-5);
    assert_close(&format!("{what}: input's"), &dx, &x.grad(&gradients).unwrap(), 1e-5);
    assert_close(&format!("{what}: weight's"), &dw, &weight.grad(&gradients).unwrap(), 1e-5);
    assert_close(&format!("{what}: bias's"), &db, &bias.grad(&gradients).unwrap(), 1e-5);
}

#[test]
fn equals_burns_conv2d_for_every_kernel_stride_and_parity() {
    for k in [1, 3, 5, 7] {
        for stride in [1, 2] {
            for size in [[8, 8], [9, 9], [7, 10], [1, 5]] {
                compare(k, stride, size, [3, 4]);
            }
        }
    }
}

/// Poses of the reference scale have the taps of a plain dilated convolution, in every group.
#[test]
fn the_reference_scale_gives_the_spacing_of_a_plain_convolution() -> Result<()> {
    let (device, n, grid) = (device(), 2, Grid::pixels(9, 8));
    let x = tensor(3, [n, grid.height, grid.width, 3], &device);
    for (dilation, reference) in [(1, 3.0), (2, 0.7), (3, 12.5)] {
        let layer = SimConv2dConfig::new([3, 4], 3)
            .with_dilation(dilation)
            .with_reference_scale(reference)
            .init(&device)?;
        let plain = conv2d(
            x.clone().permute([0, 3, 1, 2]),
            layer.weight.val().permute([3, 2, 0, 1]),
            None,
            ConvOptions::new([1; 2], [dilation; 2], [dilation; 2], 1),
        );
        let plain = plain.permute([0, 2, 3, 1]);
        for group in [Equivariance::None, Equivariance::Scale] {
            let field = PoseField::identity(grid, n)?.with_scale(reference as f32)?;
            let frames = Frames::new(vec![field], group)?;
            let ours = layer.forward(FeatureMap::new(x.clone(), grid)?, &frames)?;
            assert_close(&format!("{dilation} {group:?}"), &ours.values, &plain, 1e-5);
        }
    }
    Ok(())
}

#[test]
fn equals_burns_conv2d_for_one_to_300_channels() {
    for channels in [[1, 1], [1, 16], [2, 300], [17, 5], [64, 64], [300, 33], [300, 300]] {
        compare(3, 1, [6, 7], channels);
        compare(3, 2, [7, 6], channels);
        compare(1, 1, [5, 5], channels);
    }
    compare(7, 2, [12, 11], [130, 40]);
}
