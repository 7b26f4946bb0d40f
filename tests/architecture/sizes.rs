//! How large a file and a room may get.

use std::collections::BTreeMap;

use crate::sources;

/// Lines of a file's production part, at most.
const FILE_MAX: usize = 600;
/// Lines that a file should not pass; one in twenty may.
const FILE_AIM: usize = 400;
/// Lines of production code of one crate of `host/`, at most; comments and blank lines are not counted.
const ROOM_MAX: usize = 4_000;

/// Files that may be larger, each with its limit and its reason.
const EXCEPTIONS: [(&str, usize, &str); 0] = [];

#[test]
fn files_are_small() {
    let mut wrong = Vec::new();
    let mut long = Vec::new();
    let files = sources::rust();
    for file in &files {
        let part = if file.path.starts_with("tests/") { &file.text } else { file.production() };
        let lines = part.lines().count();
        let limit = EXCEPTIONS.iter().find(|e| e.0 == file.path).map_or(FILE_MAX, |e| e.1);
        if lines > limit {
            wrong.push(format!("{}: {lines} lines, at most {limit}", file.path));
        } else if lines > FILE_AIM {
            long.push(format!("{}: {lines}", file.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(long.len() * 20 <= files.len(), "too many files above {FILE_AIM} lines:\n{}", long.join("\n"));
}

#[test]
fn exceptions_are_still_needed() {
    let files: BTreeMap<_, _> = sources::rust().into_iter().map(|s| (s.path.clone(), s)).collect();
    for (path, _, reason) in EXCEPTIONS {
        let lines = files.get(path).map_or(0, |file| file.text.lines().count());
        assert!(lines > FILE_MAX, "{path} needs no exception any more ({reason})");
    }
}

#[test]
fn rooms_are_small() {
    let mut rooms: BTreeMap<String, usize> = BTreeMap::new();
    for file in sources::rust() {
        if let Some(room) = file.path.strip_prefix("host/").and_then(|rest| rest.split('/').next()) {
            let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
            *rooms.entry(room.to_owned()).or_default() += file.production().lines().filter(is_code).count();
        }
    }
    let large: Vec<_> = rooms.iter().filter(|(_, lines)| **lines > ROOM_MAX).collect();
    assert!(large.is_empty(), "rooms above {ROOM_MAX} lines: {large:?}");
}

/// A file's production part ends where its tests begin, so nothing may stand behind them: it would be counted nowhere.
#[test]
fn tests_stand_at_the_end() {
    let mut wrong = Vec::new();
    for file in sources::rust() {
        let Some((_, behind)) = file.text.split_once("#[cfg(test)]\nmod tests;\n") else { continue };
        if !behind.trim().is_empty() {
            wrong.push(file.path);
        }
    }
    assert!(wrong.is_empty(), "code stands behind `mod tests;`:\n{}", wrong.join("\n"));
}
