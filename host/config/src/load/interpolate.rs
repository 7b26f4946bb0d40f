//! `${NAME}` and `${file:/path}` inside texts.

use std::io;
use std::path::{Path, PathBuf};

use crate::Finding;
use crate::secret::text_of_file;

/// The world outside the file, handed in: variables and files that references name.
pub trait Lookup {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// The content of a file.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// A text with its references replaced.
pub(super) struct Expanded {
    pub(super) text: String,
    /// Whether any of it came from a reference: such a text is never shown.
    pub(super) referred: bool,
    /// The file that holds all of it.
    pub(super) file: Option<PathBuf>,
}

/// Secrets are short; what is longer is the wrong file.
const FILE_MAX_BYTES: usize = 64 << 10;

/// Replaces `${NAME}`, `${file:PATH}` (a final line break is dropped) and `$${`, which stands for `${` itself.
pub(super) fn expand(text: &str, base: &Path, lookup: &dyn Lookup) -> Result<Expanded, Vec<Finding>> {
    let (mut done, mut findings, mut referred) = (String::new(), Vec::new(), false);
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(escaped) = before.strip_suffix('$') {
            done.push_str(escaped);
            done.push_str("${");
            rest = &from[2..];
            continue;
        }
        done.push_str(before);
        let Some(end) = from.find('}') else {
            findings.push(Finding::error(
                "a reference begins with `${` and does not end",
                "write `${NAME}` or `${file:/path}`; a plain `${` is written `$${`",
            ));
            rest = "";
            break;
        };
        referred = true;
        match resolve(&from[2..end], base, lookup) {
            Ok(value) => done.push_str(&value),
            Err(finding) => findings.push(finding),
        }
        rest = &from[end + 1..];
    }
    done.push_str(rest);
    if findings.is_empty() { Ok(Expanded { text: done, referred, file: file_of(text, base) }) } else { Err(findings) }
}

/// The file of a text that is one reference to it.
fn file_of(text: &str, base: &Path) -> Option<PathBuf> {
    let path = text.strip_prefix("${file:")?.strip_suffix('}')?;
    (!path.contains('}')).then(|| base.join(path))
}

fn resolve(reference: &str, base: &Path, lookup: &dyn Lookup) -> Result<String, Finding> {
    if let Some(path) = reference.strip_prefix("file:") {
        return read(&base.join(path), lookup);
    }
    let is_name = reference.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && reference.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(Finding::error(
            "a reference names neither a variable nor a file",
            match reference.is_empty() || reference.contains(|c: char| !c.is_ascii_digit()) {
                true => "write `${NAME}` or `${file:/path}`; a plain `${` is written `$${`".to_owned(),
                false => format!("for the group of a pattern write `$${{{reference}}}`: a plain `${{` is a reference"),
            },
        ));
    }
    lookup.variable(reference).ok_or_else(|| {
        Finding::error(
            format!("environment variable `{reference}` is not set"),
            format!(
                "set it for this process, e.g. `export {reference}=…`, or write `${{file:/path}}`; a plain `${{` is written \
                 `$${{`"
            ),
        )
    })
}

fn read(path: &Path, lookup: &dyn Lookup) -> Result<String, Finding> {
    let name = path.display();
    let bytes = lookup.file(path).map_err(|error| {
        Finding::error(format!("file `{name}` cannot be read: {}", reason(&error)), "create it, or mend the path")
    })?;
    if bytes.len() > FILE_MAX_BYTES {
        let most = FILE_MAX_BYTES;
        return Err(Finding::error(format!("file `{name}` has more than {most} bytes"), "name the file of the secret"));
    }
    text_of_file(bytes)
        .map_err(|_| Finding::error(format!("file `{name}` is not UTF-8 text"), "name the file of the secret"))
}

/// The kind of an I/O error in words that do not differ between machines.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World;

    impl Lookup for World {
        fn variable(&self, name: &str) -> Option<String> {
            (name == "PW").then(|| "s3cret".to_owned())
        }

        fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
            match path.to_str() {
                Some("/base/pw") => Ok(b"from file\r\n".to_vec()),
                Some("/run/bytes") => Ok(vec![0xff]),
                Some("/run/long") => Ok(vec![b'x'; FILE_MAX_BYTES + 1]),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        }
    }

    #[track_caller]
    fn check(text: &str, expect: Result<(&str, bool), &[&str]>) {
        let got = expand(text, Path::new("/base"), &World);
        let got = got.map(|e| (e.text, e.referred));
        let got = got.map_err(|list| list.into_iter().map(|f| f.message).collect::<Vec<_>>());
        let expect = expect.map(|(text, referred)| (text.to_owned(), referred));
        assert_eq!(got, expect.map_err(|list| list.iter().map(|&m| m.to_owned()).collect()));
    }

    #[test]
    fn references_are_replaced() {
        check("plain $ and $$ and }", Ok(("plain $ and $$ and }", false)));
        check("${PW}", Ok(("s3cret", true)));
        check("a${PW}b${PW}", Ok(("as3cretbs3cret", true)));
        check("${file:pw}", Ok(("from file", true)));
        check("$${PW}", Ok(("${PW}", false)));
    }

    #[test]
    fn a_text_that_is_one_file_knows_it() {
        let file = |text| expand(text, Path::new("/base"), &World).ok().and_then(|text| text.file);
        assert_eq!(file("${file:pw}"), Some("/base/pw".into()));
        assert_eq!(file("${file:pw}${file:pw}"), None);
        assert_eq!(file("a${file:pw}"), None);
    }

    #[test]
    fn what_cannot_be_found_is_named_all_at_once() {
        check("${A}${B}", Err(&["environment variable `A` is not set", "environment variable `B` is not set"]));
        check("${PW", Err(&["a reference begins with `${` and does not end"]));
        check("${}", Err(&["a reference names neither a variable nor a file"]));
        check("${a b}", Err(&["a reference names neither a variable nor a file"]));
        check("${file:/none}", Err(&["file `/none` cannot be read: there is no such file"]));
        check("${file:/run/bytes}", Err(&["file `/run/bytes` is not UTF-8 text"]));
        check("${file:/run/long}", Err(&["file `/run/long` has more than 65536 bytes"]));
    }

    #[test]
    fn what_is_meant_for_a_plugin_is_shown_as_it_is_written() {
        for (text, says) in
            [("t.${1}_x", "write `$${1}`"), ("${x y}", "is written `$${`"), ("${name}", "is written `$${`")]
        {
            let findings = expand(text, Path::new("/"), &World).err().unwrap();
            assert!(findings[0].instruction.contains(says), "{text}: {}", findings[0].instruction);
        }
    }

    #[test]
    fn a_value_is_not_expanded_again() {
        struct Nested;
        impl Lookup for Nested {
            fn variable(&self, _: &str) -> Option<String> {
                Some("${PW}".to_owned())
            }
            fn file(&self, _: &Path) -> io::Result<Vec<u8>> {
                Err(io::ErrorKind::NotFound.into())
            }
        }
        assert_eq!(expand("${X}", Path::new("/"), &Nested).ok().unwrap().text, "${PW}");
    }
}
