//! TLS with ring, against the certificates of the operating system.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

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

/// The platform's own verifier, made when the first certificate has to be checked. Reading the system's
/// certificates takes milliseconds, which a program that only talks to `http://` should not pay.
#[derive(Debug)]
struct LazyVerifier {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Verifier, Error>>,
}

impl LazyVerifier {
    fn get(&self) -> Result<&Verifier, Error> {
        self.verifier
            .get_or_init(|| Verifier::new(Arc::clone(&self.provider)))
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

/// What to do about a failed handshake, by what rustls says.
pub(crate) fn advice(problem: &str) -> String {
    let file = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    if let Some(file) = file
        && let Err(fault) = check_certificates(&file)
    {
        return format!("SSL_CERT_FILE names {}, which {fault}", file.display());
    }
    let has = |words: &str| problem.contains(words);
    if has("CaUsedAsEndEntity") {
        "the server presents the certificate of an authority as its own; give it one that such an authority has \
         signed (`mkcert` makes both), and name the authority's in SSL_CERT_FILE"
    } else if has("NotValidForName") || has("not valid for name") {
        "the certificate is for another name: write the base URL with a name that it has"
    } else if has("Expired") || has("expired") {
        "the certificate has expired, or the clock of this machine is wrong"
    } else if has("UnknownIssuer") {
        "nobody whom this machine trusts has signed the certificate; if you trust it, name the certificate of its \
         authority in SSL_CERT_FILE"
    } else {
        "if the server uses a certificate of its own, name its authority's in SSL_CERT_FILE; if it speaks plain \
         HTTP, write http:// in the base URL"
    }
    .to_owned()
}

/// Whether a file holds certificates; what is wrong with it, if not.
fn check_certificates(file: &Path) -> Result<(), String> {
    let text = std::fs::read(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be read: {error}"),
    })?;
    let begin = b"-----BEGIN CERTIFICATE-----";
    let has_one = text.windows(begin.len()).any(|part| part == begin);
    if has_one {
        Ok(())
    } else {
        Err("holds no certificate in PEM form".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_of_a_certificate_has_its_advice() {
        for (problem, part) in [
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "mkcert",
            ),
            ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
            (
                "invalid peer certificate: certificate not valid for name \"x\"; certificate is only valid for y",
                "another name",
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
    fn a_file_without_certificates_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        assert_eq!(check_certificates(&file), Err("does not exist".to_owned()));
        std::fs::write(&file, "").unwrap();
        assert!(
            check_certificates(&file)
                .unwrap_err()
                .starts_with("holds no")
        );
        std::fs::write(&file, "# mine\n-----BEGIN CERTIFICATE-----\n").unwrap();
        assert_eq!(check_certificates(&file), Ok(()));
    }
}
