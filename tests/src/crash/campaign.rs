//! One shop, one pipeline, one target, and some kills.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;

use super::aim::Aim;
use super::reads::{Reads, Statements, Transactions};
use super::tally::Round;
use super::target::Target;
use super::trace::Trace;
use crate::binlog::Place;
use crate::journal::{Event, Journal};
use crate::pipeline::Pipeline;
use crate::project;
use crate::server::Server;
use crate::shop::{self, Customers, Shop};
use crate::verdict::Verdict;
use crate::wait;
use crate::watchdog::Folder;

/// Gives 35,000 rows in four tables.
const ORDERS: u32 = 10_000;
const CHUNK_ROWS: u32 = 60;
const INTERVAL: &str = "100ms";
/// Between two transactions of the customers.
const PAUSE: Duration = Duration::from_millis(4);
/// A round whose aim does not come by then is killed where it is.
const AIM_LIMIT: Duration = Duration::from_secs(10);
const LIMIT: Duration = Duration::from_secs(120);

/// A campaign that is open.
pub(crate) struct Campaign<'a> {
    server: &'a Server,
    shop: Shop,
    /// Where the server's log was before the customers came.
    from: Place,
    customers: Customers,
    opened: Instant,
    pipeline: Pipeline,
    program: PathBuf,
    journal: Journal,
    statements: Statements,
    audit: Audit,
    trace: Trace,
    _folder: Folder,
}

impl<'a> Campaign<'a> {
    /// Opens the shop and lets the customers in; starts nothing.
    pub(crate) async fn open(
        server: &'a Server,
        statements: &Path,
        target: &Target,
        (number, seed): (u32, u64),
    ) -> Result<Self> {
        let shop = shop::open(server, &format!("shop{number}"), ORDERS).await?;
        let from = server.log_end().await?;
        let customers = Customers::enter(server, &shop, 1, seed, PAUSE).await?;
        let folder = Folder::new("crash")?;
        let mut spec = target.spec(&server.address(), &shop.database);
        spec.chunk_rows = CHUNK_ROWS;
        INTERVAL.clone_into(&mut spec.interval);
        let pipeline = Pipeline::new(folder.path(), &spec)?;
        let journal = Journal::new(&pipeline.log());
        Ok(Self {
            server,
            shop,
            from,
            customers,
            opened: Instant::now(),
            pipeline,
            program: project::program()?.to_owned(),
            journal,
            statements: Statements::new(statements)?,
            audit: Audit::default(),
            trace: Trace::default(),
            _folder: folder,
        })
    }

    /// Starts the program, waits for the aim, kills.
    pub(crate) fn round(&mut self, aim: Aim, random: &mut StdRng) -> Result<Round> {
        self.trace = self.trace.next();
        let mut events = Vec::new();
        let start = Instant::now();
        self.pipeline.start(&self.program, &[], &[("FAILPOINTS", &aim.failpoint(random))])?;
        // A round that does not get there is killed where it is, and counted there.
        let _ = wait::until("its aim has come", AIM_LIMIT, || {
            let seen = self.look(&mut events)?;
            Ok(aim.has_come(&events[seen..], self.trace.phase()).then_some(()))
        });
        let end = Instant::now() + aim.delay(random);
        wait::until("the moment has come", LIMIT, || {
            self.look(&mut events)?;
            Ok((Instant::now() >= end).then_some(()))
        })?;
        if let Some(status) = self.pipeline.ended()? {
            let lines = self.pipeline.last_lines();
            anyhow::bail!("the program ended by itself with {status}:\n{lines}");
        }
        self.pipeline.kill()?;
        self.look(&mut events)?;
        self.audit(&events)?;
        Ok(self.judge(start))
    }

    /// Takes the events written since the last look; says where in `events` they begin.
    fn look(&mut self, events: &mut Vec<Event>) -> Result<usize> {
        let (now, before) = (Instant::now(), events.len());
        for event in self.journal.read()? {
            self.trace.take(&event, now);
            events.push(event);
        }
        Ok(before)
    }

    /// Holds what the run asked the server for against what was durable before it, and learns what is durable now.
    fn audit(&mut self, events: &[Event]) -> Result<()> {
        let reads = self.statements.run(&self.shop.database)?;
        self.audit.take(events, &reads);
        Ok(())
    }

    fn judge(&self, start: Instant) -> Round {
        let now = Instant::now();
        let changed = self.customers.rows_before(now);
        let covered = self.customers.rows_before(self.trace.covered.unwrap_or(self.opened));
        Round {
            phase: self.trace.phase(),
            committed: self.trace.committed,
            in_flight: changed - covered + self.trace.chunks_open * u64::from(CHUNK_ROWS),
            lived_ms: (now - start).as_millis(),
        }
    }

