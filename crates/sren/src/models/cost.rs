//! What a network costs: parameters and multiply-adds.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use sren_math::Grid;

use super::block::SimBlock;
use super::resnet::SimResNet;
use crate::conv::SimConv2d;
use crate::error::Result;

/// One layer's part.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerCost {
    /// Its name, as in the file of weights.
    pub name: String,
    /// Height, width and channels of its output.
    pub output: [usize; 3],
    /// Its learned values.
    pub parameters: usize,
    /// Multiply-adds for one image, all positions computed.
    pub multiply_adds: usize,
}

/// The number of learned values. Running averages are not learned.
pub fn parameter_count<M: Module>(module: &M) -> usize {
    let mut count = Count::default();
    module.visit(&mut count);
    count.learned
}

#[derive(Default)]
struct Count {
    path: Vec<String>,
    learned: usize,
}

impl ModuleVisitor for Count {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !self.path.last().is_some_and(|name| name.starts_with("running_")) {
            self.learned += param.lazy_shape().num_elements();
        }
    }
}

impl SimResNet {
    /// The cost of every layer with weights, first to last, for images on `image`. Batch norms are
    /// counted with the convolution before them; a second look is counted once.
    pub fn layer_costs(&self, image: &Grid) -> Result<Vec<LayerCost>> {
        let mut grid = self.grids(image)?[0];
        let mut costs = self.stem_costs(image, &grid)?;
        block_costs("", &self.blocks, &mut grid, &mut costs)?;
        let mut turns = 1;
        if let Some(orientation) = &self.orientation {
            let [_, hidden] = orientation.pooled.weight.dims();
            turns = orientation.turns(self.equivariance());
            costs.push(LayerCost {
                name: "orientation".into(),
                output: [1, turns, hidden],
                parameters: parameter_count(orientation),
                multiply_adds: orientation.multiply_adds(turns),
            });
        }
        let [inputs, classes] = self.head.weight.dims();
        costs.push(LayerCost {
            name: "head".into(),
            output: [1, turns, classes],
            parameters: inputs * classes + classes,
            multiply_adds: turns * inputs * classes,
        });
        if let Some(look) = &self.second_look {
            let mut grid = *image;
            costs.push(conv_cost("second_look.stem".into(), &look.stem, &mut grid)?);
            block_costs("second_look.", &look.blocks, &mut grid, &mut costs)?;
            let [inputs, classes] = look.head.weight.dims();
            costs.push(LayerCost {
                name: "second_look.head".into(),
                output: [1, 1, classes],
                parameters: inputs * classes + classes,
                multiply_adds: inputs * classes,
            });
        }
        Ok(costs)
    }

    /// The cost of the layers of the stem, which ends on `grid`.
    fn stem_costs(&self, image: &Grid, grid: &Grid) -> Result<Vec<LayerCost>> {
        if self.window.is_empty() {
            return Ok(vec![conv_cost("stem".into(), &self.stem, &mut image.clone())?]);
        }
        // A window's layers, once for each position.
        let mut side = self.window_grid();
        let mut costs = Vec::new();
        for (index, layer) in self.window.iter().enumerate() {
            costs.push(conv_cost(format!("window.{index}.conv"), &layer.conv, &mut side)?);
        }
        costs.push(conv_cost("stem".into(), &self.stem, &mut side)?);
        for cost in &mut costs {
            let [h, w, c] = cost.output;
            cost.output = [grid.height, grid.width, h * w * c];
            cost.multiply_adds *= grid.len();
        }
        Ok(costs)
    }
}

/// The convolutions of `blocks`, named from `prefix` on; `grid` becomes that of the last's output.
fn block_costs(
    prefix: &str,
    blocks: &[SimBlock],
    grid: &mut Grid,
    costs: &mut Vec<LayerCost>,
) -> Result<()> {
    for (index, SimBlock { conv1, conv2, shortcut, .. }) in blocks.iter().enumerate() {
        let name = |part: &str| format!("{prefix}blocks.{index}.{part}");
        let mut side = *grid;
        costs.push(conv_cost(name("conv1"), conv1, grid)?);
        costs.push(conv_cost(name("conv2"), conv2, grid)?);
        if let Some(shortcut) = shortcut {
            costs.push(conv_cost(name("shortcut"), &shortcut.conv, &mut side)?);
        }
    }
    Ok(())
}

/// A convolution with its batch norm; `grid` becomes that of the output.
fn conv_cost(name: String, conv: &SimConv2d, grid: &mut Grid) -> Result<LayerCost> {
    *grid = conv.output_grid(grid)?;
    let [k, _, tap_width, channels] = conv.weight.dims();
    let weights = k * k * tap_width * channels;
    Ok(LayerCost {
        name,
        output: [grid.height, grid.width, channels],
        parameters: weights + 2 * channels,
        multiply_adds: grid.len() * weights,
    })
}
