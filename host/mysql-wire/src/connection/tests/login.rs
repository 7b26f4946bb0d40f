//! Greeting, encryption, proofs.

use std::sync::Arc;
use std::time::Duration;

use num_bigint::BigUint;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;

use super::{DENIED, FakeServer, OK, log_in, options};
use crate::{ConnectOptions, Connection, Remedy, TlsMode, TlsState, WireError};

const ALL: u32 = FakeServer::<DuplexStream>::CAPABILITIES;
const SHA2: &str = "caching_sha2_password";
const NATIVE: &str = "mysql_native_password";
/// Proofs of "secret" for the nonce 1, 2, …, 20, computed apart from this code.
const SHA2_PROOF: &str = "746ebe205d56a0707acb3e796e834e0dd7b1d61743b26bd5202c7a623230c7c9";
const NATIVE_PROOF: &str = "b32bb3a583e1340c0a1108d58b1be49781ad8c2f";
const PRIVATE_EXPONENT: &str = "5f90c2e56886ce9d5bdf8dfcbcc6d6a7af043b84d9047b6cd6c91bffe76811ee4e6351dfdc0e05558887eb8e91c63fac0928efc7e4367c24261c3c1fc1e1d9eb4c3fbf6b5f6170a7b1cfc810ad1d0bd20470c3ca2c6fccc3aa74895a37a476963c3d8a307e520c3fab2500562428ddd1d6f53d8f2d5cd0a8634fb6476f14efec03628bebe960b387eedc1fc42d6416c2acbb8c8ed2c58d565a4a40a85e1dbac6b121a3e6887f24b81f5fcfde404638ebe8fdc4666c1dc3c0f23e1823a60c5541c7615362105f969e55f3577dbcb55f4c65aa60efd4cb640d40882cc59f66f8c1765753751b239ce26ecffe31bbfea0f996329c393d758459867aa70865862b0f";
const PUBLIC_KEY: &[u8] = include_bytes!("../../../tests/data/rsa-public.pem");

