//! The certificate authority of a cluster.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, SerialNumber, SignatureAlgorithm,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use crate::files::{self, AUTHORITY, AUTHORITY_KEY};
use crate::{Subject, TlsError};

/// The name of every authority, so that it can be issued from without reading its certificate.
const NAME: &str = "Atlas cluster authority";
/// How long an authority is valid.
const YEARS: u64 = 10;
/// How much earlier than now a certificate is valid, for clocks that are behind.
const SKEW: i64 = 3_600;
/// Bytes of a public key: a point of P-256, uncompressed.
pub const KEY_BYTES: usize = 65;

/// The certificate authority of a cluster: its certificate, its key, and other certificates that are trusted as well.
pub struct Authority {
    trusted: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

/// The public key of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeKey([u8; KEY_BYTES]);

impl NodeKey {
    /// Reads a key that a worker sent; none if the bytes are no key.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; KEY_BYTES] = bytes.try_into().ok()?;
        (bytes[0] == 4).then_some(Self(bytes))
    }

    /// The key as it is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The SHA-256 of the key, as [`atlas_env::Proof::key`] has it.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.subject_public_key_info()).into()
    }
}

impl PublicKeyData for NodeKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// What a certificate says.
pub(crate) struct Wanted<'a> {
    pub(crate) subject: &'a Subject,
    /// Host names and addresses at which a controller is reached.
    pub(crate) hosts: &'a [String],
    /// The time in seconds since 1970.
    pub(crate) now: i64,
    pub(crate) life: Duration,
}

impl Authority {
    /// Makes an authority. `now` is in seconds since 1970.
    pub fn new(now: i64) -> Result<Self, TlsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = authority_params();
        params.serial_number = Some(SerialNumber::from(now.unsigned_abs()));
        (params.not_before, params.not_after) = validity(now, Duration::from_secs(YEARS * 366 * 24 * 3_600));
        let certificate = params.self_signed(&key)?;
        Ok(Self { trusted: vec![certificate.der().clone()], key })
    }

    /// Reads the authority in a directory. Its first certificate is the one to issue from; all are trusted.
    pub fn read(dir: &Path) -> Result<Self, TlsError> {
        let (certificate, key) = (dir.join(AUTHORITY), dir.join(AUTHORITY_KEY));
        let trusted = files::certificates(&certificate)?;
        let der = files::private_key(&key)?;
        let pair = KeyPair::try_from(&PrivatePkcs8KeyDer::from(der.as_slice()))?;
        let of_certificate = trusted.first().and_then(|first| public_key_of(first));
        if of_certificate.is_none_or(|found| found != pair.subject_public_key_info()) {
            return Err(TlsError::OtherKey { certificate, key });
        }
        Ok(Self { trusted, key: pair })
    }

    /// Writes the authority to new files of a directory.
    pub fn write(&self, dir: &Path) -> Result<(), TlsError> {
        files::write_private(&dir.join(AUTHORITY_KEY), &files::pem("PRIVATE KEY", &self.key.serialize_der()))?;
        files::write_public(&dir.join(AUTHORITY), &self.pem())
    }

    /// The trusted certificates as PEM.
    pub fn pem(&self) -> String {
        self.trusted.iter().map(|certificate| files::pem("CERTIFICATE", certificate)).collect()
    }

    /// The SHA-256 of the certificate that this authority issues from.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.trusted.first().map(fingerprint).unwrap_or_default()
    }

    pub(crate) fn trusted(&self) -> &[CertificateDer<'static>] {
        &self.trusted
    }

    /// Issues a certificate to a node, as PEM.
    pub fn issue_to_node(&self, node: &str, key: &NodeKey, now: i64, life: Duration) -> Result<String, TlsError> {
        let wanted = Wanted { subject: &Subject::Node(node.to_owned()), hosts: &[], now, life };
        Ok(files::pem("CERTIFICATE", &self.issue(&wanted, key)?))
    }

    pub(crate) fn issue(
        &self,
        wanted: &Wanted<'_>,
        key: &impl PublicKeyData,
    ) -> Result<CertificateDer<'static>, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "Atlas");
        // Unique enough: nothing is looked up by it.
        params.serial_number = Some(SerialNumber::from(wanted.now.unsigned_abs()));
        (params.not_before, params.not_after) = validity(wanted.now, wanted.life);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if matches!(wanted.subject, Subject::Controller(_)) {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        params.subject_alt_names = vec![SanType::URI(wanted.subject.uri().as_str().try_into()?)];
        for host in wanted.hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(host.as_str().try_into()?),
            });
        }
        let issuer = authority_params();
        let issuer = Issuer::from_params(&issuer, &self.key);
        Ok(params.signed_by(key, &issuer)?.der().clone())
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authority({})", hexadecimal(&self.fingerprint()))
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn validity(now: i64, life: Duration) -> (OffsetDateTime, OffsetDateTime) {
    let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let life = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
    (at((now - SKEW).max(0)), at(now.saturating_add(life)))
}

/// A new key of a controller or node, in PKCS #8.
pub(crate) fn new_key() -> Result<(KeyPair, PrivateKeyDer<'static>), TlsError> {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    Ok((pair, der))
}

/// The public key of a certificate; none if it cannot be read.
pub(crate) fn public_key_of(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    Some(parsed.subject_public_key_info().to_vec())
}

/// The SHA-256 of a certificate.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// 64 hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of 64 hexadecimal digits.
pub(crate) fn unhexadecimal(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
