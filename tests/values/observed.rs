//! Tables of one column run through a source, and through a pipeline into a lake; what each row came to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use cdchost_connector::SourceEnd;
use cdchost_tests::lake::LakeReader;
use cdchost_tests::origin;
use cdchost_tests::pipeline::{Pipeline, PipelineSpec};
use cdchost_tests::project;
use cdchost_tests::rows::{Difference, Rows, Table, differences};
use cdchost_tests::server::Server;
use cdchost_tests::watchdog::Folder;

use super::taken::{Running, Taken};
use super::{config, database, run_in};

/// Rows that the log inserts, and those that it updates, have their number this much above the row that the snapshot
/// reads.
pub(crate) const STEP: i64 = 1_000_000;
const LIMIT: Duration = Duration::from_secs(180);

/// What the first test that needs it makes, for all.
pub(crate) struct Shared<T> {
    value: OnceLock<std::result::Result<T, String>>,
    make: Box<dyn Fn() -> Result<T> + Send + Sync>,
}

impl<T> Shared<T> {
    pub(crate) fn new(make: impl Fn() -> Result<T> + Send + Sync + 'static) -> Self {
        Self { value: OnceLock::new(), make: Box::new(make) }
    }

    pub(crate) fn get(&self) -> Result<&T> {
        let made = self.value.get_or_init(|| (self.make)().map_err(|error| format!("{error:#}")));
        made.as_ref().map_err(|error| anyhow!("{error}"))
    }
}

/// A table `(id INT PRIMARY KEY, v TYPE, n INT)` and how it is filled.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    /// Its name.
    pub(crate) name: String,
    /// The type of its column.
    pub(crate) column: String,
    /// An INSERT with `{id}` in front of the number that is added to each row's.
    pub(crate) insert: String,
}

/// What came of all rows: for each table and number what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    numbers: BTreeMap<String, BTreeSet<i64>>,
    wrong: BTreeMap<(String, i64), Vec<String>>,
}

