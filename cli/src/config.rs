//! The configuration file of this program: clusters by name, and settings.
//!
//! It holds tokens, so it is written with mode 0600 and refused if others can read it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::sign_in::SavedLogin;
use crate::words::{could_not, shell};

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The context that is used if the command line and the environment name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// Whether output ends with a suggested next command; the default is yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hints: Option<bool>,
    /// Clusters by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) contexts: BTreeMap<String, Entry>,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Addresses of its controllers, separated by commas.
    pub(crate) server: String,
    /// The token that this program shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The file with the certificates that they show; none for those that this machine trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// These certificates themselves, if they came with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<String>,
    /// Who gave the token, if a person logged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) login: Option<SavedLogin>,
}

impl Config {
    /// The path of the file: `$ATLAS_CONFIG`, otherwise `atlas/config.toml` in the user's configuration folder.
    pub(crate) fn path() -> Option<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        set("ATLAS_CONFIG").or_else(|| {
            let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
            Some(folder.join("atlas/config.toml"))
        })
    }

    /// Reads the file; a missing file gives the default.
    pub(crate) fn read() -> Result<Self, Failure> {
        Self::path().map_or_else(|| Ok(Self::default()), |path| Self::read_from(&path))
    }

    fn read_from(path: &Path) -> Result<Self, Failure> {
        Self::parse(&Self::text_of(path)?, path)
    }

    /// The text of the file; empty if the file is missing.
    pub(crate) fn text_of(path: &Path) -> Result<String, Failure> {
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(could_not("read", path, &error)),
        };
        let mode = file.metadata().map_err(|error| could_not("read", path, &error))?.mode() & 0o777;
        if mode & 0o077 != 0 {
            let message = format!("\"{}\" can be read or changed by other users (mode {mode:04o})", path.display());
            let next = format!("restrict it: chmod 600 {}", shell(&path.display().to_string()));
            return Err(Failure::new("E0122", Exit::Denied, message).with_next(next));
        }
        atlas_env::read_text_from(file, atlas_env::CONFIGURATION_BYTES_MAX)
            .map_err(|error| could_not("read", path, &error))
    }

    /// Reads the text of a file.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        toml::from_str(text).map_err(|error| {
            let line = atlas_env::line_at(text, error.span().map_or(0, |span| span.start));
            let message = format!("\"{}\" cannot be used: line {line}: {}", path.display(), error.message());
            let next = format!("correct it, or start over: mv {0} {0}.old", shell(&path.display().to_string()));
            Failure::new("E0123", Exit::Invalid, message).with_next(next)
        })
    }

    /// Writes the file, completely or not at all, readable only by the owner.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        self.write_to(&Self::file()?)
    }

    /// The path of the file.
    pub(crate) fn file() -> Result<PathBuf, Failure> {
        Self::path().ok_or_else(|| {
            Failure::new("E0123", Exit::Short, "no configuration folder: HOME is not set")
                .with_next("set the file: export ATLAS_CONFIG=FILE")
        })
    }

    fn write_to(&self, path: &Path) -> Result<(), Failure> {
        let text = toml::to_string(self).map_err(|error| Failure::usage(format!("the configuration: {error}")))?;
        Self::write_text(&text, path)
    }

    /// Writes a text to the file.
    pub(crate) fn write_text(text: &str, path: &Path) -> Result<(), Failure> {
        let failed = |error: std::io::Error| could_not("write", path, &error);
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(format!(".{}.new", std::process::id()));
        let partial = PathBuf::from(partial);
        let written = || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&partial, path)
        };
        written().map_err(|error| {
            // Remove the partial file.
            let _ = fs::remove_file(&partial);
            failed(error)
        })
    }

    /// The context of this name.
    pub(crate) fn context(&self, name: &str) -> Result<&Entry, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let near = atlas_contract::nearest(name, self.contexts.keys().map(String::as_str));
            let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            let failure = Failure::new("E0124", Exit::NotFound, format!("no such context: \"{name}\"{hint}"));
            failure.with_next("list them: atlasctl context list")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_closed_to_others() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("deep/config.toml");
        assert_eq!(Config::read_from(&path).expect("none yet"), Config::default());
        let entry =
            Entry { server: "http://127.0.0.1:7400".to_owned(), token: None, ca_file: None, ca: None, login: None };
        let config = Config {
            current: Some("dev".to_owned()),
            hints: Some(false),
            contexts: [("dev".to_owned(), entry)].into(),
        };
        config.write_to(&path).expect("written");
        config.write_to(&path).expect("written again");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(Config::read_from(&path).expect("readable"), config);
        assert_eq!(config.context("dve").expect_err("none").exit, Exit::NotFound);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("config.toml");
        fs::write(&path, "").expect("written");
        for (mode, exit) in [(0o644, Some(Exit::Denied)), (0o620, Some(Exit::Denied)), (0o600, None), (0o400, None)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            assert_eq!(Config::read_from(&path).err().map(|failure| failure.exit), exit, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        fs::write(&path, "\ncurent = 'x'").expect("written");
        let failure = Config::read_from(&path).expect_err("unknown key");
        assert_eq!(failure.code.as_deref(), Some("E0123"));
        assert!(failure.message.contains("cannot be used: line 2: unknown field `curent`"), "{}", failure.message);
    }
}
