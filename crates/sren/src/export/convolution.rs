//! Plain convolutions from grid to grid.

use sren_math::Grid;

use super::graph::{Graph, Value};
use super::protobuf::Attribute;

/// A kernel with its bias, as constants of the graph.
pub(super) struct Kernel {
    /// `[c_out, c_in, k, k]`.
    pub(super) weight: Value,
    /// `[c_out]`.
    pub(super) bias: Option<Value>,
    /// Taps along one side.
    pub(super) side: usize,
    /// Distance of neighbouring taps.
    pub(super) dilation: usize,
}

/// Where the outputs of a convolution lie on its input: output i reads from index `start + stride i`
/// on. All pairs are rows, columns.
pub(super) struct Placement {
    pub(super) input: [usize; 2],
    pub(super) output: [usize; 2],
    pub(super) start: [i64; 2],
    pub(super) stride: usize,
}

/// A convolution of `x` `[n, c_in, h, w]`, zero outside, at any place: `[n, c_out, h', w']`.
pub(super) fn convolve(g: &mut Graph, x: &Value, kernel: &Kernel, at: &Placement) -> Value {
    let (mut x, mut pads) = (x.clone(), [0i64; 4]);
    for axis in 0..2 {
        let reach =
            ((at.output[axis] - 1) * at.stride + (kernel.side - 1) * kernel.dilation) as i64;
        let (before, after) = (-at.start[axis], at.start[axis] + reach + 1 - at.input[axis] as i64);
        // Padding is not negative: what no output reads is cut off.
        if before < 0 || after < 0 {
            let start = (-before).max(0) as usize;
            let end = (at.input[axis] as i64 + after.min(0)) as usize;
            x = g.slice(&x, axis as i64 + 2, start, end);
        }
        (pads[axis], pads[axis + 2]) = (before.max(0), after.max(0));
    }
    let square = |size: usize| Attribute::Ints(vec![size as i64; 2]);
    let inputs: Vec<&Value> = [&x, &kernel.weight].into_iter().chain(&kernel.bias).collect();
    let attributes = [
        ("kernel_shape", square(kernel.side)),
        ("strides", square(at.stride)),
        ("dilations", square(kernel.dilation)),
        ("pads", Attribute::Ints(pads.to_vec())),
    ];
    g.op("Conv", &inputs, &attributes)
}

/// A convolution without padding whose kernel `[c_out, c_in, rows, columns]` moves by single steps.
pub(super) fn product(g: &mut Graph, x: &Value, weight: &Value, bias: Option<&Value>) -> Value {
    let inputs: Vec<&Value> = [x, weight].into_iter().chain(bias).collect();
    // Not every engine knows that these are the defaults.
    let attributes = [
        ("strides", Attribute::Ints(vec![1; 2])),
        ("dilations", Attribute::Ints(vec![1; 2])),
        ("pads", Attribute::Ints(vec![0; 4])),
    ];
    g.op("Conv", &inputs, &attributes)
}

/// The convolution of `x` on the grid `input` at the positions of `output`, a cell-centred grid of
/// it. These lie on positions of `input`, or in the middle between them: the mean of neighbours.
pub(super) fn plain(
    g: &mut Graph,
    x: &Value,
    kernel: &Kernel,
    [input, output]: [&Grid; 2],
) -> Value {
    let index = |axis: usize| (output.origin[axis] - input.origin[axis]) / input.step;
    // Rows, columns.
    let first = [index(1), index(0)];
    let between = first.map(|index| usize::from(index.fract() != 0.0));
    let mut size = [input.height, input.width];
    let mut x = x.clone();
    if between != [0, 0] {
        let [rows, columns] = between.map(|one| one as i64);
        let attributes = [
            ("kernel_shape", Attribute::Ints(vec![rows + 1, columns + 1])),
            ("strides", Attribute::Ints(vec![1, 1])),
            ("pads", Attribute::Ints(vec![rows, columns, rows, columns])),
            ("count_include_pad", Attribute::Int(1)),
        ];
        // Mean i is that of the positions i - 1 and i.
        x = g.op("AveragePool", &[&x], &attributes);
        size = [size[0] + between[0], size[1] + between[1]];
    }
    let reach = (kernel.side / 2 * kernel.dilation) as i64;
    let start = |axis: usize| first[axis].floor() as i64 + between[axis] as i64 - reach;
    let at = Placement {
        input: size,
        output: [output.height, output.width],
        start: [start(0), start(1)],
        stride: (output.step / input.step).round() as usize,
    };
    convolve(g, &x, kernel, &at)
}