impl Observed {
    /// Nothing is wrong with the row of this number: read, inserted and updated.
    pub(crate) fn check(&self, table: &str, number: i64) -> Result<()> {
        let mut wrong = Vec::new();
        for id in [number, number + STEP, number + 2 * STEP] {
            ensure!(self.numbers.get(table).is_some_and(|numbers| numbers.contains(&id)), "there is no row {id}");
            wrong.extend(self.wrong.get(&(table.to_owned(), id)).into_iter().flatten().cloned());
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    }

    /// Numbers of the rows that the snapshot read.
    pub(crate) fn read(&self, table: &str) -> Vec<i64> {
        self.numbers.get(table).into_iter().flatten().copied().filter(|&id| id < STEP).collect()
    }

    fn blame(&mut self, table: &Table, what: &str, found: Vec<Difference>) -> Result<()> {
        for difference in found {
            let (Difference::Lost(key)
            | Difference::Extra(key)
            | Difference::Doubled(key)
            | Difference::Changed(key, _)) = &difference;
            let id = key.parse().with_context(|| format!("{table}: key {key}"))?;
            let shown: String = format!("{what}: {difference}").chars().take(400).collect();
            self.wrong.entry((table.name.clone(), id)).or_default().push(shown);
        }
        Ok(())
    }
}

/// Runs tables through a source, and into a lake where it is wanted.
pub(crate) async fn observe(server: &Server, name: &str, tables: &[Filled], with_lake: bool) -> Result<Observed> {
    let fill = |step: i64| tables.iter().map(move |table| table.insert.replace("{id}", &(step * STEP).to_string()));
    let create = |table: &Filled| {
        format!("CREATE TABLE {} (id INT PRIMARY KEY, v {}, n INT NOT NULL DEFAULT 0)", table.name, table.column)
    };
    database(server, name, &tables.iter().map(create).collect::<Vec<_>>()).await?;
    run_in(server, name, &fill(0).collect::<Vec<_>>()).await?;
    let rows = count(server, name, tables).await?;

    let folder = Folder::new("values")?;
    let mut pipeline = None;
    if with_lake {
        let mut lake = Pipeline::new(folder.path(), &PipelineSpec::into_lake(&server.address(), name))?;
        lake.start(project::program()?, &[], &[])?;
        lake.wait_until_caught_up(LIMIT)?;
        pipeline = Some(lake);
    }
    let mut running = Running::start(&config(server, name), SourceEnd::Never).await?;
    running.until_events(rows).await?;
    // Inserted, and put in place of NULL or of the default.
    run_in(server, name, &fill(1).collect::<Vec<_>>()).await?;
    let blank = |table: &Filled| {
        let name = &table.name;
        format!("INSERT INTO {name} (id) SELECT id + {} FROM {name} WHERE id < {STEP}", 2 * STEP)
    };
    let update = |table: &Filled| {
        let name = &table.name;
        format!("UPDATE {name} AS a JOIN {name} AS b ON b.id = a.id - {} SET a.v = b.v, a.n = 1", 2 * STEP)
    };
    run_in(server, name, &tables.iter().map(blank).collect::<Vec<_>>()).await?;
    run_in(server, name, &tables.iter().map(update).collect::<Vec<_>>()).await?;
    running.until_events(4 * rows).await?;
    let taken = running.stop().await?;
    compare(server, name, &taken, pipeline.as_mut()).await
}

async fn count(server: &Server, name: &str, tables: &[Filled]) -> Result<usize> {
    let mut connection = server.connect().await?;
    let mut rows = 0;
    for table in tables {
        let described = origin::describe(&mut connection, name, &table.name).await?;
        rows += origin::rows(&mut connection, &described).await?.len();
    }
    ensure!(rows > 0, "no row is there");
    Ok(rows)
}

async fn compare(server: &Server, name: &str, taken: &Taken, lake: Option<&mut Pipeline>) -> Result<Observed> {
    let mut connection = server.connect().await?;
    let mut observed = Observed::default();
    let mut readers = Vec::new();
    if let Some(lake) = lake.as_deref() {
        lake.checkpoint(LIMIT)?;
        readers = vec![LakeReader::pypaimon()?, LakeReader::java()?];
    }
    for table in origin::describe_all(&mut connection, name).await? {
        let expected = origin::rows(&mut connection, &table).await?;
        let rows = taken.tables.get(&table.name).with_context(|| format!("no row of {table} came"))?;
        let mut ours = Rows::default();
        for row in rows.values() {
            ours.put(&table, row.spelled.clone())?;
        }
        observed.blame(&table, "the source", differences(&table, &expected, &ours))?;
        same_bits(&table, taken, &mut observed)?;
        for reader in &mut readers {
            let path = lake.as_deref().context("there is a lake")?.table(name, &table.name);
            let found = reader.rows(&path, &table, None).with_context(|| table.to_string())?;
            observed.blame(&table, reader.name(), differences(&table, &expected, &found))?;
        }
    }
    if let Some(lake) = lake {
        ensure!(lake.stop(LIMIT)?.success(), "the pipeline ends well");
    }
    Ok(observed)
}

/// What was read, inserted and updated must be the same bit for bit.
fn same_bits(table: &Table, taken: &Taken, observed: &mut Observed) -> Result<()> {
    let rows = taken.tables.get(&table.name).context("rows came")?;
    let by_id: BTreeMap<i64, _> =
        rows.values().map(|row| Ok((row.spelled[0].parse::<i64>()?, &row.exact[1]))).collect::<Result<_>>()?;
    for (&id, &value) in &by_id {
        observed.numbers.entry(table.name.clone()).or_default().insert(id);
        if id >= STEP && by_id.get(&(id % STEP)).is_some_and(|&read| read != value) {
            let wrong = observed.wrong.entry((table.name.clone(), id)).or_default();
            wrong.push("the log's value is not the snapshot's bit for bit".to_owned());
        }
    }
    Ok(())
}

/// Observations that all tests of a group share.
pub(crate) fn shared(
    server: &Arc<Shared<Server>>,
    name: &'static str,
    tables: Vec<Filled>,
    with_lake: bool,
) -> Arc<Shared<Observed>> {
    let server = Arc::clone(server);
    Arc::new(Shared::new(move || super::block_on(observe(server.get()?, name, &tables, with_lake))))
}
