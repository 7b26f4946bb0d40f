//! Keywords and names of tables, read one after the other.

use super::{Captured, Judge, Judgement};
use crate::lex::Token;

/// A table's name as a statement gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableName {
    pub(super) database: String,
    pub(super) table: String,
}

impl TableName {
    pub(super) fn changed(self) -> Judgement {
        Judgement::Change { database: self.database, table: self.table }
    }
}

impl Judge<'_> {
    /// The first captured table whose name stands among these tokens.
    pub(super) fn mentioned_in(&mut self, start: usize, end: usize) -> Option<TableName> {
        for at in start..end {
            self.at = at;
            let Some(name) = self.name() else { continue };
            if let Captured::Yes { .. } = (self.lookup)(&name.database, &name.table) {
                return Some(name);
            }
        }
        None
    }

    /// Whether a keyword stands anywhere.
    pub(super) fn has_word(&self, keyword: &str) -> bool {
        self.tokens.iter().any(|token| is_word(Some(token), keyword))
    }

    /// Takes a keyword if it stands next.
    pub(super) fn word(&mut self, keyword: &str) -> bool {
        let found = is_word(self.tokens.get(self.at), keyword);
        self.at += usize::from(found);
        found
    }

    /// Takes several keywords if all stand next.
    pub(super) fn words(&mut self, keywords: &[&str]) -> bool {
        let start = self.at;
        let found = keywords.iter().all(|keyword| self.word(keyword));
        if !found {
            self.at = start;
        }
        found
    }

    pub(super) fn mark(&mut self, mark: char) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    /// Moves behind a keyword that stands among the next few tokens.
    pub(super) fn find_before_end(&mut self, keyword: &str, tokens: usize) -> bool {
        let found = (self.at..self.at + tokens).find(|&at| is_word(self.tokens.get(at), keyword));
        self.at = found.map_or(self.at, |at| at + 1);
        found.is_some()
    }

    /// One part of a name.
    pub(super) fn part(&mut self) -> Option<String> {
        let part = match self.tokens.get(self.at)? {
            Token::Word(word) => (*word).to_owned(),
            Token::Name(name) => name.clone(),
            _ => return None,
        };
        self.at += 1;
        Some(part)
    }

    /// `table` or `database.table`, blanks around the dot as the server allows them.
    pub(super) fn name(&mut self) -> Option<TableName> {
        let first = self.part()?;
        if self.mark('.') {
            Some(TableName { database: first, table: self.part()? })
        } else {
            Some(TableName { database: self.database.to_owned(), table: first })
        }
    }
}

pub(super) fn is_word(token: Option<&Token<'_>>, keyword: &str) -> bool {
    matches!(token, Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword))
}
