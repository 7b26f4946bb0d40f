//! A log read from packets alone, with no server behind them: for tests of what reads a server's bytes.

use std::error::Error;
use std::sync::Arc;

use cdchost_config::TablePatterns;
use cdchost_connector::ConnectorError;
use cdchost_mysql_position::{DomainGtids, GtidSet, Reached, ServerUuid};
use cdchost_mysql_row::TableLayout;
use cdchost_mysql_wire::binlog::{Event, Frames};

use super::{LogStart, LogTables, Seen, Transactions};

/// Bytes of one transaction that wait for its end at most.
const BUFFER_MAX: u64 = 1 << 20;

/// Reads the packets of one log, in order, as a connection's are read.
#[derive(Debug)]
pub struct LogReplay {
    frames: Frames,
    log: Log,
}

#[derive(Debug)]
struct Log(Transactions);

impl LogReplay {
    /// Of a log in which these tables are captured, and all others that the patterns match.
    pub fn new(
        is_of_mariadb: bool,
        patterns: TablePatterns,
        tables: impl IntoIterator<Item = Arc<TableLayout>>,
    ) -> Self {
        let none =
            if is_of_mariadb { Reached::Domains(DomainGtids::default()) } else { Reached::Gtids(GtidSet::default()) };
        let mut log_tables = LogTables::default();
        tables.into_iter().for_each(|layout| log_tables.add(layout, true, false));
        let start = LogStart {
            server: ServerUuid([0; 16]),
            executed: none.clone(),
            known: none,
            seq: 0,
            patterns,
            lower_case_names: false,
            buffer_max: BUFFER_MAX,
            prepared: [].into(),
        };
        Self { frames: Frames::default(), log: Log(Transactions::new(start, log_tables)) }
    }

    /// Reads one event as it stands in a file, or all that are packed in it; an error where it is refused.
    pub fn read(&mut self, event: &[u8]) -> Result<(), Box<dyn Error>> {
        self.log.take(&self.frames.check(event)?)?;
        while self.frames.unpack_next(event)? {
            self.log.take(&self.frames.unpacked().ok_or("an event was unpacked")?)?;
        }
        Ok(())
    }
}

impl Log {
    fn take(&mut self, event: &Event<'_>) -> Result<(), ConnectorError> {
        if self.0.take(event)? == Seen::TransactionEnd {
            self.0.tables.flush()?;
        }
        self.0.tables.ready().clear();
        Ok(())
    }
}
