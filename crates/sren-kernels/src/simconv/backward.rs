//! Gradients: tile by tile, gather again for the weight's, multiply back and scatter for the
//! input's. A group of images belongs to one thread, so that nothing collides, and the groups'
//! weight gradients are added in order: for a fixed number of threads the result is always the same.

use rayon::prelude::*;

use super::forward::tile_len;
use super::gather::{gather, scatter};
use super::product::{Matrix, multiply};
use super::tile::{Positions, Tile};
use super::{Gradients, SimConv};
use crate::taps::TapTable;

/// The images of one thread: their positions, their first pixel, their share of the input's
/// gradient.
struct Group<'a> {
    positions: Positions<'a>,
    first_pixel: usize,
    grad_input: Option<&'a mut [f32]>,
}

pub(super) fn backward(
    conv: &SimConv,
    taps: &TapTable,
    input: &[f32],
    weight: &[f32],
    grad_output: &[f32],
    need_input: bool,
) -> Gradients {
    let mut grad_input = need_input.then(|| vec![0.0; input.len()]);
    let groups = groups(conv, taps, grad_input.as_deref_mut());
    let mut partial: Vec<(Vec<f32>, Vec<f32>)> = groups
        .into_par_iter()
        .with_max_len(1)
        .map(|group| backward_group(conv, taps, input, weight, grad_output, group))
        .collect();
    let (mut grad_weight, mut grad_bias) = match partial.is_empty() {
        true => (vec![0.0; weight.len()], vec![0.0; conv.c_out]),
        false => partial.remove(0),
    };
    for (weight, bias) in partial {
        grad_weight.iter_mut().zip(&weight).for_each(|(sum, part)| *sum += part);
        grad_bias.iter_mut().zip(&bias).for_each(|(sum, part)| *sum += part);
    }
    Gradients { input: grad_input, weight: grad_weight, bias: grad_bias }
}

/// Shares the images out, as many groups as threads, each with about as many positions.
fn groups<'a>(
    conv: &SimConv,
    taps: &'a TapTable,
    mut grad_input: Option<&'a mut [f32]>,
) -> Vec<Group<'a>> {
    let positions = Positions::of(taps);
    let (images, threads) = (taps.batch(), rayon::current_num_threads().max(1));
    let (pixels, per_image) = (taps.input_grid().len(), taps.output_grid().len());
    let mut groups = Vec::new();
    let mut image = 0;
    for part in 1..=threads {
        let start = positions.count_before(image * per_image);
        let wanted = positions.len() * part / threads;
        let mut next = image;
        while next < images
            && (part == threads || start.max(wanted) > positions.count_before(next * per_image))
        {
            next += 1;
        }
        if next == image {
            continue;
        }
        let end = positions.count_before(next * per_image);
        let share = (next - image) * pixels * conv.c_in;
        groups.push(Group {
            positions: positions.slice(start, end),
            first_pixel: image * pixels,
            grad_input: grad_input.as_mut().and_then(|rest| rest.split_off_mut(..share)),
        });
        image = next;
    }
    groups
}

fn backward_group(
    conv: &SimConv,
    taps: &TapTable,
    input: &[f32],
    weight: &[f32],
    grad_output: &[f32],
    group: Group,
) -> (Vec<f32>, Vec<f32>) {
    let Group { positions, first_pixel, mut grad_input } = group;
    let width = taps.kernel_size().pow(2) * conv.tap_width();
    let length = tile_len(width);
    let mut grad_weight = vec![0.0; weight.len()];
    let mut grad_bias = vec![0.0; conv.c_out];
    let (mut tile, mut panel, mut grads) = (Tile::default(), Vec::new(), Vec::new());
    for start in (0..positions.len()).step_by(length) {
        let here = positions.slice(start, (start + length).min(positions.len()));
        let rows = here.len();
        tile.fill(taps, here, conv.relative_pose);
        panel.resize(rows * width, 0.0);
        grads.clear();
        for index in 0..rows {
            let row = &grad_output[here.get(index) * conv.c_out..][..conv.c_out];
            grad_bias.iter_mut().zip(row).for_each(|(sum, g)| *sum += g);
            grads.extend_from_slice(row);
        }
        let grads = Matrix::new(&grads, rows, conv.c_out);
        gather(&mut panel, input, &tile, taps.poses(), conv.c_in);
        multiply(&mut grad_weight, Matrix::new(&panel, rows, width).transposed(), grads, true);
        if let Some(pixels) = grad_input.as_deref_mut() {
            let weight = Matrix::new(weight, width, conv.c_out).transposed();
            multiply(&mut panel, grads, weight, false);
            scatter(pixels, first_pixel, &panel, &tile, taps.poses(), conv.c_in);
        }
    }
    (grad_weight, grad_bias)
}
