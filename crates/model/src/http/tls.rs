//! TLS with ring, against the certificates of the operating system and those that the user adds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// The certificates that are trusted as well as the system's.
static ADDED: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

/// Trusts the certificates in this PEM file as well as the system's, for all further connections of this process. Only the
/// first file counts.
///
/// # Errors
/// If the file cannot be read or holds no certificate; says what is wrong with it.
pub fn trust_certificates(file: &Path) -> Result<(), String> {
    if ADDED.get().is_some() {
        return Ok(());
    }
    let text = read_certificates(file)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| format!("is not valid PEM: {error}"))?;
    // If another thread was faster, it read the same file.
    let _ = ADDED.set(certificates);
    Ok(())
}

/// The configuration of every TLS connection. Costs next to nothing: see `LazyVerifier`.
pub fn client_config() -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(LazyVerifier {
            provider,
            verifier: OnceLock::new(),
        }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The platform's verifier, created when the first certificate is verified. Reading the system's certificates takes
/// milliseconds, which a program that only uses `http://` can save.
#[derive(Debug)]
struct LazyVerifier {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Verifier, Error>>,
}

impl LazyVerifier {
    fn get(&self) -> Result<&Verifier, Error> {
        self.verifier
            .get_or_init(|| {
                let added = ADDED.get().cloned().unwrap_or_default();
                Verifier::new_with_extra_roots(added, Arc::clone(&self.provider))
            })
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl ServerCertVerifier for LazyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.get()?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.get()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.get()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A hint for a failed handshake, based on rustls' message.
pub(crate) fn advice(problem: &str) -> String {
    let file = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    if let Some(file) = file
        && let Err(fault) = read_certificates(&file)
    {
        return format!("SSL_CERT_FILE is {}, which {fault}", file.display());
    }
    let has = |words: &str| problem.contains(words);
    if has("CaUsedAsEndEntity") {
        "the server presents the certificate of an authority as its own; give it one that such an authority has \
         signed (`mkcert` makes both), and set `ca_file` in the configuration (or SSL_CERT_FILE) to the authority's"
    } else if has("NotValidForName") || has("not valid for name") {
        "the certificate is for another host name: use one of its names in the base URL"
    } else if has("Expired") || has("expired") {
        "the certificate has expired, or the clock of this machine is wrong"
    } else if has("UnknownIssuer") {
        "the certificate is signed by an unknown authority; if you trust it, set `ca_file` in the configuration (or \
         SSL_CERT_FILE) to the certificate of that authority"
    } else {
        "if the server has a private certificate, set `ca_file` in the configuration (or SSL_CERT_FILE) to that of its \
         authority; if it speaks plain HTTP, use http:// in the base URL"
    }
    .to_owned()
}

/// Reads a file of certificates. The error says what is wrong with it.
fn read_certificates(file: &Path) -> Result<Vec<u8>, String> {
    let text = std::fs::read(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("is unreadable: {error}"),
    })?;
    let begin = b"-----BEGIN CERTIFICATE-----";
    let has_one = text.windows(begin.len()).any(|part| part == begin);
    if has_one {
        Ok(text)
    } else {
        Err("contains no PEM certificate".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_problem_has_a_hint() {
        for (problem, part) in [
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "mkcert",
            ),
            ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
            (
                "invalid peer certificate: certificate not valid for name \"x\"; certificate is only valid for y",
                "another host name",
            ),
            (
                "invalid peer certificate: Expired",
                "the clock of this machine",
            ),
            (
                "received corrupt message of type InvalidContentType",
                "http://",
            ),
        ] {
            assert!(advice(problem).contains(part), "{problem}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        assert_eq!(read_certificates(&file), Err("does not exist".to_owned()));
        std::fs::write(&file, "").unwrap();
        assert!(
            read_certificates(&file)
                .unwrap_err()
                .starts_with("contains no")
        );
        std::fs::write(&file, "# mine\n-----BEGIN CERTIFICATE-----\n").unwrap();
        assert!(read_certificates(&file).is_ok());
    }
}
