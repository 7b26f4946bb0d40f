//! Files of a server's log, told from those of the same name that it had before its log began anew.

use std::sync::Arc;

use cdchost_connector::{ConnectorError, StopClass};
use cdchost_mysql_position::BinlogPosition;

use crate::remedy::ANEW;

/// A file of the log, and when the server began it, in seconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub(crate) name: Arc<str>,
    pub(crate) begun: u32,
}

impl LogFile {
    /// Whether the other one can come behind this one, or again, in one log that only grows: names end in numbers.
    pub(crate) fn may_be_followed_by(&self, next: &Self) -> bool {
        let base = |name: &str| name.rsplit_once('.').map(|(base, _)| base.to_owned());
        if base(&self.name) != base(&next.name) {
            // The server's files have got another name.
            return true;
        }
        let start = |file: &Self| BinlogPosition::new(&file.name, 0);
        if self.name == next.name { self.begun == next.begun } else { start(self) < start(next) }
    }

    /// The log began anew: the same names and numbers stand for others than those that were handed on.
    #[cold]
    pub(crate) fn not_followed_by(&self, next: &Self) -> ConnectorError {
        let message = match self.name == next.name {
            true => format!("the server's log was reset: its file {} is not the one that was read", self.name),
            false => {
                format!("the server's log goes on in {}, but was read up to {}: it was reset", next.name, self.name)
            }
        };
        log_reset(message)
    }
}

/// The numbers of a log's transactions stand for others than those that were handed on.
pub(crate) fn log_reset(message: String) -> ConnectorError {
    ConnectorError::stop(StopClass::SourceGap, "mysql-log-reset", message).with_instruction(ANEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_only_grows() {
        let file = |name: &str, begun| LogFile { name: name.into(), begun };
        let last = file("binlog.000009", 50);
        for (name, begun, may_follow) in [
            ("binlog.000009", 50, true),
            ("binlog.000010", 60, true),
            ("binlog.000010", 50, true),
            ("other.000001", 60, true),
            ("binlog.000009", 60, false),
            ("binlog.000001", 60, false),
            ("binlog.000008", 50, false),
        ] {
            assert_eq!(last.may_be_followed_by(&file(name, begun)), may_follow, "{name} {begun}");
        }
        assert!(file("b.999999", 1).may_be_followed_by(&file("b.1000000", 2)));
    }
}
