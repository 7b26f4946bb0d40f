//! Real servers of MySQL and MariaDB, started by the suites themselves.

mod mariadb;
mod mysql8;
mod mysql9;

use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cdchost_config::{
    ByteSize, ChunkConfig, MysqlConfig, Secret, StartupMode, TlsConfig, TlsMode, Watermark, ZeroDate,
};
use cdchost_tools::run;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row};

use crate::wait;
use crate::watchdog::{Folder, Process};

/// The account that the suites give to pipelines: it has no more than the documentation asks for.
pub const ACCOUNT: &str = "cdc_min";
/// Its password.
pub const PASSWORD: &str = "cdc_pw";
const START_LIMIT: Duration = Duration::from_secs(90);
const PURGE_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Whose server it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavor {
    /// MySQL 8.0.15.
    #[default]
    Mysql,
    /// MySQL 9 as Debian's unstable has it today. It has no account `cdc_native`.
    Mysql9,
    /// MariaDB as the machine's Debian has it, 10.11 or later. It has no account `cdc_native`.
    Mariadb,
}

/// How a server differs from the usual one.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Whose server it is.
    pub flavor: Flavor,
    /// Further options of mysqld, which win over the usual ones.
    pub extra: Vec<String>,
    /// Fixed port; by default a free one.
    pub port: Option<u16>,
}

/// A server of its own data, on loopback, with GTIDs and a full row log; gone with this process.
///
/// Accounts: `root` without password (everything), `writer` (everything), `cdc` (with RELOAD), `cdc_min` (without),
/// `cdc_native` (as `cdc`, with the older way to log in).
#[derive(Debug)]
pub struct Server {
    process: Process,
    folder: Folder,
    port: u16,
    options: ServerOptions,
}

impl Server {
    /// Starts the usual server.
    pub fn start() -> Result<Self> {
        Self::with(ServerOptions::default())
    }

    /// Starts a server with these options.
    pub fn with(options: ServerOptions) -> Result<Self> {
        let (blank, grants) = match options.flavor {
            Flavor::Mysql => (mysql8::blank_data()?, grants(true)),
            Flavor::Mysql9 => (mysql9::blank_data()?, grants(false)),
            Flavor::Mariadb => (mariadb::blank_data()?, mariadb::grants()),
        };
        let folder = Folder::new("mysql")?;
        run(Command::new("cp").arg("-r").arg(blank).arg(folder.join("data")))?;
        if options.flavor != Flavor::Mariadb {
            // Each server draws an identity of its own.
            fs::remove_file(folder.join("data/auto.cnf"))?;
        }
        fs::write(folder.join("init.sql"), format!("SET sql_log_bin=0;\n{grants}SET sql_log_bin=1;\n"))?;
        let (process, port) = launch(&folder, &options)?;
        Ok(Self { process, folder, port, options })
    }

    /// Whose server it is.
    pub fn flavor(&self) -> Flavor {
        self.options.flavor
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its process, for signals.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// A connection as root, in UTC, with texts in UTF-8.
    pub async fn connect(&self) -> Result<Conn> {
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port)
            .user(Some("root"))
            .prefer_socket(false)
            .max_allowed_packet(Some(256 << 20))
            .setup(vec!["SET time_zone = '+00:00', sql_mode = '', character_set_results = 'utf8mb4'".to_owned()]);
        Ok(Conn::new(Opts::from(options)).await?)
    }

    /// Runs statements one after the other.
    pub async fn run(&self, statements: &[&str]) -> Result<()> {
        let mut connection = self.connect().await?;
        for statement in statements {
            let shown: String = statement.chars().take(200).collect();
            connection.query_drop(*statement).await.with_context(|| shown)?;
        }
        connection.disconnect().await?;
        Ok(())
    }

    /// Starts or ends the log of every statement that any client sends; gives its file.
    pub async fn log_statements(&self, on: bool) -> Result<PathBuf> {
        let file = self.folder.join("general.log");
        let set_file = format!("SET GLOBAL general_log_file = '{}'", file.display());
        let switch = format!("SET GLOBAL general_log = {}", u8::from(on));
        self.run(&[set_file.as_str(), switch.as_str()]).await?;
        Ok(file)
    }

    /// Where its log ends now: file and byte.
    pub async fn log_end(&self) -> Result<(String, u64)> {
        let mut connection = self.connect().await?;
        let newer = connection.query_first::<Row, _>("SHOW BINARY LOG STATUS").await;
        let row = match newer {
            Ok(row) => row,
            Err(_) => connection.query_first::<Row, _>("SHOW MASTER STATUS").await?,
        };
        connection.disconnect().await?;
        let end = row.and_then(|row| Some((row.get(0)?, row.get(1)?)));
        end.context("the server keeps no log")
    }

    /// Takes all files of its log away but the newest. One that somebody reads stays for a moment: also where the
    /// reader was killed, until the server has noticed.
    pub async fn purge_logs(&self) -> Result<()> {
        wait::until_async("the older logs are gone", PURGE_LIMIT, || async {
            let mut connection = self.connect().await?;
            let (newest, _) = self.log_end().await?;
            connection.query_drop(format!("PURGE BINARY LOGS TO '{newest}'")).await?;
            let logs: Vec<Row> = connection.query("SHOW BINARY LOGS").await?;
            connection.disconnect().await?;
            let oldest: Option<String> = logs.first().and_then(|row| row.get(0));
            Ok((oldest == Some(newest)).then_some(()))
        })
        .await
    }

    /// Shuts it down in order.
    pub fn stop(&mut self) -> Result<()> {
        self.process.signal("TERM")?;
        self.process.wait(STOP_LIMIT).map(|_| ())
    }

