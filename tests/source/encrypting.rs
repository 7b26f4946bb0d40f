//! TLS against real servers: what each mode takes and refuses.

use anyhow::{Result, ensure};
use cdchost_config::{MysqlConfig, Secret, TlsConfig, TlsMode};
use cdchost_connector::{SourceEnd, StopClass};
use cdchost_tests::authority::Authority;
use cdchost_tests::server::{Flavor, PASSWORD, Server, ServerOptions};

use super::collector::start;
use super::{config, config_of, database, database_on};

const TABLE: [&str; 1] = ["CREATE TABLE t (id INT PRIMARY KEY)"];

/// Opens a source and lets it read all; what the mode leads to, in words.
async fn outcome(config: &MysqlConfig) -> Result<String> {
    match start(config, SourceEnd::Snapshot, None).await {
        Ok(running) => {
            running.until_the_end().await?;
            Ok("read".into())
        }
        Err(error) => {
            assert_eq!(error.class, StopClass::Config, "{error:?}");
            let cause = error.cause.as_ref().map(|cause| format!("{cause:?}")).unwrap_or_default();
            Ok(format!("{}: {cause}", error.message))
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_takes_what_it_says() -> Result<()> {
    let name = "tls_modes";
    let authority = Authority::new()?;
    let file = |name: &str| authority.file(name).display().to_string();
    let extra = vec![format!("--ssl-cert={}", file("server.pem")), format!("--ssl-key={}", file("server.key"))];
    let own = Server::with(ServerOptions { flavor: Flavor::Mariadb, extra, ..ServerOptions::default() })?;
    database_on(&own, name, &TABLE).await?;
    own.run(&[
        "CREATE USER sealed IDENTIFIED BY 'cdc_pw' REQUIRE SSL",
        "GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO sealed",
    ])
    .await?;
    let rows = [
        (TlsMode::Disabled, None, "127.0.0.1", "Access denied"),
        (TlsMode::Preferred, None, "127.0.0.1", "read"),
        (TlsMode::Required, None, "localhost", "read"),
        (TlsMode::VerifyCa, Some("ca.pem"), "127.0.0.1", "read"),
        (TlsMode::VerifyCa, Some("ca.pem"), "localhost", "read"),
        (TlsMode::VerifyCa, Some("other.pem"), "127.0.0.1", "UnknownIssuer"),
        (TlsMode::VerifyCa, None, "127.0.0.1", "UnknownIssuer"),
        (TlsMode::VerifyIdentity, Some("ca.pem"), "127.0.0.1", "read"),
        (TlsMode::VerifyIdentity, Some("ca.pem"), "localhost", "NotValidForName"),
        (TlsMode::VerifyIdentity, Some("other.pem"), "127.0.0.1", "UnknownIssuer"),
    ];
    for (mode, ca, host, expected) in rows {
        let tls = TlsConfig { mode: Some(mode), ca: ca.map(|ca| authority.file(ca)), ..TlsConfig::default() };
        let address = format!("{host}:{}", own.port());
        let account = ("sealed".to_owned(), Secret::new(PASSWORD));
        let config = MysqlConfig { username: account.0, password: account.1, tls, ..config_of(&address, name) };
        let found = outcome(&config).await?;
        ensure!(found.contains(expected), "{mode:?} with {ca:?} at {host}: {found}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_cannot_encrypt_are_told_apart() -> Result<()> {
    let name = "tls_none";
    let own = Server::with(ServerOptions { flavor: Flavor::Mariadb, ..ServerOptions::default() })?;
    database_on(&own, name, &TABLE).await?;
    database(name, &TABLE).await?;
    let with = |config: MysqlConfig, mode| MysqlConfig { tls: TlsConfig { mode: Some(mode), ..config.tls }, ..config };
    let plain = || config_of(&own.address(), name);
    ensure!(outcome(&with(plain(), TlsMode::Preferred)).await? == "read");
    let found = outcome(&with(plain(), TlsMode::Required)).await?;
    ensure!(found.contains("offers none, but mode required asks for it"), "{found}");
    // MySQL 8.0.15 as the tests have it is built on OpenSSL 1.0.
    ensure!(outcome(&with(config(name), TlsMode::Preferred)).await? == "read");
    let found = outcome(&with(config(name), TlsMode::Required)).await?;
    ensure!(found.contains("elliptic curves") && found.contains("OpenSSL 1.0"), "{found}");
    Ok(())
}
