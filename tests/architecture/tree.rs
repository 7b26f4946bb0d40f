//! What may lie where.

use std::collections::BTreeSet;
use std::process::Command;

use cdchost_tests::project::root;

/// The only names at the top, apart from dot paths.
const TOP: [&str; 9] = ["Cargo.toml", "Cargo.lock", "host", "wit", "plugins", "sdk", "examples", "tests", "README.md"];

#[test]
fn top_level_has_the_agreed_names() {
    let output = Command::new("git").args(["ls-files"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "git ls-files failed");
    let files = String::from_utf8(output.stdout).unwrap();
    let found: BTreeSet<&str> =
        files.lines().filter_map(|f| f.split('/').next()).filter(|name| !name.starts_with('.')).collect();
    let strangers: Vec<_> = found.iter().filter(|name| !TOP.contains(name)).collect();
    assert!(strangers.is_empty(), "not at the top: {strangers:?}");
}
