//! What stands in the pipeline file, and the table options that follow from it.

use std::collections::BTreeMap;

use cdchost_sdk::{PluginError, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Options of the paimon sink.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Where the warehouse lies: the name of a store that `allow.store` grants, then the folder in it, e.g.
    /// `lake/warehouse`. A table is written to `<database>.db/<table>` below it.
    #[schemars(extend("format" = "store-path"))]
    pub warehouse: String,
    /// Options of the tables that are made, named as Paimon names them, e.g. `table.bucket = 4`. Tables that are there
    /// already keep theirs.
    #[serde(default)]
    pub table: Map<String, Value>,
    /// Columns by which tables are divided: for a table `database.table`, in whose name `*` stands for any text, a list
    /// of columns, e.g. `partition-keys."shop.orders_*" = ["day"]`. In a table with a key they are part of the key.
    #[serde(default)]
    #[schemars(extend("format" = "tables"))]
    pub partition_keys: BTreeMap<String, Vec<String>>,
    /// How TIME columns are written: `text` as `-838:59:59.000000`, or `micros` as BIGINT.
    #[serde(default)]
    pub time: TimeForm,
    /// Bytes of rows that one writer holds in memory before it writes data files, e.g. `16MiB`.
    #[serde(default = "default_write_buffer")]
    pub write_buffer: String,
    /// Bytes after which a data file is ended and the next is begun, e.g. `128MiB`.
    #[serde(default = "default_target_file_size")]
    pub target_file_size: String,
    /// Which snapshots of each table are kept, as `snapshot.num-retained = 10`: at least so many, the newest ones; and
    /// `snapshot.time-retained = "1h"`: all that are younger. Both are the defaults. Those with a tag keep their files
    /// in any case.
    #[serde(default)]
    pub snapshot: SnapshotOptions,
}

/// Which snapshots of each table are kept. Those with a tag keep their files in any case.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SnapshotOptions {
    /// At least so many, the newest ones.
    pub num_retained: u32,
    /// And all that are younger than this, e.g. `1h`.
    pub time_retained: String,
}

/// How TIME columns are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeForm {
    /// As text, as the server writes it.
    #[default]
    Text,
    /// As a number of microseconds.
    Micros,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { num_retained: 10, time_retained: "1h".into() }
    }
}

fn default_write_buffer() -> String {
    "16MiB".into()
}

fn default_target_file_size() -> String {
    "128MiB".into()
}

/// The options, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) root: String,
    /// Without a slash at either end; may be empty.
    pub(crate) folder: String,
    pub(crate) table: BTreeMap<String, String>,
    pub(crate) partition_keys: BTreeMap<String, Vec<String>>,
    pub(crate) time: TimeForm,
    pub(crate) write_buffer: usize,
    pub(crate) target_file_size: usize,
    pub(crate) snapshots_retained: usize,
    pub(crate) snapshot_retention_millis: i64,
}

/// Table options whose meaning this sink depends on, and the values that it can serve; none = any value it checks
/// itself.
const FIXED: [(&str, &[&str]); 12] = [
    ("file.format", &["parquet"]),
    ("file.compression", &["snappy", "none"]),
    ("manifest.format", &["avro"]),
    ("merge-engine", &["deduplicate"]),
    ("changelog-producer", &["none"]),
    ("bucket-function.type", &["default"]),
    ("deletion-vectors.enabled", &["false"]),
    ("sequence.field", &[]),
    ("rowkind.field", &[]),
    ("branch", &["main"]),
    ("data-file.path-directory", &[]),
    ("data-file.external-paths", &[]),
];

/// Most buckets of a table.
const BUCKETS_MAX: u32 = 1 << 15;

impl Options {
    pub(crate) fn settings(&self) -> Result<Settings> {
        let (root, folder) = self.warehouse.split_once('/').unwrap_or((&self.warehouse, ""));
        let folder = folder.trim_matches('/');
        if root.is_empty() || folder.split('/').any(|part| part == "." || part == "..") {
            return Err(wrong(
                "warehouse",
                &self.warehouse,
                "the name of a store and a folder in it, e.g. \"lake/warehouse\"",
            ));
        }
        if self.snapshot.num_retained == 0 {
            return Err(wrong("snapshot.num-retained", "0", "at least 1: the newest snapshot is the table"));
        }
        let mut table = BTreeMap::new();
        flatten("", &self.table, &mut table)?;
        check_table_options(&table)?;
        Buckets::of(&table, true)?;
        Ok(Settings {
            root: root.into(),
            folder: folder.into(),
            table,
            partition_keys: self.partition_keys.clone(),
            time: self.time,
            write_buffer: size("write-buffer", &self.write_buffer)?,
            target_file_size: size("target-file-size", &self.target_file_size)?,
            snapshots_retained: self.snapshot.num_retained as usize,
            snapshot_retention_millis: duration("snapshot.time-retained", &self.snapshot.time_retained)?,
        })
    }
}

/// Refuses options under which the rows that this sink writes would mean something else, or not be seen.
pub(crate) fn check_table_options(options: &BTreeMap<String, String>) -> Result<()> {
    for (name, allowed) in FIXED {
        if let Some(value) = options.get(name).filter(|value| !allowed.contains(&value.as_str())) {
            let allowed = if allowed.is_empty() { "to be left out".into() } else { allowed.join(" or ") };
            return Err(wrong(&format!("table.{name}"), value, &allowed));
        }
    }
    Ok(())
}

/// How a table's rows, or those of each of its partitions, are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buckets {
    /// By their key, over so many.
    Fixed(u32),
    /// Not at all: tables without a key.
    One,
}

