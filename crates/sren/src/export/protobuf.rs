//! The messages of an ONNX file, in the wire format of protocol buffers.
//!
//! Only what an exporter writes: numbers, texts and messages in messages. That is a hundred lines; a
//! protobuf library with the generated types of ONNX is several thousand, and a compiler for them.
//! Field numbers are those of `onnx.proto3`.

/// A message, as its bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

/// Wire types.
const VARINT: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 128 {
            self.0.push(value as u8 | 128);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn int(mut self, field: u64, value: i64) -> Self {
        self.key(field, VARINT);
        self.varint(value as u64);
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.key(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    fn each<T>(self, items: impl IntoIterator<Item = T>, add: impl Fn(Self, T) -> Self) -> Self {
        items.into_iter().fold(self, add)
    }
}

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Text(&'static str),
}

/// The type of the elements of a tensor: `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ElementType {
    F32 = 1,
    I64 = 7,
}

/// A size, or the name of one that is not fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dimension {
    Size(usize),
    Name(&'static str),
}

/// An `AttributeProto`.
fn attribute(name: &str, value: &Attribute) -> Message {
    let message = Message::default().text(1, name);
    match value {
        Attribute::Int(value) => message.int(3, *value).int(20, 2),
        Attribute::Text(value) => message.text(4, value).int(20, 3),
        Attribute::Ints(values) => message.each(values, |m, value| m.int(8, *value)).int(20, 7),
    }
}

/// A `NodeProto`.
pub(super) fn node(
    name: &str,
    operator: &str,
    inputs: &[&str],
    outputs: &[&str],
    attributes: &[(&str, Attribute)],
) -> Message {
    Message::default()
        .each(inputs, |m, input| m.text(1, input))
        .each(outputs, |m, output| m.text(2, output))
        .text(3, name)
        .text(4, operator)
        .each(attributes, |m, (name, value)| m.message(5, &attribute(name, value)))
}

/// A `TensorProto` of little-endian bytes.
pub(super) fn tensor(name: &str, shape: &[usize], of: ElementType, raw: &[u8]) -> Message {
    Message::default()
        .each(shape, |m, size| m.int(1, *size as i64))
        .int(2, of as i64)
        .text(8, name)
        .bytes(9, raw)
}

/// A `ValueInfoProto` of f32.
pub(super) fn value_info(name: &str, shape: &[Dimension]) -> Message {
    let shape = Message::default().each(shape, |m, dimension| {
        let dimension = match dimension {
            Dimension::Size(size) => Message::default().int(1, *size as i64),
            Dimension::Name(name) => Message::default().text(2, name),
        };
        m.message(1, &dimension)
    });
    let tensor = Message::default().int(1, ElementType::F32 as i64).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// A `GraphProto`.
pub(super) fn graph<'a>(
    name: &str,
    nodes: &[Message],
    constants: impl Iterator<Item = &'a Message>,
    [inputs, outputs]: [&[Message]; 2],
) -> Message {
    Message::default()
        .each(nodes, |m, node| m.message(1, node))
        .text(2, name)
        .each(constants, |m, constant| m.message(5, constant))
        .each(inputs, |m, input| m.message(11, input))
        .each(outputs, |m, output| m.message(12, output))
}

/// The bytes of a `ModelProto`.
pub(super) fn model(
    graph: &Message,
    [ir_version, opset]: [i64; 2],
    producer: [&str; 2],
    metadata: &[(String, String)],
) -> Vec<u8> {
    let [name, version] = producer;
    let entry = |(key, value): &(String, String)| Message::default().text(1, key).text(2, value);
    Message::default()
        .int(1, ir_version)
        .text(2, name)
        .text(3, version)
        .message(7, graph)
        // The operators of ONNX itself: a domain without a name.
        .message(8, &Message::default().text(1, "").int(2, opset))
        .each(metadata, |m, pair| m.message(14, &entry(pair)))
        .0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_seven_bits_at_a_time() {
        assert_eq!(Message::default().int(1, 300).0, [0x08, 0xac, 0x02]);
        // Negative numbers take ten bytes.
        assert_eq!(Message::default().int(3, -1).0.len(), 11);
        assert_eq!(Message::default().text(20, "ab").0, [0xa2, 0x01, 2, b'a', b'b']);
    }

    #[test]
    fn a_node_has_its_fields_in_order() {
        let expected = [0x0a, 1, b'x', 0x12, 1, b'y', 0x1a, 1, b'n', 0x22, 4];
        let written = node("n", "Relu", &["x"], &["y"], &[]).0;
        assert_eq!(written[..expected.len()], expected);
        assert_eq!(&written[expected.len()..], b"Relu");
    }
}
