//! Text that must never be shown.

use std::path::PathBuf;
use std::string::FromUtf8Error;
use std::{fmt, fs};

/// A password or key. Prints as `***`; [`Secret::reveal`] is the only way to its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    /// The file that it stands in.
    file: Option<PathBuf>,
}

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), file: None }
    }

    /// A text that stands in a file of its own, which may come to hold another.
    pub fn of_file(text: String, file: Option<PathBuf>) -> Self {
        Self { text, file }
    }

    /// The text itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Whether it stands in a file of its own.
    pub fn is_in_file(&self) -> bool {
        self.file.is_some()
    }

    /// The text as its file has it now; the one read before where that cannot be told, as while a file is replaced.
    pub fn current(&self) -> String {
        let now = self.file.as_deref().map(|file| fs::read(file).map(text_of_file));
        now.and_then(|read| read.ok()?.ok()).unwrap_or_else(|| self.text.clone())
    }
}

/// What a file of one text holds, without the line break at its end.
pub(crate) fn text_of_file(bytes: Vec<u8>) -> Result<String, FromUtf8Error> {
    let mut text = String::from_utf8(bytes)?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
