//! Table maps: which table the rows to follow belong to, and what its columns are.

use crate::column_type::{
    BIT, BLOB, BLOB_COMPRESSED, DATETIME2, DOUBLE, ENUM, FLOAT, GEOMETRY, JSON, NEWDECIMAL, SET, STRING, TIME2,
    TIMESTAMP2, VAR_STRING, VARCHAR, VARCHAR_COMPRESSED, VECTOR, YEAR,
};
use crate::error::ProtocolError;
use crate::packet::Reader;
use crate::query::COLUMNS_MAX;

/// A table map, read as far as every transaction needs it. Two with equal `definition` describe the same columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMapEvent<'a> {
    /// Number of the table in the rows events to follow.
    pub table_id: u64,
    /// Database, in UTF-8.
    pub database: &'a [u8],
    /// Table, in UTF-8.
    pub table: &'a [u8],
    /// The columns, as bytes: [`Self::columns`] reads them.
    pub definition: &'a [u8],
}

/// The columns of a table map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableMap {
    /// In the table's order.
    pub columns: Vec<TableMapColumn>,
}

/// A column of a table map. What is optional is there as far as `binlog_row_metadata` goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableMapColumn {
    /// Its type by MySQL's number; ENUM and SET by their own, not by that of the string that hides them.
    pub column_type: u8,
    /// What the type's values depend on: greatest length in bytes of VARCHAR and CHAR; bytes of the length of BLOB,
    /// JSON, GEOMETRY; bytes of ENUM, SET, FLOAT, DOUBLE; fraction digits of TIME2, DATETIME2, TIMESTAMP2; of NEWDECIMAL
    /// precision × 256 + scale; of BIT whole bytes × 256 + further bits.
    pub metadata: u16,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether a number is unsigned; not told of those behind a YEAR.
    pub unsigned: Option<bool>,
    /// Its name.
    pub name: Option<String>,
    /// Labels of ENUM or SET, in the column's character set.
    pub labels: Option<Vec<Vec<u8>>>,
}

impl<'a> TableMapEvent<'a> {
    #[inline]
    pub(super) fn read(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new("a table map", body);
        let table_id = reader.u48()?;
        reader.skip(2)?;
        let database = name(&mut reader)?;
        let table = name(&mut reader)?;
        Ok(Self { table_id, database, table, definition: reader.rest() })
    }

    /// Reads the columns.
    pub fn columns(&self) -> Result<TableMap, ProtocolError> {
        let mut reader = Reader::new("a table map", self.definition);
        let count = reader.length()?;
        if count == 0 || count > COLUMNS_MAX {
            return Err(ProtocolError::new(format!("a table map of {count} columns")));
        }
        let types = reader.take(count)?;
        let mut metadata = Reader::new("a table map's column metadata", reader.string()?);
        let nullable = reader.take(count.div_ceil(8))?;
        let mut map = TableMap::default();
        for (place, &column_type) in types.iter().enumerate() {
            let (column_type, metadata) = type_and_metadata(column_type, &mut metadata)?;
            let nullable = nullable.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1);
            map.columns.push(TableMapColumn { column_type, metadata, nullable, ..TableMapColumn::default() });
        }
        if !metadata.is_empty() {
            return Err(ProtocolError::new("a table map has more column metadata than columns"));
        }
        while !reader.is_empty() {
            let field = reader.u8()?;
            let value = Reader::new("a table map's optional metadata", reader.string()?);
            map.add(field, value)?;
        }
        Ok(map)
    }
}

#[inline]
fn name<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], ProtocolError> {
    let length = reader.u8()?;
    let name = reader.take(length.into())?;
    if reader.u8()? != 0 {
        return Err(ProtocolError::new("a name in a table map does not end in a zero"));
    }
    Ok(name)
}

