//! Object paths: checked once, at the border.

use crate::StorageError;

/// Bytes of a whole path at most.
const PATH_BYTES_MAX: usize = 1024;
/// Bytes of one segment at most, as file systems have it.
const SEGMENT_BYTES_MAX: usize = 255;
/// Where half-written files lie until they get their name; never an object.
pub(crate) const STAGING: &str = ".staging";

/// A path below the root: segments joined by single slashes, none of them able to lead elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath(String);

impl ObjectPath {
    /// Checks an object's path.
    pub(crate) fn parse(path: &str) -> Result<Self, StorageError> {
        match fault(path) {
            Some(reason) => Err(StorageError::Path { path: path.into(), reason }),
            None => Ok(Self(path.into())),
        }
    }

    /// Checks a folder's path; empty is the root, one slash at the end is allowed.
    pub(crate) fn parse_folder(path: &str) -> Result<Option<Self>, StorageError> {
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() { Ok(None) } else { Self::parse(path).map(Some) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// This path below a folder.
    pub(crate) fn below(&self, folder: Option<&ObjectPath>) -> Self {
        match folder {
            Some(folder) => Self(format!("{}/{}", folder.0, self.0)),
            None => self.clone(),
        }
    }
}

fn fault(path: &str) -> Option<&'static str> {
    if path.len() > PATH_BYTES_MAX {
        return Some("it is longer than 1024 bytes");
    }
    path.split('/').find_map(|segment| match segment {
        "" => Some("it has an empty segment"),
        "." | ".." => Some("it has a segment that leads elsewhere"),
        STAGING => Some("`.staging` is kept for unfinished files"),
        long if long.len() > SEGMENT_BYTES_MAX => Some("it has a segment longer than 255 bytes"),
        odd if odd.chars().any(|c| c.is_control() || c == '\\') => Some("it has a control character or a backslash"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_lead_elsewhere_are_refused() {
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "../x",
            "a/.",
            "a\0b",
            "a\nb",
            "a\\..\\b",
            ".staging/x",
            "a/.staging",
        ] {
            assert!(ObjectPath::parse(path).is_err(), "{path:?}");
        }
        assert!(ObjectPath::parse(&"x".repeat(256)).is_err());
        assert!(ObjectPath::parse(&["x"; 600].join("/")).is_err());
    }

    #[test]
    fn ordinary_names_pass_as_they_are() {
        for path in ["a", "a/b/c.parquet", "wh/shop.db/orders %2F", "...", "ü/#1", "a..b"] {
            assert_eq!(ObjectPath::parse(path).unwrap().as_str(), path);
        }
    }
}
