//! Weights in and out, as safetensors: a length, a JSON header, the values. Python's `safetensors`
//! reads and writes the same files. Values are written as f32, and read from f32 or f16.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData, f16};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

const OPERATION: &str = "safetensors";
/// Longest header that is read, as in the Python package.
const MAX_HEADER: usize = 100_000_000;
/// Characters of a file's content that an error repeats.
const MAX_QUOTED: usize = 120;

/// Named arrays of f32 and some text about them: the content of a safetensors file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    /// Shape and values by name.
    pub tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    /// Text by name.
    pub metadata: BTreeMap<String, String>,
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
        let mut writer = Writer { path: Vec::new(), weights: self, used: 0, error: None };
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
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut header = Map::new();
        if !self.metadata.is_empty() {
            header.insert("__metadata__".into(), json!(self.metadata));
        }
        let mut end = 0;
        for (name, (shape, values)) in &self.tensors {
            let begin = end;
            end += 4 * values.len();
            let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]});
            header.insert(name.clone(), entry);
        }
        let mut text = Value::Object(header).to_string();
        // The values begin at a multiple of 8.
        text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        for (_, values) in self.tensors.values() {
            values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        bytes
    }

    /// Reads the content of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let cut = || Error::shape(OPERATION, "a whole file", format!("{} bytes", bytes.len()));
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
        let (text, data) = rest.split_at_checked(length).ok_or_else(cut)?;
        if length > MAX_HEADER {
            let expected = format!("a header of at most {MAX_HEADER} bytes");
            return Err(Error::shape(OPERATION, expected, length.to_string()));
        }
        let header: Map<String, Value> = serde_json::from_slice(text)
            .map_err(|e| Error::shape(OPERATION, "a header of JSON", short(e)))?;
        let mut weights = Self::default();
        let mut parts = Vec::new();
        for (name, entry) in header {
            if name == "__metadata__" {
                weights.metadata = serde_json::from_value(entry)
                    .map_err(|e| Error::shape(OPERATION, "metadata of text", short(e)))?;
            } else {
                parts.push(Part::new(name, &entry)?);
            }
        }
        // Nothing is copied before it is sure that all together are as large as the file.
        parts.sort_by_key(|part| (part.begin, part.end));
        let mut end = 0;
        for part in &parts {
            if part.begin != end {
                let expected = format!("{} to begin at byte {end}", short(&part.name));
                return Err(Error::shape(OPERATION, expected, part.begin.to_string()));
            }
            end = part.end;
        }
        if end != data.len() {
            let expected = format!("{end} bytes of values");
            return Err(Error::shape(OPERATION, expected, data.len().to_string()));
        }
        for Part { name, shape, precision, begin, end } in parts {
            let values = precision.values(data.get(begin..end).ok_or_else(cut)?);
            weights.tensors.insert(name, (shape, values));
        }
        Ok(weights)
    }
}

/// How a file holds its values.
#[derive(Clone, Copy)]
enum Precision {
    Half,
    Single,
}

impl Precision {
    fn of(dtype: &Value) -> Option<Self> {
        match dtype.as_str()? {
            "F16" => Some(Self::Half),
            "F32" => Some(Self::Single),
            _ => None,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Half => 2,
            Self::Single => 4,
        }
    }

    fn values(self, data: &[u8]) -> Vec<f32> {
        let value = |b: &[u8]| match self {
            Self::Half => f16::from_le_bytes([b[0], b[1]]).to_f32(),
            Self::Single => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        };
        data.chunks_exact(self.bytes()).map(value).collect()
    }
}

/// One tensor of the header.
struct Part {
    name: String,
    shape: Vec<usize>,
    precision: Precision,
    begin: usize,
    end: usize,
}

impl Part {
    fn new(name: String, entry: &Value) -> Result<Self> {
        let refuse = |expected: &str| {
            Error::shape(OPERATION, format!("{} to be {expected}", short(&name)), short(entry))
        };
        let precision =
            Precision::of(&entry["dtype"]).ok_or_else(|| refuse("of dtype F32 or F16"))?;
        let numbers = |key: &str| -> Option<Vec<usize>> {
            let list = entry[key].as_array()?;
            list.iter().map(|v| v.as_u64().and_then(|v| usize::try_from(v).ok())).collect()
        };
        let shape = numbers("shape").ok_or_else(|| refuse("an array with a shape"))?;
        let count = shape.iter().try_fold(precision.bytes(), |n, size| n.checked_mul(*size));
        let range = numbers("data_offsets").ok_or_else(|| refuse("an array with data_offsets"))?;
        match range[..] {
            [begin, end] if begin <= end && Some(end - begin) == count => {
                Ok(Self { name, shape, precision, begin, end })
            }
            _ => Err(refuse("as long as its shape says")),
        }
    }
}

/// The beginning of a text from a file, for an error of one line.
fn short(text: impl std::fmt::Display) -> String {
    let text = text.to_string().replace(char::is_control, " ");
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

#[derive(Default)]
struct Reader {
    path: Vec<String>,
    weights: Weights,
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let values = tensor.to_data().iter::<f32>().collect();
        self.weights.tensors.insert(self.path.join("."), (tensor.dims().to_vec(), values));
    }
}

struct Writer<'a> {
    path: Vec<String>,
    weights: &'a Weights,
    used: usize,
    error: Option<Error>,
}

impl ModuleMapper for Writer<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
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
