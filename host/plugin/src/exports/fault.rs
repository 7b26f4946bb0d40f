//! What goes wrong in a guest, as the engine's error: what now, whose fault, what to do.

use std::sync::Arc;
use std::time::Duration;

use cdchost_connector::{ConnectorError, RowFault, StopClass, Verdict};
use cdchost_model::{ChangeBatch, TableId};
use tokio::task::JoinError;

use crate::bindings::v0_1::cdchost::plugin::types::{Blame, PluginError, Retry};
use crate::imports::{GuestLog, OperatorMetrics};
use crate::loader::PluginKind;

/// Bytes of a plugin's error code.
const CODE_BYTES_MAX: usize = 64;
/// Rows that one error may name with a reason; batches are smaller.
const ROWS_MAX: usize = 65_536;

/// The making of an instance, where a called function's name stands.
pub(super) const INSTANTIATE: &str = "instantiate";

/// A guest met a bound.
const LIMIT: &str = "plugin-limit";

/// What a guest was given last, or most of.
#[derive(Clone, Debug)]
pub(super) struct Given {
    table: TableId,
    rows: usize,
    pub(super) bytes: usize,
}

impl Given {
    pub(super) fn of(batch: &ChangeBatch, bytes: usize) -> Self {
        Self { table: batch.schema().table.clone(), rows: batch.rows(), bytes }
    }

    /// An error of the call that it was given to: names the table.
    pub(super) fn named_in(&self, mut error: ConnectorError) -> ConnectorError {
        error.table.get_or_insert_with(|| self.table.clone());
        self.told_in(error, "the batch")
    }

    /// Where a bound was met, what there was to hold.
    pub(super) fn told_in(&self, mut error: ConnectorError, what: &str) -> ConnectorError {
        if error.code == LIMIT {
            let Self { table, rows, bytes } = self;
            let noun = if *rows == 1 { "row" } else { "rows" };
            error.message.push_str(&format!("; {what}: {rows} {noun} of table {table}, {bytes} bytes"));
        }
        error
    }
}

/// Makes the errors of one instance.
pub(crate) struct Faults {
    /// What it is used as: sink, transform, route.
    kind: &'static str,
    plugin: String,
    log: Arc<GuestLog>,
    call_timeout: Duration,
    metrics: OperatorMetrics,
}

impl Faults {
    pub(super) fn new(
        (kind, plugin): (PluginKind, &str),
        log: Arc<GuestLog>,
        call_timeout: Duration,
        metrics: OperatorMetrics,
    ) -> Self {
        Self { kind: kind.name(), plugin: plugin.into(), log, call_timeout, metrics }
    }

    /// A text of the guest's as it may stand in a message.
    pub(super) fn clean(&self, text: &str) -> String {
        self.log.clean(text)
    }

    /// The guest trapped; `refusal` is the bound that it met, if any.
    pub(super) fn trap(
        &self,
        function: &'static str,
        error: &wasmtime::Error,
        refusal: Option<&str>,
    ) -> ConnectorError {
        // The backtrace is for the plugin's author.
        tracing::debug!(plugin = self.plugin, function, ?error, "plugin trapped");
        let plugin = &self.plugin;
        // While it starts, what wasmtime was at is the fact; later the innermost cause says it all.
        let starting = function == INSTANTIATE;
        let cause = if starting { format!("{error:#}") } else { error.root_cause().to_string() };
        let cause = self.log.clean(&cause);
        let (code, message) = match refusal {
            Some(bound) => (LIMIT, format!("plugin {plugin} ended in {function}: {bound}")),
            None if starting => ("plugin-start", format!("plugin {plugin} cannot be started: {cause}")),
            None => ("plugin-trap", format!("plugin {plugin} trapped in {function}: {cause}")),
        };
        let instruction = match refusal {
            Some(_) => format!("raise that limit of {} {plugin}, or give it less to hold", self.kind),
            None => "the log has what the plugin printed; report it to the plugin's author".into(),
        };
        self.fault(function, code, message).with_instruction(instruction)
    }

    /// The guest used up its time.
    pub(super) fn timeout(&self, function: &'static str) -> ConnectorError {
        let (plugin, limit) = (&self.plugin, self.call_timeout);
        let message = format!("plugin {plugin} did not return from {function} within {limit:?}");
        self.fault(function, "plugin-timeout", message).with_instruction(format!(
            "check that its target answers, or raise limits.call-timeout of the {}",
            self.kind
        ))
    }

