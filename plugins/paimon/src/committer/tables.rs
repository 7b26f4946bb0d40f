//! Tables of the lake: made as the source's tables appear.

use std::collections::BTreeMap;

use cdchost_sdk::object_store::Creation;
use cdchost_sdk::runtime::{Context, Level, log, now_micros};
use cdchost_sdk::{PluginError, Result, Schema};

use crate::client::TableFolder;
use crate::config::{Buckets, Settings, check_table_options};
use crate::encode::{lake_schema, table_options};
use crate::format::schema::LakeSchema;

/// Table options that say who writes the table.
const OWNER_PIPELINE: &str = "cdchost.pipeline";
const OWNER_SINK: &str = "cdchost.sink";

/// Makes the table, or takes one that is there if its columns and keys are the same and nobody else writes it.
pub(super) fn create(folder: &TableFolder, schema: &Schema, settings: &Settings, context: &Context) -> Result<()> {
    let mut options = BTreeMap::from([
        ("file.format", "parquet"),
        ("file.compression", "snappy"),
        ("data-file.thin-mode", "true"),
        // Others that write to the table leave compaction and expiry to a job of their own and to this sink.
        ("write-only", "true"),
    ])
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect::<BTreeMap<_, _>>();
    options.extend(table_options(schema, settings));
    options.insert(OWNER_PIPELINE.into(), context.pipeline.clone());
    options.insert(OWNER_SINK.into(), context.operator.clone());
    check_table_options(&options).map_err(|error| error.with_table(&schema.table))?;
    let millis = (now_micros() / 1000) as i64; // the clock is far below 2^63
    let wanted = lake_schema(schema, settings, options, millis)?;
    if let Some(found) = folder.newest_schema()? {
        return adopt(folder, &found, &wanted);
    }
    match folder.put_if_absent(&LakeSchema::path(wanted.id), &wanted.to_json())? {
        Creation::Created => {
            log(Level::Info, "table made in the lake", &[("table", &schema.table.to_string())]);
            Ok(())
        }
        Creation::AlreadyExists => {
            let found = folder.newest_schema()?.ok_or_else(|| {
                let message = format!("the schema of table {} was there a moment ago, now it is not", schema.table);
                PluginError::remote("schema-vanishes", message)
            })?;
            adopt(folder, &found, &wanted)
        }
    }
}

/// A run that ended before its first commit leaves a table without rows, and the source's table may have changed since:
/// it becomes what is wanted now.
fn put_over(folder: &TableFolder, schema: &LakeSchema) -> Result<()> {
    let table = folder.id.to_string();
    match folder.put_if_absent(&LakeSchema::path(schema.id), &schema.to_json())? {
        Creation::Created => {
            log(Level::Info, "table without rows made anew in the lake", &[("table", &table)]);
            Ok(())
        }
        Creation::AlreadyExists => {
            let message = format!("table {table} of the lake was changed by somebody else just now");
            Err(PluginError::remote("schema-vanishes", message).with_table(&folder.id))
        }
    }
}

fn adopt(folder: &TableFolder, found: &LakeSchema, wanted: &LakeSchema) -> Result<()> {
    let table = &folder.id;
    let owner =
        |schema: &LakeSchema| Some((schema.option(OWNER_PIPELINE)?.to_owned(), schema.option(OWNER_SINK)?.to_owned()));
    if let (Some((pipeline, sink)), Some((own_pipeline, own_sink))) = (owner(found), owner(wanted))
        && (&pipeline, &sink) != (&own_pipeline, &own_sink)
    {
        let message = format!(
            "table {table} of the lake is written by pipeline {pipeline:?} (sink {sink:?}), this is pipeline \
             {own_pipeline:?} (sink {own_sink:?}): route the table to another name, or use another warehouse"
        );
        return Err(PluginError::config("other-pipeline", message).with_table(table));
    }
    let difference = found.difference(wanted);
    let other_options = wanted.options.iter().any(|(name, value)| found.option(name) != Some(value));
    let is_own = owner(found).is_some() && owner(found) == owner(wanted);
    if is_own && (difference.is_some() || other_options) && folder.newest_snapshot(None)?.is_none() {
        return put_over(folder, &found.replaced_by(wanted));
    }
    if let Some(difference) = difference {
        let message = format!(
            "table {table} is in the lake already, but {difference}: move it away, or route the source's table to another name"
        );
        return Err(PluginError::config("table-differs", message).with_table(table));
    }
    if !found.primary_keys.is_empty() && !found.options.contains_key("bucket") {
        // Paimon's own default is a bucket count that moves with the data.
        let message =
            format!("table {table} is in the lake already, but has no fixed number of buckets (option bucket)");
        return Err(PluginError::config("table-differs", message).with_table(table));
    }
    check_table_options(&found.options).map_err(|error| error.with_table(table))?;
    Buckets::of(&found.options, !found.primary_keys.is_empty()).map(drop).map_err(|error| error.with_table(table))
}
