//! Paths into JSON documents, as the server writes them: `$.name."other name"[3][last-1]`.

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leg {
    Member(Vec<u8>),
    Cell(usize),
    /// The cell so many in front of the last one.
    FromLast(usize),
}

impl Leg {
    /// The cell's place among so many; none for one in front of the first, and for members.
    pub(super) fn place(&self, cells: usize) -> Option<usize> {
        match self {
            Self::Member(_) => None,
            Self::Cell(index) => Some(*index),
            Self::FromLast(back) => cells.checked_sub(1)?.checked_sub(*back),
        }
    }
}

/// A path from the document's root.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) legs: Vec<Leg>,
}

impl Path {
    /// None for what is no such path.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = text.strip_prefix(b"$")?;
        let mut legs = Vec::new();
        while let Some((&first, after)) = rest.split_first() {
            let (leg, next) = match (first, after.first()) {
                (b'.', Some(b'"')) => quoted(after.get(1..)?)?,
                (b'.', Some(_)) => {
                    let end = after.iter().position(|byte| matches!(byte, b'.' | b'[')).unwrap_or(after.len());
                    let (name, next) = after.split_at(end);
                    (Leg::Member(name.to_vec()), next)
                }
                (b'[', _) => {
                    let end = after.iter().position(|&byte| byte == b']')?;
                    (cell(std::str::from_utf8(after.get(..end)?).ok()?)?, after.get(end + 1..)?)
                }
                _ => return None,
            };
            legs.push(leg);
            rest = next;
        }
        Some(Self { legs })
    }
}

/// What stands between brackets.
fn cell(text: &str) -> Option<Leg> {
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
    match text.strip_prefix("last") {
        None => number(text).map(Leg::Cell),
        Some("") => Some(Leg::FromLast(0)),
        Some(back) => number(back.strip_prefix('-')?).map(Leg::FromLast),
    }
}

/// A name behind its opening quote, and what follows the closing one.
fn quoted(mut text: &[u8]) -> Option<(Leg, &[u8])> {
    let mut name = Vec::new();
    loop {
        let (&byte, rest) = text.split_first()?;
        text = rest;
        match byte {
            b'"' => return Some((Leg::Member(name), text)),
            b'\\' => {
                let (&escaped, rest) = text.split_first()?;
                text = rest;
                match escaped {
                    b'"' | b'\\' | b'/' => name.push(escaped),
                    b'b' => name.push(8),
                    b'f' => name.push(12),
                    b'n' => name.push(b'\n'),
                    b'r' => name.push(b'\r'),
                    b't' => name.push(b'\t'),
                    b'u' => {
                        let unit =
                            |text: &[u8]| u16::from_str_radix(std::str::from_utf8(text.get(..4)?).ok()?, 16).ok();
                        let mut units = vec![unit(text)?];
                        text = text.get(4..)?;
                        // The second half of a pair.
                        if let (0xD800..=0xDBFF, Some(rest)) = (units[0], text.strip_prefix(b"\\u")) {
                            units.push(unit(rest)?);
                            text = rest.get(4..)?;
                        }
                        name.extend_from_slice(String::from_utf16(&units).ok()?.as_bytes());
                    }
                    _ => return None,
                }
            }
            other => name.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let member = |name: &str| Leg::Member(name.as_bytes().to_vec());
        let rows = [
            ("$", Some(vec![])),
            ("$.a", Some(vec![member("a")])),
            ("$[0][12].ab.c", Some(vec![Leg::Cell(0), Leg::Cell(12), member("ab"), member("c")])),
            (r#"$."a.b[\"\\\n\u00e4\ud83d\ude00"[1]"#, Some(vec![member("a.b[\"\\\nä😀"), Leg::Cell(1)])),
            (r#"$."""#, Some(vec![member("")])),
            ("$[last].last[last-12]", Some(vec![Leg::FromLast(0), member("last"), Leg::FromLast(12)])),
            ("", None),
            ("a", None),
            ("$.", None),
            ("$a", None),
            ("$[", None),
            ("$[x]", None),
            ("$[-1]", None),
            ("$[+1]", None),
            ("$[]", None),
            ("$[last-]", None),
            ("$[last--1]", None),
            ("$[last1]", None),
            ("$[1 to last]", None),
            (r#"$."a"#, None),
            (r#"$."\u12"#, None),
            (r#"$."\ud800""#, None),
        ];
        for (text, expected) in rows {
            assert_eq!(Path::parse(text.as_bytes()).map(|path| path.legs), expected, "{text}");
        }
    }
}
