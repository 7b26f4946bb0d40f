//! A JSON document with the changes that the log says were made in it, printed as the server prints the whole.

use std::borrow::Cow;

use super::path::{Leg, Path};
use super::{
    BAD, Container, DEPTH_MAX, GROWTH_MAX, LARGE_ARRAY, LARGE_OBJECT, LITERAL, Printer, SMALL_ARRAY, SMALL_OBJECT,
    print,
};
use crate::column::ValueError;
use crate::column::bytes::{fixed, length_coded};

/// What a change does at its path.
const REPLACE: u8 = 0;
const INSERT: u8 = 1;
const REMOVE: u8 = 2;

/// A document in parts; what is no container stays as it lies in the document.
pub(super) enum Node<'a> {
    Object(Vec<(Cow<'a, [u8]>, Node<'a>)>),
    Array(Vec<Node<'a>>),
    Scalar(u8, &'a [u8]),
}

/// Appends the text of a document after its changes.
pub(crate) fn print_changed(document: &[u8], mut changes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    if changes.is_empty() {
        return print(document, out);
    }
    let bytes = document.len() + changes.len();
    // A part takes three bytes at least.
    let mut reader = NodeReader { parts_left: bytes };
    let mut root = reader.whole(document, 0)?;
    while !changes.is_empty() {
        let [operation] = fixed(&mut changes)?;
        let path = Path::parse(length_coded(&mut changes)?).ok_or(BAD)?;
        let depth = path.legs.len();
        let value = match operation {
            REPLACE | INSERT => Some(reader.whole(length_coded(&mut changes)?, depth)?),
            REMOVE => None,
            _ => return Err(BAD),
        };
        root.change(operation, path, value).ok_or(BAD)?;
    }
    let end_max = out.len() + bytes * GROWTH_MAX + 64;
    Printer { out, end_max }.node(&root, 0)
}

struct NodeReader {
    parts_left: usize,
}

impl NodeReader {
    /// A whole document that is to stand so deep in another one.
    fn whole<'a>(&mut self, document: &'a [u8], depth: usize) -> Result<Node<'a>, ValueError> {
        // What the server stores where a NOT NULL column got no value.
        let (&kind, value) = document.split_first().unwrap_or((&LITERAL, &[0]));
        self.node(kind, value, depth)
    }

    fn node<'a>(&mut self, kind: u8, bytes: &'a [u8], depth: usize) -> Result<Node<'a>, ValueError> {
        if depth > DEPTH_MAX {
            return Err(BAD);
        }
        self.parts_left = self.parts_left.checked_sub(1).ok_or(BAD)?;
        match kind {
            SMALL_OBJECT | LARGE_OBJECT => {
                let object = Container::object(bytes, kind == LARGE_OBJECT)?;
                let mut members = Vec::new();
                for index in 0..object.count {
                    let (kind, part) = object.part(index)?;
                    members.push((Cow::Borrowed(object.key(index)?), self.node(kind, part, depth + 1)?));
                }
                Ok(Node::Object(members))
            }
            SMALL_ARRAY | LARGE_ARRAY => {
                let array = Container::array(bytes, kind == LARGE_ARRAY)?;
                let mut cells = Vec::new();
                for index in 0..array.count {
                    let (kind, part) = array.part(index)?;
                    cells.push(self.node(kind, part, depth + 1)?);
                }
                Ok(Node::Array(cells))
            }
            _ => Ok(Node::Scalar(kind, bytes)),
        }
    }
}

impl<'a> Node<'a> {
    /// Makes one change; none where the path does not lead where the change can be made.
    fn change(&mut self, operation: u8, path: Path, value: Option<Node<'a>>) -> Option<()> {
        let mut legs = path.legs;
        let Some(last) = legs.pop() else {
            *self = value.filter(|_| operation == REPLACE)?;
            return Some(());
        };
        let parent = legs.iter().try_fold(self, |node, leg| node.part_mut(leg))?;
        match (operation, value) {
            (REPLACE, Some(value)) => *parent.part_mut(&last)? = value,
            (INSERT, Some(value)) => parent.insert(last, value)?,
            _ => parent.remove(&last)?,
        }
        Some(())
    }

    fn part_mut(&mut self, leg: &Leg) -> Option<&mut Self> {
        match (self, leg) {
            (Self::Object(members), Leg::Member(name)) => {
                members.iter_mut().find(|(key, _)| **key == **name).map(|(_, value)| value)
            }
            (Self::Array(cells), leg) => {
                let place = leg.place(cells.len())?;
                cells.get_mut(place)
            }
            _ => None,
        }
    }

    fn insert(&mut self, leg: Leg, value: Self) -> Option<()> {
        match (self, leg) {
            (Self::Object(members), Leg::Member(name)) => {
                // The server's order: shorter keys first.
                let order = |key: &[u8]| (key.len(), key).cmp(&(name.len(), &name[..]));
                let place = members.binary_search_by(|(key, _)| order(key)).err()?;
                members.insert(place, (Cow::Owned(name), value));
            }
            // A cell beyond either end becomes the first or the last one.
            (Self::Array(cells), leg @ (Leg::Cell(_) | Leg::FromLast(_))) => {
                cells.insert(leg.place(cells.len()).unwrap_or(0).min(cells.len()), value);
            }
            _ => return None,
        }
        Some(())
    }

