//! A transform's plan, held to the table that it was asked about.

use std::sync::Arc;

use cdchost_model::{Field, LogicalType, OutputColumn, Projection, TableSchema};

use super::TablePlan;
use super::schema::{field_of, text_of};
use crate::bindings::v0_1::exports::cdchost::plugin::transform as wit;
use crate::limits::{COLUMNS_MAX, TEXTS_MAX};

/// What a transform does with a table at one version.
#[derive(Debug)]
pub(crate) struct TransformPlan {
    /// What it gets.
    pub(crate) table: TablePlan,
    /// What comes out.
    pub(crate) projection: Projection,
    /// It is not called.
    pub(crate) bypass: bool,
    /// Places of the computed columns in the output.
    computed: Vec<usize>,
}

impl TransformPlan {
    /// An error says what the plugin does, as in "it ...".
    pub(crate) fn new(handle: u32, told: wit::Plan, input: &TableSchema) -> Result<Self, String> {
        let table = TablePlan::new(handle, told.reads, told.meta, input)?;
        if told.output.is_empty() || told.output.len() > COLUMNS_MAX {
            return Err(format!("gives out {} columns, it must be 1 to {COLUMNS_MAX}", told.output.len()));
        }
        let (mut fields, mut columns, mut computed) = (Vec::new(), Vec::new(), Vec::new());
        for (place, column) in told.output.into_iter().enumerate() {
            let (field, column) = output(column, input)?;
            if column == OutputColumn::Computed {
                computed.push(place);
            }
            fields.push(field);
            columns.push(column);
        }
        if told.bypass && !computed.is_empty() {
            return Err("computes columns of a table that it bypasses".into());
        }
        let mut output = TableSchema {
            table: input.table.clone(),
            version: input.version,
            fields,
            primary_key: Vec::new(),
            partition_key: Vec::new(),
            options: options(&input.options, told.options)?,
        };
        output.primary_key = key("primary key", &output, told.primary_key, (&input.primary_key, &columns))?;
        output.partition_key = key("partition key", &output, told.partition_key, (&input.partition_key, &columns))?;
        output.check().map_err(|error| format!("plans what cannot be: {error}"))?;
        if let Some(&place) = output.primary_key.iter().find(|&&place| output.fields[place as usize].nullable) {
            return Err(format!("makes a key of column {}, which takes NULL", output.fields[place as usize].name));
        }
        Ok(Self { table, projection: Projection::new(Arc::new(output), columns), bypass: told.bypass, computed })
    }

    /// The fields of the columns that it computes, in order.
    pub(crate) fn computed(&self) -> Vec<&Field> {
        self.computed.iter().map(|&place| &self.projection.output().fields[place]).collect()
    }
}

fn output(column: wit::OutField, input: &TableSchema) -> Result<(Field, OutputColumn), String> {
    let passed = |place: u32| {
        let found = input.fields.get(place as usize);
        let field = found.ok_or_else(|| format!("passes column {place} of {}", input.fields.len()))?;
        Ok::<_, String>((field.clone(), OutputColumn::Pass(place as usize)))
    };
    match column {
        wit::OutField::Pass(place) => passed(place),
        wit::OutField::Renamed((place, name)) => {
            let (field, column) = passed(place)?;
            Ok((Field { name: text_of(name)?, ..field }, column))
        }
        wit::OutField::Computed(field) => Ok((field_of(field)?, OutputColumn::Computed)),
    }
}

/// Places of a key's columns: those named, or wherever the input's key columns passed to.
fn key(
    what: &str,
    output: &TableSchema,
    named: Option<Vec<String>>,
    (of_input, columns): (&[u32], &[OutputColumn]),
) -> Result<Vec<u32>, String> {
    let place =
        |found: Option<usize>, otherwise: String| found.and_then(|place| u32::try_from(place).ok()).ok_or(otherwise);
    match named {
        Some(names) => {
            let mut places = Vec::with_capacity(names.len());
            for name in names {
                let at = place(output.index_of(&name), format!("names a {what} column that it does not give out"))?;
                if places.contains(&at) {
                    return Err(format!("names a column of the {what} twice"));
                }
                places.push(at);
            }
            Ok(places)
        }
        None => of_input
            .iter()
            .map(|&key| {
                let passed = columns.iter().position(|column| *column == OutputColumn::Pass(key as usize));
                place(passed, format!("names no {what}, and does not pass all columns of the input's"))
            })
            .collect(),
    }
}

/// The table's options; those told stand instead of those of the same name.
fn options(of_input: &[(String, String)], told: Vec<(String, String)>) -> Result<Vec<(String, String)>, String> {
    if told.len() > TEXTS_MAX {
        return Err(format!("gives {} options, at most {TEXTS_MAX} are taken", told.len()));
    }
    let replaced = |name: &String| told.iter().any(|(other, _)| other == name);
    let mut options: Vec<_> = of_input.iter().filter(|(name, _)| !replaced(name)).cloned().collect();
    options.extend(told);
    Ok(options)
}

/// The contract's decimal and fraction bounds.
pub(super) fn check_type(ty: &LogicalType) -> Result<(), String> {
    let fits = match *ty {
        LogicalType::Decimal { precision, scale } => {
            (1..=76).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision
        }
        LogicalType::Time { fraction }
        | LogicalType::Timestamp { fraction }
        | LogicalType::TimestampUtc { fraction } => fraction <= 6,
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("gives a column the type {ty}, which there is not")) }
}
