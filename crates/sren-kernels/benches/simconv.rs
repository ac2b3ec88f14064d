//! Times of the similarity convolution, minimum of several repetitions.
//!
//! `cargo bench -p sren-kernels --bench simconv` prints a table: milliseconds, GFLOP/s of the
//! matrix products, share of tap-table building, and the same with poses left out (identity).
//! `-- --json` prints one JSON document with milliseconds per shape instead, for scripts that
//! compare; `--reps N` and `--only NAME` narrow it. `RAYON_NUM_THREADS` sets the threads.

use std::hint::black_box;
use std::time::Instant;

use sren_kernels::{PoseField, SimConv, TapTable};
use sren_math::Grid;

/// One measured layer.
struct Shape {
    name: &'static str,
    c_in: usize,
    c_out: usize,
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
        c_in: channels,
        c_out: channels,
        size,
        kernel_size: 3,
        stride: 1,
        poses: 1,
        relative_pose: false,
        need_input: true,
    }
}

const fn stem(name: &'static str, c_in: usize) -> Shape {
    Shape {
        name,
        c_in,
        c_out: 64,
        size: 56,
        kernel_size: 7,
        stride: 2,
        poses: 1,
        relative_pose: false,
        need_input: false,
    }
}

const SHAPES: [Shape; 11] = [
    layer("c64_s28", 64, 28),
    layer("c128_s14", 128, 14),
    layer("c256_s7", 256, 7),
    layer("c16_s56", 16, 56),
    stem("stem_c1_s56", 1),
    stem("stem_c3_s56", 3),
    Shape { poses: 2, ..layer("c64_s28_two_poses", 64, 28) },
    Shape { relative_pose: true, ..layer("c64_s28_relative_pose", 64, 28) },
    Shape { stride: 2, c_out: 128, ..layer("c64_128_s28_stride2", 64, 28) },
    Shape { kernel_size: 1, ..layer("c64_s28_k1", 64, 28) },
    Shape { kernel_size: 1, stride: 2, c_out: 128, ..layer("c64_128_s28_k1_stride2", 64, 28) },
];

const BATCH: usize = 32;

/// A small generator of uniform numbers in 0..1 (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next() - 0.5).collect()
    }
}

/// Milliseconds, minimum over the repetitions.
struct Times {
    taps: f64,
    forward: f64,
    both: f64,
}

fn field(random: &mut Random, grid: Grid, poses: usize) -> PoseField {
    let count = BATCH * grid.len();
    let scale = (0..count * poses).map(|_| 0.7 + random.next()).collect();
    let angle = (0..count * poses).map(|_| std::f32::consts::TAU * random.next()).collect();
    let weight = vec![1.0 / poses as f32; count * poses];
    PoseField::new(grid, BATCH, poses, scale, angle, weight, vec![1.0; count]).unwrap()
}

fn measure(shape: &Shape, repetitions: usize, identity: bool) -> Times {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let grid = Grid::pixels(shape.size, shape.size);
    let output = grid.cell_centred(shape.stride).unwrap();
    let poses = match identity {
        true => PoseField::identity(output, BATCH),
        false => field(&mut random, output, shape.poses),
    };
    let input_poses = shape.relative_pose.then(|| field(&mut random, grid, 1));
    let table = || {
        let table = TapTable::new(&poses, &grid, shape.kernel_size, 1.0, false).unwrap();
        match &input_poses {
            Some(field) => table.with_input_poses(field).unwrap(),
            None => table,
        }
    };
    let taps = table();
    let conv = SimConv::new(shape.c_in, shape.c_out, shape.relative_pose).unwrap();
    let input = random.values(conv.input_len(&taps));
    let weight = random.values(conv.weight_len(shape.kernel_size));
    let bias = random.values(shape.c_out);
    let grad = random.values(conv.output_len(&taps));

    let mut best = Times { taps: f64::MAX, forward: f64::MAX, both: f64::MAX };
    for _ in 0..repetitions {
        let start = Instant::now();
        black_box(table());
        best.taps = best.taps.min(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        black_box(conv.forward(&taps, &input, &weight, Some(&bias)).unwrap());
        best.forward = best.forward.min(start.elapsed().as_secs_f64() * 1e3);
        black_box(conv.backward(&taps, &input, &weight, &grad, shape.need_input).unwrap());
        best.both = best.both.min(start.elapsed().as_secs_f64() * 1e3);
    }
    best
}

/// Multiply-adds of one matrix product of the layer, in units of 1e6 operations of 2 each.
fn megaflop(shape: &Shape) -> f64 {
    let positions = BATCH * shape.size.div_ceil(shape.stride).pow(2);
    let tap_width = shape.c_in * if shape.relative_pose { 3 } else { 1 };
    2e-6 * (positions * shape.kernel_size.pow(2) * tap_width * shape.c_out) as f64
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1).cloned()
    };
    let json = arguments.iter().any(|a| a == "--json");
    let repetitions = option("--reps").and_then(|n| n.parse().ok()).unwrap_or(10);
    let only = option("--only");
    let wanted = |shape: &&Shape| only.as_ref().is_none_or(|name| name == shape.name);
    let threads = rayon::current_num_threads();

    if json {
        let entries: Vec<String> = SHAPES
            .iter()
            .filter(wanted)
            .map(|shape| {
                let time = measure(shape, repetitions, false);
                format!(
                    "{{\"name\":\"{}\",\"batch\":{BATCH},\"c_in\":{},\"c_out\":{},\"size\":{},\
                     \"kernel_size\":{},\"stride\":{},\"poses\":{},\"relative_pose\":{},\
                     \"input_gradient\":{},\"taps_ms\":{:.4},\"forward_ms\":{:.4},\
                     \"forward_backward_ms\":{:.4}}}",
                    shape.name,
                    shape.c_in,
                    shape.c_out,
                    shape.size,
                    shape.kernel_size,
                    shape.stride,
                    shape.poses,
                    shape.relative_pose,
                    shape.need_input,
                    time.taps,
                    time.forward,
                    time.both
                )
            })
            .collect();
        println!("{{\"threads\":{threads},\"layers\":[{}]}}", entries.join(","));
        return;
    }

    println!("{threads} thread(s), batch {BATCH}, minimum of {repetitions}");
    println!(
        "{:<24} {:>9} {:>9} {:>9} {:>8} {:>8} {:>12}",
        "layer", "taps ms", "fwd ms", "both ms", "GF/s fwd", "GF/s", "identity ms"
    );
    for shape in SHAPES.iter().filter(wanted) {
        let time = measure(shape, repetitions, false);
        let plain = measure(shape, repetitions, true);
        let products = if shape.need_input { 3.0 } else { 2.0 };
        println!(
            "{:<24} {:>9.3} {:>9.2} {:>9.2} {:>8.1} {:>8.1} {:>12.2}",
            shape.name,
            time.taps,
            time.forward,
            time.both,
            megaflop(shape) / time.forward,
            products * megaflop(shape) / time.both,
            plain.both
        );
    }
}
