//! Certificates and keys in files, as PEM. Keys can be read by their owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::authority::{hexadecimal, new_key, public_key_of};
use crate::{KEY_BYTES, NodeKey, TlsError};

/// The file with the certificates that are trusted.
pub const AUTHORITY: &str = "ca.pem";
/// The file with the key of the authority.
pub const AUTHORITY_KEY: &str = "ca.key";
const NODE: &str = "node.pem";
const NODE_KEY: &str = "node.key";
const NODE_TOKEN: &str = "token.sha256";
/// When the certificate was issued and when it ends, in seconds since 1970 by the clock of this machine.
const NODE_TIMES: &str = "node.times";
/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The most certificates that are trusted.
const CERTIFICATES_MAX: usize = 16;

/// The files of a node that joined.
#[derive(Debug)]
pub struct Enrolled {
    dir: PathBuf,
}

impl Enrolled {
    /// The files in a directory.
    pub fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Whether there is a certificate.
    pub fn exists(&self) -> bool {
        self.dir.join(NODE).exists()
    }

    /// Whether the node joined with this token.
    pub fn is_by(&self, token: &str) -> bool {
        self.exists() && self.began_with(token)
    }

    /// The key with which the node joins. The same for a repeat with the same token, which the cluster answers again.
    pub fn begin(&self, token: &str) -> Result<NodeKey, TlsError> {
        if !self.began_with(token) {
            fs::create_dir_all(&self.dir).map_err(|source| file(&self.dir, source))?;
            match fs::remove_file(self.dir.join(NODE)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(file(&self.dir.join(NODE), error)),
                _ => {}
            }
            let (_, der) = new_key()?;
            replace(&self.dir.join(NODE_KEY), &Zeroizing::new(pem("PRIVATE KEY", der.secret_der())), 0o600)?;
            replace(&self.dir.join(NODE_TOKEN), &format!("{}\n", hash(token)), 0o600)?;
        }
        self.key()
    }

    fn began_with(&self, token: &str) -> bool {
        fs::read_to_string(self.dir.join(NODE_TOKEN)).is_ok_and(|stored| stored.trim() == hash(token))
    }

    /// The public key of the node.
    pub fn key(&self) -> Result<NodeKey, TlsError> {
        let path = self.dir.join(NODE_KEY);
        let der = private_key(&path)?;
        let pair = rcgen::KeyPair::try_from(&PrivatePkcs8KeyDer::from(der.as_slice()))?;
        let bytes = pair.public_key_raw();
        let expected = "key of P-256";
        NodeKey::read(bytes).filter(|_| bytes.len() == KEY_BYTES).ok_or(TlsError::Content { path, expected })
    }

    /// Stores what the cluster answered at `now`, in seconds since 1970.
    pub fn store(&self, issued: &Issued<'_>, now: i64) -> Result<(), TlsError> {
        let Issued { certificate, trusted, life } = issued;
        let ends = now.saturating_add(i64::try_from(life.as_secs()).unwrap_or(i64::MAX));
        replace(&self.dir.join(AUTHORITY), trusted, 0o644)?;
        replace(&self.dir.join(NODE_TIMES), &format!("{now} {ends}\n"), 0o644)?;
        replace(&self.dir.join(NODE), certificate, 0o644)
    }

    /// The certificate, its key, and the trusted certificates.
    pub(crate) fn read(&self) -> Result<Stored, TlsError> {
        let (path, key) = (self.dir.join(NODE), self.dir.join(NODE_KEY));
        let chain = certificates(&path)?;
        let der = private_key(&key)?;
        let pair = rcgen::KeyPair::try_from(&PrivatePkcs8KeyDer::from(der.as_slice()))?;
        let of_certificate = chain.first().and_then(public_key_of);
        if of_certificate.is_none_or(|found| found != rcgen::PublicKeyData::subject_public_key_info(&pair)) {
            return Err(TlsError::OtherKey { certificate: path, key });
        }
        let times = self.dir.join(NODE_TIMES);
        let read = text(&times)?;
        let parsed = read.trim().split_once(' ').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let (begins, ends) = parsed.ok_or(TlsError::Content { path: times, expected: "times" })?;
        Ok(Stored { chain, key: der, trusted: certificates(&self.dir.join(AUTHORITY))?, begins, ends })
    }
}

/// What a cluster answers a node that joins or renews its certificate.
#[derive(Debug)]
pub struct Issued<'a> {
    /// The certificate, as PEM.
    pub certificate: &'a str,
    /// The certificates to trust, as PEM.
    pub trusted: &'a str,
    pub life: Duration,
}

/// What a node's files contain.
pub(crate) struct Stored {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) trusted: Vec<CertificateDer<'static>>,
    pub(crate) begins: i64,
    pub(crate) ends: i64,
}

/// The certificates in a file, at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let expected = "certificate";
    certificates_of(&text(path)?).ok_or_else(|| TlsError::Content { path: path.to_owned(), expected })
}

/// The certificates in a text, at least one; none if it has none, too many or something that cannot be read.
pub fn certificates_of(text: &str) -> Option<Vec<CertificateDer<'static>>> {
    let read: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<_, _>>().ok()?;
    (1..=CERTIFICATES_MAX).contains(&read.len()).then_some(read)
}

pub(crate) fn private_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    let text = Zeroizing::new(private_text(path).map_err(|source| file(path, source))?);
    let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes());
    let key = key.map_err(|_| TlsError::Content { path: path.to_owned(), expected: "private key (PKCS #8)" })?;
    Ok(Zeroizing::new(key.secret_pkcs8_der().to_vec()))
}

/// The text of a file that not everybody may read.
pub fn private_text(path: &Path) -> Result<String, io::Error> {
    atlas_env::read_private_text(path, FILE_BYTES_MAX)
}

fn text(path: &Path) -> Result<String, TlsError> {
    atlas_env::read_text(path, FILE_BYTES_MAX).map_err(|source| file(path, source))
}

fn file(path: &Path, source: io::Error) -> TlsError {
    TlsError::File { path: path.to_owned(), source }
}

/// Writes a new file that only its owner can read.
pub fn write_private(path: &Path, text: &str) -> Result<(), TlsError> {
    create(path, text, 0o600).map_err(|source| file(path, source))
}

pub(crate) fn write_public(path: &Path, text: &str) -> Result<(), TlsError> {
    create(path, text, 0o644).map_err(|source| file(path, source))
}

fn create(path: &Path, text: &str, mode: u32) -> Result<(), io::Error> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Replaces a file with another, completely or not at all.
fn replace(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let partial = path.with_extension("new");
    let written = || {
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        create(&partial, text, mode)?;
        fs::rename(&partial, path)
    };
    written().map_err(|source| file(path, source))
}

fn hash(token: &str) -> String {
    hexadecimal(&Sha256::digest(token.trim().as_bytes()).into())
}

/// A PEM document.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines = encoded.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned() + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}
