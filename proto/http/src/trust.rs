//! Which certificates of servers are accepted.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The authorities that may sign the certificates of servers: those of the system, and others that the operator adds; or given ones alone. Cheap
/// to clone.
#[derive(Clone, Default)]
pub struct Trust(Arc<Inner>);

#[derive(Default)]
struct Inner {
    added: Vec<CertificateDer<'static>>,
    /// Whether the system's authorities do not count.
    alone: bool,
    /// Reading the system's certificates takes milliseconds, so it is done once, for the first connection that needs them.
    made: OnceLock<Result<ClientConfig, rustls::Error>>,
}

/// The text contains no certificates, or one that is damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TrustError(String);

impl Trust {
    /// The system's authorities, and those of a file in the PEM format.
    pub fn with(pem: &[u8]) -> Result<Self, TrustError> {
        let mut added = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| TrustError(format!("a certificate is damaged: {error}")))?;
            let accepted = Self::check(&certificate);
            accepted.map_err(|error| TrustError(format!("a certificate cannot be used: {error}")))?;
            added.push(certificate);
        }
        if added.is_empty() {
            return Err(TrustError("it contains no certificate in the PEM format".to_owned()));
        }
        Ok(Self(Arc::new(Inner { added, ..Inner::default() })))
    }

    /// These authorities alone, without those that cannot be used.
    pub fn only(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        let added = certificates.into_iter().collect();
        Self(Arc::new(Inner { added, alone: true, ..Inner::default() }))
    }

    /// Whether a certificate can be that of an authority.
    pub fn check(certificate: &CertificateDer<'static>) -> Result<(), rustls::Error> {
        RootCertStore::empty().add(certificate.clone())
    }

    /// The settings of TLS. A machine without any authority can still reach its own servers over plain HTTP.
    pub(crate) fn config(&self) -> Result<ClientConfig, rustls::Error> {
        self.0.made.get_or_init(|| self.make()).clone()
    }

    fn make(&self) -> Result<ClientConfig, rustls::Error> {
        let mut roots = RootCertStore::empty();
        if !self.0.alone {
            // Systems keep certificates that no program accepts any more; the others still count.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        roots.add_parsable_certificates(self.0.added.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.alone, self.0.added.len()) {
            (true, given) => write!(f, "{given} given authorities"),
            (false, more) => write!(f, "the system's authorities and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_usable_certificate_are_refused() {
        let refused = |pem: &str| Trust::with(pem.as_bytes()).map(drop).expect_err("refused").to_string();
        assert_eq!(refused(""), "it contains no certificate in the PEM format");
        let block = |inner: &str| format!("-----BEGIN CERTIFICATE-----\n{inner}\n-----END CERTIFICATE-----\n");
        assert!(refused(&block("AAAA")).starts_with("a certificate cannot be used: "));
        assert!(refused(&block("!!")).starts_with("a certificate is damaged: "));
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let trust = Trust::with(block(&base64(made.cert.der())).as_bytes()).expect("a certificate");
        assert_eq!(format!("{trust:?}"), "the system's authorities and 1 more");
        assert!(trust.config().is_ok() && Trust::default().config().is_ok());
    }

    fn base64(bytes: &[u8]) -> String {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }
}
