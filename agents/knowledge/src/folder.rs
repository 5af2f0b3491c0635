//! Knowledge in a folder: `<root>/<domain>/<id>.md` (compatibility §23.2), and what an agent may do with it (compatibility §23.4).

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::document::{self, Document};
use crate::{Acl, CONTENT_BYTES_MAX, Draft, Entry, EntryChange, EntryError, Name, Query, files, search};

/// The ending of the files.
const SUFFIX: &str = ".md";

/// Longest file: the content, and as much for what precedes it.
const FILE_BYTES_MAX: usize = 2 * CONTENT_BYTES_MAX;

/// Most entries of a folder.
const ENTRIES_MAX: usize = 100_000;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("Agent not allowed to write to knowledge domain '{domain}'")]
    NotAllowed { domain: String },
    #[error("the entry cannot be stored")]
    Entry(#[source] EntryError),
    #[error("the folder has more than {ENTRIES_MAX} entries")]
    TooMany,
    #[error("could not read \"{}\"", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write \"{}\"", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// A folder of knowledge. It must have one writer. Links are not followed, so that nothing outside is read.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Stores an entry. One with the same name is replaced, whatever its domain.
    pub fn put(&self, entry: &Entry) -> Result<(), FolderError> {
        let before = self.places(&entry.id)?;
        let path = self.path(&entry.domain, &entry.id);
        if self.root.join(entry.domain.as_str()).symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            let source = io::Error::new(ErrorKind::NotADirectory, "the domain is a link or a file");
            return Err(FolderError::Write { path, source });
        }
        files::replace(&path, &document::write(entry))
            .map_err(|source| FolderError::Write { path: path.clone(), source })?;
        before.into_iter().filter(|old| *old != entry.domain).try_for_each(|old| remove(&self.path(&old, &entry.id)))
    }

    /// The entry with a name.
    pub fn get(&self, id: &str) -> Result<Option<Entry>, FolderError> {
        let Ok(id) = Name::new(id) else { return Ok(None) };
        let Some(domain) = self.places(&id)?.into_iter().next() else { return Ok(None) };
        self.entry(domain, id)
    }

    /// Removes an entry; whether there was one.
    pub fn remove(&self, id: &str) -> Result<bool, FolderError> {
        let Ok(id) = Name::new(id) else { return Ok(false) };
        let places = self.places(&id)?;
        places.iter().try_for_each(|domain| remove(&self.path(domain, &id)))?;
        Ok(!places.is_empty())
    }

    /// All entries, sorted by domain and file. What is no entry is left out: other names, links, files that are too long or not UTF-8.
    pub fn entries(&self) -> Result<Vec<Entry>, FolderError> {
        let mut found = Vec::new();
        for domain in self.domains()? {
            let folder = self.root.join(domain.as_str());
            let mut names = names_in(&folder, fs::FileType::is_file)?;
            names.sort();
            for name in names {
                let Some(Ok(id)) = name.strip_suffix(SUFFIX).map(Name::new) else { continue };
                if found.len() == ENTRIES_MAX {
                    return Err(FolderError::TooMany);
                }
                found.extend(self.entry(domain.clone(), id)?);
            }
        }
        Ok(found)
    }

    fn domains(&self) -> Result<Vec<Name>, FolderError> {
        let names = names_in(&self.root, fs::FileType::is_dir)?;
        let mut domains: Vec<Name> = names.iter().filter_map(|name| Name::new(name).ok()).collect();
        domains.sort();
        Ok(domains)
    }

    /// The domains that have an entry of a name.
    fn places(&self, id: &Name) -> Result<Vec<Name>, FolderError> {
        let is_there = |domain: &Name| self.path(domain, id).symlink_metadata().is_ok_and(|found| found.is_file());
        Ok(self.domains()?.into_iter().filter(is_there).collect())
    }

    fn entry(&self, domain: Name, id: Name) -> Result<Option<Entry>, FolderError> {
        let path = self.path(&domain, &id);
        match files::read(&path, FILE_BYTES_MAX) {
            Ok(text) => Ok(text.map(|text| Document::read(&text).entry(domain, id))),
            Err(error) if matches!(error.kind(), ErrorKind::FileTooLarge | ErrorKind::InvalidData) => Ok(None),
            Err(source) => Err(FolderError::Read { path, source }),
        }
    }

    fn path(&self, domain: &Name, id: &Name) -> PathBuf {
        self.root.join(domain.as_str()).join(format!("{id}{SUFFIX}"))
    }
}

fn remove(path: &Path) -> Result<(), FolderError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(FolderError::Write { path: path.to_owned(), source: error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The names of one type in a folder; none if there is no folder.
fn names_in(folder: &Path, is_wanted: fn(&fs::FileType) -> bool) -> Result<Vec<String>, FolderError> {
    let error = |source| FolderError::Read { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) if source.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(error(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(error)?;
        if let (true, Ok(name)) = (is_wanted(&entry.file_type().map_err(error)?), entry.file_name().into_string()) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A folder as one agent sees it.
#[derive(Debug, Clone, Copy)]
pub struct KnowledgeAccess<'a> {
    pub folder: &'a Folder,
    pub acl: &'a Acl,
}

impl KnowledgeAccess<'_> {
    /// What an agent is told that stores knowledge without requiring it. Such an agent finds nothing.
    pub const NOT_ENABLED: &'static str = "Knowledge not enabled — set requires.knowledge in contract";

    /// The entries that the agent may read and that match.
    pub fn search(
        &self,
        text: &str,
        domain: Option<&str>,
        tags: &[String],
        limit: usize,
    ) -> Result<Vec<Entry>, FolderError> {
        Ok(search(self.folder.entries()?, &Query { text, domain, tags, acl: self.acl }, limit))
    }

    /// An entry; one that may not be read is not found.
    pub fn get(&self, id: &str) -> Result<Option<Entry>, FolderError> {
        Ok(self.folder.get(id)?.filter(|entry| self.acl.reads(entry.domain.as_str())))
    }

    /// Stores an entry. `now` is a time in ISO 8601, `random` makes its name if it has none.
    pub fn store(&self, draft: Draft, now: &str, random: u64) -> Result<Entry, FolderError> {
        self.may_write(&draft.domain)?;
        let entry = Entry::new(draft, now, random).map_err(FolderError::Entry)?;
        // Storing under a name that exists changes the entry of that name.
        if let Some(known) = self.folder.get(entry.id.as_str())? {
            self.may_write(known.domain.as_str())?;
        }
        self.folder.put(&entry)?;
        Ok(entry)
    }

    /// Changes an entry; none if the agent does not find it.
    pub fn update(&self, id: &str, change: EntryChange, now: &str) -> Result<Option<Entry>, FolderError> {
        let Some(entry) = self.folder.get(id)? else { return Ok(None) };
        self.may_write(entry.domain.as_str())?;
        let entry = entry.changed(change, now).map_err(FolderError::Entry)?;
        self.folder.put(&entry)?;
        Ok(Some(entry))
    }

    fn may_write(&self, domain: &str) -> Result<(), FolderError> {
        if self.acl.writes(domain) { Ok(()) } else { Err(FolderError::NotAllowed { domain: domain.to_owned() }) }
    }
}

#[cfg(test)]
mod tests;
