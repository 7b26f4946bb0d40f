//! Errors of connections in the engine's terms: what to do now, of which class, and what a person can do.

use cdchost_config::Watermark;
use cdchost_connector::{ConnectorError, StopClass};
use cdchost_mysql_look::check::SERVERS;
use cdchost_mysql_look::session::SessionError;
use cdchost_mysql_position::{BinlogPosition, Reached, ServerUuid};
use cdchost_mysql_wire::{Remedy, WireError};

use super::offset::Offset;
use crate::remedy::ANEW;

/// The server's answer to a dump that it cannot give.
const CANNOT_READ_LOG: u16 = 1236;

/// What a lost or refused log connection calls for.
#[derive(Debug)]
pub(super) enum LogLoss {
    /// Connect again.
    Again,
    /// Another replica has our id: connect again with another one.
    IdTaken,
    /// No second try helps.
    Final(ConnectorError),
}

/// The server does not let the account in.
pub(super) const LOGIN: &str = "mysql-login";

/// An error of a connection that is needed to go on.
pub(super) fn session_error(host: &str, error: SessionError) -> ConnectorError {
    let SessionError::Wire(error) = error else {
        let message = format!("{host}: {error}");
        let changing = |message| {
            ConnectorError::restart(StopClass::Schema, "mysql-table-changing", message)
                .with_instruction("nothing, if the pipeline goes on by itself; else start it when no table is changed")
        };
        match error {
            SessionError::Changing(table) => return changing(message).with_table(table),
            SessionError::NeverStill => return changing(message),
            SessionError::Wire(_) | SessionError::Answer(_) => {}
        }
        return ConnectorError::stop(StopClass::Source, "mysql-answer", message)
            .with_instruction(format!("see that the server is one of those that are read: {SERVERS}"));
    };
    let shaped = match error.remedy() {
        Remedy::Reconnect => {
            ConnectorError::restart(StopClass::Source, "mysql-unreachable", format!("no connection to {host}"))
                .with_instruction("see that the server runs and can be reached from here")
        }
        Remedy::FixConfig => ConnectorError::stop(StopClass::Config, LOGIN, format!("{host} does not let us in"))
            .with_instruction("correct username, password, host or tls in [source]"),
        Remedy::AskServerCode => ConnectorError::stop(StopClass::Source, "mysql-refused", format!("{host} refuses"))
            .with_instruction("see what the server's message asks for"),
        Remedy::Stop | Remedy::Bug => {
            ConnectorError::stop(StopClass::Source, "mysql-protocol", format!("{host} cannot be understood"))
                .with_instruction(format!("see that the address is that of a server that is read: {SERVERS}"))
        }
    };
    shaped.with_cause(error)
}

/// What the loss of the log's connection calls for.
pub(super) fn log_loss(error: &WireError, id_is_configured: bool) -> LogLoss {
    if let WireError::Server(server) = error
        && server.code == CANNOT_READ_LOG
    {
        let text = server.message.as_str();
        if text.contains("max_allowed_packet") {
            let message = format!("the server cannot send an event of its log: {text}");
            return LogLoss::Final(ConnectorError::stop(StopClass::Source, "mysql-packet-too-large", message).with_instruction(
                "SET GLOBAL max_allowed_packet = 1073741824 on the server, and see that its slave_max_allowed_packet \
                 (replica_max_allowed_packet) is as large",
            ));
        }
        if text.contains("position > file size") || text.contains("not in the master's binlog") {
            let message = format!("the server's log does not have what was handed on: {text}");
            return LogLoss::Final(lost_transactions(message));
        }
        if text.contains("purged") || text.contains("Could not find first log file") {
            return LogLoss::Final(purged(text));
        }
        if text.contains("same server_uuid/server_id") || text.contains("same server_id") {
            if !id_is_configured {
                return LogLoss::IdTaken;
            }
            let message = format!("another replica uses the same server-id: {text}");
            return LogLoss::Final(
                ConnectorError::stop(StopClass::Config, "mysql-server-id", message)
                    .with_instruction("give another server-id in [source], or leave it out so that one is drawn"),
            );
        }
    }
    match error.remedy() {
        Remedy::Reconnect | Remedy::AskServerCode => LogLoss::Again,
        // A flipped bit looks like this too: the same bytes are asked for again.
        Remedy::Stop if matches!(error, WireError::Protocol(_)) => LogLoss::Again,
        Remedy::Stop => {
            let message = format!("the log holds what is not offered yet: {error}");
            LogLoss::Final(
                ConnectorError::stop(StopClass::Source, "mysql-unsupported-log", message)
                    .with_instruction(format!("change the setting that the message names, and {ANEW}")),
            )
        }
        Remedy::FixConfig if matches!(error, WireError::TooLarge { .. }) => {
            let message = format!("the log holds what is too large: {error}");
            LogLoss::Final(
                ConnectorError::stop(StopClass::Source, "mysql-packet-too-large", message)
                    .with_instruction(format!("keep rows and transactions below it, and {ANEW}")),
            )
        }
        Remedy::FixConfig => {
            let message = format!("the server does not let us in any more: {}", chain(error));
            LogLoss::Final(
                ConnectorError::stop(StopClass::Source, LOGIN, message)
                    .with_instruction("correct username, password or tls in [source], or on the server"),
            )
        }
        Remedy::Bug => LogLoss::Final(ConnectorError::stop(StopClass::Bug, "mysql-connection", error.to_string())),
    }
}

