//! Seals values of secrets with XChaCha20-Poly1305. The key is in a file outside the data directory, so neither the log nor a backup
//! can be read without it. Namespace, name and version are authenticated: a sealed value cannot be moved to another secret.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_artifacts::digest_of;
use atlas_objects::SealedVersion;
use atlas_types::{ObjectKey, SecretText};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

/// The bytes of a key, and of a nonce.
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The largest file of keys.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(
        "could not read the key of secrets in \"{path}\"; make one: (umask 077; head -c 32 /dev/urandom | base64 > {path})"
    )]
    Read { path: PathBuf, source: std::io::Error },
    #[error("could not read the key file \"{path}\": it has one key per line, in base64, and at most 64 KiB")]
    Content { path: PathBuf, source: std::io::Error },
    #[error("line {line} of the key file \"{path}\" is not 32 bytes in base64")]
    Malformed { path: PathBuf, line: usize },
    #[error("the key file \"{path}\" contains no key")]
    Empty { path: PathBuf },
    #[error("the key file \"{path}\" can be read by other users; change that: chmod 600 {path}")]
    Readable { path: PathBuf },
    #[error("the key file \"{path}\" is in the data directory, so a copy of the data would contain the key; move it")]
    Inside { path: PathBuf },
}

/// Why a value cannot be unsealed. The text shows no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    #[error("E2105: this controller has no key of secrets")]
    NoKey,
    #[error("E2105: the key {0}, which sealed the secret, is not in the key file of the controller")]
    UnknownKey(String),
    #[error("E2105: the sealed value is damaged or was sealed for another secret")]
    Damaged,
}

struct Key {
    id: String,
    cipher: XChaCha20Poly1305,
}

/// Keys that seal values: the first one seals, all of them unseal. Cheap to clone.
#[derive(Clone)]
pub struct Keys(Arc<[Key]>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    /// Reads a file with one key per line, 32 bytes in base64; the first one is the current one. `data_dir` must not contain the file.
    pub fn read(path: &Path, data_dir: &Path) -> Result<Self, KeyError> {
        use std::os::unix::fs::PermissionsExt as _;
        let failed = |source| KeyError::Read { path: path.to_owned(), source };
        let real = path.canonicalize().map_err(failed)?;
        if data_dir.canonicalize().is_ok_and(|data| real.starts_with(data)) {
            return Err(KeyError::Inside { path: path.to_owned() });
        }
        let mode = std::fs::metadata(&real).map_err(failed)?.permissions().mode();
        if mode & 0o007 != 0 {
            return Err(KeyError::Readable { path: path.to_owned() });
        }
        let text = atlas_env::read_text(&real, FILE_BYTES_MAX).map_err(|source| match source.kind() {
            ErrorKind::FileTooLarge | ErrorKind::InvalidData => KeyError::Content { path: path.to_owned(), source },
            _ => failed(source),
        })?;
        Self::parse(path, &Zeroizing::new(text))
    }

    fn parse(path: &Path, text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let malformed = || KeyError::Malformed { path: path.to_owned(), line: index + 1 };
            let bytes = Zeroizing::new(STANDARD.decode(line).map_err(|_| malformed())?);
            if bytes.len() != KEY_BYTES {
                return Err(malformed());
            }
            let cipher = XChaCha20Poly1305::new_from_slice(&bytes).map_err(|_| malformed())?;
            let named = Zeroizing::new([b"atlas key of secrets".as_slice(), &bytes].concat());
            let id = digest_of(&named).0[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            keys.push(Key { id, cipher });
        }
        if keys.is_empty() {
            return Err(KeyError::Empty { path: path.to_owned() });
        }
        Ok(Self(keys.into()))
    }
}

/// Seals a value with the current key. `nonce` is random; `created` is in seconds since the Unix epoch.
pub fn seal(
    keys: &Keys,
    key: &ObjectKey,
    version: u64,
    value: &SecretText,
    nonce: [u8; NONCE_BYTES],
    created: u64,
) -> Option<SealedVersion> {
    let current = keys.0.first()?;
    let payload = Payload { msg: value.expose().as_bytes(), aad: &bound_to(key, version) };
    let sealed = current.cipher.encrypt(XNonce::from_slice(&nonce), payload).ok()?;
    let (nonce, sealed) = (STANDARD.encode(nonce), STANDARD.encode(sealed));
    Some(SealedVersion { version, key: current.id.clone(), nonce, sealed, created })
}

/// The value of a version.
pub fn unseal(keys: &Keys, key: &ObjectKey, sealed: &SealedVersion) -> Result<SecretText, UnsealError> {
    let known = keys.0.iter().find(|known| known.id == sealed.key);
    let known = known.ok_or_else(|| UnsealError::UnknownKey(sealed.key.chars().take(32).collect()))?;
    let decoded = |text: &str| STANDARD.decode(text).map_err(|_| UnsealError::Damaged);
    let (nonce, bytes) = (decoded(&sealed.nonce)?, decoded(&sealed.sealed)?);
    if nonce.len() != NONCE_BYTES {
        return Err(UnsealError::Damaged);
    }
    let payload = Payload { msg: &bytes, aad: &bound_to(key, sealed.version) };
    let value = known.cipher.decrypt(XNonce::from_slice(&nonce), payload);
    let value = Zeroizing::new(value.map_err(|_| UnsealError::Damaged)?);
    std::str::from_utf8(&value).map(SecretText::new).map_err(|_| UnsealError::Damaged)
}

