//! Every type and every character set, on every server: what a snapshot reads, what the log says and what a lake's
//! readers find is what the server itself says.
//!
//! Values are rows of the files in `data`, each a test of its own; a new row is picked up by being there. A new server is
//! a line of [`ORIGINS`].

mod charsets;
mod dates;
mod keys;
mod observed;
mod oddities;
mod sheet;
mod taken;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use cdchost_config::MysqlConfig;
use cdchost_tests::origin;
use cdchost_tests::server::{Flavor, Server, ServerOptions, config_of};
use libtest_mimic::{Arguments, Failed, Trial};

use self::observed::Shared;
use self::taken::Taken;

/// A kind of server, started when the first test needs it.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// As tests name it.
    name: &'static str,
    /// As the files name those that have a type.
    family: &'static str,
    flavor: Flavor,
    /// Whether its values are read out of a lake too; those of 9 are the same as those of 8.
    into_lake: bool,
}

const ORIGINS: [Origin; 3] = [
    Origin { name: "mysql-8.0", family: "mysql", flavor: Flavor::Mysql, into_lake: true },
    Origin { name: "mysql-9", family: "mysql", flavor: Flavor::Mysql9, into_lake: false },
    Origin { name: "mariadb-10.11", family: "mariadb", flavor: Flavor::Mariadb, into_lake: true },
];

impl Origin {
    fn start(self) -> Result<Server> {
        Server::with(ServerOptions { flavor: self.flavor, ..ServerOptions::default() })
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for origin in ORIGINS {
        let server = Arc::new(Shared::new(move || origin.start()));
        trials.extend(sheet::trials(origin, &server));
        trials.extend(charsets::trials(origin, &server));
        trials.extend(keys::trials(origin, &server));
        trials.extend(dates::trials(origin, &server));
        trials.extend(oddities::trials(origin, &server));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A test that waits for what it does, on a runtime of its own.
fn trial<F>(name: String, run: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = Result<()>>,
{
    Trial::test(name, move || block_on(run()).map_err(|error| Failed::from(format!("{error:#}"))))
}

/// A test that looks at what was observed.
fn looks(name: String, look: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || look().map_err(|error| Failed::from(format!("{error:#}"))))
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("a runtime starts")?.block_on(work)
}

/// The account with the least rights on a database of a server.
fn config(server: &Server, database: &str) -> MysqlConfig {
    config_of(&server.address(), database)
}

/// Runs statements in a fresh database.
async fn database(server: &Server, name: &str, statements: &[String]) -> Result<()> {
    let fresh = [format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name} CHARACTER SET utf8mb4")];
    run(server, &fresh).await?;
    run_in(server, name, statements).await
}

/// Runs statements in a database, without the modes that refuse odd values.
async fn run_in(server: &Server, name: &str, statements: &[String]) -> Result<()> {
    let enter = [format!("USE {name}"), "SET sql_mode = '', group_concat_max_len = 100000000".to_owned()];
    run(server, &[&enter[..], statements].concat()).await
}

async fn run(server: &Server, statements: &[String]) -> Result<()> {
    server.run(&statements.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// What was taken of a database must be what the server says, its dates as text where they were asked for as such.
async fn same_as_server(server: &Server, name: &str, taken: &Taken, dates_are_text: bool) -> Result<()> {
    let mut connection = server.connect().await?;
    for mut table in origin::describe_all(&mut connection, name).await? {
        if dates_are_text {
            origin::dates_as_text(&mut table);
        }
        let expected = origin::rows(&mut connection, &table).await?;
        taken.same(&table, &expected)?;
    }
    Ok(())
}
