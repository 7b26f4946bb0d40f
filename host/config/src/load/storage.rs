//! Roots: where each one lies, and what must hold for a folder and for a bucket.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::node::{Node, Text};
use super::reader::Reader;
use super::words;
use crate::{Finding, PipelineConfig};

/// Keys that only a bucket has.
const BUCKET_KEYS: [&str; 4] = ["endpoint", "region", "access-key-id", "secret-access-key"];

/// Where a root lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    /// Endpoint and bucket; none for a folder of this machine.
    bucket: Option<(String, String)>,
    /// The folder there.
    folder: PathBuf,
}

impl Root {
    /// The folder of this machine, where it is one.
    pub(super) fn local(&self) -> Option<&Path> {
        self.bucket.is_none().then_some(&self.folder)
    }

    /// Whether one of the two lies in the other.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let inside = self.folder.starts_with(&other.folder) || other.folder.starts_with(&self.folder);
        self.bucket == other.bucket && inside
    }
}

/// Checks all roots; gives those that can be used.
pub(super) fn roots(reader: &mut Reader<'_>, file: &Node<'_>, config: &PipelineConfig) -> BTreeMap<String, Root> {
    let mut roots = BTreeMap::new();
    for (name, node) in file.named("storage") {
        let Some(url) = node.text("url") else { continue };
        match root(&url.text, node.text("endpoint").map(|text| text.text.as_str())) {
            Ok(root) => {
                keys(reader, node, &root);
                roots.insert(name.clone(), root);
            }
            Err(problem) => {
                let message = format!("`url` in {} {problem}", words::title(node.section, &node.path));
                reader.error(&url.span, message, "write `file:///absolute/path` or `s3://bucket/prefix`");
            }
        }
        let granted = config.sinks.iter().any(|sink| sink.allow.store.contains(name));
        if !granted && !config.checkpoint.store.starts_with(&format!("storage:{name}/")) {
            let place = reader.places.find(&node.path);
            let message = format!("storage `{name}` is granted to no sink");
            reader.warning(place, &message, "add it to `allow.store` of the sink that writes there, or take it out");
        }
    }
    roots
}

/// The root that a storage's URL and endpoint name.
pub(super) fn root(url: &str, endpoint: Option<&str>) -> Result<Root, String> {
    let Some(rest) = url.strip_prefix("s3://") else {
        return local_path(url).map(|folder| Root { bucket: None, folder });
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() || !bucket.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        return Err("names no bucket".to_owned());
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if !prefix.is_empty() && !is_plain(prefix) {
        return Err("has a prefix that is not plain".to_owned());
    }
    let endpoint = endpoint.unwrap_or_default().trim_end_matches('/').to_ascii_lowercase();
    Ok(Root { bucket: Some((endpoint, bucket.to_owned())), folder: Path::new("/").join(prefix) })
}

/// The place that `checkpoint.store` names.
pub(super) fn store(store: &str, roots: &BTreeMap<String, Root>) -> Result<Root, String> {
    let Some(rest) = store.strip_prefix("storage:") else {
        return local_path(store).map(|folder| Root { bucket: None, folder });
    };
    let (name, inside) = rest.split_once('/').unwrap_or((rest, ""));
    match roots.get(name) {
        Some(root) if is_plain(inside) => Ok(Root { folder: root.folder.join(inside), ..root.clone() }),
        Some(_) => Err("names no folder inside the storage".to_owned()),
        None => Err("names a storage that is not there".to_owned()),
    }
}

fn keys(reader: &mut Reader<'_>, node: &Node<'_>, root: &Root) {
    let mut refuse = |key: &str, message: String, instruction: &str| {
        let place = reader.places.find(&format!("{}.{key}", node.path)).or_else(|| reader.places.find(&node.path));
        reader.findings.push(Finding::error(message, instruction).at(place));
    };
    let title = words::title(node.section, &node.path);
    if root.local().is_some() {
        let given = BUCKET_KEYS
            .iter()
            .filter(|key| node.text(key).is_some())
            .chain(node.flag("allow-http").map(|_| &"allow-http"));
        for key in given {
            let message = format!("`{key}` in {title} says nothing about a folder");
            refuse(key, message, "take it out, or write `s3://bucket/prefix` as `url`");
        }
        return;
    }
    for key in ["access-key-id", "secret-access-key"] {
        if node.text(key).is_none() {
            let message = format!("`{key}` in {title} is missing");
            refuse(key, message, "a bucket needs `access-key-id` and `secret-access-key`");
        }
    }
    if let Some(endpoint) = node.text("endpoint") {
        let plain = endpoint.text.starts_with("http://");
        if !is_endpoint(&endpoint.text) {
            let message = format!("`endpoint` in {title} is not an address");
            refuse("endpoint", message, "write `https://host:port`, without a path");
        } else if plain && node.flag("allow-http") != Some(true) {
            let message = format!("`endpoint` in {title} is an address without encryption");
            refuse("endpoint", message, "write https://, or allow-http = true where the network is your own");
        }
    }
    if node.text("secret-access-key").is_some_and(Text::stands_in_the_file) {
        let place = reader.places.find(&format!("{}.secret-access-key", node.path));
        let instruction = "write `${VARIABLE}` or `${file:/path}`, so that it is not in the file";
        reader.warning(place, &format!("the secret of {title} stands in the file itself"), instruction);
    }
}

/// Whether a text is `http(s)://host[:port]`. One with an account in it is none: addresses are shown.
fn is_endpoint(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest))
        .is_some_and(|host| !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.:[]_".contains(c)))
}

