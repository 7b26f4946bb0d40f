//! Why a stream cannot go on, in words.

use cdchost_connector::{ConnectorError, StopClass};
use cdchost_model::TableId;
use cdchost_mysql_ddl::Statement;

use super::Transactions;
use crate::binlog::tables::place;

pub(super) const XA_INSTRUCTION: &str = "XA transactions on captured tables are not offered yet: leave the tables out, or \
                                         change them by ordinary transactions and start the pipeline anew";
pub(super) const ANEW_INSTRUCTION: &str = "start the pipeline anew with an empty checkpoint store";

impl Transactions {
    /// A final stop at the open transaction.
    #[cold]
    pub(super) fn refused(&self, code: &str, what: &str, instruction: &str) -> ConnectorError {
        let message = format!("{what}{}", self.here());
        ConnectorError::stop(StopClass::Source, code, message).with_instruction(instruction)
    }

    /// A captured table was changed in a way that cannot be carried.
    #[cold]
    pub(super) fn changed(&self, statement: &Statement<'_>, database: &str, table: &str) -> ConnectorError {
        let table = TableId::new(database, table);
        let message =
            format!("table {table} was changed in a way that is not carried yet{}: {}", self.here(), statement.shown());
        ConnectorError::stop(StopClass::Schema, "mysql-table-changed", message).with_table(table).with_instruction(
            "start the pipeline anew with an empty checkpoint store and an empty target, so that the table is read as \
             it is now",
        )
    }

    /// Bytes or an order of events that no healthy server sends. The connection may have been at fault: try again.
    #[cold]
    pub(super) fn malformed(&self, error: impl ToString) -> ConnectorError {
        let message = format!("the log cannot be read{}: {}", self.here(), error.to_string());
        ConnectorError::restart(StopClass::Source, "mysql-malformed-log", message)
            .with_instruction("if it comes again: check the file with mysqlbinlog, then start the pipeline anew")
    }

    fn here(&self) -> String {
        match &self.current {
            Some(current) => place(&current.facts),
            None => format!(" (at {})", self.position),
        }
    }
}

/// A statement's text. Where it is no UTF-8 each byte is taken for a character, so that ASCII keeps its meaning.
pub(super) fn decode(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => text.iter().map(|&byte| char::from(byte)).collect(),
    }
}