/// What a sealed value belongs to.
fn bound_to(key: &ObjectKey, version: u64) -> Vec<u8> {
    format!("atlas secret\0{}\0{}\0{version}", key.namespace, key.name).into_bytes()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use expect_test::{Expect, expect};

    use super::*;

    fn keys(fills: &[u8]) -> Keys {
        let text: Vec<_> = fills.iter().map(|fill| STANDARD.encode([*fill; KEY_BYTES])).collect();
        Keys::parse(Path::new("keys"), &format!("# current first\n\n{}\n", text.join("\n"))).expect("keys")
    }

    fn key(name: &str) -> ObjectKey {
        let (namespace, kind) = (atlas_types::Namespace::default_namespace(), "secret".parse().expect("a kind"));
        ObjectKey { namespace, kind, name: name.parse().expect("a name") }
    }

    #[test]
    fn a_value_is_unsealed_for_its_own_secret_alone() {
        let value = SecretText::new("canary");
        let sealed = seal(&keys(&[1]), &key("a"), 1, &value, [7; 24], 5).expect("sealed");
        assert!(!format!("{sealed:?}").contains("canary"));
        let open = |keys: &Keys, name: &str, sealed: &SealedVersion| {
            unseal(keys, &key(name), sealed).map(|value| value.expose().to_owned())
        };
        assert_eq!(open(&keys(&[1]), "a", &sealed), Ok("canary".to_owned()));
        assert_eq!(open(&keys(&[2, 1]), "a", &sealed), Ok("canary".to_owned()), "an older key unseals");
        assert_eq!(open(&keys(&[1]), "b", &sealed), Err(UnsealError::Damaged));
        assert_eq!(open(&keys(&[2]), "a", &sealed), Err(UnsealError::UnknownKey(sealed.key.clone())));
        for damaged in [
            SealedVersion { version: 2, ..sealed.clone() },
            SealedVersion { nonce: String::new(), ..sealed.clone() },
            SealedVersion { sealed: "!".to_owned(), ..sealed.clone() },
            SealedVersion { sealed: STANDARD.encode([0; 40]), ..sealed },
        ] {
            assert_eq!(open(&keys(&[1]), "a", &damaged), Err(UnsealError::Damaged), "{damaged:?}");
        }
    }

    fn check(prepare: impl FnOnce(&Path) -> PathBuf, expected: &Expect) {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("data")).expect("a directory");
        let path = prepare(dir.path());
        let shown = match Keys::read(&path, &dir.path().join("data")) {
            Ok(keys) => format!("{keys:?}"),
            Err(error) => atlas_env::chain(&error).replace(&dir.path().display().to_string(), "DIR"),
        };
        expected.assert_eq(&shown);
    }

    fn write(path: PathBuf, text: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("permissions");
        path
    }

    #[test]
    fn key_files_are_checked() {
        let good = STANDARD.encode([1; KEY_BYTES]);
        check(|dir| write(dir.join("key"), &good, 0o600), &expect!["Keys(1)"]);
        check(
            |dir| dir.join("missing"),
            &expect![[
                r#"could not read the key of secrets in "DIR/missing"; make one: (umask 077; head -c 32 /dev/urandom | base64 > DIR/missing): No such file or directory (os error 2)"#
            ]],
        );
        check(
            |dir| write(dir.join("key"), &good, 0o604),
            &expect![[r#"the key file "DIR/key" can be read by other users; change that: chmod 600 DIR/key"#]],
        );
        check(
            |dir| write(dir.join("data/key"), &good, 0o600),
            &expect![[
                r#"the key file "DIR/data/key" is in the data directory, so a copy of the data would contain the key; move it"#
            ]],
        );
        let long = format!("{good}\n").repeat(2_000);
        check(
            |dir| write(dir.join("key"), &long, 0o600),
            &expect![[
                r#"could not read the key file "DIR/key": it has one key per line, in base64, and at most 64 KiB: it is larger than 65536 bytes"#
            ]],
        );
        check(
            |dir| write(dir.join("key"), b"# \xff\n", 0o600),
            &expect![[
                r#"could not read the key file "DIR/key": it has one key per line, in base64, and at most 64 KiB: line 1 is not UTF-8"#
            ]],
        );
        check(|dir| write(dir.join("key"), "# none\n", 0o600), &expect![[r#"the key file "DIR/key" contains no key"#]]);
        check(
            |dir| write(dir.join("key"), "canary\n", 0o600),
            &expect![[r#"line 1 of the key file "DIR/key" is not 32 bytes in base64"#]],
        );
    }
}
