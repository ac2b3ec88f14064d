//! A graph of ONNX operators being built.
//!
//! Nodes are named by the scope they are added in, `pose/rings/conv`, in the order of the paper, so
//! that a viewer shows the method. The tensor that a node gives has the node's name. Equal constants
//! are stored once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::protobuf::{self, Attribute, Dimension, ElementType, Message};

/// The name of a tensor of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Value(Rc<str>);

/// Something that operators of numbers take: a tensor, or a number.
pub(super) trait Operand {
    fn value(self, graph: &mut Graph) -> Value;
}

impl Operand for &Value {
    fn value(self, _: &mut Graph) -> Value {
        self.clone()
    }
}

impl Operand for f32 {
    fn value(self, graph: &mut Graph) -> Value {
        graph.constant(format!("number/{self}"), &[], ElementType::F32, &self.to_le_bytes())
    }
}

impl Operand for i64 {
    fn value(self, graph: &mut Graph) -> Value {
        graph.constant(format!("integer/{self}"), &[], ElementType::I64, &self.to_le_bytes())
    }
}

/// Type, shape and content of a constant.
type Constant = (ElementType, Vec<usize>, Rc<[u8]>);

/// The graph.
#[derive(Debug)]
pub(super) struct Graph {
    opset: i64,
    nodes: Vec<Message>,
    /// With their names.
    constants: Vec<(Value, Message)>,
    /// What nodes read.
    read: HashSet<Rc<str>>,
    known: HashMap<Constant, Value>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    /// How often a name was asked for.
    names: HashMap<String, usize>,
    scope: Vec<String>,
}

impl Graph {
    /// An empty graph of operators of version `opset`.
    pub(super) fn new(opset: i64) -> Self {
        Self {
            opset,
            nodes: Vec::new(),
            constants: Vec::new(),
            read: HashSet::new(),
            known: HashMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            names: HashMap::new(),
            scope: Vec::new(),
        }
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The bytes of the file.
    pub(super) fn to_bytes(&self, metadata: &[(String, String)]) -> Vec<u8> {
        // The first version of the format that has these operators.
        let ir_version = if self.opset < 19 { 8 } else { 9 };
        let constants = self.constants.iter().filter(|(name, _)| self.read.contains(&name.0));
        let constants = constants.map(|(_, constant)| constant);
        let graph = protobuf::graph("sren", &self.nodes, constants, [&self.inputs, &self.outputs]);
        let producer = ["sren", env!("CARGO_PKG_VERSION")];
        protobuf::model(&graph, [ir_version, self.opset], producer, metadata)
    }

    /// Adds nodes under `name`.
    pub(super) fn scope<T>(&mut self, name: &str, build: impl FnOnce(&mut Self) -> T) -> T {
        self.scope.push(name.to_string());
        let built = build(self);
        self.scope.pop();
        built
    }

    /// `name` in the present scope, numbered if there is one already.
    fn unique(&mut self, name: &str) -> Rc<str> {
        let mut path = self.scope.join("/");
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        let count = self.names.entry(path.clone()).or_insert(0);
        *count += 1;
        match *count {
            1 => path.into(),
            count => format!("{path}.{count}").into(),
        }
    }

    /// An input of the graph, f32.
    pub(super) fn input(&mut self, name: &str, shape: &[Dimension]) -> Value {
        self.inputs.push(protobuf::value_info(name, shape));
        self.names.insert(name.to_string(), 1);
        Value(name.into())
    }

    /// Makes `value` an output of the graph, f32.
    pub(super) fn output(&mut self, name: &str, value: &Value, shape: &[Dimension]) {
        self.outputs.push(protobuf::value_info(name, shape));
        self.nodes.push(protobuf::node(name, "Identity", &[&value.0], &[name], &[]));
    }

    fn constant(&mut self, name: String, shape: &[usize], of: ElementType, bytes: &[u8]) -> Value {
        let key: Constant = (of, shape.to_vec(), bytes.into());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let tensor = protobuf::tensor(&name, shape, of, bytes);
        let value = Value(name.into());
        self.constants.push((value.clone(), tensor));
        self.known.insert(key, value.clone());
        value
    }

    /// A constant of numbers.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Value {
        debug_assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let name = self.unique(name).to_string();
        self.constant(name, shape, ElementType::F32, &bytes)
    }

    /// A constant of integers of the given shape.
    pub(super) fn integers(&mut self, name: &str, shape: &[usize], values: &[i64]) -> Value {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let name = self.unique(name).to_string();
        self.constant(name, shape, ElementType::I64, &bytes)
    }

    /// A list of integers: a shape, axes, a start.
    pub(super) fn list(&mut self, values: &[i64]) -> Value {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let name = format!("integers/{values:?}").replace(' ', "");
        self.constant(name, &[values.len()], ElementType::I64, &bytes)
    }

    /// A node of one output.
    pub(super) fn op(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        let name = self.unique(&operator.to_lowercase());
        self.read.extend(inputs.iter().map(|value| value.0.clone()));
        let inputs: Vec<&str> = inputs.iter().map(|value| &*value.0).collect();
        self.nodes.push(protobuf::node(&name, operator, &inputs, &[&name], attributes));
        Value(name)
    }

