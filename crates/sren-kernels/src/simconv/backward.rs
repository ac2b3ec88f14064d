//! Backward pass, tile by tile: multiply and scatter for the gradient of the input, gather again for
//! that of the weight. Each thread has its own images, so that no writes conflict, and weight
//! gradients are added in order: for a fixed number of threads the result is deterministic.

use std::ops::Range;

use rayon::prelude::*;

use super::gather::{exchange, gather};
use super::inside::Cut;
use super::kernel::Base;
use super::plan::{Group, Plan};
use super::positions::Positions;
use super::prefetch::{Prefetched, Prefetcher};
use super::product::{Packed, Rows, RowsMut, add_transposed_product, multiply};
use super::tile::Tile;
use super::{Gradients, SimConv};
use crate::buffer::{Part, in_parts};
use crate::simd::LineBuffer;
use crate::taps::TapTable;

/// Positions and pixels of the images of one thread.
struct Share<'a> {
    positions: Positions<'a>,
    pixels: Range<usize>,
}

/// The sums over the positions of a share.
struct Partial {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

pub(super) fn backward(
    conv: &SimConv,
    taps: &TapTable,
    input: &[f32],
    weight: &[f32],
    grad_output: &[f32],
    need_input: bool,
) -> Gradients {
    let shares = shares(taps);
    let plan = Plan::new(conv, taps);
    let pack = |group: Group| {
        let weight = &weight[group.first * conv.c_out..][..group.width * conv.c_out];
        Packed::transposed(weight, conv.c_out, group.width)
    };
    let transposed: Vec<Packed> = match need_input {
        true => plan.groups().map(pack).collect(),
        false => Vec::new(),
    };
    let images = |share: &Share| if need_input { share.pixels.len() * conv.c_in } else { 0 };
    let lengths: Vec<usize> = shares.iter().map(images).collect();
    let work = |_: &mut (), index: usize, grad_input: &mut Part| {
        share_backward(
            conv,
            taps,
            plan,
            input,
            &transposed,
            grad_output,
            &shares[index],
            grad_input,
        )
    };
    let (grad_input, partial) = in_parts(lengths.iter().sum(), &lengths, || (), work);
    let Partial { weight: grad_weight, bias: grad_bias } = sum(partial).unwrap_or_else(|| {
        Partial { weight: vec![0.0; weight.len()], bias: vec![0.0; conv.c_out] }
    });
    Gradients { input: need_input.then_some(grad_input), weight: grad_weight, bias: grad_bias }
}

/// The sum of all parts, in order.
fn sum(parts: Vec<Partial>) -> Option<Partial> {
    let add = |sum: &mut [f32], part: &[f32]| {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    };
    parts.into_iter().reduce(|mut sum, part| {
        const CHUNK: usize = 1 << 14;
        let chunks = sum.weight.par_chunks_mut(CHUNK).zip(part.weight.par_chunks(CHUNK));
        chunks.for_each(|(sum, part)| add(sum, part));
        add(&mut sum.bias, &part.bias);
        sum
    })
}

/// Distributes the images over the threads, with about equal numbers of positions.
fn shares(taps: &TapTable) -> Vec<Share<'_>> {
    let all = Positions::of(taps);
    let (images, threads) = (taps.batch(), rayon::current_num_threads().max(1));
    let (pixels, per_image) = (taps.input_grid().len(), taps.output_grid().len());
    let before = |image: usize| all.count_before(image * per_image);
    let mut shares = Vec::new();
    let mut image = 0;
    for part in 1..=threads {
        let target = all.len() * part / threads;
        let next = match part == threads {
            true => images,
            false => (image..images).find(|&next| before(next) >= target).unwrap_or(images),
        };
        if next > image {
            shares.push(Share {
                positions: all.slice(before(image), before(next)),
                pixels: image * pixels..next * pixels,
            });
        }
        image = next;
    }
    shares
}