    /// Sends the customers home, lets the program finish, and compares. With `plant`, damages the comparison on purpose
    /// and counts it as a difference if the damage is not found.
    pub(crate) async fn close(mut self, target: &mut Target, plant: bool) -> Result<Verdict> {
        self.customers.leave().await?;
        self.journal.read()?;
        self.pipeline.start(&self.program, &[], &[])?;
        self.pipeline.wait_until_caught_up(LIMIT)?;
        // However short the campaign was: a row with changes enough to plant faults among them.
        let again = format!("UPDATE {}.orders SET placed = placed + INTERVAL 1 SECOND LIMIT 1", self.shop.database);
        self.server.run(&[again.as_str(); 3]).await?;
        self.pipeline.wait_until_at_the_end_of(self.server, LIMIT).await?;
        self.pipeline.checkpoint(LIMIT)?;
        let mut events = self.journal.read()?;
        self.audit(&events)?;
        let database = &self.shop.database;
        let mut verdict = target.compare(self.server, &self.pipeline, (database, &self.from), plant).await?;
        self.audit.findings.drain(..).for_each(|finding| verdict.add(finding));
        let status = self.pipeline.stop(LIMIT)?;
        ensure!(status.success(), "the program ended with {status} after SIGTERM:\n{}", self.pipeline.last_lines());
        events.extend(self.journal.read()?);
        let committed =
            events.iter().filter(|event| event.name == "committed").filter_map(|event| event.number("epoch"));
        let epoch = committed.max().context("a checkpoint was committed")?;
        target.left_behind(&self.pipeline, database, epoch)?.into_iter().for_each(|left| verdict.add(left));
        Ok(verdict)
    }
}

/// Looks whether a run read again what an earlier one had made durable.
#[derive(Debug, Default)]
struct Audit {
    /// The set of transactions of the newest durable record.
    durable: Option<Transactions>,
    /// For each table, conditions of the chunk queries whose rows are in a durable record.
    finished: BTreeMap<String, BTreeSet<String>>,
    /// A run has stored a record.
    stored: bool,
    findings: Vec<String>,
}

impl Audit {
    /// Takes one run, from its start to its end.
    fn take(&mut self, events: &[Event], reads: &Reads) {
        self.check(events, reads);
        self.learn(events, reads);
    }

    fn check(&mut self, events: &[Event], reads: &Reads) {
        // An audit that sees nothing proves nothing.
        let follows = events.iter().any(|event| event.name == "prepare-started");
        if self.stored && self.durable.is_none() {
            self.findings.push("the program's log does not show which transactions a record goes on after".to_owned());
        }
        self.stored |= events.iter().any(|event| event.name == "record-stored");
        if follows && reads.starts.is_empty() {
            self.findings.push("the server's log shows no request for the log of changes".to_owned());
        }
        let merged: BTreeSet<&str> =
            events.iter().filter(|event| event.name == "chunk-merged").filter_map(table).collect();
        for table in merged.into_iter().filter(|table| !reads.chunks.contains_key(*table)) {
            self.findings.push(format!("the server's log shows no chunk query of {table}"));
        }
        // Later starts of the same run follow a lost connection and are held to the same.
        for start in &reads.starts {
            let asked = Transactions::parse(start).unwrap_or_default();
            if self.durable.as_ref().is_some_and(|durable| !asked.contains(durable)) {
                self.findings.push(format!("the log was asked for after {start}, before the last durable epoch"));
            }
        }
        for (table, conditions) in &reads.chunks {
            let finished = self.finished.get(table);
            for condition in conditions.iter().filter(|c| finished.is_some_and(|finished| finished.contains(*c))) {
                self.findings.push(format!("{table}: a finished chunk was read again: {condition}"));
            }
        }
    }

    /// Chunks handed on before record n was stored lie before barrier n+1, since that barrier is not made earlier: so
    /// they are finished once record n+1 is stored.
    fn learn(&mut self, events: &[Event], reads: &Reads) {
        let mut merged: BTreeMap<String, usize> = BTreeMap::new();
        let mut before_last_record = merged.clone();
        let mut finished = merged.clone();
        for event in events {
            match event.name.as_str() {
                "chunk-merged" => {
                    *merged.entry(table(event).unwrap_or_default().to_owned()).or_default() += 1;
                }
                "record-stored" => {
                    finished = std::mem::replace(&mut before_last_record, merged.clone());
                    // `SET (FILE:BYTE)`
                    let set = event.text("position").and_then(|position| position.split(" (").next());
                    self.durable = set.and_then(Transactions::parse);
                }
                _ => {}
            }
        }
        for (table, count) in finished {
            let mut distinct: Vec<&String> = Vec::new();
            for condition in reads.chunks.get(&table).into_iter().flatten() {
                if !distinct.contains(&condition) {
                    distinct.push(condition);
                }
            }
            let known = self.finished.entry(table).or_default();
            known.extend(distinct.into_iter().take(count).cloned());
        }
    }
}

/// The table that an event is about, without its database.
fn table(event: &Event) -> Option<&str> {
    event.text("table")?.rsplit('.').next()
}
