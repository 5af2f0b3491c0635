//! The durable mark as a file beside the segments.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::driver::MarkFile;
use crate::mark::FILE_BYTES;

/// The name of the file.
pub(crate) const NAME: &str = "durable.mark";

/// Opens the file of the mark in the log's directory, or creates it at its full size, so that writing or syncing a mark
/// changes only its bytes. Marks are written through the page cache: they survive the end of the process, and are
/// synced when the log is idle.
pub(super) fn open(dir: &Path) -> io::Result<FileMark> {
    let path = dir.join(NAME);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
    if file.metadata()?.len() < FILE_BYTES as u64 {
        file.write_all_at(&[0; FILE_BYTES], 0)?;
        file.sync_all()?;
        File::open(dir)?.sync_all()?;
    }
    Ok(FileMark(file))
}

/// Opens the file of the mark for reading; none if it does not exist.
pub fn open_to_read(dir: &Path) -> io::Result<Option<FileMark>> {
    match File::open(dir.join(NAME)) {
        Ok(file) => Ok(Some(FileMark(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The open file.
pub struct FileMark(File);

impl MarkFile for FileMark {
    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; FILE_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.0.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
