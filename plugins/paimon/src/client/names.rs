//! Names of files that no other run, writer or pipeline makes, and that this pipeline knows again after a crash.

use cdchost_sdk::runtime::Context;
use cdchost_sdk::{PluginError, Result, TableId};

/// Makes file names for one instance of the sink.
#[derive(Debug)]
pub(crate) struct Names {
    /// In front of the generation, the same in all runs of this pipeline and sink.
    family: String,
    /// Family, generation, instance and a random number: a wiped checkpoint store begins again at generation 1.
    own: String,
    count: u64,
}

/// Characters of the pipeline's and the sink's name that are shown in file names; a checksum tells the rest apart.
const SHOWN_CHARS_MAX: usize = 40;

impl Names {
    /// `instance` tells committer and writers apart.
    pub(crate) fn new(context: &Context, instance: &str) -> Result<Self> {
        let identity = format!("{}\0{}", context.pipeline, context.operator);
        let checksum = crc32fast::hash(identity.as_bytes());
        let (pipeline, operator) = (shown(&context.pipeline), shown(&context.operator));
        let family = format!("cdchost-{pipeline}-{operator}-{checksum:08x}-g");
        let random = u64::from_le_bytes(random()?);
        let own = format!("{family}{}-{instance}-{random:016x}", context.generation);
        Ok(Self { family, own, count: 0 })
    }

    /// A data file of the epoch that follows the given one: its own number is known only at its barrier.
    pub(crate) fn data_file(&mut self, after_epoch: u64) -> String {
        format!("data-{}.parquet", self.next(after_epoch))
    }

    pub(crate) fn manifest(&mut self, epoch: u64) -> String {
        format!("manifest-{}", self.next(epoch))
    }

    pub(crate) fn manifest_list(&mut self, epoch: u64) -> String {
        format!("manifest-list-{}", self.next(epoch))
    }

    /// Who made the file; none if it was not this pipeline and sink.
    pub(crate) fn origin_of(&self, file_name: &str) -> Option<Origin> {
        let rest = ["data-", "manifest-list-", "manifest-"].iter().find_map(|kind| file_name.strip_prefix(kind))?;
        let parts: Vec<_> = rest.strip_prefix(&self.family)?.split('-').collect();
        let [generation, _instance, _random, epoch, _count] = parts.as_slice() else { return None };
        Some(Origin { generation: generation.parse().ok()?, epoch: epoch.strip_prefix('e')?.parse().ok()? })
    }

    fn next(&mut self, epoch: u64) -> String {
        self.count += 1;
        format!("{}-e{epoch}-{}", self.own, self.count)
    }
}

/// Refuses names that Paimon cannot have, all of a table at once.
pub(crate) fn check_names(table: &TableId, columns: &[&str]) -> Result<()> {
    let is_wrong =
        |name: &str| name.contains(['/', '\\', '$', '.']) || name.chars().any(char::is_control) || name.is_empty();
    let is_reserved = |name: &str| {
        name.starts_with("_KEY_") || ["_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "rowkind"].contains(&name)
    };
    let places: Vec<_> = [("database", &table.database), ("table", &table.table)]
        .into_iter()
        .filter(|(_, name)| is_wrong(name))
        .map(|(kind, name)| format!("no {kind} named {name:?}"))
        .collect();
    let reserved: Vec<_> = columns.iter().filter(|name| is_reserved(name)).map(|name| format!("{name:?}")).collect();
    let mut advice = Vec::new();
    let mut wrong = Vec::new();
    if !places.is_empty() {
        wrong.push(format!("has {} (/ \\ $ . and control characters cannot be in one)", places.join(" and ")));
        advice.push("route it to another name");
    }
    if !reserved.is_empty() {
        wrong.push(format!("keeps the names of its columns {} for itself", reserved.join(", ")));
        advice.push("rename these columns at the source");
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let (wrong, advice) = (wrong.join(", and "), advice.join(" and "));
    let message = format!("table {table} cannot be in the lake, which {wrong}: {advice}, or leave the table out");
    Err(PluginError::config("table-name", message).with_table(table))
}

/// Which run of this pipeline and sink made a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) generation: u64,
    /// Data files: the epoch before; manifests and their lists: the epoch that was committed.
    pub(crate) epoch: u64,
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| PluginError::bug("no-random-numbers", format!("no random numbers can be had: {error}")))?;
    Ok(bytes)
}

fn shown(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    name.chars().take(SHOWN_CHARS_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(pipeline: &str, generation: u64) -> Context {
        Context { pipeline: pipeline.into(), operator: "lake".into(), subtask: 0, parallelism: 1, generation }
    }

    #[test]
    fn files_of_earlier_runs_are_known_again_and_no_others() {
        let mut earlier = Names::new(&context("shop/eu", 3), "w0").unwrap();
        let now = Names::new(&context("shop/eu", 12), "c").unwrap();
        for name in [earlier.data_file(8), earlier.manifest(8), earlier.manifest_list(8)] {
            assert_eq!(now.origin_of(&name), Some(Origin { generation: 3, epoch: 8 }), "{name}");
            assert!(name.len() < 255);
        }
        let mut other = Names::new(&context("shop.eu", 3), "w0").unwrap();
        for name in [other.data_file(8), "data-8233c004-0.parquet".into(), "snapshot-1".into()] {
            assert_eq!(now.origin_of(&name), None, "{name}");
        }
    }

    #[test]
    fn all_names_of_a_table_that_cannot_be_are_said_at_once() {
        let table = TableId::new("a.b", "c/d");
        let error = check_names(&table, &["id", "_KEY_id", "_LEVEL"]).unwrap_err();
        assert_eq!(
            error.message,
            "table a.b.c/d cannot be in the lake, which has no database named \"a.b\" and no table named \"c/d\" \
             (/ \\ $ . and control characters cannot be in one), and keeps the names of its columns \"_KEY_id\", \
             \"_LEVEL\" for itself: route it to another name and rename these columns at the source, or leave the table out"
        );
        check_names(&TableId::new("größe", "order_items-2"), &["_KEY", "rowkinds"]).unwrap();
    }

    #[test]
    fn two_instances_never_make_one_name() {
        let mut one = Names::new(&context("p", 1), "w0").unwrap();
        let mut same = Names::new(&context("p", 1), "w0").unwrap();
        let names = [one.data_file(0), one.data_file(0), same.data_file(0), same.data_file(0)];
        assert!((1..names.len()).all(|place| !names[..place].contains(&names[place])));
    }
}