/// The folder of a `file:///` URL.
fn local_path(url: &str) -> Result<PathBuf, String> {
    let Some(path) = url.strip_prefix("file://") else {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        return Err(match scheme {
            Some("s3") => "is a bucket, which has keys of its own: name a storage".to_owned(),
            Some(scheme @ ("gs" | "az" | "hdfs" | "http" | "https")) => {
                format!("is of kind {scheme}://, which is not offered yet")
            }
            _ => "is not a file:/// URL".to_owned(),
        });
    };
    if !path.starts_with('/') {
        return Err("is not absolute".to_owned());
    }
    if path.contains(['%', '?', '#', '\0']) {
        return Err("holds one of `%`, `?`, `#`, which a folder here may not".to_owned());
    }
    match is_plain(path.trim_matches('/')) {
        true => Ok(PathBuf::from(path)),
        false => Err("is not a plain path to a folder".to_owned()),
    }
}

/// Whether a path only goes down.
fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && !path.split('/').any(|part| part.is_empty() || part == ".")
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_plain_folders_are_roots() {
        assert_eq!(local_path("file:///var/lib/x").unwrap(), Path::new("/var/lib/x"));
        for url in
            ["file:///", "file://host/x", "file:/x", "/x", "file:///a/../b", "file:///a/./b", "file:///a%20b", "s3://b"]
        {
            assert!(local_path(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_bucket_is_told_from_another_and_from_a_folder() {
        let at = |url: &str, endpoint| root(url, endpoint).unwrap();
        let lake = at("s3://b/lake", Some("https://H:1/"));
        assert!(
            lake.overlaps(&at("s3://b/lake/x/", Some("https://h:1")))
                && lake.overlaps(&at("s3://b", Some("https://h:1")))
        );
        for other in [
            at("s3://b/lakes", Some("https://h:1")),
            at("s3://b/lake", None),
            at("s3://c/lake", Some("https://h:1")),
            at("file:///lake", None),
        ] {
            assert!(!lake.overlaps(&other), "{other:?}");
        }
        for url in ["s3://", "s3:///x", "s3://a b/x", "s3://b/../x", "s3://b//x", "s3://b/x?y=1/.."] {
            assert!(root(url, None).is_err(), "{url}");
        }
    }

    #[test]
    fn an_endpoint_is_an_address_and_nothing_more() {
        for text in ["https://h", "http://127.0.0.1:9000", "https://[::1]:1/", "https://s3.eu-central-1.example.com"] {
            assert!(is_endpoint(text), "{text}");
        }
        for text in ["h:1", "ftp://h", "https://", "https://u:p@h", "https://h/path", "https://h?x", "https://h#x"] {
            assert!(!is_endpoint(text), "{text}");
        }
    }
}
