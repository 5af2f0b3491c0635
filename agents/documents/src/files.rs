//! Which files a list of documents names.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// Bounds of the documents of one search.
const FILES_MAX: usize = 10_000;
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Why documents cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the agent's folder cannot be read")]
    Folder(#[source] io::Error),
    #[error("\"{document}\": documents are not fetched here; put the text into a file of the agent's folder")]
    Address { document: String },
    #[error("\"{document}\": there are no loaders here; put the text into a file of the agent's folder")]
    Loader { document: String },
    #[error("\"{document}\" leads out of the agent's folder")]
    Outside { document: String },
    #[error("\"{document}\" is no pattern")]
    Pattern { document: String, source: Option<glob::PatternError> },
    #[error("there is no document \"{document}\" in the agent's folder")]
    Missing { document: String },
    #[error("the document \"{document}\" cannot be read")]
    Read { document: String, source: io::Error },
    #[error("the document \"{document}\" has more than {max} bytes; split it, or leave it out")]
    FileSize { document: String, max: u64 },
    #[error("the documents have more than {max} bytes; name fewer")]
    Size { max: u64 },
    #[error("there are more than {max} documents; name fewer")]
    Count { max: usize },
}

/// The files that some documents name: a file, all files of a folder, or those that a pattern matches.
pub fn files(folder: &Path, documents: &[String]) -> Result<BTreeSet<PathBuf>, DocumentError> {
    let folder = folder.canonicalize().map_err(DocumentError::Folder)?;
    let mut files = BTreeSet::new();
    for document in documents {
        find(&folder, document, &mut files)?;
    }
    Ok(files)
}

fn find(folder: &Path, document: &str, files: &mut BTreeSet<PathBuf>) -> Result<(), DocumentError> {
    let named = || document.to_owned();
    let scheme = document.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| !scheme.contains('/'));
    if let Some(scheme) = scheme {
        let document = named();
        return Err(match scheme.starts_with("http") {
            true => DocumentError::Address { document },
            false => DocumentError::Loader { document },
        });
    }
    let stays = Path::new(document).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !stays {
        return Err(DocumentError::Outside { document: named() });
    }
    let pattern = folder.join(document);
    let pattern = pattern.to_str().ok_or_else(|| DocumentError::Pattern { document: named(), source: None })?;
    // What the agent's own folder is called is no pattern.
    let pattern = match pattern.strip_prefix(folder.to_str().unwrap_or_default()) {
        Some(rest) => format!("{}{rest}", glob::Pattern::escape(folder.to_str().unwrap_or_default())),
        None => pattern.to_owned(),
    };
    let paths = glob::glob(&pattern);
    let paths = paths.map_err(|source| DocumentError::Pattern { document: named(), source: Some(source) })?;
    let mut any = false;
    for path in paths.filter_map(Result::ok) {
        any = true;
        add(folder, &path, document, files)?;
    }
    if any { Ok(()) } else { Err(DocumentError::Missing { document: named() }) }
}

fn add(folder: &Path, path: &Path, document: &str, files: &mut BTreeSet<PathBuf>) -> Result<(), DocumentError> {
    let unread = |source| DocumentError::Read { document: document.to_owned(), source };
    let real = path.canonicalize().map_err(unread)?;
    if !real.starts_with(folder) {
        return Err(DocumentError::Outside { document: document.to_owned() });
    }
    if real.is_dir() {
        for entry in fs::read_dir(&real).map_err(unread)?.filter_map(Result::ok) {
            // A link could lead to a folder above.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                add(folder, &entry.path(), document, files)?;
            }
        }
        return Ok(());
    }
    files.insert(real);
    if files.len() > FILES_MAX {
        return Err(DocumentError::Count { max: FILES_MAX });
    }
    Ok(())
}

/// The text of a file; none if it is no text.
pub(crate) fn read(file: &Path, document: &str) -> Result<Option<String>, DocumentError> {
    let unread = |source| DocumentError::Read { document: document.to_owned(), source };
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(unread)?;
    opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(DocumentError::FileSize { document: document.to_owned(), max: FILE_BYTES_MAX });
    }
    Ok((!bytes.contains(&0)).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}
