//! Sinks that would write to one place: each takes what the other does for another process's work.

use std::collections::BTreeMap;
use std::path::Path;

use cdchost_config::{Finding, Loaded, SinkConfig, StorageConfig};
use cdchost_plugin::Manifest;

/// A finding for each sink whose place an earlier one has. `manifests` are those of the sinks, in the file's order.
pub(super) fn shared(loaded: &Loaded, manifests: &[&Manifest]) -> Vec<Finding> {
    let config = &loaded.config;
    let mut taken: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (index, (sink, manifest)) in config.sinks.iter().zip(manifests).enumerate() {
        for option in manifest.store_options() {
            let Some(place) = text(sink, option).and_then(|text| place(&config.storage, text)) else { continue };
            match taken.get(&place) {
                Some((other, other_option)) => {
                    let id = &sink.id;
                    let message = format!(
                        "sinks {other} and {id} write to the same place: {other_option} of {other}, {option} of {id}"
                    );
                    let at = loaded.places.find(&format!("sink.{index}.{option}"));
                    findings.push(Finding::error(message, "give each sink a folder of its own").at(at));
                }
                None => drop(taken.insert(place, (&sink.id, option))),
            }
        }
    }
    findings
}

/// An option's text, also where it came from a reference.
fn text<'a>(sink: &'a SinkConfig, option: &str) -> Option<&'a str> {
    let open = || sink.options.get(option).and_then(|value| value.as_str());
    sink.secrets.get(option).map(|secret| secret.reveal()).or_else(open)
}

/// `STORE/FOLDER` as the place that it is, whatever the store is called: parts joined by single slashes.
fn place(storage: &BTreeMap<String, StorageConfig>, path: &str) -> Option<String> {
    let (store, folder) = path.split_once('/').unwrap_or((path, ""));
    let StorageConfig { url, options, .. } = storage.get(store)?;
    let whole = match url.strip_prefix("file://") {
        // Links lead to one folder by several names; what is not there yet has only its own.
        Some(root) => {
            let root = Path::new(root).canonicalize().unwrap_or_else(|_| Path::new(root).to_owned());
            root.join(folder).canonicalize().unwrap_or_else(|_| root.join(folder)).to_string_lossy().into_owned()
        }
        // Servers may have buckets of one name.
        None => format!("{} {url}/{folder}", options.get("endpoint").map(String::as_str).unwrap_or_default()),
    };
    Some(whole.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_by_all_its_names() {
        let folder = std::env::temp_dir().join(format!("cdchost-places-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("real/out")).unwrap();
        std::os::unix::fs::symlink(folder.join("real"), folder.join("link")).unwrap();
        let store = |url: String| StorageConfig { url, options: BTreeMap::new(), secrets: BTreeMap::new() };
        let at = |name: &str| store(format!("file://{}/{name}", folder.display()));
        let storage: BTreeMap<String, StorageConfig> = [
            ("real", at("real")),
            ("link", at("link/")),
            ("above", at("")),
            ("bucket", store("s3://b/lake".into())),
            ("below", store("s3://b/".into())),
        ]
        .map(|(name, storage)| (name.to_owned(), storage))
        .into();
        let is_one = |one: &str, other: &str| place(&storage, one).unwrap() == place(&storage, other).unwrap();
        for (one, other, expect) in [
            ("real/out", "link/out", true),
            ("real/out", "above/link//out/", true),
            ("real/new", "link/new", true),
            ("real/out", "real/out2", false),
            ("bucket/x", "below/lake/x/", true),
            ("bucket/x", "below/x", false),
        ] {
            assert_eq!(is_one(one, other), expect, "{one} {other}");
        }
        assert_eq!(place(&storage, "none/x"), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
