//! Creates the archive; the same files always give the same bytes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use atlas_contract::{Contract, ContractError};
use atlas_loki_agent::Overrides;
use atlas_types::Digest;
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use crate::collect::{Collected, Room, collect};
use crate::overrides::{self, OVERRIDES_FILE, OverridesError};
use crate::{CONTRACT_FILE, DefinitionError, Limits, derive, toolbox};

/// The variables of an environment, by name.
pub type Variable<'v> = dyn Fn(&str) -> Option<String> + 'v;

/// One file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFile {
    /// The path in the package, with `/` between the parts.
    pub path: String,
    /// The contents.
    pub bytes: Vec<u8>,
    /// Whether the file is executable.
    pub executable: bool,
}

/// An agent as one archive.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// The archive, a gzip-compressed tar.
    pub bytes: Vec<u8>,
    /// The digest of the archive.
    pub digest: Digest,
    /// The agent's contract.
    pub contract: Contract,
    /// The number of files.
    pub files: usize,
    /// What its directory has besides: paths of hidden and special files that an agent may need. Files of tools for developers are not
    /// listed.
    pub left_out: Vec<String>,
}

/// Why a directory cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file or directory cannot be read.
    #[error("could not read \"{}\"", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    #[error("it contains no {CONTRACT_FILE}")]
    NoContract,
    /// An agent of Loki whose definition cannot be used.
    #[error("the definition is not valid")]
    Definition(#[source] DefinitionError),
    /// A contract that breaks a rule.
    #[error("the contract is not valid")]
    Contract(#[source] ContractError),
    /// The directory has more files than a package may have.
    #[error("there are more than {max} files")]
    TooManyFiles {
        /// The limit.
        max: usize,
    },
    /// The files are larger than a package may be.
    #[error("the files have more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: u64,
    },
    /// A file name that packages do not allow.
    #[error("{path:?} is not a valid file name in a package")]
    Name {
        /// The name.
        path: String,
    },
    /// A link that cannot be followed.
    #[error("\"{path}\" is a link to \"{}\", {why}", .target.display())]
    Link {
        /// The link, in the package.
        path: String,
        /// Where it leads.
        target: PathBuf,
        /// Why it cannot be followed, and what to do.
        why: &'static str,
    },
    /// The archive could not be written.
    #[error("could not write the archive")]
    Write(#[source] io::Error),
}

/// Packs the directory of an agent. One of Loki has a contract that follows from its definition.
///
/// Includes every regular file whose path has no hidden part and no `__pycache__`. Links are followed inside the directory, and refused
/// where they leave it.
pub fn pack(dir: &Path) -> Result<Package, PackError> {
    pack_in(dir, &|_| None)
}

/// Packs the directory of an agent in an environment, whose variables replace values of the definition of an agent of Loki.
pub fn pack_in(dir: &Path, variable: &Variable<'_>) -> Result<Package, PackError> {
    let Collected { files, left_out } = own_files(dir, variable)?;
    Ok(Package { left_out, ..pack_files(files)? })
}

/// The files of an agent, and the contract that follows from its definition.
fn own_files(dir: &Path, variable: &Variable<'_>) -> Result<Collected, PackError> {
    let Collected { mut files, left_out } = collected(dir)?;
    let overrides = replaced(dir, &mut files, variable).map_err(|error| PackError::Definition(error.into()))?;
    if !files.iter().any(|file| file.path == CONTRACT_FILE)
        && let Some(bytes) = derive::contract(dir, &overrides).map_err(PackError::Definition)?
    {
        files.push(PackFile { path: CONTRACT_FILE.to_owned(), bytes, executable: false });
    }
    Ok(Collected { files, left_out })
}

/// What replaces values of the definition of an agent: that of its own file, then that of the environment, which becomes part of the file.
fn replaced(dir: &Path, files: &mut Vec<PackFile>, variable: &Variable<'_>) -> Result<Overrides, OverridesError> {
    let mut overrides = overrides::of_folder(dir)?;
    let name = dir.canonicalize().ok().and_then(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()));
    let Some(name) = name.filter(|_| derive::is_defined(dir)) else { return Ok(overrides) };
    let more = Overrides::of(&name, variable)?;
    if !more.is_empty() {
        overrides.extend(more);
        files.retain(|file| file.path != OVERRIDES_FILE);
        let bytes = overrides.to_json().to_string().into_bytes();
        files.push(PackFile { path: OVERRIDES_FILE.to_owned(), bytes, executable: false });
    }
    Ok(overrides)
}

/// Packs the directory of an agent in an environment with other files, which do not replace its own.
pub fn pack_with_files(dir: &Path, others: Vec<PackFile>, variable: &Variable<'_>) -> Result<Package, PackError> {
    let Collected { mut files, left_out } = own_files(dir, variable)?;
    let is_new = |other: &PackFile| !files.iter().any(|file| file.path == other.path);
    let new: Vec<PackFile> = others.into_iter().filter(is_new).collect();
    files.extend(new);
    Ok(Package { left_out, ..pack_files(files)? })
}

/// Packs a directory with another contract than the one in it.
pub fn pack_with_contract(dir: &Path, contract: Vec<u8>) -> Result<Package, PackError> {
    let mut files = files_of(dir)?;
    files.retain(|file| file.path != CONTRACT_FILE);
    files.push(PackFile { path: CONTRACT_FILE.to_owned(), bytes: contract, executable: false });
    pack_files(files)
}

/// Packs files that are already in memory, together with the packaged tools that their definition names.
pub fn pack_files(mut files: Vec<PackFile>) -> Result<Package, PackError> {
    toolbox::complete(&mut files);
    order(&mut files)?;
    let contract = files.iter().find(|file| file.path == CONTRACT_FILE).ok_or(PackError::NoContract)?;
    let contract = crate::offered(&contract.bytes).map_err(PackError::Contract)?;
    let bytes = archive(&files)?;
    Ok(Package { digest: crate::digest_of(&bytes), bytes, contract, files: files.len(), left_out: Vec::new() })
}

/// The files of a directory in the order of a package, within its limits.
pub(crate) fn files_of(dir: &Path) -> Result<Vec<PackFile>, PackError> {
    collected(dir).map(|found| found.files)
}

fn collected(dir: &Path) -> Result<Collected, PackError> {
    let mut found = collect(dir)?;
    order(&mut found.files)?;
    Ok(found)
}

fn order(files: &mut [PackFile]) -> Result<(), PackError> {
    // Sorted by the parts of the path and not by its text, so that the files in a directory `name` precede a file
    // `name.txt`.
    files.sort_by(|left, right| left.path.split('/').cmp(right.path.split('/')));
    let mut room = Room::new(Limits::default());
    for (count, file) in files.iter().enumerate() {
        room.take(count, file.bytes.len() as u64)?;
    }
    Ok(())
}

/// Writes the archive without data of this machine: no times, no owners, and only two modes.
pub(crate) fn archive(files: &[PackFile]) -> Result<Vec<u8>, PackError> {
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(6));
    let mut builder = tar::Builder::new(gzip);
    for file in files {
        if !crate::walk::is_plain_path(&file.path) {
            return Err(PackError::Name { path: file.path.clone() });
        }
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        builder.append_data(&mut header, &file.path, file.bytes.as_slice()).map_err(PackError::Write)?;
    }
    let mut gzip = builder.into_inner().map_err(PackError::Write)?;
    gzip.flush().map_err(PackError::Write)?;
    gzip.finish().map_err(PackError::Write)
}
