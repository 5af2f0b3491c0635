//! A registry of packages in a folder: `<root>/<name>/<version>/manifest.json` and `package.tar.gz` (compatibility §24.3).
//!
//! A registry is shared between people, so nothing in it is trusted: a manifest that is not that of its folders is left out, and whoever
//! downloads a package compares it with its manifest. A published version never changes.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use atlas_types::AgentName;

use crate::manifest::is_version;
use crate::{Limits, MANIFEST_BYTES_MAX, Manifest, PARTIAL};

const MANIFEST: &str = "manifest.json";
const ARCHIVE: &str = "package.tar.gz";

/// Most results of a search that names no limit.
pub const REGISTRY_SEARCH_LIMIT: usize = 20;

/// Why a registry did not do something.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("\"{0}\" cannot be the name of a folder")]
    Name(String),
    #[error("{0} is published already, with other contents")]
    Exists(String),
    #[error("could not read \"{}\"", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write \"{}\"", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// A registry in a folder.
#[derive(Debug, Clone)]
pub struct FolderRegistry {
    root: PathBuf,
}

impl FolderRegistry {
    /// The registry in this folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Publishes a version, completely or not at all. The same archive may be published again; then the first manifest stays.
    pub fn publish(&self, manifest: &Manifest, archive: &[u8]) -> Result<(), RegistryError> {
        let folder = self.folder(manifest.name.as_str(), &manifest.version);
        let folder = folder.ok_or_else(|| RegistryError::Name(manifest.to_string()))?;
        if folder.symlink_metadata().is_ok() {
            return self.published_before(manifest, archive);
        }
        let written = |path: &Path| {
            let path = path.to_owned();
            move |source| RegistryError::Write { path, source }
        };
        let fresh = folder.with_file_name(format!(".{}.{}.{PARTIAL}", manifest.version, std::process::id()));
        fs::create_dir_all(&fresh).map_err(written(&fresh))?;
        let text = format!("{:#}\n", manifest.to_json());
        let done = write(&fresh.join(MANIFEST), text.as_bytes())
            .and_then(|()| write(&fresh.join(ARCHIVE), archive))
            .and_then(|()| fs::rename(&fresh, &folder));
        let Err(source) = done else { return Ok(()) };
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&fresh);
        match source.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => self.published_before(manifest, archive),
            _ => Err(written(&folder)(source)),
        }
    }

    fn published_before(&self, manifest: &Manifest, archive: &[u8]) -> Result<(), RegistryError> {
        let known = self.archive(manifest.name.as_str(), &manifest.version)?;
        let same = known.is_some_and(|known| known == archive);
        if same { Ok(()) } else { Err(RegistryError::Exists(manifest.to_string())) }
    }

    /// The versions of an agent, in the order of their texts; none if it is unknown.
    pub fn versions(&self, name: &str) -> Result<Vec<String>, RegistryError> {
        if !is_folder(name) {
            return Ok(Vec::new());
        }
        let versions = folders(&self.root.join(name))?.into_iter().filter(|version| is_version(version));
        let readable = |version: &String| self.manifest(name, version).map(|manifest| manifest.is_some());
        let mut found = Vec::new();
        for version in versions {
            if readable(&version)? {
                found.push(version);
            }
        }
        Ok(found)
    }

    /// The manifests that match a text, in the order of their names and the texts of their versions.
    pub fn search(&self, text: &str, limit: usize) -> Result<Vec<Manifest>, RegistryError> {
        let mut found = Vec::new();
        for name in folders(&self.root)? {
            for version in self.versions(&name)? {
                if found.len() == limit {
                    return Ok(found);
                }
                found.extend(self.manifest(&name, &version)?.filter(|manifest| manifest.matches(text)));
            }
        }
        Ok(found)
    }

    /// A manifest; none if it is missing or not that of this name and version.
    pub fn manifest(&self, name: &str, version: &str) -> Result<Option<Manifest>, RegistryError> {
        let text = self.file(name, version, MANIFEST, MANIFEST_BYTES_MAX as u64)?;
        let manifest = text.and_then(|text| Manifest::parse(&text).ok());
        Ok(manifest.filter(|manifest| manifest.name.as_str() == name && manifest.version == version))
    }

    /// An archive as it is in the folder; [`Manifest::check`] compares it with its manifest. None if it is missing or too large.
    pub fn archive(&self, name: &str, version: &str) -> Result<Option<Vec<u8>>, RegistryError> {
        self.file(name, version, ARCHIVE, Limits::default().archive_bytes_max)
    }

    /// A file of a version; none if it is missing, not a file, or longer than `max`.
    fn file(&self, name: &str, version: &str, file: &str, max: u64) -> Result<Option<Vec<u8>>, RegistryError> {
        let Some(folder) = self.folder(name, version) else { return Ok(None) };
        let path = folder.join(file);
        let read = || -> io::Result<Option<Vec<u8>>> {
            if !path.symlink_metadata()?.is_file() {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            File::open(&path)?.take(max + 1).read_to_end(&mut bytes)?;
            Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= max))
        };
        match read() {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(source) => Err(RegistryError::Read { path, source }),
            Ok(bytes) => Ok(bytes),
        }
    }

    /// The folder of a version; none if a name would lead elsewhere.
    fn folder(&self, name: &str, version: &str) -> Option<PathBuf> {
        (is_folder(name) && is_version(version)).then(|| self.root.join(name).join(version))
    }
}

/// Whether the name of an agent can be the name of a folder.
fn is_folder(name: &str) -> bool {
    !name.starts_with('.') && AgentName::new(name).is_ok_and(|name| name.is_plain())
}

/// The folders in a folder, sorted; none if there is no folder. Links are left out.
fn folders(folder: &Path) -> Result<Vec<String>, RegistryError> {
    let error = |source| RegistryError::Read { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(source) => return Err(error(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(error)?;
        if let (true, Ok(name)) = (entry.file_type().map_err(error)?.is_dir(), entry.file_name().into_string()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
