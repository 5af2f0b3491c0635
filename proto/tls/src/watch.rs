//! Clients whose certificates a listener refuses, for whoever wants to know.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::Subject;

/// A client that a listener refused because of its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Whom its certificate names; none if it showed none, or one that names nobody.
    pub claimed: Option<Subject>,
    /// Whether the cluster's authority issued that certificate.
    pub proven: bool,
}

/// Is told of each client that is refused. Must not block. Cheap to clone.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn(Refused) + Send + Sync>);

impl Watch {
    /// Calls a function with each of them.
    pub fn new(told: impl Fn(Refused) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    pub(crate) fn tell(&self, refused: Refused) {
        (self.0)(refused);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// A verifier that tells whose certificate it refuses.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    pub(crate) watch: Watch,
}

impl Watched {
    fn refused(&self, certificate: &CertificateDer<'_>) {
        self.watch.tell(Refused { claimed: Subject::of_certificate(certificate), proven: false });
    }
}

impl ClientCertVerifier for Watched {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verifier.verify_client_cert(end_entity, intermediates, now).inspect_err(|_| self.refused(end_entity))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self.verifier.verify_tls12_signature(message, certificate, signature);
        verified.inspect_err(|_| self.refused(certificate))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self.verifier.verify_tls13_signature(message, certificate, signature);
        verified.inspect_err(|_| self.refused(certificate))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
