//! Weights in and out, as safetensors. Values are read from f32 or f16 and written as either.

use std::collections::{BTreeMap, HashMap};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use crate::error::{Error, Result};

const OPERATION: &str = "safetensors";
/// Characters of a file's content that an error repeats.
const MAX_QUOTED: usize = 120;
/// The format's own metadata is written in random order; ours is one entry of sorted JSON.
const METADATA: &str = "sren";

/// Named arrays of f32 and some text about them: the content of a safetensors file.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::tensor::Device;
/// use sren::{Precision, Weights};
///
/// let layer = LinearConfig::new(4, 2).init(&Device::flex());
/// let bytes = Weights::of(&layer).to_bytes(Precision::Single)?;
/// let weights = Weights::from_bytes(&bytes)?;
/// assert_eq!(weights.tensors["weight"].0, [4, 2]);
/// let layer = weights.apply(LinearConfig::new(4, 2).init(&Device::flex()))?;
/// # Ok::<(), sren::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    /// Shape and values by name.
    pub tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    /// Text by name.
    pub metadata: BTreeMap<String, String>,
}

/// How a file holds its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// f16: half the size.
    Half,
    /// f32.
    Single,
}

impl Precision {
    fn of(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F16 => Some(Self::Half),
            Dtype::F32 => Some(Self::Single),
            _ => None,
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Self::Half => Dtype::F16,
            Self::Single => Dtype::F32,
        }
    }

    fn encode(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::Half => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
            Self::Single => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        }
    }

    fn decode(self, data: &[u8]) -> Vec<f32> {
        let half = |b: &[u8; 2]| f16::from_le_bytes(*b).to_f32();
        let single = |b: &[u8; 4]| f32::from_le_bytes(*b);
        match self {
            Self::Half => data.as_chunks::<2>().0.iter().map(half).collect(),
            Self::Single => data.as_chunks::<4>().0.iter().map(single).collect(),
        }
    }
}

impl Weights {
    /// The parameters and running averages of `module`, named by their place in it.
    pub fn of<M: Module>(module: &M) -> Self {
        let mut reader = Reader::default();
        // Running averages lag one step behind until the module is read for validation.
        module.valid().visit(&mut reader);
        reader.weights
    }

    /// `module` with these values. Every parameter must be there, in its shape, and nothing else.
    pub fn apply<M: Module>(&self, module: M) -> Result<M> {
        let mut writer =
            Writer { path: ParameterPath::default(), weights: self, used: 0, error: None };
        let module = module.map(&mut writer);
        if let Some(error) = writer.error {
            return Err(error);
        }
        if writer.used != self.tensors.len() {
            let expected = format!("the {} tensors of the network", writer.used);
            return Err(Error::shape(OPERATION, expected, self.tensors.len().to_string()));
        }
        Ok(module)
    }

    /// The content of the file.
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>> {
        let encode = |(name, (shape, values)): (&String, &(Vec<usize>, Vec<f32>))| {
            (name.clone(), shape.clone(), precision.encode(values))
        };
        let encoded: Vec<_> = self.tensors.iter().map(encode).collect();
        let view = |(name, shape, bytes)| {
            let view = TensorView::new(precision.dtype(), shape, bytes);
            Ok((name, view.map_err(|e| invalid("values of each shape", e))?))
        };
        let views = encoded.iter().map(|(name, shape, bytes)| view((name, shape.clone(), bytes)));
        let views = views.collect::<Result<Vec<_>>>()?;
        let metadata = if self.metadata.is_empty() {
            None
        } else {
            let text = serde_json::to_string(&self.metadata)
                .map_err(|e| invalid("metadata of text", e))?;
            Some(HashMap::from([(METADATA.to_string(), text)]))
        };
        serialize(views, metadata).map_err(|e| invalid("a header of at most 100 MB", e))
    }

    /// Reads the content of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        check_offsets(bytes)?;
        let (_, header) =
            SafeTensors::read_metadata(bytes).map_err(|e| invalid("a valid file", e))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| invalid("a valid file", e))?;
        let metadata: BTreeMap<String, String> =
            header.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        let metadata = match metadata.get(METADATA) {
            Some(text) => serde_json::from_str(text).map_err(|e| invalid("metadata of text", e))?,
            None => metadata,
        };
        let mut weights = Self { metadata, ..Self::default() };
        for (name, view) in file.tensors() {
            let precision = Precision::of(view.dtype()).ok_or_else(|| {
                let expected = format!("{} to be of dtype F32 or F16", short(&name));
                Error::shape(OPERATION, expected, format!("{:?}", view.dtype()))
            })?;
            let values = precision.decode(view.data());
            weights.tensors.insert(name, (view.shape().to_vec(), values));
        }
        Ok(weights)
    }
}

/// Returns an error if a tensor ends beyond the file: the library adds offsets without a check.
fn check_offsets(bytes: &[u8]) -> Result<()> {
    let cut = || Error::shape(OPERATION, "a whole file", format!("{} bytes", bytes.len()));
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header: HashMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|e| invalid("a header of JSON", e))?;
    let end = |entry: &serde_json::Value| entry["data_offsets"][1].as_u64();
    let last = header.values().filter_map(end).max().unwrap_or(0);
    if last != data.len() as u64 {
        let expected = format!("{last} bytes of values");
        return Err(Error::shape(OPERATION, expected, data.len().to_string()));
    }
    Ok(())
}

fn invalid(expected: &str, error: impl std::fmt::Display) -> Error {
    Error::shape(OPERATION, expected, short(error))
}

/// The beginning of a text from a file, for an error of one line.
fn short(text: impl std::fmt::Display) -> String {
    let text = text.to_string().replace(char::is_control, " ");
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

/// The place of a parameter in a module, as a [`ModuleVisitor`] walks it: the names of fields, without
/// those of an enum's variants.
#[derive(Debug, Clone, Default)]
pub struct ParameterPath(Vec<String>);

impl ParameterPath {
    /// Follows `enter_module`.
    pub fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_string());
        }
    }

    /// Follows `exit_module`.
    pub fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }

    /// The names, joined by dots.
    pub fn name(&self) -> String {
        self.0.join(".")
    }
}

#[derive(Default)]
struct Reader {
    path: ParameterPath,
    weights: Weights,
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let values = tensor.to_data().iter::<f32>().collect();
        self.weights.tensors.insert(self.path.name(), (tensor.dims().to_vec(), values));
    }
}

struct Writer<'a> {
    path: ParameterPath,
    weights: &'a Weights,
    used: usize,
    error: Option<Error>,
}

impl ModuleMapper for Writer<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.name();
        let dims = param.lazy_shape();
        match self.weights.tensors.get(&name) {
            Some((shape, values)) if shape[..] == dims[..] => {
                self.used += 1;
                let data = TensorData::new(values.clone(), shape.clone());
                param.map(|old| {
                    let tensor = Tensor::from_data(data, &old.device());
                    tensor.set_require_grad(old.is_require_grad())
                })
            }
            found => {
                let got = found.map_or("nothing".into(), |(shape, _)| short(format!("{shape:?}")));
                let expected = format!("{name} of {:?}", &dims[..]);
                self.error.get_or_insert(Error::shape(OPERATION, expected, got));
                param
            }
        }
    }
}
