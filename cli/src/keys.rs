//! Reads keys from a terminal immediately and without echo.

use std::os::fd::AsFd;
use std::time::Duration;

use atlas_env::Env;
use nix::errno::Errno;
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use nix::unistd::read;

/// Interval between two reads.
const EVERY: Duration = Duration::from_millis(50);

/// A terminal that returns each key immediately; dropping this restores the terminal's settings. Ctrl-C still sends a
/// signal.
pub(crate) struct Keys<F: AsFd> {
    terminal: F,
    before: Termios,
}

impl<F: AsFd> Keys<F> {
    /// None if `terminal` is not a terminal.
    pub(crate) fn of(terminal: F) -> Option<Self> {
        let before = tcgetattr(&terminal).ok()?;
        let mut at_once = before.clone();
        at_once.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // A read returns immediately, even if no key was pressed.
        at_once.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        at_once.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(&terminal, SetArg::TCSANOW, &at_once).ok()?;
        Some(Self { terminal, before })
    }

    /// Completes when `q` is pressed or the terminal was closed.
    pub(crate) async fn quit(&self) {
        let mut keys = [0; 64];
        let clock = Env::system().clock;
        loop {
            match read(&self.terminal, &mut keys) {
                Ok(count) if keys[..count].iter().any(|key| matches!(key, b'q' | b'Q')) => return,
                Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => clock.sleep(EVERY).await,
                Err(_) => return,
            }
        }
    }
}

impl<F: AsFd> Drop for Keys<F> {
    fn drop(&mut self) {
        // If the terminal was closed, there are no settings to restore.
        let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use nix::pty::openpty;
    use nix::unistd::write;

    use super::*;

    #[tokio::test]
    async fn q_quits_and_the_terminal_is_as_before() {
        let pair = openpty(None, None).expect("a terminal");
        let before = tcgetattr(&pair.slave).expect("a terminal");
        let keys = Keys::of(pair.slave.try_clone().expect("a copy")).expect("a terminal");
        let now = tcgetattr(&pair.slave).expect("a terminal");
        assert!(!now.local_flags.intersects(LocalFlags::ICANON | LocalFlags::ECHO));
        assert!(now.local_flags.contains(LocalFlags::ISIG), "Ctrl-C stays a signal");
        // The keys are pressed before the read and without a line end.
        write(&pair.master, b"x q").expect("keys");
        keys.quit().await;
        drop(keys);
        assert_eq!(tcgetattr(&pair.slave).expect("a terminal"), before);
    }

    #[tokio::test]
    async fn what_is_no_terminal_has_no_keys() {
        let (end, _other) = std::io::pipe().expect("a pipe");
        assert!(Keys::of(OwnedFd::from(end)).is_none());
    }
}
