//! Finds the agents in directories (compatibility §3.1).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use atlas_contract::{Contract, ContractError};

use crate::CONTRACT_FILE;

/// Deepest directory below a search path that is looked at.
const DEPTH_MAX: usize = 16;

/// Most directories that one call looks at; a search path that is a home directory must end.
const DIRECTORIES_MAX: usize = 20_000;

/// Largest contract that is read.
const CONTRACT_BYTES_MAX: u64 = 1 << 20;

/// An agent's directory.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredAgent {
    /// Where it is.
    pub dir: PathBuf,
    /// What it says of itself.
    pub contract: Contract,
}

/// Something on the way that is not an agent, or not one that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Skipped {
    /// A contract that breaks a rule.
    #[error("skipped \"{}\": {source}", .path.display())]
    Contract {
        /// The contract's file.
        path: PathBuf,
        /// What is wrong with it.
        source: ContractError,
    },
    /// A file or directory that cannot be read.
    #[error("skipped \"{}\": {source}", .path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A contract over one megabyte.
    #[error("skipped \"{}\": the file is too large for a contract", .path.display())]
    TooLarge {
        /// The contract's file.
        path: PathBuf,
    },
    /// The search ended here.
    #[error("stopped at \"{}\": more than {DIRECTORIES_MAX} directories", .path.display())]
    TooMany {
        /// The first directory that was not looked at.
        path: PathBuf,
    },
}

/// What a search found, in the order of the paths.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Agents.
    pub found: Vec<DiscoveredAgent>,
    /// What was left out, each worth a warning.
    pub skipped: Vec<Skipped>,
}

/// Looks for `agent.yaml` at any depth below each path, in sorted order; a path that does not exist is not an error.
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
                self.discovery.skipped.push(Skipped::TooMany { path: dir.to_owned() });
            }
            return;
        }
        let children = match children(dir) {
            Ok(children) => children,
            Err(source) => {
                self.discovery.skipped.push(Skipped::Read { path: dir.to_owned(), source });
                return;
            }
        };
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

/// Files and directories of `dir`, sorted, without links and what is hidden.
fn children(dir: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
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

fn contract(path: &Path) -> Result<Contract, Skipped> {
    let read = |source| Skipped::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(read)?.len() > CONTRACT_BYTES_MAX {
        return Err(Skipped::TooLarge { path: path.to_owned() });
    }
    let text = fs::read(path).map_err(read)?;
    crate::offered(&text).map_err(|source| Skipped::Contract { path: path.to_owned(), source })
}
