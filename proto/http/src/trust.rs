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
    made: OnceLock<Result<TlsClient, rustls::Error>>,
}

struct TlsClient {
    config: ClientConfig,
    /// Why it accepts no certificate at all, if so.
    useless: Option<String>,
}

/// A file contains no certificates, or one that is damaged; or nobody is trusted.
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

    /// Reads the authorities of the system, unless that is done. It blocks: do not use it on async threads. An error if there is none by
    /// which a server could be trusted.
    pub fn load(&self) -> Result<(), TrustError> {
        match self.made() {
            Ok(TlsClient { useless: None, .. }) => Ok(()),
            Ok(TlsClient { useless: Some(why), .. }) => Err(TrustError(why.clone())),
            Err(error) => Err(TrustError(error.to_string())),
        }
    }

    /// The settings of TLS. A machine without any authority can still reach its own servers over plain HTTP.
    pub(crate) fn config(&self) -> Result<ClientConfig, rustls::Error> {
        self.made().as_ref().map(|made| made.config.clone()).map_err(Clone::clone)
    }

    fn made(&self) -> &Result<TlsClient, rustls::Error> {
        self.0.made.get_or_init(|| self.make())
    }

    fn make(&self) -> Result<TlsClient, rustls::Error> {
        let mut roots = RootCertStore::empty();
        let mut useless = "none of the certificates that were given can be used".to_owned();
        if !self.0.alone {
            let found = rustls_native_certs::load_native_certs();
            let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            useless = format!("the system's root certificates: there is none that can be used{why}");
            // Systems keep certificates that no program accepts any more; the others still count.
            roots.add_parsable_certificates(found.certs);
        }
        roots.add_parsable_certificates(self.0.added.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let useless = roots.is_empty().then_some(useless);
        Ok(TlsClient { config: builder.with_root_certificates(roots).with_no_client_auth(), useless })
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
        assert!(trust.config().is_ok() && Trust::default().config().is_ok() && trust.load().is_ok());
        let error = Trust::only([]).load().expect_err("nobody is trusted");
        assert_eq!(error.to_string(), "none of the certificates that were given can be used");
    }

    fn base64(bytes: &[u8]) -> String {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }
}
