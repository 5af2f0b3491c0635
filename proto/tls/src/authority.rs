//! The certificate authority of a cluster.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, SerialNumber, SignatureAlgorithm,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::files::{self, AUTHORITY, AUTHORITY_KEY};
use crate::{Subject, TlsError};

/// The name of every authority.
const NAME: &str = "Atlas cluster authority";
/// What precedes the name in a certificate whose subject is a common name alone: a set, a sequence and the attribute 2.5.4.3.
const BEFORE_NAME: [u8; 9] = [0x31, 32, 0x30, 30, 0x06, 3, 0x55, 4, 3];
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
    spelling: Spelling,
}

/// How a certificate writes its name. The issuer in what is issued has to equal it byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// As this crate does.
    Utf8,
    /// As programs in Go do, such as cert-manager.
    Printable,
}

impl Spelling {
    /// That of a certificate; none if it has another name.
    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let anchor = webpki::anchor_from_trusted_cert(certificate).ok()?;
        [(Self::Utf8, 0x0c), (Self::Printable, 0x13)].into_iter().find_map(|(spelling, tag)| {
            let text = [tag, NAME.len() as u8];
            let name = [&BEFORE_NAME[..], &text, NAME.as_bytes()].concat();
            (anchor.subject.as_ref() == name).then_some(spelling)
        })
    }

    /// The name of an authority, written like this.
    fn name(self) -> Result<DistinguishedName, rcgen::Error> {
        let mut name = DistinguishedName::new();
        name.push(
            DnType::CommonName,
            match self {
                Self::Utf8 => DnValue::Utf8String(NAME.to_owned()),
                Self::Printable => DnValue::PrintableString(NAME.try_into()?),
            },
        );
        Ok(name)
    }
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
        let spelling = Spelling::Utf8;
        let mut params = authority_params(spelling)?;
        params.serial_number = Some(SerialNumber::from(now.unsigned_abs()));
        (params.not_before, params.not_after) = validity(now, Duration::from_secs(YEARS * 366 * 24 * 3_600));
        let certificate = params.self_signed(&key)?;
        Ok(Self { trusted: vec![certificate.der().clone()], key, spelling })
    }

    /// Reads the authority in a directory. Its first certificate is the one to issue from; others with the name of an authority
    /// are trusted too. Programs that make authorities put those of their own issuer behind, which makes certificates for anybody.
    pub fn read(dir: &Path) -> Result<Self, TlsError> {
        let (certificate, key) = (dir.join(AUTHORITY), dir.join(AUTHORITY_KEY));
        let mut trusted = files::certificates(&certificate)?;
        let der = files::private_key(&key)?;
        let pair = KeyPair::try_from(&PrivatePkcs8KeyDer::from(der.as_slice()))?;
        let of_certificate = trusted.first().and_then(|first| public_key_of(first));
        if of_certificate.is_none_or(|found| found != pair.subject_public_key_info()) {
            return Err(TlsError::OtherKey { certificate, key });
        }
        let spelling = trusted.first().and_then(Spelling::of);
        let spelling = spelling.ok_or(TlsError::Name { path: certificate, name: NAME })?;
        trusted.retain(is_authority);
        Ok(Self { trusted, key: pair, spelling })
    }

    /// Writes the authority to new files of a directory.
    pub fn write(&self, dir: &Path) -> Result<(), TlsError> {
        files::write_private(&dir.join(AUTHORITY_KEY), &self.key_pem())?;
        files::write_public(&dir.join(AUTHORITY), &self.pem())
    }

    /// The trusted certificates as PEM.
    pub fn pem(&self) -> String {
        self.trusted.iter().map(|certificate| files::pem("CERTIFICATE", certificate)).collect()
    }

    /// The key as PEM, for controllers alone.
    pub fn key_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(files::pem("PRIVATE KEY", &self.key.serialize_der()))
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
        let issuer = authority_params(self.spelling)?;
        let issuer = Issuer::from_params(&issuer, &self.key);
        Ok(params.signed_by(key, &issuer)?.der().clone())
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authority({})", hexadecimal(&self.fingerprint()))
    }
}

fn authority_params(spelling: Spelling) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = spelling.name()?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(params)
}

fn validity(now: i64, life: Duration) -> (OffsetDateTime, OffsetDateTime) {
    let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let life = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
    (at((now - SKEW).max(0)), at(now.saturating_add(life)))
}

/// The certificates of authorities in a file, at least one. Others are left out.
pub fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let mut read = files::certificates(path)?;
    read.retain(is_authority);
    if read.is_empty() {
        return Err(TlsError::NoAuthority { path: path.to_owned(), name: NAME });
    }
    Ok(read)
}

/// Those of the certificates that are the authority of a cluster, as roots.
pub(crate) fn roots(certificates: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates.iter().filter(|certificate| is_authority(certificate)) {
        roots.add(certificate.clone())?;
    }
    Ok(Arc::new(roots))
}

/// Whether a certificate has the name of an authority, as that of every cluster has.
fn is_authority(certificate: &CertificateDer<'_>) -> bool {
    Spelling::of(certificate).is_some()
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
