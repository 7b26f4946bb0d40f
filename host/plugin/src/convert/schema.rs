//! Schemas and their changes, as the contract has them.

use cdchost_model::{ColumnPlace, Field, LogicalType, SchemaChange, TableId, TableSchema};

use super::plan::check_type;
use crate::bindings::v0_1::cdchost::plugin::types as wit;
use crate::limits::NAME_BYTES_MAX;

/// Bytes of a native type, a default or a comment that a plugin gives a column.
const TEXT_BYTES_MAX: usize = 4_096;

/// The lists that a contract schema borrows.
pub(crate) struct SchemaParts<'a> {
    schema: &'a TableSchema,
    fields: Vec<wit::FieldParam<'a>>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> SchemaParts<'a> {
    pub(crate) fn new(schema: &'a TableSchema) -> Self {
        let fields = schema.fields.iter().map(field).collect();
        let options = schema.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Self { schema, fields, options }
    }

    /// `handle` names the schema in batches; 0 where none follow.
    pub(crate) fn wit(&self, handle: u32) -> wit::Schema<'_> {
        wit::Schema {
            handle,
            table: table(&self.schema.table),
            version: self.schema.version.0,
            fields: &self.fields,
            nodes: &[],
            primary_key: &self.schema.primary_key,
            partition_key: &self.schema.partition_key,
            options: &self.options,
        }
    }
}

/// A table's name.
pub(crate) fn table(id: &TableId) -> wit::TableIdParam<'_> {
    wit::TableIdParam { database: &id.database, table: &id.table }
}

/// A schema change.
pub(crate) fn change(change: &SchemaChange) -> wit::SchemaChange<'_> {
    match change {
        SchemaChange::CreateTable => wit::SchemaChange::CreateTable,
        SchemaChange::AddColumn(added, place) => wit::SchemaChange::AddColumn((field(added), column_place(place))),
        SchemaChange::DropColumn(name) => wit::SchemaChange::DropColumn(name),
        SchemaChange::RenameColumn(from, to) => wit::SchemaChange::RenameColumn((from, to)),
        SchemaChange::AlterColumn(before, after) => wit::SchemaChange::AlterColumn((field(before), field(after))),
        SchemaChange::ReorderColumns => wit::SchemaChange::ReorderColumns,
        SchemaChange::AlterKey => wit::SchemaChange::AlterKey,
        SchemaChange::TruncateTable => wit::SchemaChange::TruncateTable,
        SchemaChange::DropTable => wit::SchemaChange::DropTable,
        SchemaChange::RenameTable(id) => wit::SchemaChange::RenameTable(table(id)),
        SchemaChange::CommentTable(comment) => wit::SchemaChange::CommentTable(comment.as_deref()),
    }
}

fn field(field: &Field) -> wit::FieldParam<'_> {
    wit::FieldParam {
        name: &field.name,
        ty: logical_type(&field.ty),
        nullable: field.nullable,
        native_type: &field.native_type,
        default_value: field.default_value.as_deref(),
        comment: field.comment.as_deref(),
    }
}

fn column_place(place: &ColumnPlace) -> wit::ColumnPlace<'_> {
    match place {
        ColumnPlace::First => wit::ColumnPlace::First,
        ColumnPlace::Last => wit::ColumnPlace::Last,
        ColumnPlace::After(name) => wit::ColumnPlace::After(name),
    }
}

/// A field that a plugin makes; an error says what the plugin does, as in "it ...".
pub(super) fn field_of(told: wit::FieldResult) -> Result<Field, String> {
    let ty = logical_type_of(told.ty)?;
    check_type(&ty)?;
    let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > TEXT_BYTES_MAX);
    if told.native_type.len() > TEXT_BYTES_MAX || long(&told.default_value) || long(&told.comment) {
        return Err(format!("describes a column in more than {TEXT_BYTES_MAX} bytes"));
    }
    Ok(Field {
        name: text_of(told.name)?,
        ty,
        nullable: told.nullable,
        native_type: told.native_type,
        default_value: told.default_value,
        comment: told.comment,
    })
}

/// A column's name.
pub(super) fn text_of(name: String) -> Result<String, String> {
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
    if fits { Ok(name) } else { Err("gives a column a name that none can have".into()) }
}

fn logical_type_of(ty: wit::LogicalType) -> Result<LogicalType, String> {
    Ok(match ty {
        wit::LogicalType::Boolean => LogicalType::Boolean,
        wit::LogicalType::Int8 => LogicalType::Int8,
        wit::LogicalType::Int16 => LogicalType::Int16,
        wit::LogicalType::Int32 => LogicalType::Int32,
        wit::LogicalType::Int64 => LogicalType::Int64,
        wit::LogicalType::Uint8 => LogicalType::Uint8,
        wit::LogicalType::Uint16 => LogicalType::Uint16,
        wit::LogicalType::Uint32 => LogicalType::Uint32,
        wit::LogicalType::Uint64 => LogicalType::Uint64,
        wit::LogicalType::Float32 => LogicalType::Float32,
        wit::LogicalType::Float64 => LogicalType::Float64,
        wit::LogicalType::Decimal((precision, scale)) => LogicalType::Decimal { precision, scale },
        wit::LogicalType::Text(max) => LogicalType::Text { max },
        wit::LogicalType::Bytes(max) => LogicalType::Bytes { max },
        wit::LogicalType::Json => LogicalType::Json,
        wit::LogicalType::Date => LogicalType::Date,
        wit::LogicalType::Time(fraction) => LogicalType::Time { fraction },
        wit::LogicalType::Timestamp(fraction) => LogicalType::Timestamp { fraction },
        wit::LogicalType::TimestampUtc(fraction) => LogicalType::TimestampUtc { fraction },
        wit::LogicalType::Geometry => LogicalType::Geometry,
        wit::LogicalType::Nested(_) => return Err("gives out a nested column, which is not offered yet".into()),
    })
}

fn logical_type(ty: &LogicalType) -> wit::LogicalType {
    match *ty {
        LogicalType::Boolean => wit::LogicalType::Boolean,
        LogicalType::Int8 => wit::LogicalType::Int8,
        LogicalType::Int16 => wit::LogicalType::Int16,
        LogicalType::Int32 => wit::LogicalType::Int32,
        LogicalType::Int64 => wit::LogicalType::Int64,
        LogicalType::Uint8 => wit::LogicalType::Uint8,
        LogicalType::Uint16 => wit::LogicalType::Uint16,
        LogicalType::Uint32 => wit::LogicalType::Uint32,
        LogicalType::Uint64 => wit::LogicalType::Uint64,
        LogicalType::Float32 => wit::LogicalType::Float32,
        LogicalType::Float64 => wit::LogicalType::Float64,
        LogicalType::Decimal { precision, scale } => wit::LogicalType::Decimal((precision, scale)),
        LogicalType::Text { max } => wit::LogicalType::Text(max),
        LogicalType::Bytes { max } => wit::LogicalType::Bytes(max),
        LogicalType::Json => wit::LogicalType::Json,
        LogicalType::Date => wit::LogicalType::Date,
        LogicalType::Time { fraction } => wit::LogicalType::Time(fraction),
        LogicalType::Timestamp { fraction } => wit::LogicalType::Timestamp(fraction),
        LogicalType::TimestampUtc { fraction } => wit::LogicalType::TimestampUtc(fraction),
        LogicalType::Geometry => wit::LogicalType::Geometry,
    }
}
