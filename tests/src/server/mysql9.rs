//! MySQL 9 out of packages of Debian's unstable: unpacked beside the system and started by the loader among them, since it
//! needs a newer C library than the machine may have. Nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cdchost_tools::run;

use crate::cache;

/// The server; what it needs comes with it.
const PACKAGE: &str = "mysql-server-core";
/// Packages that scripts of the server need and the server does not, with all that comes for them alone.
const UNUSED: [&str; 1] = ["perl"];
/// Who signs Debian's packages.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Small, so that a copy of the data folder is.
const REDO_LOG: &str = "--innodb-redo-log-capacity=16M";

/// The server's program with the options that go before all others.
pub(super) fn mysqld(home: &Path) -> Command {
    let path = |inside: &str| home.join(inside).display().to_string();
    let mut command = Command::new(home.join("usr/lib64/ld-linux-x86-64.so.2"));
    command.args(["--library-path", &path("usr/lib/x86_64-linux-gnu"), &path("usr/sbin/mysqld")]);
    command.args(["--no-defaults", "--user=root", "--mysqlx=OFF", REDO_LOG]);
    command.arg(format!("--basedir={}", path("usr")));
    command.arg(format!("--lc-messages-dir={}", path("usr/share/mysql")));
    command.arg(format!("--character-sets-dir={}", path("usr/share/mysql/charsets")));
    command.arg(format!("--plugin-dir={}", path("usr/lib/mysql/plugin")));
    command.env("OPENSSL_MODULES", path("usr/lib/x86_64-linux-gnu/ossl-modules"));
    command
}

/// The server's programs, fetched once.
pub(super) fn program() -> Result<PathBuf> {
    let entry = cache::entry("mysql-9", |folder| {
        fetch(folder).context("MySQL 9 is fetched from Debian's unstable with apt-get, which must reach a mirror of it")
    })?;
    Ok(entry.join("root"))
}

/// A data folder without any data, made once and copied for each server.
pub(super) fn blank_data() -> Result<PathBuf> {
    let home = program()?;
    let entry = cache::entry("mysql-9-blank", |folder| {
        let data = folder.join("data");
        run(mysqld(&home).arg("--initialize-insecure").arg(format!("--datadir={}", data.display())))
    })?;
    Ok(entry.join("data"))
}

/// Fetches the packages with lists and a cache of apt's that are ours alone, and unpacks them.
fn fetch(folder: &Path) -> Result<()> {
    ensure!(Path::new(KEYS).exists(), "{KEYS} is missing: install the package debian-archive-keyring");
    for inside in ["lists/partial", "cache/archives/partial", "root"] {
        fs::create_dir_all(folder.join(inside))?;
    }
    fs::write(folder.join("unstable.list"), format!("deb [signed-by={KEYS}] {} sid main\n", mirror()?))?;
    fs::write(folder.join("status"), installed())?;
    let path = |inside: &str| folder.join(inside).display().to_string();
    let apt = || {
        let mut command = Command::new("apt-get");
        let settings = [
            format!("Dir::Etc::sourcelist={}", path("unstable.list")),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::State::status={}", path("status")),
            format!("Dir::Cache={}", path("cache")),
            "Debug::NoLocking=1".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "APT::Keep-Downloaded-Packages=true".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        command.args(settings.iter().flat_map(|setting| ["-o", setting]));
        command
    };
    run(apt().args(["update", "-qq", "--error-on=any"]))?;
    run(apt().args(["install", "-y", "-qq", "--no-install-recommends", "--download-only", PACKAGE]))?;
    for package in fs::read_dir(folder.join("cache/archives"))? {
        let package = package?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder.join("root")))?;
        }
    }
    for inside in ["lists", "cache", "root/usr/bin", "root/usr/share/doc"] {
        fs::remove_dir_all(folder.join(inside))?;
    }
    Ok(())
}

/// What apt is told to be there already: packages of no use here.
fn installed() -> String {
    let entry = |name| {
        format!(
            "Package: {name}\nStatus: install ok installed\nVersion: 99\nArchitecture: amd64\nMulti-Arch: allowed\n\n"
        )
    };
    UNUSED.map(entry).concat()
}

/// The mirror of Debian that the machine itself uses.
fn mirror() -> Result<String> {
    let folder = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let files = folder.chain([PathBuf::from("/etc/apt/sources.list")]);
    let text: String = files.filter_map(|file| fs::read_to_string(file).ok()).collect::<Vec<_>>().join("\n");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace).map(|word| word.trim_end_matches('/'));
    let mirror = words.find(|word| word.starts_with("http") && word.ends_with("/debian"));
    mirror.map(str::to_owned).context("no mirror of Debian in /etc/apt: the machine must have one")
}