impl Buckets {
    /// As the options say it; one fixed bucket if they say nothing.
    pub(crate) fn of(options: &BTreeMap<String, String>, keyed: bool) -> Result<Self> {
        let text = options.get("bucket").map(String::as_str);
        if !keyed {
            let unspread = text.is_none_or(|text| text == Self::One.option());
            let wanted = "-1 for a table without a key: its rows have nothing to be spread by";
            return if unspread { Ok(Self::One) } else { Err(wrong("table.bucket", text.unwrap_or_default(), wanted)) };
        }
        let Some(text) = text else { return Ok(Self::Fixed(1)) };
        let count = text.parse().ok().filter(|count| (1..=BUCKETS_MAX).contains(count)).map(Self::Fixed);
        count.ok_or_else(|| wrong("table.bucket", text, &format!("a fixed number from 1 to {BUCKETS_MAX}")))
    }

    /// How many folders hold rows.
    pub(crate) fn count(self) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::One => 1,
        }
    }

    /// The number that manifests have.
    pub(crate) fn total(self) -> i32 {
        match self {
            Self::Fixed(count) => count as i32, // far below 2^31
            Self::One => -1,
        }
    }

    /// The number as the table's option.
    pub(crate) fn option(self) -> String {
        self.total().to_string()
    }
}

fn wrong(option: &str, value: &str, wanted: &str) -> PluginError {
    PluginError::config("options", format!("{option} is {value:?}, wanted is {wanted}"))
}

/// `{"file": {"compression": "none"}}` and `{"file.compression": "none"}` both become `file.compression` = `none`.
fn flatten(prefix: &str, map: &Map<String, Value>, out: &mut BTreeMap<String, String>) -> Result<()> {
    for (key, value) in map {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        let text = match value {
            Value::Object(inner) => {
                flatten(&name, inner, out)?;
                continue;
            }
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) => {
                return Err(wrong(&format!("table.{name}"), &value.to_string(), "a text or a number"));
            }
        };
        out.insert(name, text);
    }
    Ok(())
}

fn size(option: &str, text: &str) -> Result<usize> {
    const UNITS: [(&str, u64); 8] = [
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
        ("B", 1),
        ("", 1),
    ];
    let bytes = number_with_unit(text, &UNITS).filter(|&bytes| (1 << 16..=2 << 30).contains(&bytes));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| wrong(option, text, "a size from 64KiB to 2GiB, e.g. \"16MiB\""))
}

fn duration(option: &str, text: &str) -> Result<i64> {
    const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let millis = number_with_unit(text, &UNITS).and_then(|millis| i64::try_from(millis).ok());
    millis.ok_or_else(|| wrong(option, text, "a duration, e.g. \"1h\""))
}

fn number_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(json: Value) -> Result<Settings, String> {
        let options: Options = serde_json::from_value(json).map_err(|error| error.to_string())?;
        options.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn options_have_defaults_and_table_options_may_be_nested_or_not() {
        let plain = settings(json!({"warehouse": "lake/a/b/"})).unwrap();
        assert_eq!((plain.root.as_str(), plain.folder.as_str()), ("lake", "a/b"));
        assert_eq!(
            (plain.write_buffer, plain.snapshots_retained, plain.snapshot_retention_millis),
            (16 << 20, 10, 3_600_000)
        );
        assert_eq!(settings(json!({"warehouse": "lake"})).unwrap().folder, "");
        let full = settings(json!({
            "warehouse": "lake/wh",
            "table": {"bucket": 4, "file": {"compression": "none"}, "write-only": false, "a.b": "c"},
            "snapshot": {"num-retained": 2, "time-retained": "10m"},
            "time": "micros",
        }))
        .unwrap();
        let table: Vec<_> = full.table.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(table, [("a.b", "c"), ("bucket", "4"), ("file.compression", "none"), ("write-only", "false")]);
        assert_eq!(
            (full.snapshots_retained, full.snapshot_retention_millis, full.time),
            (2, 600_000, TimeForm::Micros)
        );
    }

    #[test]
    fn what_cannot_work_is_refused_with_words() {
        for (json, expect) in [
            (json!({}), "missing field `warehouse`"),
            (json!({"warehouse": "/wh"}), "warehouse is \"/wh\", wanted is the name of a store"),
            (json!({"warehouse": "lake/../x"}), "warehouse is"),
            (json!({"warehouse": "lake", "wharehouse": 1}), "unknown field `wharehouse`"),
            (json!({"warehouse": "lake", "table": {"bucket": -1}}), "table.bucket is \"-1\", wanted is a fixed number"),
            (json!({"warehouse": "lake", "table": {"merge-engine": "aggregation"}}), "wanted is deduplicate"),
            (json!({"warehouse": "lake", "table": {"file": {"compression": "zstd"}}}), "wanted is snappy or none"),
            (json!({"warehouse": "lake", "table": {"sequence": {"field": "x"}}}), "wanted is to be left out"),
            (json!({"warehouse": "lake", "table": {"bucket": [1]}}), "wanted is a text or a number"),
            (json!({"warehouse": "lake", "write-buffer": "1kB"}), "write-buffer is \"1kB\""),
            (json!({"warehouse": "lake", "snapshot": {"num-retained": 0}}), "at least 1"),
            (json!({"warehouse": "lake", "snapshot": {"time-retained": "soon"}}), "snapshot.time-retained is \"soon\""),
        ] {
            let error = settings(json.clone()).unwrap_err();
            assert!(error.contains(expect), "{json}: {error}");
        }
    }
}
