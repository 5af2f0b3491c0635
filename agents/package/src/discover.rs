//! Finds the agents in directories (compatibility §3.1).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use atlas_contract::{Contract, ContractError};

use crate::{CONTRACT_FILE, DefinitionError, derive};

/// Maximum depth of directories below a search path.
pub(crate) const DEPTH_MAX: usize = 16;

/// Maximum number of directories per call, so that a search in a home directory ends.
pub(crate) const DIRECTORIES_MAX: usize = 20_000;

/// Maximum size of a contract.
pub(crate) const CONTRACT_BYTES_MAX: u64 = 1 << 20;

/// An agent's directory.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredAgent {
    /// The path of the directory.
    pub dir: PathBuf,
    /// The agent's contract.
    pub contract: Contract,
}

/// A path that the search skipped, and why.
#[derive(Debug, thiserror::Error)]
pub enum SkippedPath {
    /// A contract that breaks a rule.
    #[error("skipped \"{}\": {source}", .path.display())]
    Contract {
        /// The contract's file.
        path: PathBuf,
        /// The error in the contract.
        source: ContractError,
    },
    /// A file or directory that cannot be read.
    #[error("skipped \"{}\": {source}", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A definition of Loki that cannot be used.
    #[error("skipped \"{}\": {}", .path.display(), told(.source))]
    Definition {
        /// The agent's directory.
        path: PathBuf,
        /// The error in the definition.
        source: DefinitionError,
    },
    /// A contract over one megabyte.
    #[error("skipped \"{}\": the file is too large for a contract", .path.display())]
    TooLarge {
        /// The contract's file.
        path: PathBuf,
    },
    /// The search stopped at the limit.
    #[error("stopped at \"{}\": more than {DIRECTORIES_MAX} directories", .path.display())]
    TooMany {
        /// The first directory that was not searched.
        path: PathBuf,
    },
}

/// The result of a search, in the order of the paths.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The agents that were found.
    pub found: Vec<DiscoveredAgent>,
    /// The paths that were skipped; the caller should warn about each.
    pub skipped: Vec<SkippedPath>,
}

/// An error with its causes, in one line.
fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Searches for `agent.yaml`, and for definitions of Loki, at any depth below each path, in sorted order; a missing path is not an error.
///
/// Hidden directories, `__pycache__` and links are not followed. Several agents may have the same name and version: the
/// caller registers them in order, and the last one wins.
pub fn discover<P: AsRef<Path>>(paths: &[P]) -> Discovery {
    let mut roots: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    roots.sort_unstable();
    roots.dedup();
    let mut search = Search { discovery: Discovery::default(), directories: 0 };
    for root in roots {
        if root.is_dir() {
            search.directory(root, 0);
        }
    }
    search.discovery
}

struct Search {
    discovery: Discovery,
    directories: usize,
}

impl Search {
    fn directory(&mut self, dir: &Path, depth: usize) {
        self.directories += 1;
        if self.directories > DIRECTORIES_MAX {
            if self.directories == DIRECTORIES_MAX + 1 {
                self.discovery.skipped.push(SkippedPath::TooMany { path: dir.to_owned() });
            }
            return;
        }
        let children = match children(dir) {
            Ok(children) => children,
            Err(source) => {
                self.discovery.skipped.push(SkippedPath::Read { path: dir.to_owned(), source });
                return;
            }
        };
        // `agent.yaml` of an agent of Loki replaces the contract that follows from its definition.
        let defined = children.iter().any(|(path, _)| path.file_name().is_some_and(|name| name == CONTRACT_FILE));
        if !defined && derive::is_defined(dir) {
            return match definition(dir) {
                Ok(contract) => self.discovery.found.push(DiscoveredAgent { dir: dir.to_owned(), contract }),
                Err(skipped) => self.discovery.skipped.push(skipped),
            };
        }
        for (path, is_dir) in children {
            if is_dir && depth < DEPTH_MAX {
                self.directory(&path, depth + 1);
            } else if !is_dir && path.file_name().is_some_and(|name| name == CONTRACT_FILE) {
                match contract(&path) {
                    Ok(contract) => self.discovery.found.push(DiscoveredAgent { dir: dir.to_owned(), contract }),
                    Err(skipped) => self.discovery.skipped.push(skipped),
                }
            }
        }
    }
}

/// Files and directories of `dir`, sorted, without links and hidden entries.
pub(crate) fn children(dir: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut children = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".") || name == "__pycache__";
        if !hidden && (kind.is_dir() || kind.is_file()) {
            children.push((entry.path(), kind.is_dir()));
        }
    }
    children.sort_unstable();
    Ok(children)
}

fn definition(dir: &Path) -> Result<Contract, SkippedPath> {
    let path = dir.to_owned();
    let text = match derive::contract_of_folder(dir) {
        Ok(text) => text.unwrap_or_default(),
        Err(source) => return Err(SkippedPath::Definition { path, source }),
    };
    crate::offered(&text).map_err(|source| SkippedPath::Contract { path, source })
}

fn contract(path: &Path) -> Result<Contract, SkippedPath> {
    let read = |source| SkippedPath::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(read)?.len() > CONTRACT_BYTES_MAX {
        return Err(SkippedPath::TooLarge { path: path.to_owned() });
    }
    let text = fs::read(path).map_err(read)?;
    crate::offered(&text).map_err(|source| SkippedPath::Contract { path: path.to_owned(), source })
}
