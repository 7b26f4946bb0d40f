//! The MySQL source against a real server: what it hands on, folded by key, is what the server has.

mod collector;
mod encrypting;
mod folding;
mod following;
mod keyless;
mod linking;
mod load;
mod mariadb;
mod mariadb_statements;
mod packed;
mod placing;
mod refusing;
mod resetting;
mod rolling_back;
mod sharing;
mod typing;

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use cdchost_config::{
    ByteSize, ChunkConfig, MysqlConfig, Secret, StartupMode, TlsConfig, TlsMode, Watermark, ZeroDate,
};
use cdchost_tests::server::{ACCOUNT, PASSWORD, Server};

/// One server for all tests; each has a database of its own.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start().expect("a server starts"))
}

/// The account with the least rights on a database of the shared server.
fn config(database: &str) -> MysqlConfig {
    config_of(&server().address(), database)
}

fn config_of(address: &str, database: &str) -> MysqlConfig {
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

/// A fresh database on the shared server, with these statements run in it.
async fn database(name: &str, statements: &[&str]) -> Result<()> {
    database_on(server(), name, statements).await
}

async fn database_on(server: &Server, name: &str, statements: &[&str]) -> Result<()> {
    let (drop, create, enter) =
        (format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name}"), format!("USE {name}"));
    let mut all = vec![drop.as_str(), create.as_str(), enter.as_str()];
    all.extend(statements);
    server.run(&all).await
}
