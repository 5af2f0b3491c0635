//! Small files that people write: configurations, tokens, keys. They are read whole, up to a size, and what is wrong with one is said with
//! its place. All calls block; do not use them on async threads.

use std::fs::{File, Metadata};
use std::io::{self, Error, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The most bytes of a configuration.
pub const CONFIGURATION_BYTES_MAX: u64 = 1 << 20;
/// The most bytes of a file with a token or an address.
pub const TOKEN_BYTES_MAX: u64 = 64 << 10;

/// The bytes of a file that is not larger than `max`.
pub fn read_bytes(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    bounded_file(File::open(path)?, max)
}

/// The text of a file that is not larger than `max` bytes.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    text(bounded_file(File::open(path)?, max)?)
}

/// The text of what can be read, such as the standard input.
pub fn read_text_from(from: impl Read, max: u64) -> io::Result<String> {
    text(bounded(from, max, max.min(TOKEN_BYTES_MAX))?)
}

/// The text of a file that not everybody may read.
pub fn read_private_text(path: &Path, max: u64) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o007 != 0 {
        return Err(Error::new(ErrorKind::PermissionDenied, "everybody may read it: chmod o-rwx"));
    }
    text(bounded_file(file, max)?)
}

/// The line of a byte in a text, from 1.
pub fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn bounded_file(file: File, max: u64) -> io::Result<Vec<u8>> {
    let size = expected(&file.metadata()?, max);
    bounded(file, max, size)
}

/// How many bytes a file has. Pipes and the like do not tell before they are read.
fn expected(metadata: &Metadata, max: u64) -> u64 {
    match metadata.len() {
        len if metadata.is_file() && len > 0 => len.min(max),
        _ => max.min(TOKEN_BYTES_MAX),
    }
}

/// Room for `expected` bytes is made at once: a vector that grows leaves pieces of keys in freed memory.
fn bounded(from: impl Read, max: u64, expected: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more, in which the end is found.
    bytes.reserve_exact(usize::try_from(expected.saturating_add(1)).unwrap_or(0));
    from.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it is larger than {max} bytes")));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let line = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).matches('\n').count();
        Error::new(ErrorKind::InvalidData, format!("line {} is not UTF-8", line + 1))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_bounded_texts() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("file");
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("writable");
            read_text(&path, 4).map_err(|error| (error.kind(), error.to_string()))
        };
        assert_eq!(read("a\nö".as_bytes()), Ok("a\nö".to_owned()));
        assert_eq!(read(b"12345"), Err((ErrorKind::FileTooLarge, "it is larger than 4 bytes".to_owned())));
        assert_eq!(read(b"1\n\xff"), Err((ErrorKind::InvalidData, "line 2 is not UTF-8".to_owned())));
        assert_eq!(read_text(&dir.path().join("none"), 4).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
        // What has no end is not read to it.
        assert!(read_bytes(Path::new("/dev/zero"), 4).is_err());
        assert_eq!(read_text_from(&b"1234"[..], 4).expect("read"), "1234");
    }

    #[test]
    fn room_for_a_file_is_made_once() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("key");
        for len in [1, 40, 3_000] {
            fs::write(&path, "k".repeat(len)).expect("writable");
            assert_eq!(read_bytes(&path, TOKEN_BYTES_MAX).expect("read").capacity(), len + 1);
        }
        let piped = read_text_from(&b"1234"[..], 100).expect("read");
        assert_eq!(piped.capacity(), 101);
    }

    #[test]
    fn a_private_file_is_not_for_everybody() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("key");
        fs::write(&path, "text").expect("writable");
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        mode(0o640);
        assert_eq!(read_private_text(&path, 9).expect("read"), "text");
        mode(0o644);
        let error = read_private_text(&path, 9).expect_err("refused");
        assert_eq!(error.to_string(), "everybody may read it: chmod o-rwx");
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!([0, 1, 2, 9].map(|at| line_at("a\nb\n", at)), [1, 1, 2, 3]);
    }
}
