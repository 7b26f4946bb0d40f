//! The files that the rules are about.

use std::process::Command;

use cdchost_tests::project::root;

/// One file of the repository.
pub(crate) struct Source {
    /// Its path from the top.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) text: String,
}

impl Source {
    /// The part that is built into a product: all before the tests.
    pub(crate) fn production(&self) -> &str {
        if self.is_all_test() {
            return "";
        }
        self.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
    }

    /// The part that only tests run.
    pub(crate) fn test(&self) -> &str {
        &self.text[self.production().len()..]
    }

    fn is_all_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.starts_with("tests/") || self.path.contains("/tests/") || name == "tests.rs"
    }
}

/// Every text file that is or would be committed.
pub(crate) fn all() -> Vec<Source> {
    let listed = ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"];
    let output = Command::new("git").args(listed).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "git ls-files failed");
    let paths = String::from_utf8(output.stdout).unwrap();
    let read =
        |path: &str| Some(Source { path: path.to_owned(), text: std::fs::read_to_string(root().join(path)).ok()? });
    paths.lines().filter_map(read).collect()
}

/// The Rust files among them.
pub(crate) fn rust() -> Vec<Source> {
    all().into_iter().filter(|source| source.path.ends_with(".rs")).collect()
}
