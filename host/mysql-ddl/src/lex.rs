//! Statements as tokens: comments gone, names unquoted, literals recognised so that they can be masked.

/// How the session that wrote a statement read quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quoting {
    /// `"…"` is a name, not a text.
    pub ansi: bool,
    /// A backslash in a text is only a backslash.
    pub plain_backslash: bool,
    /// The server is MariaDB, which runs what stands in `/*M! … */`; for MySQL that is a comment.
    pub mariadb: bool,
}

/// A piece of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A keyword or a name without quotes, or a number.
    Word(&'a str),
    /// A name in quotes, without them.
    Name(String),
    /// A text without its quotes; empty where it stands for bytes, or is of a character set of its own.
    Literal(String),
    /// Any other character.
    Mark(char),
}

/// Texts longer than this are cut where they are shown.
const SHOWN_CHARS_MAX: usize = 600;

/// The tokens of a statement. Nothing is refused: an open quote ends with the text. What a version comment holds is
/// part of the statement, since the server that wrote it ran it.
pub(crate) fn tokens(text: &str, quoting: Quoting) -> Vec<Token<'_>> {
    Lexer { text, at: 0, quoting, in_version_comment: false }.map(|(token, _)| token).collect()
}

/// Words that begin a definition, whose numbers are lengths and the like.
const DEFINITIONS: [&str; 5] = ["ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE"];
/// Words in a definition behind which values of rows may stand.
const BODIES: [&str; 7] = ["SELECT", "BEGIN", "DO", "INSERT", "UPDATE", "DELETE", "REPLACE"];

/// The statement with its texts replaced by `?`, and its numbers too where they may be values of rows; cut where it is
/// long.
pub(crate) fn masked(text: &str, quoting: Quoting) -> String {
    let mut out = String::new();
    let mut shown = 0;
    let mut shows_numbers = None;
    let mut last = "";
    for (token, end) in (Lexer { text, at: 0, quoting, in_version_comment: false }) {
        if out.len() > SHOWN_CHARS_MAX {
            out.push('…');
            return out;
        }
        let start = end.start;
        if start > shown && !out.is_empty() {
            out.push(' ');
        }
        shown = end.end;
        match token {
            Token::Literal(_) => out.push('?'),
            Token::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let is_shown = shows_numbers == Some(true) && word.bytes().all(|byte| byte.is_ascii_digit());
                out.push_str(if is_shown { word } else { "?" });
            }
            Token::Word(word) => {
                let is_one_of = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
                // ON UPDATE belongs to a column or a foreign key, OR REPLACE to CREATE.
                let is_body = is_one_of(&BODIES) && !["ON", "OR"].iter().any(|it| last.eq_ignore_ascii_case(it));
                let so_far = shows_numbers.unwrap_or_else(|| is_one_of(&DEFINITIONS));
                shows_numbers = Some(so_far && !is_body);
                last = word;
                out.push_str(word);
            }
            _ => out.push_str(&text[start..end.end]),
        }
    }
    out
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    quoting: Quoting,
    in_version_comment: bool,
}

impl<'a> Iterator for Lexer<'a> {
    type Item = (Token<'a>, std::ops::Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let start = self.at;
        let first = self.rest().chars().next()?;
        let token = match first {
            '`' => Token::Name(self.quoted('`', true)),
            '"' if self.quoting.ansi => Token::Name(self.quoted('"', true)),
            '\'' | '"' => Token::Literal(self.quoted(first, self.quoting.plain_backslash)),
            c if is_word(c) => {
                let end = self.rest().find(|c: char| !is_word(c)).unwrap_or(self.rest().len());
                self.at += end;
                let word = &self.text[start..self.at];
                // x'…', b'…', n'…', _utf8mb4'…'
                if self.rest().starts_with('\'') && introduces(word) {
                    self.quoted('\'', self.quoting.plain_backslash);
                    Token::Literal(String::new())
                } else {
                    Token::Word(word)
                }
            }
            c => {
                self.at += c.len_utf8();
                Token::Mark(c)
            }
        };
        Some((token, start..self.at))
    }
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments; enters version comments.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if let Some(first) = rest.chars().next().filter(|c| c.is_whitespace() || *c == '\0') {
                self.at += first.len_utf8();
            } else if self.in_version_comment && rest.starts_with("*/") {
                self.in_version_comment = false;
                self.at += 2;
            } else if let Some(inner) = self.version_comment(rest) {
                let digits = inner.find(|c: char| !c.is_ascii_digit()).unwrap_or(inner.len());
                self.in_version_comment = true;
                self.at += rest.len() - inner.len() + digits;
            } else if let Some(inner) = rest.strip_prefix("/*") {
                self.at += inner.find("*/").map_or(rest.len(), |end| end + 4);
            } else if rest.starts_with('#') || is_dash_comment(rest) {
                self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            } else {
                return;
            }
        }
    }

    /// What follows the mark of a comment that the server runs.
    fn version_comment<'t>(&self, rest: &'t str) -> Option<&'t str> {
        rest.strip_prefix("/*!").or_else(|| rest.strip_prefix("/*M!").filter(|_| self.quoting.mariadb))
    }

    /// Reads from an opening quote to behind the closing one; a doubled quote stands for itself.
    fn quoted(&mut self, quote: char, plain_backslash: bool) -> String {
        let mut value = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        let mut end = self.rest().len();
        while let Some((at, c)) = chars.next() {
            if c == '\\' && !plain_backslash {
                chars.next();
            } else if c == quote {
                if chars.peek().is_some_and(|&(_, next)| next == quote) {
                    chars.next();
                    value.push(quote);
                } else {
                    end = at + quote.len_utf8();
                    break;
                }
            } else {
                value.push(c);
            }
        }
        self.at += end;
        value
    }
}

