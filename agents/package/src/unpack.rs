//! Extracts an archive, or only inspects it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use atlas_contract::{Contract, ContractError};

use crate::walk::{self, ArchiveError, Limits};
use crate::{CONTRACT_FILE, PackFile};

/// Why a package cannot be used. After an error, no files remain.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The package has no contract at its root.
    #[error("the package has no {CONTRACT_FILE} at its root")]
    NoContract,
    /// A contract that breaks a rule.
    #[error("the contract of the package is not valid")]
    Contract(#[source] ContractError),
    /// The destination already exists.
    #[error("\"{}\" exists already", .path.display())]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// The files could not be written.
    #[error("could not write \"{}\"", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The contents of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct PackageContents {
    /// The agent's contract.
    pub contract: Contract,
    /// The files, sorted by path.
    pub files: Vec<PackFile>,
}

/// Checks an archive like [`unpack`], without writing anything.
pub fn inspect(archive: &[u8], limits: &Limits) -> Result<PackageContents, UnpackError> {
    let files = files(archive, limits)?;
    let contract = contract(&files)?;
    Ok(PackageContents { contract, files })
}

/// The files of an archive, sorted by path.
pub(crate) fn files(archive: &[u8], limits: &Limits) -> Result<Vec<PackFile>, ArchiveError> {
    let mut files = walk::members(archive, limits)?;
    files.sort_by(|left, right| left.path.split('/').cmp(right.path.split('/')));
    Ok(files)
}

/// One file of an archive; none if the archive does not have it.
pub fn file_of(archive: &[u8], path: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
    let files = files(archive, &Limits::default())?;
    Ok(files.into_iter().find(|file| file.path == path).map(|file| file.bytes))
}

/// The contract of a package that is being registered, after all checks.
pub fn contract_of(archive: &[u8]) -> Result<Contract, UnpackError> {
    let contract = inspect(archive, &Limits::default())?.contract;
    contract.check_offered().map_err(UnpackError::Contract)?;
    Ok(contract)
}

/// Extracts a package to the new directory `dest`, completely or not at all.
///
/// The files are written to a new directory next to `dest`, synced, and then renamed. Modes are 0644, or 0755 for
/// executable files.
pub fn unpack(archive: &[u8], dest: &Path, limits: &Limits) -> Result<Contract, UnpackError> {
    let inspected = inspect(archive, limits)?;
    if dest.symlink_metadata().is_ok() {
        return Err(UnpackError::Exists { path: dest.to_owned() });
    }
    let parent = match dest.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(write_error(parent))?;
    let (fresh, guard) = fresh_directory(dest)?;
    for file in &inspected.files {
        write_file(&fresh, file)?;
    }
    sync_directories(&fresh)?;
    fs::rename(&fresh, dest).map_err(|source| match source.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
            UnpackError::Exists { path: dest.to_owned() }
        }
        _ => UnpackError::Write { path: dest.to_owned(), source },
    })?;
    guard.keep();
    sync(parent)?;
    Ok(inspected.contract)
}

fn contract(files: &[PackFile]) -> Result<Contract, UnpackError> {
    let file = files.iter().find(|file| file.path == CONTRACT_FILE).ok_or(UnpackError::NoContract)?;
    crate::checked(&file.bytes).map_err(UnpackError::Contract)
}

/// The ending of a directory's name while a package is unpacked into it. A directory with this ending that no process
/// uses remains from a crash.
pub const PARTIAL: &str = "partial";

/// Creates an empty directory next to `dest`; the guard removes it unless it is kept.
fn fresh_directory(dest: &Path) -> Result<(PathBuf, Guard), UnpackError> {
    let mut name = dest.file_name().unwrap_or_default().to_owned();
    // The process id distinguishes processes, the counter threads. A directory that remains from a crash only increases
    // the counter.
    name.push(format!(".{}.", std::process::id()));
    for attempt in 0..10_000 {
        let mut name = name.clone();
        name.push(format!("{attempt}.{PARTIAL}"));
        let path = dest.with_file_name(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok((path.clone(), Guard { path: Some(path) })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(UnpackError::Write { path, source }),
        }
    }
    Err(UnpackError::Exists { path: dest.to_owned() })
}

struct Guard {
    path: Option<PathBuf>,
}

impl Guard {
    fn keep(mut self) {
        self.path = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The first error is the one to report. A directory that cannot be removed has the partial ending and is
            // never used.
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn write_file(root: &Path, file: &PackFile) -> Result<(), UnpackError> {
    let path = root.join(&file.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(write_error(parent))?;
    }
    let write = || -> io::Result<()> {
        let mut out = OpenOptions::new().write(true).create_new(true).open(&path)?;
        out.write_all(&file.bytes)?;
        set_mode(&out, if file.executable { 0o755 } else { 0o644 })?;
        out.sync_all()
    };
    write().map_err(write_error(&path))
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

fn sync_directories(dir: &Path) -> Result<(), UnpackError> {
    for entry in fs::read_dir(dir).map_err(write_error(dir))? {
        let entry = entry.map_err(write_error(dir))?;
        if entry.file_type().map_err(write_error(dir))?.is_dir() {
            sync_directories(&entry.path())?;
        }
    }
    sync(dir)
}

fn sync(dir: &Path) -> Result<(), UnpackError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(write_error(dir))
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> UnpackError + use<> {
    let path = path.to_owned();
    move |source| UnpackError::Write { path, source }
}