    /// The `count` highest values along `axis` and their indices, highest first; of equal ones the
    /// first.
    pub(super) fn top(&mut self, x: &Value, count: usize, axis: i64) -> [Value; 2] {
        let count = self.list(&[count as i64]);
        let name = self.unique("topk");
        let index: Rc<str> = format!("{name}/index").into();
        let axis = [("axis", Attribute::Int(axis))];
        self.read.extend([x.0.clone(), count.0.clone()]);
        let inputs = [&*x.0, &*count.0];
        self.nodes.push(protobuf::node(&name, "TopK", &inputs, &[&name, &index], &axis));
        [Value(name), Value(index)]
    }

    fn binary(&mut self, operator: &str, a: impl Operand, b: impl Operand) -> Value {
        let (a, b) = (a.value(self), b.value(self));
        self.op(operator, &[&a, &b], &[])
    }

    pub(super) fn add(&mut self, a: impl Operand, b: impl Operand) -> Value {
        self.binary("Add", a, b)
    }

    pub(super) fn sub(&mut self, a: impl Operand, b: impl Operand) -> Value {
        self.binary("Sub", a, b)
    }

    pub(super) fn mul(&mut self, a: impl Operand, b: impl Operand) -> Value {
        self.binary("Mul", a, b)
    }

    pub(super) fn div(&mut self, a: impl Operand, b: impl Operand) -> Value {
        self.binary("Div", a, b)
    }

    pub(super) fn max(&mut self, a: impl Operand, b: impl Operand) -> Value {
        self.binary("Max", a, b)
    }

    pub(super) fn greater(&mut self, a: impl Operand, b: impl Operand) -> Value {
        self.binary("Greater", a, b)
    }

    pub(super) fn less(&mut self, a: impl Operand, b: impl Operand) -> Value {
        self.binary("Less", a, b)
    }

    /// `yes` where `condition` holds, else `no`.
    pub(super) fn select(
        &mut self,
        condition: &Value,
        yes: impl Operand,
        no: impl Operand,
    ) -> Value {
        let (yes, no) = (yes.value(self), no.value(self));
        self.op("Where", &[condition, &yes, &no], &[])
    }

    pub(super) fn clip(&mut self, x: &Value, low: f32, high: f32) -> Value {
        let (low, high) = (low.value(self), high.value(self));
        self.op("Clip", &[x, &low, &high], &[])
    }

    pub(super) fn unary(&mut self, operator: &str, x: &Value) -> Value {
        self.op(operator, &[x], &[])
    }

    pub(super) fn matmul(&mut self, a: &Value, b: &Value) -> Value {
        self.op("MatMul", &[a, b], &[])
    }

    /// `a w + b` of rows.
    pub(super) fn linear(&mut self, a: &Value, weight: &Value, bias: &Value) -> Value {
        let product = self.matmul(a, weight);
        self.add(&product, bias)
    }

    /// 0 keeps a size, -1 is what remains.
    pub(super) fn reshape(&mut self, x: &Value, shape: &[i64]) -> Value {
        let shape = self.list(shape);
        self.op("Reshape", &[x, &shape], &[])
    }

    pub(super) fn transpose(&mut self, x: &Value, permutation: &[i64]) -> Value {
        self.op("Transpose", &[x], &[("perm", Attribute::Ints(permutation.to_vec()))])
    }

    pub(super) fn concat(&mut self, values: &[&Value], axis: i64) -> Value {
        self.op("Concat", values, &[("axis", Attribute::Int(axis))])
    }

    /// `start..end` along `axis`.
    pub(super) fn slice(&mut self, x: &Value, axis: i64, start: usize, end: usize) -> Value {
        let bounds = [start as i64, end as i64, axis].map(|bound| self.list(&[bound]));
        let [start, end, axis] = &bounds;
        self.op("Slice", &[x, start, end, axis], &[])
    }

    pub(super) fn gather(&mut self, x: &Value, index: &Value, axis: i64) -> Value {
        self.op("Gather", &[x, index], &[("axis", Attribute::Int(axis))])
    }

    pub(super) fn gather_elements(&mut self, x: &Value, index: &Value, axis: i64) -> Value {
        self.op("GatherElements", &[x, index], &[("axis", Attribute::Int(axis))])
    }

    pub(super) fn softmax(&mut self, x: &Value, axis: i64) -> Value {
        self.op("Softmax", &[x], &[("axis", Attribute::Int(axis))])
    }

    pub(super) fn cast(&mut self, x: &Value, to: ElementType) -> Value {
        self.op("Cast", &[x], &[("to", Attribute::Int(to as i64))])
    }

    /// `ReduceSum`, `ReduceMax` or `ReduceMin` over `axes`, which stay with size 1 if `keep`.
    pub(super) fn reduce(&mut self, operator: &str, x: &Value, axes: &[i64], keep: bool) -> Value {
        let keep = ("keepdims", Attribute::Int(keep.into()));
        // The axes of a sum became an input in version 13, those of the others in 18.
        if operator == "ReduceSum" || self.opset >= 18 {
            let axes = self.list(axes);
            return self.op(operator, &[x, &axes], &[keep]);
        }
        self.op(operator, &[x], &[("axes", Attribute::Ints(axes.to_vec())), keep])
    }

    /// The number of images of a batch, `[1]`.
    pub(super) fn batch(&mut self, x: &Value) -> Value {
        let shape = self.unary("Shape", x);
        self.slice(&shape, 0, 0, 1)
    }
}
