//! Names of files that no other run, writer or pipeline makes, and that this pipeline knows again after a crash.

use cdchost_sdk::runtime::Context;
use cdchost_sdk::{PluginError, Result};

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
    fn two_instances_never_make_one_name() {
        let mut one = Names::new(&context("p", 1), "w0").unwrap();
        let mut same = Names::new(&context("p", 1), "w0").unwrap();
        let names = [one.data_file(0), one.data_file(0), same.data_file(0), same.data_file(0)];
        assert!((1..names.len()).all(|place| !names[..place].contains(&names[place])));
    }
}
