//! Reads and replaces files.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

/// The contents of a file of at most `max` bytes; none if there is no such file. A longer one is an error.
pub(crate) fn read(path: &Path, max: usize) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("the file has more than {max} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "the file is not UTF-8"))?;
    Ok(Some(text))
}

/// Replaces a file: whoever reads it sees the old contents or the new ones, also after a crash.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // A name that is hidden and no entry's.
    let mut fresh = std::ffi::OsString::from(".");
    fresh.push(path.file_name().unwrap_or_default());
    fresh.push(format!(".{}.partial", std::process::id()));
    let fresh = folder.join(fresh);
    let mut file = File::create(&fresh)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&fresh, path))
        .inspect_err(|_| {
            // The first error is the one to report.
            let _ = fs::remove_file(&fresh);
        })?;
    File::open(folder)?.sync_all()
}