    /// The guest gave something that the contract forbids.
    pub(super) fn broke(&self, function: &'static str, how: &str) -> ConnectorError {
        let message = format!("plugin {} broke its contract in {function}: it {how}", self.plugin);
        self.fault(function, "plugin-contract", message).with_instruction("report it to the plugin's author")
    }

    /// A call to an instance that has ended.
    pub(super) fn gone(&self, function: &'static str) -> ConnectorError {
        let message = format!("plugin {} was ended by an earlier fault, {function} cannot be called", self.plugin);
        ConnectorError::restart(StopClass::Plugin, "plugin-gone", message)
            .with_instruction("the log has the fault that ended it")
    }

    /// The host's own side failed.
    pub(super) fn host(&self, function: &'static str, error: &JoinError) -> ConnectorError {
        let message = format!("the call of {function} of plugin {} ended in the host: {error}", self.plugin);
        ConnectorError::restart(StopClass::Bug, "plugin-host", message).with_instruction("report it to cdchost")
    }

    /// A batch that cannot be handed over.
    pub(super) fn unhandable(&self, table: &TableId, reason: &str) -> ConnectorError {
        let message = format!("a batch of table {table} cannot be handed to plugin {}: {reason}", self.plugin);
        ConnectorError::stop(StopClass::Bug, "plugin-batch", message)
            .with_table(table.clone())
            .with_instruction("report it to cdchost")
    }

    /// The plugin's own error, and whether the instance may still be called.
    pub(super) fn told(&self, function: &'static str, told: PluginError, rows: u32) -> (ConnectorError, bool) {
        if told.rows.len() > ROWS_MAX || told.rows.iter().any(|at| at.row >= rows) {
            return (self.broke(function, &format!("names rows beyond the {rows} of the batch")), false);
        }
        let verdict = verdict(&told);
        if verdict == Verdict::Restart {
            self.metrics.failed(function);
        }
        let of = format!("{} {}", self.kind, self.plugin);
        let error = ConnectorError {
            verdict,
            class: class(told.blame),
            code: code(&told.code),
            message: format!("plugin {}: {}", self.plugin, self.log.clean(&told.message)),
            instruction: instruction(&of, told.blame, told.retry, told.table.is_some()),
            table: told.table.map(|table| TableId::new(table.database, table.table)),
            rows: told
                .rows
                .into_iter()
                .map(|at| RowFault { row: at.row, reason: self.log.clean(&at.reason) })
                .collect(),
            cause: None,
        };
        (error, verdict != Verdict::Restart)
    }

    fn fault(&self, function: &'static str, code: &str, message: String) -> ConnectorError {
        self.metrics.failed(function);
        ConnectorError::restart(StopClass::Plugin, code, message)
    }
}

/// What a person can do; `of` is the use of the plugin: `sink lake`.
fn instruction(of: &str, blame: Blame, retry: Retry, names_table: bool) -> String {
    match blame {
        Blame::Data => "do as it says, or leave their table out with `!` in `tables` of [source]".into(),
        Blame::Config if names_table => format!(
            "do as it says, or leave the table out with `!` in `tables` of [source]; the options of {of} may decide about it, \
             too"
        ),
        Blame::Config => format!("mend the options of {of} in the pipeline file"),
        Blame::Remote if retry == Retry::Never => {
            format!("put the target of {of} right as it says, then start again")
        }
        Blame::Remote => format!("check that the target of {of} can be reached and is in order"),
        Blame::Auth => format!(
            "see that the section of {of} grants the store that it names (allow.store), and that the credentials and rights at \
             its target are right"
        ),
        Blame::Bug => "report it to the plugin's author".into(),
    }
}

/// A plugin that blames itself is started anew whatever it says of retrying.
fn verdict(told: &PluginError) -> Verdict {
    let hint = told.retry_after_ms.map(|ms| Duration::from_millis(ms.into()));
    match (told.blame, told.retry) {
        (Blame::Bug, _) => Verdict::Restart,
        (_, Retry::Now) => Verdict::Retry { after: Some(hint.unwrap_or_default()) },
        (_, Retry::Backoff) => Verdict::Retry { after: hint },
        (_, Retry::Never) => Verdict::Stop,
    }
}

fn class(blame: Blame) -> StopClass {
    match blame {
        Blame::Data => StopClass::Data,
        Blame::Config => StopClass::Config,
        Blame::Remote | Blame::Auth => StopClass::Sink,
        Blame::Bug => StopClass::Plugin,
    }
}

/// A code as codes are: short, lower case, with hyphens.
fn code(told: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = !told.is_empty() && told.len() <= CODE_BYTES_MAX && told.chars().all(plain);
    if fits { told.into() } else { "plugin-error".into() }
}

#[cfg(test)]
mod tests;
