//! Schema files: a table's columns, keys and options, in JSON; and the types that this sink writes.

use std::collections::BTreeMap;

use arrow_schema::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The format's version that is written; also that of Paimon 1.x and 2.x.
const SCHEMA_VERSION: i32 = 3;

/// A column type of the lake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LakeType {
    /// True or false.
    Boolean,
    /// 8 bits.
    TinyInt,
    /// 16 bits.
    SmallInt,
    /// 32 bits.
    Int,
    /// 64 bits.
    BigInt,
    /// IEEE 754 single.
    Float,
    /// IEEE 754 double.
    Double,
    /// Exact; digits in all (at most 38), and digits after the point.
    Decimal(u8, i8),
    /// Text without a limit.
    String,
    /// Bytes without a limit.
    Bytes,
    /// Days since 1970-01-01.
    Date,
    /// Without zone; fraction digits.
    Timestamp(u8),
    /// A moment; fraction digits.
    LocalTimestamp(u8),
}

impl LakeType {
    /// The type as schema files spell it.
    pub fn sql(self, nullable: bool) -> String {
        let null = if nullable { "" } else { " NOT NULL" };
        match self {
            Self::Boolean => format!("BOOLEAN{null}"),
            Self::TinyInt => format!("TINYINT{null}"),
            Self::SmallInt => format!("SMALLINT{null}"),
            Self::Int => format!("INT{null}"),
            Self::BigInt => format!("BIGINT{null}"),
            Self::Float => format!("FLOAT{null}"),
            Self::Double => format!("DOUBLE{null}"),
            Self::Decimal(precision, scale) => format!("DECIMAL({precision}, {scale}){null}"),
            Self::String => format!("STRING{null}"),
            Self::Bytes => format!("BYTES{null}"),
            Self::Date => format!("DATE{null}"),
            Self::Timestamp(fraction) => format!("TIMESTAMP({fraction}){null}"),
            Self::LocalTimestamp(fraction) => format!("TIMESTAMP({fraction}) WITH LOCAL TIME ZONE{null}"),
        }
    }

