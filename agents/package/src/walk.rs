//! Reads an archive strictly: only allowed entries, within limits.
//!
//! The tar library is lenient by design (it skips `..`, writes links and devices), so this module checks every entry
//! first. It accepts regular files and directories with plain relative names that are unique without regard to case.

use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use crate::PackFile;

/// Limits on a package.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum size of the archive.
    pub archive_bytes_max: u64,
    /// Maximum total size of all files.
    pub content_bytes_max: u64,
    /// Maximum number of files and directories.
    pub entries_max: usize,
    /// Maximum number of directories above a file.
    pub depth_max: usize,
    /// Maximum ratio of the contents to the archive; small contents are exempt.
    pub ratio_max: u64,
}

impl Default for Limits {
    /// The limits of the package format (compatibility §24.1), and our own limits where the format has none.
    fn default() -> Self {
        Self {
            archive_bytes_max: 10 << 20,
            content_bytes_max: 10 << 20,
            entries_max: 4_096,
            depth_max: 16,
            ratio_max: 100,
        }
    }
}

/// Contents below this size are exempt from the ratio.
const RATIO_EXEMPT_BYTES: u64 = 1 << 20;

/// Maximum overhead of a tar per entry: its header, padding and long name.
const OVERHEAD_BYTES_PER_ENTRY: u64 = 4_096;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive exceeds a limit.
    #[error("the archive has more than {max} {what}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// The contents are too large in comparison with the archive.
    #[error("the content is more than {max} times as large as the archive")]
    Ratio {
        /// The limit.
        max: u64,
    },
    /// The archive is not a gzip-compressed tar, or is damaged.
    #[error("Failed to extract archive")]
    Read(#[source] io::Error),
    /// A link, device or other entry that is not a file or directory.
    #[error("{path:?} is a {kind}, not a file or directory")]
    Kind {
        /// The name.
        path: String,
        /// The kind of entry.
        kind: &'static str,
    },
    /// A name that points outside the package, or to different files on different systems.
    #[error("{path:?} is not a plain relative path")]
    Path {
        /// The name.
        path: String,
    },
    /// A duplicate name, or a file with the name of a directory.
    #[error("{path:?} occurs twice")]
    Twice {
        /// The name.
        path: String,
    },
}

/// True for `a/b.txt`: parts of one to 255 bytes, none of them `.` or `..`, no control character, `\` or `:`.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= 255;
    let refused = |c: char| c.is_control() || matches!(c, '\\' | ':');
    path.len() <= 1_024 && !path.contains(refused) && path.split('/').all(plain)
}

/// Reads all files of an archive, or refuses all of it.
pub(crate) fn members(archive: &[u8], limits: &Limits) -> Result<Vec<PackFile>, ArchiveError> {
    if archive.len() as u64 > limits.archive_bytes_max {
        return Err(ArchiveError::Limit { what: "bytes", max: limits.archive_bytes_max });
    }
    // The reader stops at this size, regardless of the sizes in the headers. A valid archive is much smaller.
    let entries_max = limits.entries_max as u64;
    let tar_bytes_max = limits.content_bytes_max + entries_max * OVERHEAD_BYTES_PER_ENTRY;
    let mut tar = Archive::new(GzDecoder::new(archive).take(tar_bytes_max));
    let mut names = Names::default();
    let mut members = Vec::new();
    let mut content_bytes = 0u64;
    for (count, entry) in tar.entries().map_err(ArchiveError::Read)?.enumerate() {
        if count >= limits.entries_max {
            return Err(ArchiveError::Limit { what: "entries", max: entries_max });
        }
        let mut entry = entry.map_err(ArchiveError::Read)?;
        let raw = entry.path_bytes().into_owned();
        let path = String::from_utf8(raw)
            .map_err(|error| ArchiveError::Path { path: String::from_utf8_lossy(error.as_bytes()).into_owned() })?;
        let is_dir = match entry.header().entry_type() {
            EntryType::Regular => false,
            EntryType::Directory => true,
            // Metadata of the whole archive, such as the commit that `git archive` records.
            EntryType::XGlobalHeader => continue,
            kind => return Err(ArchiveError::Kind { path, kind: kind_name(kind) }),
        };
        let path = names.add(&path, is_dir, limits)?;
        if is_dir {
            continue;
        }
        content_bytes = content_bytes.saturating_add(entry.size());
        if content_bytes > limits.content_bytes_max {
            return Err(ArchiveError::Limit { what: "bytes of content", max: limits.content_bytes_max });
        }
        if content_bytes > RATIO_EXEMPT_BYTES && content_bytes / (archive.len() as u64).max(1) > limits.ratio_max {
            return Err(ArchiveError::Ratio { max: limits.ratio_max });
        }
        let executable = entry.header().mode().map_err(ArchiveError::Read)? & 0o100 != 0;
        let size = entry.size();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(ArchiveError::Read)?;
        if bytes.len() as u64 != size {
            return Err(ArchiveError::Read(io::Error::from(io::ErrorKind::UnexpectedEof)));
        }
        members.push(PackFile { path, bytes, executable });
    }
    Ok(members)
}

fn kind_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Link | EntryType::Symlink => "link",
        EntryType::Char | EntryType::Block => "device",
        EntryType::Fifo => "pipe",
        _ => "special entry",
    }
}

/// The lower-case names so far, and whether each is a directory.
#[derive(Default)]
struct Names {
    seen: BTreeMap<String, Seen>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    File,
    /// The directory has its own entry.
    Directory,
    /// The directory is the parent of another entry; its own entry may follow.
    Parent,
}

impl Names {
    /// Checks a name, and returns it without the leading `./` and trailing `/` that archivers add.
    fn add(&mut self, path: &str, is_dir: bool, limits: &Limits) -> Result<String, ArchiveError> {
        let refused = || ArchiveError::Path { path: path.to_owned() };
        let twice = || ArchiveError::Twice { path: path.to_owned() };
        let name = path.strip_prefix("./").unwrap_or(path);
        let name = if is_dir { name.strip_suffix('/').unwrap_or(name) } else { name };
        // The entry of the root directory, as `tar -C dir .` writes it.
        if is_dir && matches!(name, "" | ".") {
            return Ok(String::new());
        }
        if !is_plain_path(name) || name.matches('/').count() > limits.depth_max {
            return Err(refused());
        }
        let folded = name.to_lowercase();
        for (at, _) in folded.match_indices('/') {
            if *self.seen.entry(folded[..at].to_owned()).or_insert(Seen::Parent) == Seen::File {
                return Err(twice());
            }
        }
        let own = if is_dir { Seen::Directory } else { Seen::File };
        match self.seen.insert(folded, own) {
            None => Ok(name.to_owned()),
            Some(Seen::Parent) if is_dir => Ok(name.to_owned()),
            Some(_) => Err(twice()),
        }
    }
}