/// Characters of names that need no quotes; the server takes all beyond ASCII too.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || (!c.is_ascii() && !c.is_whitespace())
}

/// `--` begins a comment only before a blank or the end.
fn is_dash_comment(rest: &str) -> bool {
    rest.strip_prefix("--").is_some_and(|rest| rest.chars().next().is_none_or(|c| c.is_whitespace() || c.is_control()))
}

fn introduces(word: &str) -> bool {
    word.starts_with('_') || matches!(word, "x" | "X" | "b" | "B" | "n" | "N")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = String::new();
        for token in tokens(text, Quoting::default()) {
            match token {
                Token::Word(word) => out.push_str(word),
                Token::Name(name) => out.push_str(&format!("<{name}>")),
                Token::Literal(_) => out.push('?'),
                Token::Mark(mark) => out.push(mark),
            }
            out.push(' ');
        }
        out.trim_end().to_owned()
    }

    #[test]
    fn tokens_are_found() {
        let rows = [
            ("ALTER/**/TABLE `a``b`.c ADD x INT", "ALTER TABLE <a`b> . c ADD x INT"),
            ("drop /*!40005 TEMPORARY */ table t -- x\n, u # y", "drop TEMPORARY table t , u"),
            (r"SELECT 'it''s \' `x`', x'00', _utf8'é'", "SELECT ? , ? , ?"),
            ("a--b", "a - - b"),
            ("größe 'open", "größe ?"),
            ("/* open", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(shown(text), expected, "{text}");
        }
        let ansi = Quoting { ansi: true, plain_backslash: true, mariadb: false };
        assert_eq!(tokens(r#""a" '\'"#, ansi), [Token::Name("a".into()), Token::Literal("\\".into())]);
    }

    #[test]
    fn a_comment_of_mariadb_is_run_by_mariadb_alone() {
        let text = "DROP /*M! TEMPORARY */ TABLE t";
        assert_eq!(tokens(text, Quoting::default()).len(), 3);
        assert_eq!(tokens(text, Quoting { mariadb: true, ..Quoting::default() }).len(), 4);
    }

    #[test]
    fn values_are_masked() {
        let rows = [
            (
                "ALTER TABLE t  ADD c VARCHAR(42) DEFAULT 0x5e COMMENT 'secret' /* hidden */, DROP d",
                "ALTER TABLE t ADD c VARCHAR ( 42 ) DEFAULT ? COMMENT ? , DROP d",
            ),
            (
                "ALTER TABLE t ADD c TIMESTAMP(6) ON UPDATE NOW(6), ADD d INT(5)",
                "ALTER TABLE t ADD c TIMESTAMP ( 6 ) ON UPDATE NOW ( 6 ) , ADD d INT ( 5 )",
            ),
            ("CREATE OR REPLACE TABLE t (a CHAR(3)) SELECT 5", "CREATE OR REPLACE TABLE t ( a CHAR ( 3 ) ) SELECT ?"),
            ("UPDATE t SET a = 42, b = 'x'", "UPDATE t SET a = ? , b = ?"),
        ];
        for (text, expected) in rows {
            let shown = masked(text, Quoting::default());
            assert_eq!(shown.replace(' ', ""), expected.replace(' ', ""), "{text}");
        }
        assert!(masked(&"x ".repeat(10_000), Quoting::default()).len() < 700);
    }
}
