//! The key that seals secrets in a development cluster, made at the first start.
//!
//! It is outside the data folder, as controllers require: a cluster that keeps its data uses one key of the user for all such clusters,
//! and a temporary cluster gets a key of its own, which is deleted with it.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use atlas_env::{Entropy, Env};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::{NamedTempFile, TempDir};
use tracing::warn;

use crate::{DataDir, DevSettings, SettingsError};

/// The file of the user's key, in the folder of user configuration.
const FILE: &str = "atlas/dev-secrets.key";

/// The key of a development cluster; a temporary one is deleted when this value is dropped.
#[derive(Debug)]
pub(crate) struct SealingKey {
    path: PathBuf,
    _folder: Option<TempDir>,
}

impl SealingKey {
    /// The key for a cluster whose settings name none. It is made if it is missing. None if the settings name one, or if there is no
    /// folder for one: the cluster then works without secrets in its store.
    pub(crate) fn for_cluster(
        data: &DataDir,
        settings: &DevSettings,
        env: &Env,
    ) -> Result<Option<Self>, SettingsError> {
        if settings.controller(PathBuf::new())?.secrets_key.is_some() {
            return Ok(None);
        }
        let made = if data.is_ephemeral() {
            Self::temporary(&*env.entropy)
        } else {
            let Some(path) = user_file(&|name| std::env::var_os(name)) else { return Ok(None) };
            Self::kept(path, &*env.entropy)
        };
        let told = |error: &io::Error| warn!(%error, "secrets cannot be set: the key that seals them was not made");
        Ok(made.inspect_err(told).ok())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn temporary(entropy: &dyn Entropy) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("atlas-dev-key-").tempdir()?;
        let path = folder.path().join("secrets.key");
        create(&path, entropy)?;
        Ok(Self { path, _folder: Some(folder) })
    }

    fn kept(path: PathBuf, entropy: &dyn Entropy) -> io::Result<Self> {
        if !path.exists() {
            create(&path, entropy)?;
        }
        Ok(Self { path, _folder: None })
    }
}

/// The file of the user's key; none without a home folder.
fn user_file(variable: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| value != OsStr::new("")).map(PathBuf::from);
    let folder = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    // The controllers of several processes read it from other working folders.
    folder.is_absolute().then(|| folder.join(FILE))
}

/// Writes a new key, completely or not at all, readable only by its owner. A file that was made meanwhile stays, so that two clusters that
/// start at the same time use one key.
fn create(path: &Path, entropy: &dyn Entropy) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut key = [0; 32];
    for part in key.chunks_mut(8) {
        part.copy_from_slice(&entropy.u64().to_le_bytes());
    }
    // Files of this crate have mode 0600.
    let mut file = NamedTempFile::new_in(folder)?;
    writeln!(file, "{}", STANDARD.encode(key))?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use atlas_env::SystemEntropy;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_by_its_owner_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("deep/dev-secrets.key");
        SealingKey::kept(path.clone(), &SystemEntropy).expect("made");
        let first = std::fs::read_to_string(&path).expect("a key");
        assert_eq!(STANDARD.decode(first.trim()).expect("base64").len(), 32);
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        SealingKey::kept(path.clone(), &SystemEntropy).expect("found");
        create(&path, &SystemEntropy).expect("made by another one meanwhile");
        assert_eq!(std::fs::read_to_string(&path).expect("a key"), first);
        let files = std::fs::read_dir(dir.path().join("deep")).expect("a folder").count();
        assert_eq!(files, 1, "nothing is left behind");
    }

    #[test]
    fn a_temporary_key_leaves_nothing() {
        let key = SealingKey::temporary(&SystemEntropy).expect("made");
        let path = key.path().to_owned();
        assert!(path.is_file());
        drop(key);
        assert!(!path.exists() && path.parent().is_some_and(|folder| !folder.exists()));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("file"), "").expect("a file");
        assert!(SealingKey::kept(dir.path().join("file/key"), &SystemEntropy).is_err());
    }

    #[test]
    fn the_file_is_in_the_folder_of_the_user() {
        let file = |xdg: &'static str, home: &'static str| {
            user_file(&|name| Some(if name == "HOME" { home.into() } else { xdg.into() }))
        };
        assert_eq!(file("/x", "/h").as_deref(), Some(Path::new("/x/atlas/dev-secrets.key")));
        assert_eq!(file("", "/h").as_deref(), Some(Path::new("/h/.config/atlas/dev-secrets.key")));
        assert_eq!(file("", ""), None);
        assert_eq!(file("relative", "/h"), None);
        assert_eq!(user_file(&|_| None), None);
    }
}
