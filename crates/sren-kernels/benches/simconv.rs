//! The similarity convolution: `cargo bench -p sren-kernels --bench simconv`.
//!
//! The counter shows multiply-adds of the matrix products per second. An argument selects benchmarks
//! by name (`-- c64_s28`), `--sample-count N` sets the repetitions, `RAYON_NUM_THREADS` the threads.

use divan::Bencher;
use divan::counter::ItemsCount;
use sren_kernels::{PoseField, Result, SimConv, TapTable};
use sren_math::Grid;

const BATCH: usize = 32;

/// One layer.
struct Shape {
    name: &'static str,
    channels: [usize; 2],
    size: usize,
    kernel_size: usize,
    stride: usize,
    poses: usize,
    relative_pose: bool,
    need_input: bool,
}

const fn layer(name: &'static str, channels: usize, size: usize) -> Shape {
    Shape {
        name,
        channels: [channels; 2],
        size,
        kernel_size: 3,
        stride: 1,
        poses: 1,
        relative_pose: false,
        need_input: true,
    }
}

const fn stem(name: &'static str, c_in: usize) -> Shape {
    let layer = layer(name, 64, 56);
    Shape { channels: [c_in, 64], kernel_size: 7, stride: 2, need_input: false, ..layer }
}

static SHAPES: [Shape; 11] = [
    layer("c64_s28", 64, 28),
    layer("c128_s14", 128, 14),
    layer("c256_s7", 256, 7),
    layer("c16_s56", 16, 56),
    stem("stem_c1_s56", 1),
    stem("stem_c3_s56", 3),
    Shape { poses: 2, ..layer("c64_s28_two_poses", 64, 28) },
    Shape { relative_pose: true, ..layer("c64_s28_relative_pose", 64, 28) },
    Shape { stride: 2, channels: [64, 128], ..layer("c64_128_s28_stride2", 64, 28) },
    Shape { kernel_size: 1, ..layer("c64_s28_k1", 64, 28) },
    Shape {
        kernel_size: 1,
        stride: 2,
        channels: [64, 128],
        ..layer("c64_128_s28_k1_stride2", 64, 28)
    },
];

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Equidistributed values in 0..1.
fn uniform(count: usize, seed: f64) -> impl Iterator<Item = f32> {
    (0..count).map(move |i| (seed + i as f64 * 0.618_033_988_75).fract() as f32)
}

fn values(count: usize, seed: f64) -> Vec<f32> {
    uniform(count, seed).map(|v| v - 0.5).collect()
}

/// Poses of scale 0.7 to 1.7 and any angle.
fn field(grid: Grid, poses: usize) -> Result<PoseField> {
    let count = BATCH * grid.len();
    let scale = uniform(count * poses, 0.1).map(|v| 0.7 + v).collect();
    let angle = uniform(count * poses, 0.7).map(|v| std::f32::consts::TAU * v).collect();
    let weight = vec![1.0 / poses as f32; count * poses];
    PoseField::new(grid, BATCH, poses, scale, angle, weight, vec![1.0; count])
}

/// A layer with its inputs.
struct Layer {
    conv: SimConv,
    taps: TapTable,
    input: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    grad_output: Vec<f32>,
    multiply_adds: usize,
}

impl Layer {
    fn new(shape: &Shape, identity: bool) -> Result<Self> {
        let [c_in, c_out] = shape.channels;
        let grid = Grid::pixels(shape.size, shape.size);
        let output = grid.cell_centred(shape.stride)?;
        let poses = match identity {
            true => PoseField::identity(output, BATCH)?,
            false => field(output, shape.poses)?,
        };
        let taps = TapTable::new(&poses, &grid, shape.kernel_size, 1.0, false)?;
        let taps = taps.with_input_poses(&field(grid, 1)?)?;
        let conv = SimConv::new(c_in, c_out, shape.relative_pose)?;
        let weight = values(conv.weight_len(shape.kernel_size)?, 0.3);
        Ok(Self {
            input: values(conv.input_len(&taps)?, 0.2),
            bias: values(c_out, 0.4),
            grad_output: values(conv.output_len(&taps)?, 0.5),
            multiply_adds: BATCH * output.len() * weight.len(),
            conv,
            taps,
            weight,
        })
    }

    fn forward(&self) -> Vec<f32> {
        self.conv.forward(&self.taps, &self.input, &self.weight, Some(&self.bias)).unwrap()
    }
}

#[divan::bench(args = &SHAPES)]
fn tap_table(bencher: Bencher, shape: &Shape) {
    let grid = Grid::pixels(shape.size, shape.size);
    let poses = field(grid.cell_centred(shape.stride).unwrap(), shape.poses).unwrap();
    bencher.bench(|| TapTable::new(&poses, &grid, shape.kernel_size, 1.0, false).unwrap());
}

#[divan::bench(args = &SHAPES)]
fn forward(bencher: Bencher, shape: &Shape) {
    let layer = Layer::new(shape, false).unwrap();
    bencher.counter(ItemsCount::new(layer.multiply_adds)).bench(|| layer.forward());
}

#[divan::bench(args = &SHAPES)]
fn forward_plain(bencher: Bencher, shape: &Shape) {
    let layer = Layer::new(shape, true).unwrap();
    bencher.counter(ItemsCount::new(layer.multiply_adds)).bench(|| layer.forward());
}

#[divan::bench(args = &SHAPES)]
fn backward(bencher: Bencher, shape: &Shape) {
    let layer = Layer::new(shape, false).unwrap();
    let Layer { conv, taps, input, weight, grad_output, .. } = &layer;
    let products = if shape.need_input { 2 } else { 1 };
    let backward = || conv.backward(taps, input, weight, grad_output, shape.need_input).unwrap();
    bencher.counter(ItemsCount::new(products * layer.multiply_adds)).bench(backward);
}

fn main() {
    println!("{} on {} thread(s)", sren_kernels::instruction_set(), rayon::current_num_threads());
    divan::main();
}
