//! The tables that routes lead to: each announced once, and one table's columns for all that lead to it.

use std::collections::HashMap;
use std::sync::Arc;

use cdchost_connector::{ConnectorError, StopClass, TableEvent};
use cdchost_model::{ChangeBatch, SchemaChange, TableId, TableSchema};
use tokio::sync::watch;

use crate::failure::{Failure, bug};
use crate::status::PipelineStatus;

pub(super) struct Targets {
    known: HashMap<TableId, Target>,
    status: watch::Sender<PipelineStatus>,
}

struct Target {
    schema: Arc<TableSchema>,
    /// The source tables that lead to it, the first one first.
    sources: Vec<TableId>,
}

impl Targets {
    pub(super) fn new(status: watch::Sender<PipelineStatus>) -> Self {
        // Each run finds out anew.
        status.send_modify(|status| status.routes.clear());
        Self { known: HashMap::new(), status }
    }

    /// Takes in that `source`, with these columns, leads to `target`; gives the event that makes it where it is new.
    pub(super) fn admit(
        &mut self,
        source: &TableId,
        target: &TableId,
        schema: &TableSchema,
    ) -> Result<Option<TableEvent>, Failure> {
        if let Some(known) = self.known.get_mut(target) {
            if let Some(difference) = difference(&known.schema, schema) {
                return Err(refused(target, (&known.sources[0], source), &difference));
            }
            if !known.sources.contains(source) {
                known.sources.push(source.clone());
                self.show(source, target);
            }
            return Ok(None);
        }
        let schema = Arc::new(TableSchema { table: target.clone(), ..schema.clone() });
        let known = Target { schema: Arc::clone(&schema), sources: vec![source.clone()] };
        self.known.insert(target.clone(), known);
        self.show(source, target);
        let id = format!("{target}@{}", schema.version.0);
        Ok(Some(TableEvent { id, before: None, change: SchemaChange::CreateTable, after: Some(schema) }))
    }

    /// The columns of a target that was admitted.
    pub(super) fn schema(&self, target: &TableId) -> Option<&Arc<TableSchema>> {
        self.known.get(target).map(|known| &known.schema)
    }

    /// The rows as those of their target.
    pub(super) fn rows(&self, target: &TableId, rows: ChangeBatch) -> Result<ChangeBatch, Failure> {
        let of_table = self.schema(target).and_then(|schema| rows.of_table(schema).ok());
        of_table.ok_or_else(|| bug("rows-of-no-target", format!("rows for table {target} do not fit it")))
    }

    fn show(&self, source: &TableId, target: &TableId) {
        tracing::info!(event = "table-routed", table = %source, target = %target);
        self.status.send_modify(|status| {
            status.routes.entry(source.clone()).or_default().push(target.clone());
        });
    }
}

/// What keeps two tables from being one, in words.
fn difference(one: &TableSchema, other: &TableSchema) -> Option<String> {
    let (left, right) = (one.fields.len(), other.fields.len());
    if left != right {
        return Some(format!("they have {left} and {right} columns"));
    }
    for (one, other) in one.fields.iter().zip(&other.fields) {
        if one.name != other.name {
            return Some(format!("column {} of one stands where {} is in the other", one.name, other.name));
        }
        if one.ty != other.ty {
            return Some(format!("column {} is {} in one and {} in the other", one.name, one.ty, other.ty));
        }
        if one.nullable != other.nullable {
            return Some(format!("column {} takes NULL in only one of them", one.name));
        }
    }
    let keys = one.primary_key == other.primary_key && one.partition_key == other.partition_key;
    (!keys).then(|| "their keys are of different columns".to_owned())
}

fn refused(target: &TableId, (one, other): (&TableId, &TableId), difference: &str) -> Failure {
    let message = format!("tables {one} and {other} are both routed to {target}, and differ: {difference}");
    let error = ConnectorError::stop(StopClass::Schema, "route-merge", message);
    error
        .with_instruction("give them the same columns, or route them to different tables")
        .with_table(other.clone())
        .into()
}

#[cfg(test)]
mod tests {
    use cdchost_model::{Field, LogicalType, SchemaVersion};

    use super::*;

    fn table(name: &str, columns: &[(&str, LogicalType)]) -> TableSchema {
        let field = |(name, ty): &(&str, LogicalType)| Field {
            name: (*name).into(),
            ty: ty.clone(),
            nullable: false,
            native_type: String::new(),
            default_value: None,
            comment: None,
        };
        TableSchema {
            table: TableId::new("d", name),
            version: SchemaVersion(1),
            fields: columns.iter().map(field).collect(),
            primary_key: vec![0],
            partition_key: Vec::new(),
            options: Vec::new(),
        }
    }

    #[test]
    fn a_target_is_made_once_and_keeps_its_columns() {
        let (status, seen) = watch::channel(PipelineStatus::default());
        let mut targets = Targets::new(status);
        let all = TableId::new("ods", "all");
        let (a, b) = (table("a", &[("id", LogicalType::Int64)]), table("b", &[("id", LogicalType::Int64)]));
        let made = targets.admit(&a.table, &all, &a).unwrap().unwrap();
        assert_eq!((made.id.as_str(), &made.after.unwrap().table), ("ods.all@1", &all));
        assert!(targets.admit(&b.table, &all, &b).unwrap().is_none());
        let shown = seen.borrow().routes.clone();
        assert_eq!(shown.into_values().flatten().collect::<Vec<_>>(), [all.clone(), all.clone()]);
        for (columns, words) in [
            (vec![("id", LogicalType::Int32)], "column id is int64 in one and int32 in the other"),
            (vec![("no", LogicalType::Int64)], "column id of one stands where no is in the other"),
            (vec![("id", LogicalType::Int64), ("x", LogicalType::Json)], "they have 1 and 2 columns"),
        ] {
            let c = table("c", &columns);
            let Err(Failure::Error(error)) = targets.admit(&c.table, &all, &c) else { panic!("{words}") };
            assert_eq!(error.message, format!("tables d.a and d.c are both routed to ods.all, and differ: {words}"));
        }
    }
}
