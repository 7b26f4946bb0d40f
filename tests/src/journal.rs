//! The structured log of the program, read while it is written, and by what is left of it after a kill.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// One line that names an event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its stable name (`chunk-merged`, `record-stored`, …).
    pub name: String,
    /// Everything else that the line says.
    pub line: Value,
}

impl Event {
    /// A field of the event that is a number.
    pub fn number(&self, field: &str) -> Option<u64> {
        let value = self.field(field)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }

    /// A field of the event that is a text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.field(field)?.as_str()
    }

    fn field(&self, field: &str) -> Option<&Value> {
        self.line.get(field).or_else(|| self.line.get("fields")?.get(field))
    }
}

/// A place in a log file from which on events are read.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    offset: u64,
    rest: Vec<u8>,
}

impl Journal {
    /// Reads the log at `path` from its start.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), offset: 0, rest: Vec::new() }
    }

    /// The events written since the last call, whole lines only.
    pub fn read(&mut self) -> Result<Vec<Event>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| self.path.display().to_string()),
        };
        file.seek(SeekFrom::Start(self.offset))?;
        self.offset += file.read_to_end(&mut self.rest)? as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(Vec::new()) };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        let lines = whole.split(|byte| *byte == b'\n');
        // Lines that are no JSON come from a panic or a library; they name no event.
        Ok(lines.filter_map(|line| event(serde_json::from_slice(line).ok()?)).collect())
    }
}

fn event(line: Value) -> Option<Event> {
    let fields = line.get("fields").unwrap_or(&line);
    let name = fields.get("event")?.as_str()?.to_owned();
    Some(Event { name, line })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_torn_line_is_left_for_the_next_look() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut journal = Journal::new(file.path());
        file.write_all(b"{\"fields\":{\"event\":\"prepared\",\"epoch\":7}}\nno json\n{\"event\":\"comm").unwrap();
        let events = journal.read().unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].name.as_str(), events[0].number("epoch")), ("prepared", Some(7)));
        file.write_all(b"itted\",\"epoch\":\"7\"}\n").unwrap();
        let events = journal.read().unwrap();
        assert_eq!((events[0].name.as_str(), events[0].number("epoch")), ("committed", Some(7)));
    }
}
