//! Bodies and files as texts.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use atlas_pages::{decoded, markdown};

/// Most bytes of a file: one of HTML has more than its text.
const FILE_BYTES_MAX: u64 = 10 << 20;

/// Most files of one repository, or of one folder that a program wrote.
pub(super) const FILES_MAX: usize = 10_000;

/// How deep folders may be.
const DEPTH_MAX: usize = 64;

/// The text of a body or of a file. The error says why there is none.
pub(super) fn text(body: &[u8], encoding: Option<&str>) -> Result<String, String> {
    let text = decoded(body, encoding, false).map_err(|error| error.to_string())?;
    if text.trim().is_empty() { Err("it has no text".to_owned()) } else { Ok(text) }
}

/// The files below a folder, relative to it and in order. Hidden ones and links are left out. The second answer is whether there are more, or
/// deeper ones than are read.
pub(super) fn below(root: &Path, chosen: impl Fn(&Path) -> bool) -> std::io::Result<(Vec<PathBuf>, bool)> {
    let (mut files, mut folders, mut is_deeper) = (Vec::new(), vec![(root.to_owned(), 0)], false);
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let kind = entry.file_type()?;
            let Some(name) = path.strip_prefix(root).ok().filter(|_| !is_hidden) else { continue };
            if kind.is_dir() {
                match depth < DEPTH_MAX {
                    true => folders.push((path, depth + 1)),
                    false => is_deeper = true,
                }
            } else if kind.is_file() && chosen(name) {
                if files.len() >= FILES_MAX {
                    return Ok((files, true));
                }
                files.push(name.to_owned());
            }
        }
    }
    files.sort();
    Ok((files, is_deeper))
}

/// The text of a file; none if it is binary or empty, which many files of a repository are. The error says why a text is left out.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        return Ok(None);
    }
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    let is_html = matches!(ending.as_str(), "html" | "htm" | "xhtml");
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let text = if is_html { markdown(&text) } else { text };
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}
