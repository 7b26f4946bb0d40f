//! What is wrong with a pipeline file, in words and with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The pipeline does not start.
    Error,
    /// It starts, and the user should know.
    Warning,
}

/// A place in the pipeline file. Lines and columns count from one, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Place {
    /// The file's name as the user gave it.
    pub file: String,
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// One thing that is wrong, and what to do about it. Holds neither secrets nor values that came from references.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where, if it is in the file.
    pub place: Option<Place>,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do.
    pub instruction: String,
}

impl Finding {
    /// Something that keeps the pipeline from starting.
    pub fn error(message: impl Into<String>, instruction: impl Into<String>) -> Self {
        Self { severity: Severity::Error, place: None, message: message.into(), instruction: instruction.into() }
    }

    /// Something that the user should know.
    pub fn warning(message: impl Into<String>, instruction: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message, instruction) }
    }

    /// Says where.
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}:{}:{}: ", place.file, place.line, place.column)?;
        }
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}: {}", self.message)?;
        if !self.instruction.is_empty() {
            write!(f, "\n    {}", self.instruction)?;
        }
        Ok(())
    }
}

/// Where each key of a pipeline file stands, so that what is found out later (an option that a plugin refuses, a table
/// that does not exist) can be shown in the file.
#[derive(Clone, Debug, Default)]
pub struct Places {
    of: BTreeMap<String, Place>,
}

impl Places {
    /// The place of a key by its path, e.g. `source.tables`, `sink.lake.warehouse`, or of the nearest key around it.
    pub fn find(&self, path: &str) -> Option<Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.of.get(path) {
                return Some(place.clone());
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    pub(crate) fn holds(&self, path: &str) -> bool {
        self.of.contains_key(path)
    }

    pub(crate) fn insert(&mut self, path: String, place: Place) {
        self.of.entry(path).or_insert(place);
    }
}

/// Turns byte offsets into lines and columns.
pub(crate) struct Lines<'a> {
    file: &'a str,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { file, text, starts }
    }

    pub(crate) fn place(&self, span: &Range<usize>) -> Place {
        let at = span.start.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let column = self.text.get(start..at).map_or(0, |before| before.chars().count()) + 1;
        Place { file: self.file.to_owned(), line, column }
    }
}

/// The word among `known` that the user most likely meant, if any comes near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('_', "-");
    let most = 1 + word.chars().count() / 4;
    known
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<_>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_one_that_could_be_meant() {
        let known = ["interval", "timeout", "min-pause", "retained", "store"];
        assert_eq!(nearest("intervall", known), Some("interval"));
        assert_eq!(nearest("Timeuot", known), Some("timeout"));
        assert_eq!(nearest("min_pause", known), Some("min-pause"));
        assert_eq!(nearest("sotre", known), Some("store"));
        assert_eq!(nearest("password", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn columns_count_characters() {
        let lines = Lines::new("f", "é = 1\nab = 2\n");
        let place = |at| {
            let place = lines.place(&(at..at));
            (place.line, place.column)
        };
        assert_eq!(place(0), (1, 1));
        assert_eq!(place(3), (1, 3));
        assert_eq!(place(7), (2, 1));
        assert_eq!(place(10), (2, 4));
        assert_eq!(place(999), (3, 1));
    }

    #[test]
    fn a_place_falls_back_to_the_key_around_it() {
        let mut places = Places::default();
        let place = Place { file: "f".into(), line: 3, column: 1 };
        places.insert("sink.lake".into(), place.clone());
        assert_eq!(places.find("sink.lake.warehouse.deep"), Some(place));
        assert_eq!(places.find("source"), None);
    }
}
