//! Manifests: which data files a table gained and lost, and the lists of manifests that snapshots name.

mod entry;
mod list;
mod record;

pub use entry::{
    DataFile, EntryKind, ManifestEntry, Stats, decode_entries, encode_entries, read_manifest, read_whole_manifest,
    write_manifest,
};
pub use list::{ManifestFile, read_manifest_list, write_manifest_list};
