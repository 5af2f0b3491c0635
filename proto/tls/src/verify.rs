//! Checks of certificates by the name in them instead of the host name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use subtle::ConstantTimeEq as _;

use crate::authority::fingerprint;
use crate::{Credentials, Subject};

/// What a client trusts.
#[derive(Debug)]
pub(crate) enum Trust {
    /// The authorities that the cluster's members trust at the moment.
    Held(Credentials),
    /// The authority with this fingerprint, which the other end has to show.
    Pinned([u8; 32]),
    /// These authorities, from a file.
    Roots(Arc<RootCertStore>),
}

/// Accepts controllers of the cluster, at any address.
#[derive(Debug)]
pub(crate) struct Controllers {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl Controllers {
    pub(crate) fn new(trust: Trust, provider: Arc<CryptoProvider>) -> Self {
        Self { trust, provider }
    }

    fn roots(&self, shown: &[CertificateDer<'_>]) -> Result<Arc<RootCertStore>, Error> {
        match &self.trust {
            Trust::Held(credentials) => Ok(credentials.trusted()),
            Trust::Roots(roots) => Ok(Arc::clone(roots)),
            Trust::Pinned(wanted) => {
                let is_it = |certificate: &&CertificateDer<'_>| bool::from(fingerprint(certificate).ct_eq(wanted));
                let authority = shown.iter().find(is_it).ok_or(CertificateError::UnknownIssuer)?;
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone().into_owned())?;
                Ok(Arc::new(roots))
            }
        }
    }
}

impl ServerCertVerifier for Controllers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let roots = self.roots(intermediates)?;
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, now, algorithms)?;
        match Subject::of_certificate(end_entity) {
            Some(Subject::Controller(_)) => Ok(ServerCertVerified::assertion()),
            _ => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
