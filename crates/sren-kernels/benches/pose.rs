//! The pose estimator: `cargo bench -p sren-kernels --bench pose`. The counter shows positions per
//! second.

use divan::Bencher;
use divan::counter::ItemsCount;
use sren_kernels::pose::{Images, PosePlan};
use sren_math::{Grid, PoseParams, PoseSpec};

const BATCH: usize = 8;

/// Side of the images and stride of the grid.
#[divan::bench(args = [(28, 1), (56, 2), (96, 4)])]
fn estimate(bencher: Bencher, (side, stride): (usize, usize)) {
    let grid = Grid::pixels(side, side).cell_centred(stride).unwrap();
    let plan = PosePlan::new(PoseSpec::new(PoseParams::default()).unwrap(), grid).unwrap();
    let pixel = |i: usize| (0.3 * (i % side) as f32).sin() * (0.2 * (i / side) as f32).cos();
    let pixels: Vec<f32> = (0..BATCH * side * side).map(pixel).collect();
    let images = Images::new(&pixels, BATCH, side, side, 1).unwrap();
    let counter = ItemsCount::new(BATCH * grid.len());
    bencher.counter(counter).bench(|| plan.estimate(&images).unwrap());
}

fn main() {
    divan::main();
}
