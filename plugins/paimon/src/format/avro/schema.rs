//! The schema that stands in an Avro file's header, as a tree of types.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::AvroError;

/// How a value is encoded; logical types are seen as what they are made of.
#[derive(Clone, Debug, PartialEq)]
pub enum AvroType {
    /// Nothing.
    Null,
    /// One byte.
    Boolean,
    /// Zigzag varint: int and long.
    Long,
    /// Four bytes.
    Float,
    /// Eight bytes.
    Double,
    /// A length and bytes: bytes and string.
    Bytes,
    /// So many bytes.
    Fixed(usize),
    /// The index of a symbol.
    Enum,
    /// Blocks of items.
    Array(Box<AvroType>),
    /// Blocks of pairs of a text and a value.
    Map(Box<AvroType>),
    /// The index of a branch, then its value.
    Union(Vec<AvroType>),
    /// Fields in order.
    Record(Arc<RecordType>),
}

/// The fields of a record.
#[derive(Debug, Default, PartialEq)]
pub struct RecordType {
    /// Names, in order.
    pub names: Vec<String>,
    /// Types, in the same order.
    pub types: Vec<AvroType>,
}

/// Deepest nesting that is followed; Paimon's own has four levels.
const DEPTH_MAX: usize = 32;

impl AvroType {
    /// Reads the JSON text of a schema.
    pub fn parse(text: &[u8]) -> Result<Self, AvroError> {
        let json =
            serde_json::from_slice(text).map_err(|error| AvroError::new(format!("schema is not json: {error}")))?;
        Parser::default().parse(&json, 0)
    }
}

#[derive(Default)]
struct Parser {
    named: HashMap<String, AvroType>,
}

impl Parser {
    fn parse(&mut self, json: &Json, depth: usize) -> Result<AvroType, AvroError> {
        if depth > DEPTH_MAX {
            return Err(AvroError::new("schema is nested too deep"));
        }
        match json {
            Json::String(name) => self.by_name(name),
            Json::Array(branches) => {
                let branches = branches.iter().map(|branch| self.parse(branch, depth + 1));
                Ok(AvroType::Union(branches.collect::<Result<_, _>>()?))
            }
            Json::Object(object) => match object.get("type") {
                Some(Json::String(kind)) => self.complex(kind, json, depth),
                Some(inner) => self.parse(inner, depth + 1),
                None => Err(AvroError::new("schema object without a type")),
            },
            _ => Err(AvroError::new("schema is neither text, list nor object")),
        }
    }

    fn by_name(&self, name: &str) -> Result<AvroType, AvroError> {
        Ok(match name {
            "null" => AvroType::Null,
            "boolean" => AvroType::Boolean,
            "int" | "long" => AvroType::Long,
            "float" => AvroType::Float,
            "double" => AvroType::Double,
            "bytes" | "string" => AvroType::Bytes,
            other => {
                let found = self.named.get(last_part(other));
                found.cloned().ok_or_else(|| AvroError::new(format!("schema names an unknown type {other}")))?
            }
        })
    }

    fn complex(&mut self, kind: &str, json: &Json, depth: usize) -> Result<AvroType, AvroError> {
        let member = |name: &str| json.get(name).ok_or_else(|| AvroError::new(format!("{kind} without {name}")));
        let ty = match kind {
            "array" => AvroType::Array(Box::new(self.parse(member("items")?, depth + 1)?)),
            "map" => AvroType::Map(Box::new(self.parse(member("values")?, depth + 1)?)),
            "enum" => AvroType::Enum,
            "fixed" => {
                let size = member("size")?.as_u64().and_then(|size| usize::try_from(size).ok());
                AvroType::Fixed(size.ok_or_else(|| AvroError::new("fixed without a size"))?)
            }
            "record" => self.record(member("fields")?, depth)?,
            simple => return self.by_name(simple),
        };
        if let Some(name) = json.get("name").and_then(Json::as_str) {
            self.named.insert(last_part(name).into(), ty.clone());
        }
        Ok(ty)
    }

    fn record(&mut self, fields: &Json, depth: usize) -> Result<AvroType, AvroError> {
        let fields = fields.as_array().ok_or_else(|| AvroError::new("record fields are no list"))?;
        let mut record = RecordType::default();
        for field in fields {
            let name = field.get("name").and_then(Json::as_str);
            let (Some(name), Some(ty)) = (name, field.get("type")) else {
                return Err(AvroError::new("record field without name or type"));
            };
            record.names.push(name.into());
            record.types.push(self.parse(ty, depth + 1)?);
        }
        Ok(AvroType::Record(Arc::new(record)))
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