/// Every connection is lost before it brings what comes next.
pub(super) fn log_stands(host: &str, count: u32, position: &BinlogPosition, reason: &str) -> ConnectorError {
    let message = format!(
        "{count} connections in a row to {host} brought nothing of the log behind {position}; the last: {reason}"
    );
    ConnectorError::stop(StopClass::Source, "mysql-log-stands", message).with_instruction(
        "see whether mysqlbinlog can read that server's log from there on, and the link to it; then start the pipeline \
         again. A longer reconnect-timeout in [source] gives one long transaction more time",
    )
}

/// The server does not have what it had.
pub(super) fn lost_transactions(what: String) -> ConnectorError {
    ConnectorError::stop(StopClass::SourceGap, "mysql-lost-transactions", what).with_instruction(format!(
        "if the server is a replica that is behind, let it catch up and start the pipeline again; if it lost \
         transactions, {ANEW}"
    ))
}

/// The log no longer has what comes next.
pub(super) fn purged(what: &str) -> ConnectorError {
    ConnectorError::stop(
        StopClass::SourceGap,
        "mysql-binlog-purged",
        format!("the server's log no longer has what comes next: {what}"),
    )
    .with_instruction(format!(
        "changes are lost to this pipeline: {ANEW}, and keep the log longer (binlog_expire_logs_seconds)"
    ))
}

/// An offset of one kind cannot be gone on from by the other.
pub(super) fn check_kind(offset: &Offset, watermark: Watermark) -> Result<(), ConnectorError> {
    let (kept, instruction) = match (&offset.executed, watermark) {
        (Reached::Gtids(_) | Reached::Domains(_), Watermark::Gtid)
        | (Reached::Place(_), Watermark::Lock | Watermark::Lag(_)) => return Ok(()),
        (Reached::Gtids(_) | Reached::Domains(_), _) => ("a set of GTIDs", "write watermark = \"gtid\" in [source]"),
        (Reached::Place(_), _) => ("a place in a log without GTIDs", "write watermark = \"lock\" in [source]"),
    };
    let message = format!("the checkpoint holds {kept}, which does not fit `watermark` in [source]");
    let instruction = format!("{instruction}, or {ANEW}");
    Err(ConnectorError::stop(StopClass::Config, "mysql-offset-kind", message).with_instruction(instruction))
}

/// MySQL's log cannot go on where MariaDB's ended, nor the other way round.
pub(super) fn other_kind(host: &str, is_of_mariadb: bool) -> ConnectorError {
    let (kept, found) = if is_of_mariadb { ("MariaDB", "MySQL") } else { ("MySQL", "MariaDB") };
    let message = format!("{host} is a server of {found}, and the pipeline has read one of {kept}");
    ConnectorError::stop(StopClass::SourceGap, "mysql-other-server", message)
        .with_instruction(format!("name the same server in [source], or {ANEW}"))
}

/// The log has come to a place that another server's does not have.
pub(super) fn other_server(host: &str, kept: ServerUuid, found: ServerUuid) -> ConnectorError {
    let message = format!(
        "{host} is the server {found}, and the pipeline stands at a place in the log of {kept}: without GTIDs the two \
         have nothing in common"
    );
    ConnectorError::stop(StopClass::SourceGap, "mysql-other-server", message)
        .with_instruction(format!("name the same server in [source], or {ANEW}"))
}

/// An error and its causes on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_no_question_of_the_login() {
        let error = WireError::TooLarge { what: "an event of a compressed transaction", limit: 1 << 30 };
        let LogLoss::Final(error) = log_loss(&error, false) else { panic!("no second try helps") };
        assert_eq!((error.code.as_str(), error.class), ("mysql-packet-too-large", StopClass::Source));
        assert!(error.message.contains("an event of a compressed transaction is larger than"), "{}", error.message);
    }
}
