//! MariaDB as Debian has it: its programs, its empty data folder, its accounts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use cdchost_tools::{Sign, Tool, need, run};

use super::{PASSWORD, statements};
use crate::cache;

/// The server of the machine's own Debian.
const MARIADB: Tool = Tool { sign: Sign::Program("mariadbd"), packages: &["mariadb-server-core"] };

/// The server's program with the options that go before all others.
pub(super) fn mariadbd() -> Result<Command> {
    need(&[MARIADB])?;
    let mut command = Command::new("mariadbd");
    command.args([
        "--no-defaults",
        "--user=root",
        "--basedir=/usr",
        "--gtid-domain-id=1",
        "--character-set-server=utf8mb4",
    ]);
    Ok(command)
}

/// A data folder without any data, made once and copied for each server.
pub(super) fn blank_data() -> Result<PathBuf> {
    need(&[MARIADB])?;
    let make = |folder: &Path| {
        let mut command = Command::new("mariadb-install-db");
        command.args(["--no-defaults", "--basedir=/usr", "--user=root", "--skip-test-db"]);
        command.arg("--auth-root-authentication-method=normal");
        run(command.arg(format!("--datadir={}", folder.join("data").display())))
    };
    Ok(cache::entry("mariadb-blank", make)?.join("data"))
}

/// Accounts as for MySQL, made outside the log.
pub(super) fn grants() -> String {
    let proof = format!("IDENTIFIED BY '{PASSWORD}'");
    let least = "SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.*";
    let accounts = [
        ("'root'@'127.0.0.1'", String::new(), "ALL ON *.*"),
        ("'writer'@'%'", "IDENTIFIED BY 'writer_pw'".to_owned(), "ALL ON *.*"),
        ("'cdc'@'%'", proof.clone(), "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, BINLOG MONITOR ON *.*"),
        ("'cdc_min'@'%'", proof, least),
    ];
    format!("DELETE FROM mysql.global_priv WHERE User = '';\nFLUSH PRIVILEGES;\n{}", statements(&accounts))
}
