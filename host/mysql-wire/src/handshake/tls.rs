//! Encryption by rustls, and how much of the server's certificate is checked.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::error::WireError;
use crate::packet::PacketStream;

/// How much encryption is asked for. What is asked for is never given up silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// None.
    Disabled,
    /// Where it can be agreed on, else in clear with a warning; certificates are not checked. No protection against
    /// someone in the middle.
    #[default]
    Preferred,
    /// Always; certificates are not checked.
    Required,
    /// Always; the certificate must come from a trusted authority.
    VerifyCa,
    /// As [`Self::VerifyCa`], and the certificate must be the host's.
    VerifyIdentity,
}

impl TlsMode {
    /// The word in options and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Preferred => "preferred",
            Self::Required => "required",
            Self::VerifyCa => "verify-ca",
            Self::VerifyIdentity => "verify-identity",
        }
    }
}

/// Encryption of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// How much is asked for.
    pub mode: TlsMode,
    /// PEM file of the authorities to trust; the public ones by default.
    pub ca: Option<PathBuf>,
    /// PEM file of the client's certificate chain.
    pub cert: Option<PathBuf>,
    /// PEM file of the client's key.
    pub key: Option<PathBuf>,
}

/// All that is needed to encrypt, read and checked before the server hears of it.
pub(super) struct Encryption {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Encryption {
    pub(super) fn new(host: &str, options: &TlsOptions) -> Result<Self, WireError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| failed(format!("'{host}' is no name that a certificate could be for"), error))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(client_config(options)?)), name })
    }

    /// Wraps the connection in TLS.
    pub(super) async fn wrap(self, mut packets: PacketStream) -> Result<PacketStream, WireError> {
        packets.doing = "agreeing on tls";
        packets
            .rewrap(move |transport| async move {
                let host = self.name.to_str().into_owned();
                let stream = self.connector.connect(self.name, transport).await;
                let stream = stream.map_err(|error| match error.kind() {
                    std::io::ErrorKind::InvalidData if is_refused(&error) => failed(
                        format!(
                            "{host} refused the handshake: most likely it has none of the ciphers offered, which all \
                             exchange keys over elliptic curves; servers built on OpenSSL 1.0, such as MySQL up to \
                             8.0.15, have only finite fields and RSA for that"
                        ),
                        error,
                    ),
                    // What rustls itself objects to.
                    std::io::ErrorKind::InvalidData => failed(format!("the handshake with {host} failed"), error),
                    _ => WireError::lost("agreeing on tls", error),
                })?;
                Ok(Box::new(stream) as _)
            })
            .await
    }
}

/// Whether the server found nothing in common.
fn is_refused(error: &std::io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure)))
}

fn client_config(options: &TlsOptions) -> Result<ClientConfig, WireError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed("no protocol version in common", error))?;
    let verifier: Arc<dyn ServerCertVerifier> = match options.mode {
        TlsMode::Disabled | TlsMode::Preferred | TlsMode::Required => {
            Arc::new(AnyServer { schemes: provider.signature_verification_algorithms.supported_schemes() })
        }
        TlsMode::VerifyCa => Arc::new(AnyName { inner: authorities(options, provider)? }),
        TlsMode::VerifyIdentity => authorities(options, provider)?,
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => {
            let chain = read_certificates(cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| failed(format!("cannot read the client's key {}", key.display()), error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| failed("the client's certificate is of no use", error))
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        _ => Err(WireError::Tls {
            reason: "a client's certificate needs its key, and a key its certificate".into(),
            source: None,
        }),
    }
}

fn authorities(
    options: &TlsOptions,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, WireError> {
    let mut roots = RootCertStore::empty();
    match &options.ca {
        Some(path) => {
            for certificate in read_certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| failed(format!("an authority in {} is of no use", path.display()), error))?;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| failed("the authorities are of no use", error))
}

fn read_certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, WireError> {
    let cannot = |error| failed(format!("cannot read certificates from {}", path.display()), error);
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(cannot)?.collect::<Result<_, _>>().map_err(cannot)?;
    if certificates.is_empty() {
        return Err(WireError::Tls { reason: format!("no certificate in {}", path.display()), source: None });
    }
    Ok(certificates)
}

fn failed(reason: impl Into<String>, source: impl std::error::Error + Send + Sync + 'static) -> WireError {
    WireError::Tls { reason: reason.into(), source: Some(Box::new(source)) }
}

/// Takes every certificate: encryption against listeners, none against someone in the middle.
#[derive(Debug)]
struct AnyServer {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Checks the chain to the authority, not whose certificate it is.
#[derive(Debug)]
struct AnyName {
    inner: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The name is looked at last, so this error says that all else was right.
        match self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