    /// Ends it as a power cut of the process would.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill().map(|_| ())
    }

    /// Starts it again on the same data and port.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.process.ended()?.is_some(), "the server still runs");
        let options = ServerOptions { port: Some(self.port), ..self.options.clone() };
        (self.process, self.port) = launch(&self.folder, &options)?;
        Ok(())
    }
}

/// Starts mysqld on the data in `folder`; tries other ports if the one found free is taken meanwhile.
fn launch(folder: &Folder, options: &ServerOptions) -> Result<(Process, u16)> {
    let attempts = if options.port.is_some() { 1 } else { 5 };
    let mut last = None;
    for _ in 0..attempts {
        let port = options.port.map_or_else(free_port, Ok)?;
        let mut process = Process::start(&mut command(folder, port, options)?)?;
        let answered = wait::until("the server answers", START_LIMIT, || {
            if process.ended()?.is_some() {
                let log = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
                let errors: Vec<&str> = log.lines().filter(|line| line.contains("[ERROR]")).collect();
                bail!("the server ended at its start: {}", errors.join("\n"));
            }
            Ok(TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(()))
        });
        match answered {
            Ok(()) => return Ok((process, port)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("a server is tried at least once")?)
}

fn command(folder: &Folder, port: u16, options: &ServerOptions) -> Result<Command> {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut command = match options.flavor {
        Flavor::Mysql => mysql8::mysqld(&mysql8::program()?),
        Flavor::Mysql9 => mysql9::mysqld(&mysql9::program()?),
        Flavor::Mariadb => mariadb::mariadbd()?,
    };
    command.args([
        format!("--datadir={}", path("data")),
        format!("--socket={}", path("s.sock")),
        format!("--pid-file={}", path("mysqld.pid")),
        format!("--log-error={}", path("error.log")),
        format!("--init-file={}", path("init.sql")),
        format!("--port={port}"),
        format!("--server-id={port}"),
    ]);
    command.args([
        "--bind-address=127.0.0.1",
        "--log-bin=binlog",
        "--binlog-format=ROW",
        "--binlog-row-image=FULL",
        "--binlog-row-metadata=FULL",
        "--log-slave-updates=ON",
        "--innodb-buffer-pool-size=256M",
        "--innodb-flush-log-at-trx-commit=2",
        "--sync-binlog=0",
        "--secure-file-priv=",
        "--local-infile=ON",
        "--max-allowed-packet=256M",
        "--default-time-zone=+00:00",
    ]);
    if options.flavor != Flavor::Mariadb {
        command.args(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
    }
    command.args(&options.extra).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// A source with the account of least rights, on a database of the server at this address.
pub fn config_of(address: &str, database: &str) -> MysqlConfig {
    MysqlConfig {
        hosts: vec![address.to_owned()],
        username: ACCOUNT.into(),
        password: Secret::new(PASSWORD),
        tables: vec![format!("{database}.*")],
        startup: StartupMode::Initial,
        server_id: None,
        tls: TlsConfig { mode: Some(TlsMode::Disabled), ..TlsConfig::default() },
        readers: 2,
        chunk: ChunkConfig { rows: 8_096, bytes: ByteSize(8 << 20) },
        watermark: Watermark::Gtid,
        zero_date: ZeroDate::Error,
        heartbeat: Duration::from_secs(1),
        connect_timeout: Duration::from_secs(10),
        reconnect_timeout: Duration::from_secs(20),
        transaction_max_buffer: ByteSize(64 << 20),
    }
}

/// A port of loopback that nobody holds, below those that the system gives to outgoing connections.
pub fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let port = rand::random_range(20_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between 20000 and 32000")
}

/// Accounts, made outside the log so that they are no transactions.
fn grants(with_native: bool) -> String {
    let full = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.*";
    let least = "SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.*";
    let proof = |method: &str| format!("IDENTIFIED WITH {method} BY '{PASSWORD}'");
    let mut accounts = vec![
        ("'root'@'127.0.0.1'", String::new(), "ALL ON *.*"),
        ("'writer'@'%'", "IDENTIFIED BY 'writer_pw'".to_owned(), "ALL ON *.*"),
        ("'cdc'@'%'", proof("caching_sha2_password"), full),
        ("'cdc_min'@'%'", proof("caching_sha2_password"), least),
    ];
    if with_native {
        accounts.push(("'cdc_native'@'%'", proof("mysql_native_password"), full));
    }
    statements(&accounts)
}

/// What makes accounts: name, how it proves itself, rights.
fn statements(accounts: &[(&str, String, &str)]) -> String {
    let mut sql = String::new();
    for (name, proof, rights) in accounts {
        let option = if rights.starts_with("ALL") { " WITH GRANT OPTION" } else { "" };
        write!(sql, "CREATE USER IF NOT EXISTS {name} {proof};\nGRANT {rights} TO {name}{option};\n")
            .expect("a String takes all that is written to it");
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_killed_server_comes_back_with_its_data() {
        let mut server = Server::start().unwrap();
        server
            .run(&["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (7)"])
            .await
            .unwrap();
        server.kill().unwrap();
        assert!(server.connect().await.is_err());
        server.start_again().unwrap();
        let mut connection = server.connect().await.unwrap();
        assert_eq!(connection.query_first::<u32, _>("SELECT a FROM d.t").await.unwrap(), Some(7));
        server.stop().unwrap();
    }

    #[tokio::test]
    async fn statements_are_logged_when_asked() {
        let server = Server::start().unwrap();
        let log = server.log_statements(true).await.unwrap();
        server.run(&["SELECT 'seen'"]).await.unwrap();
        server.log_statements(false).await.unwrap();
        server.run(&["SELECT 'unseen'"]).await.unwrap();
        let text = fs::read_to_string(log).unwrap();
        assert!(text.contains("SELECT 'seen'") && !text.contains("SELECT 'unseen'"));
    }
}