    /// The type that a schema file spells so; none if it is not one that this sink writes.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix(" NOT NULL").unwrap_or(text);
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let (numbers, rest) = rest.split_once(')').unwrap_or(("", ""));
        let mut numbers = numbers.split(',').map(str::trim);
        let mut number = || numbers.next().and_then(|number| number.parse::<u8>().ok());
        Some(match (name, rest) {
            ("BOOLEAN", "") => Self::Boolean,
            ("TINYINT", "") => Self::TinyInt,
            ("SMALLINT", "") => Self::SmallInt,
            ("INT", "") => Self::Int,
            ("BIGINT", "") => Self::BigInt,
            ("FLOAT", "") => Self::Float,
            ("DOUBLE", "") => Self::Double,
            ("DECIMAL", "") => Self::Decimal(number()?, i8::try_from(number()?).ok()?),
            ("STRING", "") => Self::String,
            ("BYTES", "") => Self::Bytes,
            ("DATE", "") => Self::Date,
            ("TIMESTAMP", "") => Self::Timestamp(number()?),
            ("TIMESTAMP", " WITH LOCAL TIME ZONE") => Self::LocalTimestamp(number()?),
            _ => return None,
        })
    }

    /// The Arrow type whose Parquet form Paimon reads as this type.
    pub fn arrow(self) -> DataType {
        let unit = |fraction| if fraction <= 3 { TimeUnit::Millisecond } else { TimeUnit::Microsecond };
        match self {
            Self::Boolean => DataType::Boolean,
            Self::TinyInt => DataType::Int8,
            Self::SmallInt => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Self::String => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Timestamp(fraction) => DataType::Timestamp(unit(fraction), None),
            Self::LocalTimestamp(fraction) => DataType::Timestamp(unit(fraction), Some("UTC".into())),
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemaField {
    /// Names the column for ever, also after a rename.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Its type: a text, or an object for nested types.
    #[serde(rename = "type")]
    pub ty: Json,
    /// Its comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// One version of a table's schema. Members that this program has no use for are kept in `other`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LakeSchema {
    /// The format's version.
    #[serde(default = "first_version")]
    pub version: i32,
    /// Its number; the first is 0.
    pub id: i64,
    /// All columns, in order.
    pub fields: Vec<SchemaField>,
    /// Greatest field id that was ever used.
    pub highest_field_id: i32,
    /// Names of the columns that partition the table.
    pub partition_keys: Vec<String>,
    /// Names of the columns that identify a row.
    pub primary_keys: Vec<String>,
    /// Options.
    pub options: BTreeMap<String, String>,
    /// The table's comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// When it was made, in milliseconds since the epoch.
    #[serde(default)]
    pub time_millis: i64,
    /// All else that the file has.
    #[serde(flatten)]
    pub other: BTreeMap<String, Json>,
}

fn first_version() -> i32 {
    1
}

/// A column of a table to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LakeColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: LakeType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// Its comment.
    pub comment: Option<String>,
}

impl LakeSchema {
    /// The first schema of a table: field ids from 0 in order.
    pub fn first(
        columns: &[LakeColumn],
        primary_keys: Vec<String>,
        partition_keys: Vec<String>,
        options: BTreeMap<String, String>,
        time_millis: i64,
    ) -> Self {
        let field = |(id, column): (i32, &LakeColumn)| SchemaField {
            id,
            name: column.name.clone(),
            ty: Json::String(column.ty.sql(column.nullable)),
            description: column.comment.clone(),
        };
        let fields: Vec<_> = (0..).zip(columns).map(field).collect();
        Self {
            version: SCHEMA_VERSION,
            id: 0,
            highest_field_id: fields.last().map_or(-1, |field| field.id),
            fields,
            partition_keys,
            primary_keys,
            options,
            comment: None,
            time_millis,
            other: BTreeMap::new(),
        }
    }

    /// The next schema of this table, with the columns of another one. No column is one of before, so none has its id.
    #[must_use]
    pub fn replaced_by(&self, wanted: &Self) -> Self {
        let first = self.highest_field_id + 1;
        let fields = wanted.fields.iter().map(|field| SchemaField { id: field.id + first, ..field.clone() }).collect();
        Self { id: self.id + 1, fields, highest_field_id: wanted.highest_field_id + first, ..wanted.clone() }
    }

    /// Reads a schema file.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The file's bytes.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a schema has no keys other than texts")
    }

    /// Name of schema `id` in the table's folder.
    pub fn path(id: i64) -> String {
        format!("schema/schema-{id}")
    }

    /// The id in a file name of the schema folder.
    pub fn id_of(file_name: &str) -> Option<i64> {
        file_name.strip_prefix("schema-")?.parse().ok()
    }

    /// An option's value.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// How columns and keys differ from those wanted; none if the table takes the same rows.
    pub fn difference(&self, wanted: &Self) -> Option<String> {
        let columns =
            |schema: &Self| schema.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
        if self.fields.len() != wanted.fields.len()
            || self.fields.iter().zip(&wanted.fields).any(|(is, wanted)| is.name != wanted.name)
        {
            return Some(format!("it has the columns ({}), wanted are ({})", columns(self), columns(wanted)));
        }
        for (is, wanted) in self.fields.iter().zip(&wanted.fields) {
            if type_text(&is.ty) != type_text(&wanted.ty) {
                let (is_type, wanted_type) = (type_text(&is.ty), type_text(&wanted.ty));
                return Some(format!("its column {} is {is_type}, wanted is {wanted_type}", is.name));
            }
        }
        for (what, is, wanted) in [
            ("primary key", &self.primary_keys, &wanted.primary_keys),
            ("partition key", &self.partition_keys, &wanted.partition_keys),
        ] {
            if is != wanted {
                return Some(format!("its {what} is ({}), wanted is ({})", is.join(", "), wanted.join(", ")));
            }
        }
        None
    }
}

