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

use anyhow::Result;
use cdchost_config::MysqlConfig;
use cdchost_tests::server::{Server, config_of};

/// One server for all tests; each has a database of its own.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start().expect("a server starts"))
}

/// The account with the least rights on a database of the shared server.
fn config(database: &str) -> MysqlConfig {
    config_of(&server().address(), database)
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
