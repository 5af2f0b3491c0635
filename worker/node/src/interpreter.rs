//! Programs of this machine that run agents' code: which names to try, and how they say what they are.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use nix::poll::{PollFd, PollFlags, poll};

/// The time limit for a program's answer, in milliseconds.
const PROBE_PATIENCE: u16 = 5_000;

/// The programs to try: `chosen` if given, otherwise the known names in `PATH`.
pub(crate) fn names(known: &[&str], chosen: Option<&Path>) -> Vec<PathBuf> {
    match chosen {
        Some(program) => vec![program.to_owned()],
        None => known.iter().map(PathBuf::from).collect(),
    }
}

/// The first of the programs whose output with these arguments `read` accepts. Blocks.
pub(crate) fn first<T>(programs: &[PathBuf], arguments: &[&str], read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    // All are probed at once, because most of the time is their start.
    let mut probes: Vec<Child> = programs.iter().filter_map(|program| probe(program, arguments)).collect();
    let found = probes.iter_mut().find_map(|probe| read(&answer(probe)?));
    for mut probe in probes {
        // Probes that were not needed or do not end.
        let _ = probe.kill();
        let _ = probe.wait();
    }
    found
}

fn probe(program: &Path, arguments: &[&str]) -> Option<Child> {
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

/// Reads the output of a probe within the time limit.
fn answer(probe: &mut Child) -> Option<Vec<u8>> {
    let mut stdout = probe.stdout.take()?;
    let mut printed = Vec::new();
    loop {
        let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut fds, PROBE_PATIENCE), Ok(1)) {
            return None;
        }
        let mut bytes = [0; 512];
        match stdout.read(&mut bytes) {
            Ok(0) => return Some(printed),
            // No path is that long, so this is not an interpreter.
            Ok(_) if printed.len() > 8 << 10 => return None,
            Ok(n) => printed.extend_from_slice(&bytes[..n]),
            Err(_) => return None,
        }
    }
}

/// Finds a program once; concurrent callers wait for the first.
#[derive(Debug)]
pub(crate) struct Finder<T> {
    known: &'static [&'static str],
    chosen: Option<PathBuf>,
    find: fn(Option<&Path>) -> Result<T, String>,
    found: OnceLock<Result<T, String>>,
}

impl<T> Finder<T> {
    pub(crate) fn new(
        known: &'static [&'static str],
        chosen: Option<PathBuf>,
        find: fn(Option<&Path>) -> Result<T, String>,
    ) -> Self {
        Self { known, chosen, find, found: OnceLock::new() }
    }

    /// Whether there is a program to ask. It may be too old, or belong to a version manager that has none.
    pub(crate) fn is_installed(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &Path| match name.components().count() {
            1 => std::env::split_paths(&path).any(|folder| folder.join(name).exists()),
            _ => name.exists(),
        };
        names(self.known, self.chosen.as_deref()).iter().any(|name| is_there(name))
    }

    /// The program, or why there is none. Blocks.
    pub(crate) fn get(&self) -> Result<&T, &str> {
        self.found.get_or_init(|| (self.find)(self.chosen.as_deref())).as_ref().map_err(String::as_str)
    }

    /// The result, if it is already known.
    pub(crate) fn known(&self) -> Option<&Result<T, String>> {
        self.found.get()
    }

    /// Whether it is known that there is none.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.known(), Some(Err(_)))
    }
}
