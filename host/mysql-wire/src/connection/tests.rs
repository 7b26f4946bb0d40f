//! A server of the tests' own at the other end of a pipe, and what the client makes of its answers.

mod fake_server;
mod login;
mod results;
mod stream;

use std::time::Duration;

use tokio::io::DuplexStream;

use super::{ConnectOptions, Connection};
use crate::{TlsMode, WireError};
use fake_server::FakeServer;

fn options() -> ConnectOptions {
    let mut options = ConnectOptions::new("db.example", 3306, "cdc", "secret");
    options.tls.mode = TlsMode::Disabled;
    options
}

/// Logs in with `options` while `serve` plays the server.
async fn log_in(
    options: ConnectOptions,
    serve: impl AsyncFnOnce(FakeServer<DuplexStream>),
) -> Result<Connection, WireError> {
    let (here, there) = tokio::io::duplex(1 << 16);
    let (connection, ()) = tokio::join!(Connection::log_in(Box::new(here), &options), serve(FakeServer::new(there)));
    connection
}

/// A connection that is logged in, and its server.
async fn logged_in(options: &ConnectOptions) -> (Connection, FakeServer<DuplexStream>) {
    logged_in_with(options, FakeServer::<DuplexStream>::CAPABILITIES).await
}

async fn logged_in_with(options: &ConnectOptions, capabilities: u32) -> (Connection, FakeServer<DuplexStream>) {
    let (here, there) = tokio::io::duplex(1 << 16);
    let mut server = FakeServer::new(there);
    let serve = async {
        server.greet("8.0.15", "mysql_native_password", capabilities).await;
        server.receive().await;
        server.send(OK).await;
    };
    let (connection, ()) = tokio::join!(Connection::log_in(Box::new(here), options), serve);
    (connection.unwrap(), server)
}

/// An OK packet without anything in it.
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
/// The end of rows, in the newer form.
const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
/// The end of rows or definitions, in the older form.
const EOF: &[u8] = &[0xFE, 0, 0, 2, 0];
/// Access denied.
const DENIED: &[u8] = b"\xFF\x15\x04#28000Access denied";

#[test]
fn of_each_server_it_is_said_once_that_it_connects_in_clear() {
    let said: Vec<bool> = [("a.example", 1), ("a.example", 1), ("a.example", 2), ("b.example", 1), ("a.example", 2)]
        .map(|(host, port)| super::is_news(host, port))
        .into();
    assert_eq!(said, [true, false, true, true, false]);
}

#[test]
fn options_show_no_password() {
    let shown = format!("{:?}", options());
    assert!(shown.contains("db.example") && !shown.contains("secret"), "{shown}");
    assert_eq!(options().silence_max, Duration::from_secs(300));
}