    fn remove(&mut self, leg: &Leg) -> Option<()> {
        match (self, leg) {
            (Self::Object(members), Leg::Member(name)) => {
                let place = members.iter().position(|(key, _)| **key == **name)?;
                members.remove(place);
            }
            (Self::Array(cells), leg) => {
                let place = leg.place(cells.len()).filter(|&place| place < cells.len())?;
                cells.remove(place);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Printer<'_> {
    fn node(&mut self, node: &Node<'_>, depth: usize) -> Result<(), ValueError> {
        match node {
            Node::Scalar(kind, bytes) => self.value(*kind, bytes, depth),
            Node::Object(members) => {
                self.out.push(b'{');
                for (index, (key, value)) in members.iter().enumerate() {
                    self.separate(index);
                    self.quoted(key);
                    self.out.extend_from_slice(b": ");
                    self.node(value, depth + 1)?;
                }
                self.out.push(b'}');
                Ok(())
            }
            Node::Array(cells) => {
                self.out.push(b'[');
                for (index, value) in cells.iter().enumerate() {
                    self.separate(index);
                    self.node(value, depth + 1)?;
                }
                self.out.push(b']');
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"a": [1, null], "b": "x"}`
    fn document() -> Vec<u8> {
        let array = [2, 0, 10, 0, 5, 1, 0, 4, 0, 0];
        let mut object = vec![0, 2, 0, 34, 0, 18, 0, 1, 0, 19, 0, 1, 0, 2, 20, 0, 12, 30, 0];
        object.extend_from_slice(b"ab");
        object.extend_from_slice(&array);
        object.extend_from_slice(b"\x01x\0\0");
        object
    }

    fn change(operation: u8, path: &str, value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![operation, path.len() as u8];
        bytes.extend_from_slice(path.as_bytes());
        if operation != REMOVE {
            bytes.push(value.len() as u8);
            bytes.extend_from_slice(value);
        }
        bytes
    }

    fn changed(changes: &[Vec<u8>]) -> Result<String, ValueError> {
        let mut out = Vec::new();
        print_changed(&document(), &changes.concat(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn changes_are_made_in_order() {
        let seven: &[u8] = &[5, 7, 0];
        let rows: [(&[Vec<u8>], &str); 8] = [
            (&[], r#"{"a": [1, null], "b": "x"}"#),
            (&[change(REPLACE, "$.a[1]", seven)], r#"{"a": [1, 7], "b": "x"}"#),
            (&[change(INSERT, "$.a[0]", seven)], r#"{"a": [7, 1, null], "b": "x"}"#),
            (&[change(INSERT, "$.a[9]", seven)], r#"{"a": [1, null, 7], "b": "x"}"#),
            (
                &[change(INSERT, "$.\"\\u00e4 b\"", seven), change(INSERT, "$.aa", seven)],
                "{\"a\": [1, null], \"b\": \"x\", \"aa\": 7, \"ä b\": 7}",
            ),
            (&[change(REMOVE, "$.a", &[]), change(INSERT, "$.c", seven)], r#"{"b": "x", "c": 7}"#),
            (&[change(REMOVE, "$.a[0]", &[]), change(REPLACE, "$.a[0]", &[4, 1])], r#"{"a": [true], "b": "x"}"#),
            (&[change(REPLACE, "$", seven)], "7"),
        ];
        for (changes, expected) in rows {
            assert_eq!(changed(changes).unwrap(), expected);
        }
    }

    #[test]
    fn changes_that_a_server_logged_give_the_document_it_showed() {
        let bytes = |text: &str| -> Vec<u8> {
            let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(digit).collect()
        };
        let mut records = include_str!("changes.txt").split("\n\n");
        assert!(records.next().unwrap().starts_with('#'));
        let mut count = 0;
        for record in records {
            let lines: Vec<&str> = record.lines().collect();
            let [update, document, changes, shown] = lines[..] else { panic!("four lines: {record}") };
            let mut out = Vec::new();
            print_changed(&bytes(document), &bytes(changes), &mut out).expect(update);
            assert_eq!(String::from_utf8(out).unwrap(), shown, "{update}");
            count += 1;
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn changes_that_lead_nowhere_are_refused() {
        let seven: &[u8] = &[5, 7, 0];
        for bad in [
            change(REPLACE, "$.c", seven),
            change(REPLACE, "$.a[2]", seven),
            change(REPLACE, "$.a[last-2]", seven),
            change(REMOVE, "$.a[last-2]", &[]),
            change(REMOVE, "$[last]", &[]),
            change(INSERT, "$.a", seven),
            change(INSERT, "$.b.c", seven),
            change(REMOVE, "$.b[0]", &[]),
            change(REMOVE, "$", &[]),
            change(INSERT, "$", seven),
            change(9, "$.a", seven),
            change(REPLACE, "a", seven),
            vec![0, 200],
        ] {
            assert!(changed(std::slice::from_ref(&bad)).is_err(), "{bad:?}");
        }
        // Deeper than any document can be.
        let deep = change(REPLACE, &format!("$.a[1]{}", "[0]".repeat(60)), seven);
        assert!(changed(&[deep]).is_err());
    }
}
