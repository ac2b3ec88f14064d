//! The implementations of a layer: our kernel, our Burn module, Burn's plain convolution.

use std::hint::black_box;

use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::Conv2dConfig;
use burn::tensor::{Device, Tensor, TensorData};
use serde::Serialize;
use sren::{Result, SimConv2dConfig, TapLayout};
use sren_kernels::SimConv;

use super::layer::{BATCH, Layer, random};

/// An implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// The similarity convolution on plain slices.
    Kernel,
    /// The similarity convolution as a Burn module.
    Module,
    /// Burn's plain convolution, channels first, as Burn has them.
    BurnConv2d,
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// The output alone, without recording gradients.
    Forward,
    /// The output and the gradients of weight, bias and, except in a stem, input.
    ForwardBackward,
}

/// A prepared layer: a call computes one pass. The tap table is built already.
pub type Subject = Box<dyn Fn() + Send + Sync>;

/// Prepares `layer` for `contender`.
pub fn prepare(layer: &Layer, contender: Contender, pass: Pass) -> Result<Subject> {
    match contender {
        Contender::Kernel => kernel(layer, pass),
        Contender::Module => module(layer, pass),
        Contender::BurnConv2d => Ok(burn_conv2d(layer, pass)),
    }
}

/// Builds the tap table of `layer`.
pub fn tap_table(layer: &Layer) -> Result<Subject> {
    let layer = *layer;
    let frames = layer.frames()?;
    let (input, field) = (layer.input_grid(), frames.field(&layer.output_grid()?)?.clone());
    Ok(Box::new(move || {
        black_box(sren::TapTable::new(&field, &input, layer.kernel_size, 1.0, false).ok());
    }))
}

fn kernel(layer: &Layer, pass: Pass) -> Result<Subject> {
    let layer = *layer;
    let [c_in, c_out] = layer.channels;
    let (input, output) = (layer.input_grid(), layer.output_grid()?);
    let taps = layer.frames()?.taps(&input, &output, TapLayout::new(layer.kernel_size))?;
    let conv = SimConv::new(c_in, c_out, false)?;
    let values = |seed, count| random(seed, count).collect::<Vec<_>>();
    let x = values(1, conv.input_len(&taps)?);
    let weight = values(2, conv.weight_len(layer.kernel_size)?);
    let bias = values(3, c_out);
    let upstream = vec![1.0; conv.output_len(&taps)?];
    // Once, so that errors occur here and not during a measurement.
    conv.forward(&taps, &x, &weight, Some(&bias))?;
    Ok(Box::new(move || {
        black_box(conv.forward(&taps, &x, &weight, Some(&bias)).ok());
        if pass == Pass::ForwardBackward {
            black_box(conv.backward(&taps, &x, &weight, &upstream, layer.input_gradient).ok());
        }
    }))
}

fn module(layer: &Layer, pass: Pass) -> Result<Subject> {
    let layer = *layer;
    let device = device(pass);
    let config = SimConv2dConfig::new(layer.channels, layer.kernel_size).with_stride(layer.stride);
    let conv = match pass {
        Pass::Forward => config.init(&device)?.no_grad(),
        Pass::ForwardBackward => config.init(&device)?,
    };
    let taps = conv.taps(&layer.frames()?, &layer.input_grid())?;
    let shape = [BATCH, layer.size, layer.size, layer.channels[0]];
    let x = input(shape, &layer, pass, &device);
    conv.convolve(x.clone(), &taps)?;
    Ok(Box::new(move || {
        if let Ok(output) = conv.convolve(x.clone(), &taps) {
            finish(output, pass);
        }
    }))
}

fn burn_conv2d(layer: &Layer, pass: Pass) -> Subject {
    let layer = *layer;
    let device = device(pass);
    let (k, s) = (layer.kernel_size, layer.stride);
    let conv = Conv2dConfig::new(layer.channels, [k, k])
        .with_stride([s, s])
        .with_padding(PaddingConfig2d::Explicit(k / 2, k / 2, k / 2, k / 2))
        .init(&device);
    let shape = [BATCH, layer.channels[0], layer.size, layer.size];
    let x = input(shape, &layer, pass, &device);
    Box::new(move || finish(conv.forward(x.clone()), pass))
}

fn device(pass: Pass) -> Device {
    match pass {
        Pass::Forward => Device::flex(),
        Pass::ForwardBackward => Device::flex().autodiff(),
    }
}

fn input(shape: [usize; 4], layer: &Layer, pass: Pass, device: &Device) -> Tensor<4> {
    let values: Vec<f32> = random(1, shape.iter().product()).collect();
    let x = Tensor::from_data(TensorData::new(values, shape), device);
    x.set_require_grad(layer.input_gradient && pass == Pass::ForwardBackward)
}

/// The backward pass starts from a gradient of ones.
fn finish(output: Tensor<4>, pass: Pass) {
    match pass {
        Pass::Forward => drop(black_box(output)),
        Pass::ForwardBackward => drop(black_box(output.backward())),
    }
}
