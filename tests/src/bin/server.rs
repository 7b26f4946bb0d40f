//! `cargo xtask server`: a server for work by hand.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program talks to its user")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cdchost_tests::server::{ACCOUNT, PASSWORD, Server, ServerOptions};
use cdchost_tests::{cache, wait};

const PORT: u16 = 13_399;
const LIMIT: Duration = Duration::from_secs(300);

/// Holds the number of the process that holds the server.
fn note() -> Result<PathBuf> {
    Ok(cache::folder()?.join("mysql-by-hand"))
}

fn holder() -> Result<Option<String>> {
    let text = fs::read_to_string(note()?).unwrap_or_default();
    let name = fs::read_to_string(format!("/proc/{}/comm", text.trim())).unwrap_or_default();
    Ok((name.trim() == "server").then(|| text.trim().to_owned()))
}

fn start() -> Result<()> {
    ensure!(holder()?.is_none(), "it is up already");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["mysql", "hold"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut holder = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn()?;
    wait::until("the server is up", LIMIT, || {
        ensure!(holder.try_wait()?.is_none(), "the server did not start: is port {PORT} in use?");
        Ok(note()?.exists().then_some(()))
    })?;
    println!(
        "127.0.0.1:{PORT}: root without password; {ACCOUNT} with {PASSWORD}, and with more rights cdc and cdc_native"
    );
    println!("its data goes away with `cargo xtask server mysql stop`");
    Ok(())
}

fn stop() -> Result<()> {
    let holder = holder()?.context("it is not up")?;
    let status = Command::new("sh").args(["-c", "kill $0", &holder]).status()?;
    ensure!(status.success(), "process {holder} could not be ended");
    fs::remove_file(note()?).context("remove the note of the server")?;
    println!("stopped; its data is gone");
    Ok(())
}

/// Keeps the server until this process ends.
fn hold() -> Result<()> {
    let mut server = Server::with(ServerOptions { port: Some(PORT), ..ServerOptions::default() })?;
    fs::write(note()?, std::process::id().to_string())?;
    wait::until("the server ends", Duration::MAX, || Ok(server.process().ended()?.map(|_| ())))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["mysql", "start"] => start(),
        ["mysql", "stop"] => stop(),
        ["mysql", "hold"] => hold(),
        _ => (|| bail!("usage: cargo xtask server mysql start|stop"))(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("server: {error:#}");
            ExitCode::FAILURE
        }
    }
}