fn data(file: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The proof in a client's response, and the method that it names.
fn proof_and_method(response: &[u8]) -> (Vec<u8>, String) {
    assert_eq!(response[0] & 0x80, 0, "the client offers LOCAL INFILE");
    let rest = &response[32..];
    let rest = rest.strip_prefix(b"cdc\0").unwrap();
    let (proof, rest) = rest[1..].split_at(rest[0].into());
    let method = rest.split(|&byte| byte == 0).next().unwrap();
    (proof.to_vec(), String::from_utf8(method.to_vec()).unwrap())
}

#[tokio::test]
async fn caching_sha2_by_cache() {
    let connection = log_in(options(), async |mut server| {
        server.greet("8.0.15", SHA2, ALL).await;
        let (proof, method) = proof_and_method(&server.receive().await);
        assert_eq!((hex(&proof).as_str(), method.as_str()), (SHA2_PROOF, SHA2));
        server.send(&[1, 3]).await;
        server.send(OK).await;
    });
    let connection = connection.await.unwrap();
    let server = connection.server();
    assert_eq!((server.version.as_str(), server.connection_id, server.tls), ("8.0.15", 7, TlsState::Plain));
    assert!(!server.is_mariadb);
}

#[tokio::test]
async fn native_after_a_switch() {
    let connection = log_in(options(), async |mut server| {
        server.greet("5.5.5-10.11.19-MariaDB", SHA2, ALL).await;
        server.receive().await;
        let nonce = FakeServer::<DuplexStream>::NONCE;
        server.send(&[&[0xFE][..], NATIVE.as_bytes(), &[0], &nonce, &[0]].concat()).await;
        assert_eq!(hex(&server.receive().await), NATIVE_PROOF);
        server.send(OK).await;
    });
    let connection = connection.await.unwrap();
    assert_eq!(connection.server().version, "10.11.19-MariaDB");
    assert!(connection.server().is_mariadb);
}

#[tokio::test]
async fn the_password_itself_is_not_sent_in_clear() {
    let result = log_in(options(), async |mut server| {
        server.greet("8.0.15", SHA2, ALL).await;
        server.receive().await;
        server.send(&[1, 4]).await;
    });
    let error = result.await.unwrap_err();
    assert!(matches!(&error, WireError::Auth { reason, .. } if reason.contains("not sent without tls")), "{error}");
    assert_eq!(error.remedy(), Remedy::FixConfig);
}

#[tokio::test]
async fn the_password_goes_under_the_servers_key_where_allowed() {
    let options = ConnectOptions { allow_public_key_retrieval: true, ..options() };
    let connection = log_in(options.clone(), async |mut server| {
        server.greet("8.0.15", SHA2, ALL).await;
        server.receive().await;
        server.send(&[1, 4]).await;
        assert_eq!(server.receive().await, [2]);
        server.send(&[&[1], PUBLIC_KEY].concat()).await;
        let sealed = server.receive().await;
        assert_eq!(open(&sealed), b"secret\0");
        server.send(OK).await;
    });
    connection.await.unwrap();
}

/// Opens what was sealed with the public key, and takes the nonce off.
fn open(sealed: &[u8]) -> Vec<u8> {
    let key = rustls::pki_types::SubjectPublicKeyInfoDer::from_pem_slice(PUBLIC_KEY).unwrap();
    // The modulus of a 2048-bit key in this form.
    let modulus = BigUint::from_bytes_be(&key.as_ref()[33..33 + 256]);
    let exponent = BigUint::parse_bytes(PRIVATE_EXPONENT.as_bytes(), 16).unwrap();
    let block = BigUint::from_bytes_be(sealed).modpow(&exponent, &modulus).to_bytes_be();
    let (seed, data) = block.split_at(20);
    let mask = |bytes: &[u8], seed: &[u8]| -> Vec<u8> {
        let block = |number: u32| digest(&SHA1_FOR_LEGACY_USE_ONLY, &[seed, &number.to_be_bytes()].concat());
        let mask: Vec<u8> = (0..13).flat_map(|number| block(number).as_ref().to_vec()).collect();
        bytes.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
    };
    let seed = mask(seed, data);
    let data = mask(data, &seed);
    assert_eq!(&data[..20], digest(&SHA1_FOR_LEGACY_USE_ONLY, b"").as_ref());
    let message = data[20..].iter().position(|&byte| byte == 1).unwrap() + 21;
    data[message..]
        .iter()
        .zip(FakeServer::<DuplexStream>::NONCE.iter().cycle())
        .map(|(byte, nonce)| byte ^ nonce)
        .collect()
}

#[tokio::test]
async fn a_key_is_not_taken_unasked() {
    let result = log_in(options(), async |mut server| {
        server.greet("8.0.15", SHA2, ALL).await;
        server.receive().await;
        server.send(&[&[1], PUBLIC_KEY].concat()).await;
    });
    assert!(matches!(result.await.unwrap_err(), WireError::Protocol(_)));
}

#[tokio::test]
async fn other_methods_are_refused_by_name() {
    for method in ["mysql_clear_password", "sha256_password", "dialog"] {
        let result = log_in(options(), async |mut server| {
            server.greet("8.0.15", SHA2, ALL).await;
            server.receive().await;
            server.send(&[&[0xFE][..], method.as_bytes(), b"\0nonce"].concat()).await;
        });
        let error = result.await.unwrap_err().to_string();
        assert!(error.contains(method), "{error}");
    }
}

#[tokio::test]
async fn refusals_and_old_servers() {
    let denied = log_in(options(), async |mut server| {
        server.greet("8.0.15", SHA2, ALL).await;
        server.receive().await;
        server.send(DENIED).await;
    });
    let error = denied.await.unwrap_err();
    assert!(matches!(&error, WireError::Auth { source: Some(source), .. } if source.code == 1045), "{error}");
    let full = log_in(options(), async |mut server| server.send(b"\xFF\x10\x04Too many connections").await).await;
    assert_eq!(full.unwrap_err().remedy(), Remedy::Reconnect);
    let old = log_in(options(), async |mut server| server.greet("4.0.30", "", 0x200).await).await;
    assert!(matches!(old.unwrap_err(), WireError::Unsupported { .. }));
}

/// Logs in over TLS to a server whose certificate is for `db.example`.
async fn log_in_encrypted(options: &ConnectOptions) -> Result<TlsState, WireError> {
    let connection = log_in(options.clone(), async |mut server| {
        server.greet("8.0.15", SHA2, ALL).await;
        assert_eq!(server.receive().await.len(), 32);
        let chain = CertificateDer::pem_file_iter(data("server-cert.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(data("server-key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let Ok(stream) = acceptor.accept(server.stream).await else { return };
        let mut server = FakeServer { stream, sequence: 2 };
        proof_and_method(&server.receive().await);
        server.send(&[1, 4]).await;
        assert_eq!(server.receive().await, b"secret\0");
        server.send(OK).await;
        server.stream.flush().await.unwrap();
    });
    connection.await.map(|connection| connection.server().tls)
}

#[tokio::test]
async fn certificates_are_checked_as_asked() {
    let cases = [
        (TlsMode::Preferred, None, "db.example", true),
        (TlsMode::Required, None, "db.example", true),
        (TlsMode::Required, None, "else.example", true),
        (TlsMode::VerifyCa, Some("ca.pem"), "db.example", true),
        (TlsMode::VerifyCa, Some("ca.pem"), "else.example", true),
        (TlsMode::VerifyCa, Some("other-ca.pem"), "db.example", false),
        (TlsMode::VerifyCa, None, "db.example", false),
        (TlsMode::VerifyIdentity, Some("ca.pem"), "db.example", true),
        (TlsMode::VerifyIdentity, Some("ca.pem"), "else.example", false),
        (TlsMode::VerifyIdentity, Some("other-ca.pem"), "db.example", false),
    ];
    for (mode, ca, host, accepted) in cases {
        let mut options = ConnectOptions { host: host.to_owned(), ..options() };
        options.tls.mode = mode;
        options.tls.ca = ca.map(data);
        options.tls.cert = Some(data("client-cert.pem"));
        options.tls.key = Some(data("client-key.pem"));
        match log_in_encrypted(&options).await {
            Ok(state) => assert!(accepted && state == TlsState::Encrypted, "{mode:?} {ca:?} {host}: {state:?}"),
            Err(WireError::Tls { .. }) => assert!(!accepted, "{mode:?} {ca:?} {host} was refused"),
            Err(error) => panic!("{mode:?} {ca:?} {host}: {error}"),
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_it_must_have_it() {
    for (mode, accepted) in [
        (TlsMode::Disabled, true),
        (TlsMode::Preferred, true),
        (TlsMode::Required, false),
        (TlsMode::VerifyCa, false),
        (TlsMode::VerifyIdentity, false),
    ] {
        let mut options = options();
        options.tls.mode = mode;
        let result = log_in(options.clone(), async |mut server| {
            server.greet("8.0.15", NATIVE, ALL & !FakeServer::<DuplexStream>::SSL).await;
            if accepted {
                server.receive().await;
                server.send(OK).await;
            }
        });
        match result.await {
            Ok(connection) => assert!(accepted && connection.server().tls == TlsState::Plain, "{mode:?}"),
            Err(error) => assert!(!accepted && matches!(error, WireError::Tls { .. }), "{mode:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn bytes_slipped_in_before_encryption_are_refused() {
    let mut options = options();
    options.tls.mode = TlsMode::Required;
    let result = log_in(options.clone(), async |mut server| {
        // The greeting and a packet in clear arrive together.
        server.greet("8.0.15", SHA2, ALL).await;
        server.sequence = 2;
        server.send(OK).await;
        server.receive().await;
    });
    let error = result.await.unwrap_err();
    assert!(matches!(&error, WireError::Protocol(_)), "{error}");
}

#[tokio::test]
async fn unreadable_certificates_are_said() {
    let mut options = options();
    options.tls.mode = TlsMode::VerifyCa;
    options.tls.ca = Some(data("no-such.pem"));
    let result = log_in(options.clone(), async |mut server| server.greet("8.0.15", SHA2, ALL).await).await;
    let error = result.unwrap_err().to_string();
    assert!(error.contains("no-such.pem"), "{error}");
    options.tls.ca = Some(data("ca.pem"));
    options.tls.key = Some(data("client-key.pem"));
    let result = log_in(options.clone(), async |mut server| server.greet("8.0.15", SHA2, ALL).await).await;
    assert!(matches!(result.unwrap_err(), WireError::Tls { .. }));
}

/// A server that cannot agree on a cipher, and then takes the client in clear, or never does.
#[tokio::test]
async fn preferred_goes_on_in_clear_and_required_does_not() {
    for (mode, accepted) in [(TlsMode::Preferred, true), (TlsMode::Required, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut options = options();
        options.host = "127.0.0.1".to_owned();
        options.port = listener.local_addr().unwrap().port();
        options.tls.mode = mode;
        let serve = async {
            let mut server = FakeServer::new(listener.accept().await.unwrap().0);
            server.greet("8.0.15", NATIVE, ALL).await;
            server.receive().await;
            // A fatal alert of TLS 1.2: handshake failure.
            server.stream.write_all(&[21, 3, 3, 0, 2, 2, 40]).await.unwrap();
            let mut server = FakeServer::new(listener.accept().await.unwrap().0);
            server.greet("8.0.15", NATIVE, ALL).await;
            server.receive().await;
            server.send(OK).await;
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = Connection::connect(&options) => result,
            () = serve => unreachable!("the server never ends"),
        };
        match result {
            Ok(connection) => assert!(accepted && connection.server().tls == TlsState::Plain),
            Err(error) => assert!(!accepted && matches!(error, WireError::Tls { .. }), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_greet_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = options();
    options.host = "127.0.0.1".to_owned();
    options.port = listener.local_addr().unwrap().port();
    options.connect_timeout = Duration::from_millis(20);
    let error = Connection::connect(&options).await.unwrap_err();
    assert!(matches!(error, WireError::Silent { .. }), "{error}");
    drop(listener);
    let error = Connection::connect(&options).await.unwrap_err();
    assert!(matches!(&error, WireError::Connect { .. }) && error.remedy() == Remedy::Reconnect, "{error}");
}