/// The type as the table has it, and its metadata in one form.
fn type_and_metadata(column_type: u8, metadata: &mut Reader<'_>) -> Result<(u8, u16), ProtocolError> {
    match column_type {
        // TINY SHORT LONG NULL TIMESTAMP LONGLONG INT24 DATE TIME DATETIME YEAR NEWDATE
        1..=3 | 6..=14 => Ok((column_type, 0)),
        FLOAT | DOUBLE | TIMESTAMP2 | DATETIME2 | TIME2 | VECTOR | JSON | BLOB | BLOB_COMPRESSED | GEOMETRY => {
            Ok((column_type, metadata.u8()?.into()))
        }
        VARCHAR | VARCHAR_COMPRESSED | VAR_STRING => Ok((column_type, metadata.u16()?)),
        BIT => Ok((column_type, metadata.u16()?)),
        NEWDECIMAL => Ok((column_type, metadata.array().map(u16::from_be_bytes)?)),
        STRING | ENUM | SET => {
            let [high, low] = metadata.array()?;
            match high {
                ENUM | SET => Ok((high, low.into())),
                // Two bits of a length above 255 are hidden in the type, inverted.
                _ if high & 0x30 != 0x30 => Ok((high | 0x30, u16::from(low) | u16::from((high & 0x30) ^ 0x30) << 4)),
                _ => Ok((high, low.into())),
            }
        }
        other => Err(ProtocolError::new(format!("a table map with a column of the unknown type {other}"))),
    }
}

impl TableMap {
    fn add(&mut self, field: u8, value: Reader<'_>) -> Result<(), ProtocolError> {
        match field {
            1 => {
                // MySQL 8.0.15 has no bit for a YEAR, later ones and MariaDB have: which bits are those behind it is not
                // to be told.
                let mut parts = self.columns.split_mut(|column| column.column_type == YEAR);
                let told = parts.next().unwrap_or_default();
                set_bits(told, value, |column| column.is_number(), |column, bit| column.unsigned = Some(bit))
            }
            4 => self.set_each(
                value,
                |_| true,
                |column, value| {
                    column.name = Some(value.text()?.to_owned());
                    Ok(())
                },
            ),
            5 => self.set_each(value, |column| column.column_type == SET, TableMapColumn::set_labels),
            6 => self.set_each(value, |column| column.column_type == ENUM, TableMapColumn::set_labels),
            // Collations (the servers do not agree on which columns have one), kinds of geometry, the primary key, which
            // columns are invisible: nothing depends on them. And later servers may add more.
            _ => Ok(()),
        }
    }

    /// One value for each column concerned.
    fn set_each(
        &mut self,
        mut value: Reader<'_>,
        concerns: impl Fn(&TableMapColumn) -> bool,
        set: impl Fn(&mut TableMapColumn, &mut Reader<'_>) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        self.columns.iter_mut().filter(|column| concerns(column)).try_for_each(|column| set(column, &mut value))
    }
}

impl TableMapColumn {
    fn is_number(&self) -> bool {
        matches!(self.column_type, 1..=5 | 8 | 9 | NEWDECIMAL)
    }

    fn set_labels(&mut self, value: &mut Reader<'_>) -> Result<(), ProtocolError> {
        let count = value.length()?;
        // Every label takes a byte at least.
        let mut labels = Vec::with_capacity(count.min(value.rest().len()));
        for _ in 0..count {
            labels.push(value.string()?.to_vec());
        }
        self.labels = Some(labels);
        Ok(())
    }
}

/// One bit for each column concerned, the highest of a byte first.
fn set_bits(
    columns: &mut [TableMapColumn],
    value: Reader<'_>,
    concerns: impl Fn(&TableMapColumn) -> bool,
    set: impl Fn(&mut TableMapColumn, bool),
) -> Result<(), ProtocolError> {
    let mut bits = value.rest().iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
    for column in columns.iter_mut().filter(|column| concerns(column)) {
        set(column, bits.next().ok_or_else(|| ProtocolError::short("a table map's optional metadata"))?);
    }
    Ok(())
}