#[allow(clippy::too_many_arguments)]
fn share_backward(
    conv: &SimConv,
    taps: &TapTable,
    plan: Plan,
    input: &[f32],
    transposed: &[Packed],
    grad_output: &[f32],
    share: &Share,
    grad_input: &mut Part,
) -> Partial {
    let Share { positions: all, pixels: Range { start: first_pixel, .. } } = *share;
    let (c_out, width) = (conv.c_out, taps.kernel_size().pow(2) * conv.tap_width());
    let mut sums = Partial { weight: vec![0.0; width * c_out], bias: vec![0.0; c_out] };
    let (mut tile, mut panel) = (Tile::default(), LineBuffer::default());
    let (mut packed, mut rows) = (Packed::default(), Vec::new());
    let mut prefetched = Prefetched::default();
    for start in (0..all.len()).step_by(plan.positions) {
        let positions = all.slice(start, (start + plan.positions).min(all.len()));
        let n = positions.len();
        let grads = match positions {
            Positions::Range(start, end) => &grad_output[start * c_out..end * c_out],
            Positions::List(list) => {
                rows.clear();
                for &position in list {
                    rows.extend_from_slice(&grad_output[position as usize * c_out..][..c_out]);
                }
                &rows[..]
            }
        };
        let strips = packed.strips_of(grads, n, c_out);
        let grads = Rows::new(grads, n, c_out, c_out);
        grads.add_sum(&mut sums.bias);
        if let Some(patches) = conv.pixels_as_panel(taps, input, positions) {
            let mut sum = RowsMut::new(&mut sums.weight, width, c_out, c_out);
            add_transposed_product(&mut sum, patches, strips);
            if let Some(weight) = transposed.first() {
                let start = (positions.get(0) - first_pixel) * conv.c_in;
                let pixels = &mut grad_input.until(start + n * conv.c_in)[start..];
                let mut pixels = RowsMut::new(pixels, n, conv.c_in, conv.c_in);
                multiply(&mut pixels, grads, weight.strips(), 0, Base::Zero);
            }
            continue;
        }
        tile.set_positions(taps, positions);
        let next_grads = match positions {
            Positions::Range(_, end) => {
                &grad_output[end * c_out..grad_output.len().min((end + n) * c_out)]
            }
            Positions::List(_) => &[],
        };
        let next_pixels = prefetched.next(input, conv.c_in, taps, positions);
        let mut prefetcher =
            Prefetcher::new([next_pixels, next_grads], 2 * taps.kernel_size().pow(2));
        let panel = panel.take(n * plan.pitch);
        for (index, group) in plan.groups().enumerate() {
            let cut = if plan.skips_outside { Cut::Taps } else { Cut::Whole };
            tile.sample(taps, group.taps.clone(), conv.relative_pose, cut);
            match transposed.get(index) {
                Some(weight) => {
                    for part in tile.parts() {
                        let columns = plan.columns(part.taps);
                        let weight = weight.strips().columns(columns.clone());
                        let patches = &mut panel[columns.start..];
                        let mut patches = RowsMut::new(patches, n, columns.len(), plan.pitch);
                        prefetcher.step();
                        multiply(&mut patches, grads.only(part.positions), weight, 0, Base::Zero);
                    }
                    let pixels = grad_input.until((tile.pixels().end - first_pixel) * conv.c_in);
                    exchange(pixels, first_pixel, panel, plan.pitch, input, conv.c_in, &tile);
                }
                None => gather(panel, plan.pitch, input, conv.c_in, &tile),
            }
            for part in tile.parts() {
                let columns = plan.columns(part.taps);
                let sum = &mut sums.weight[(group.first + columns.start) * c_out..];
                let mut sum = RowsMut::new(sum, columns.len(), c_out, c_out);
                let patches = Rows::new(&panel[columns.start..], n, columns.len(), plan.pitch);
                prefetcher.step();
                add_transposed_product(&mut sum, patches.only(part.positions), strips);
            }
        }
        prefetcher.finish();
    }
    sums
}
