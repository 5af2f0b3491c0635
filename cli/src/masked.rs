//! Reads a value at the terminal: each character is shown as a star.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use nix::unistd::read;
use zeroize::Zeroizing;

use crate::exit::Exit;
use crate::failure::Failure;

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Asks for a value; none if stdin is not a terminal.
pub(crate) fn ask(prompt: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    let mut stderr = std::io::stderr();
    let mut show = |text: &str| {
        // The value is read even if stderr is closed.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    };
    show(prompt);
    let line = line(stdin.as_fd(), &mut show);
    show("\n");
    line.map(Some)
}

/// A line from a terminal; `show` gets what is to appear on it.
fn line<F: AsFd>(terminal: F, show: &mut dyn FnMut(&str)) -> Result<Zeroizing<String>, Failure> {
    let failed = |error: Errno| Failure::usage(format!("could not read from the terminal: {error}"));
    let quiet = Quiet::of(terminal).map_err(failed)?;
    let (mut line, mut key) = (Line::new(), [0]);
    loop {
        let next = match read(&quiet.terminal, &mut key) {
            Ok(0) => Next::Closed,
            Ok(_) => line.take(key[0], show),
            Err(Errno::EINTR) => Next::More,
            Err(error) => return Err(failed(error)),
        };
        match next {
            Next::More => {}
            Next::Done => return line.text(),
            Next::Closed => return Err(Failure::usage("nothing was entered")),
            Next::Interrupted => return Err(Failure::new("E0103", Exit::Short, "interrupted: nothing was changed")),
            Next::TooLong => return Err(Failure::usage(format!("a line has at most {LINE_BYTES_MAX} bytes"))),
        }
    }
}

/// A terminal that shows nothing by itself; dropping this restores its settings and discards what was not read, so that the rest of a
/// pasted value does not become a command of the shell.
struct Quiet<F: AsFd> {
    terminal: F,
    before: Termios,
}

impl<F: AsFd> Quiet<F> {
    fn of(terminal: F) -> Result<Self, Errno> {
        let before = tcgetattr(&terminal)?;
        let mut quiet = before.clone();
        // Ctrl-C arrives as a key: a signal would end this program with the settings changed.
        quiet.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG);
        quiet.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        quiet.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(&terminal, SetArg::TCSANOW, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl<F: AsFd> Drop for Quiet<F> {
    fn drop(&mut self) {
        // If the terminal was closed, there are no settings to restore.
        let _ = tcsetattr(&self.terminal, SetArg::TCSAFLUSH, &self.before);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    More,
    Done,
    Closed,
    Interrupted,
    TooLong,
}

/// What has been typed. The buffer never grows, so that no copy stays behind in memory.
struct Line(Zeroizing<Vec<u8>>);

impl Line {
    fn new() -> Self {
        Self(Zeroizing::new(Vec::with_capacity(LINE_BYTES_MAX)))
    }

    fn take(&mut self, key: u8, show: &mut dyn FnMut(&str)) -> Next {
        match key {
            b'\n' | b'\r' => return Next::Done,
            // Ctrl-C and Ctrl-\
            0x03 | 0x1c => return Next::Interrupted,
            // Ctrl-D ends an empty line only.
            0x04 if self.0.is_empty() => return Next::Closed,
            0x04 => {}
            // Backspace
            0x08 | 0x7f => {
                if self.remove_last() {
                    show("\u{8} \u{8}");
                }
            }
            // Ctrl-U
            0x15 => {
                while self.remove_last() {
                    show("\u{8} \u{8}");
                }
            }
            _ if self.0.len() == LINE_BYTES_MAX => return Next::TooLong,
            byte => {
                self.0.push(byte);
                if is_first(byte) {
                    show("*");
                }
            }
        }
        Next::More
    }

    /// Removes one character; false if there was none.
    fn remove_last(&mut self) -> bool {
        while let Some(byte) = self.0.pop() {
            if is_first(byte) {
                return true;
            }
        }
        false
    }

    fn text(mut self) -> Result<Zeroizing<String>, Failure> {
        match String::from_utf8(std::mem::take(&mut *self.0)) {
            Ok(text) => Ok(Zeroizing::new(text)),
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                Err(Failure::usage("the input is not UTF-8"))
            }
        }
    }
}

/// Whether a byte begins a character in UTF-8.
fn is_first(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use nix::pty::openpty;
    use nix::unistd::write;

    use super::*;

    fn check(keys: &[u8], expected: Result<&str, &str>, expected_shown: &str) {
        let pair = openpty(None, None).expect("a terminal");
        // As typed ahead: the settings change before anything is read.
        let mut quiet = tcgetattr(&pair.slave).expect("a terminal");
        quiet.local_flags.remove(LocalFlags::ICANON | LocalFlags::ISIG);
        tcsetattr(&pair.slave, SetArg::TCSANOW, &quiet).expect("a terminal");
        write(&pair.master, keys).expect("keys");
        let mut shown = String::new();
        let read = line(pair.slave.try_clone().expect("a copy"), &mut |text| shown += text);
        let read = read.map(|text| text.to_string()).map_err(|failure| failure.message);
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
        assert_eq!(shown, expected_shown);
        assert_eq!(tcgetattr(&pair.slave).expect("a terminal"), quiet, "the settings are restored");
    }

    #[test]
    fn a_line_is_read_with_stars() {
        check(b"s3cr3t\n", Ok("s3cr3t"), "******");
        check("pässwort €\r".as_bytes(), Ok("pässwort €"), "**********");
        check(b"ab\x7fc\n", Ok("ac"), "**\u{8} \u{8}*");
        check("é\x7f\x7fx\n".as_bytes(), Ok("x"), "*\u{8} \u{8}*");
        check(b"ab\x15c\n", Ok("c"), "**\u{8} \u{8}\u{8} \u{8}*");
        check(b"\n", Ok(""), "");
        check(b"first\nsecond\n", Ok("first"), "*****");
    }

    #[test]
    fn what_is_no_line_is_an_error() {
        check(b"ab\x03", Err("interrupted: nothing was changed"), "**");
        check(b"\x04", Err("nothing was entered"), "");
        check(b"\xff\n", Err("the input is not UTF-8"), "*");
    }
}