/// A type as text, nested ones in JSON.
fn type_text(ty: &Json) -> String {
    match ty {
        Json::String(text) => text.clone(),
        nested => nested.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, ty: LakeType, nullable: bool) -> LakeColumn {
        LakeColumn { name: name.into(), ty, nullable, comment: None }
    }

    fn schema() -> LakeSchema {
        let columns = [
            column("id", LakeType::Int, false),
            column("d", LakeType::Decimal(10, 2), true),
            column("at", LakeType::LocalTimestamp(6), true),
        ];
        LakeSchema::first(&columns, vec!["id".into()], Vec::new(), BTreeMap::from([("bucket".into(), "2".into())]), 5)
    }

    #[test]
    fn the_file_is_that_of_paimon() {
        let schema = schema();
        let json: Json = serde_json::from_slice(&schema.to_json()).unwrap();
        let expected: Json = serde_json::from_str(
            r#"{"version":3,"id":0,"fields":[{"id":0,"name":"id","type":"INT NOT NULL"},
            {"id":1,"name":"d","type":"DECIMAL(10, 2)"},{"id":2,"name":"at","type":"TIMESTAMP(6) WITH LOCAL TIME ZONE"}],
            "highestFieldId":2,"partitionKeys":[],"primaryKeys":["id"],"options":{"bucket":"2"},"timeMillis":5}"#,
        )
        .unwrap();
        assert_eq!(json, expected);
        assert_eq!(LakeSchema::parse(&schema.to_json()).unwrap(), schema);
    }

    #[test]
    fn types_are_read_as_they_are_spelt() {
        for ty in [
            LakeType::Boolean,
            LakeType::TinyInt,
            LakeType::SmallInt,
            LakeType::Int,
            LakeType::BigInt,
            LakeType::Float,
            LakeType::Double,
            LakeType::Decimal(38, 10),
            LakeType::String,
            LakeType::Bytes,
            LakeType::Date,
            LakeType::Timestamp(0),
            LakeType::LocalTimestamp(6),
        ] {
            for nullable in [true, false] {
                assert_eq!(LakeType::parse(&ty.sql(nullable)), Some(ty));
            }
        }
        for text in ["VARCHAR(20)", "DECIMAL", "TIMESTAMP(6", "TIME(0)", "", "INT(5) x"] {
            assert_eq!(LakeType::parse(text), None, "{text}");
        }
    }

    #[test]
    fn columns_of_a_table_made_anew_have_ids_of_their_own() {
        let mut wanted = schema();
        wanted.fields.remove(1);
        let next = LakeSchema { id: 4, ..schema() }.replaced_by(&wanted);
        let ids: Vec<_> = next.fields.iter().map(|field| (field.id, field.name.as_str())).collect();
        assert_eq!((next.id, next.highest_field_id), (5, 5));
        assert_eq!(ids, [(3, "id"), (5, "at")]);
    }

    #[test]
    fn differences_are_said_in_words() {
        let wanted = schema();
        assert_eq!(wanted.difference(&schema()), None);
        let mut options = schema();
        options.options.clear();
        options.id = 7;
        assert_eq!(options.difference(&wanted), None);
        let mut fewer = schema();
        fewer.fields.pop();
        assert_eq!(fewer.difference(&wanted).unwrap(), "it has the columns (id, d), wanted are (id, d, at)");
        let mut other = schema();
        other.fields[1].ty = "DECIMAL(9, 2)".into();
        assert_eq!(other.difference(&wanted).unwrap(), "its column d is DECIMAL(9, 2), wanted is DECIMAL(10, 2)");
        let mut keys = schema();
        keys.primary_keys = vec!["d".into()];
        assert_eq!(keys.difference(&wanted).unwrap(), "its primary key is (d), wanted is (id)");
    }
}
