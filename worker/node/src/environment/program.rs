//! One program that makes an environment: `venv`, or `pip` with the build scripts of packages.
//!
//! Build scripts are code of strangers, and the environment is all that they may write. They read what agents with the permission to read
//! files may read, and use the network, because pip does. Their temporary files are on the disk, because packages may be large.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use super::words::last_words;
use super::{EnvironmentError, Environments, LOG, LOOK};
use crate::cgroup::Limits;
use crate::preparing::Preparing;
use crate::process::{Change, Spawn, Supervisor};
use crate::provider::Settings;
use crate::sandbox::TEMPORARY;
use crate::texts::Lines;

/// How much of the log's end is searched for the reason of a failure.
const LOG_TAIL_BYTES: u64 = 16 << 10;

/// A program that is to be run.
pub(super) struct Program<'a> {
    /// What it does, for errors.
    pub(super) doing: &'static str,
    /// What it is part of, for people who wait.
    pub(super) installing: &'a str,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// The directory of the environment.
    pub(super) directory: &'a Path,
    /// True if it runs code of packages.
    pub(super) runs_packages: bool,
}

impl Environments {
    /// Runs one program to its end and reports its output.
    pub(super) async fn step(&self, program: Program<'_>, preparing: &Preparing) -> Result<(), EnvironmentError> {
        let Program { doing, installing, program, arguments, directory, runs_packages } = program;
        let failed = |why: String| EnvironmentError::Step { doing, why };
        let (output, log) = open_log(&directory.join(LOG)).map_err(EnvironmentError::Write)?;
        let start = Start { program, arguments, directory: directory.to_owned(), runs_packages };
        let (supervisor, settings) = (Arc::clone(&self.supervisor), Arc::clone(&self.settings));
        let started = self.env.spawn_blocking("start pip", move || start.spawn(&supervisor, &settings, output));
        let started = started.join().await.map_err(|_| EnvironmentError::CutShort)?;
        let mut tree = started.map_err(|error| failed(error.to_string()))?;
        let mut printed = Printed { log: &log, lines: Lines::default() };
        let change = loop {
            let change = tree.change();
            printed.tell(preparing).await;
            let left = preparing.left();
            if change.is_some() || left.is_zero() {
                break change;
            }
            tree.wait_for_change(left.min(LOOK)).await;
        };
        tree.kill().await;
        match change {
            Some(Change::Exited(status)) if status.success() => Ok(()),
            Some(Change::Exited(_)) => Err(failed(reason(&log))),
            Some(Change::NotConfined(refused)) => Err(failed(refused.to_string())),
            Some(Change::NotStarted { errno }) => Err(failed(nix::errno::Errno::from_raw(errno).desc().to_owned())),
            None => Err(EnvironmentError::TimedOut { doing: installing.to_owned(), limit: preparing.limit }),
        }
    }
}

/// Removes the temporary files of packages from an environment.
pub(super) fn remove_temporary(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory.join(TEMPORARY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What is needed to start a program.
struct Start {
    program: PathBuf,
    arguments: Vec<OsString>,
    directory: PathBuf,
    runs_packages: bool,
}

impl Start {
    fn spawn(self, supervisor: &Supervisor, settings: &Settings, log: File) -> io::Result<crate::process::Tree> {
        let directory = self.directory.as_path();
        let mut environment = settings.pip_environment.clone();
        let mut sandbox = None;
        if self.runs_packages {
            let sources = places_in(&environment);
            let sources: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
            sandbox = settings.sandboxes.of_packages(directory, &sources).map_err(io::Error::other)?;
        }
        if sandbox.is_some() {
            fs::create_dir_all(directory.join(TEMPORARY))?;
            // The cache of the user is not writable, and what build scripts put into it would reach other agents.
            environment.push(("PIP_NO_CACHE_DIR".into(), "1".into()));
        }
        supervisor.spawn(Spawn {
            program: self.program.into(),
            arguments: self.arguments,
            directory,
            environment,
            stdin: Stdio::null(),
            stdout: log.try_clone()?.into(),
            stderr: log.into(),
            passed: Vec::new(),
            limits: Limits::default(),
            sandbox,
            own_directory: None,
            makes_code: true,
            // The environment does not belong to one attempt, so the program is not bound to a lease.
            leased: false,
            shares_pids: false,
            after: Vec::new(),
        })
    }
}

/// The places of this machine that pip's variables name: files and folders with packages, certificates and settings. They stay
/// readable wherever they are.
fn places_in(environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let own = environment.iter().filter(|(name, _)| name.as_bytes().starts_with(b"PIP_"));
    let words = own.flat_map(|(_, value)| value.as_bytes().split(u8::is_ascii_whitespace));
    let paths = words.map(|word| word.strip_prefix(b"file://").unwrap_or(word));
    paths.filter(|path| path.starts_with(b"/")).map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))).collect()
}

/// Opens the log for the program and for its readers, who begin at its end. Both are open before the program runs: afterwards the name
/// could lead elsewhere.
fn open_log(path: &Path) -> io::Result<(File, File)> {
    let output = File::options().create(true).append(true).open(path)?;
    let mut log = File::open(path)?;
    log.seek(SeekFrom::End(0))?;
    Ok((output, log))
}

/// Output that is logged line by line.
struct Printed<'a> {
    log: &'a File,
    lines: Lines,
}

impl Printed<'_> {
    async fn tell(&mut self, preparing: &Preparing) {
        let mut bytes = Vec::new();
        if self.log.take(64 << 10).read_to_end(&mut bytes).is_ok() {
            for line in self.lines.push(&bytes) {
                preparing.say("info", line).await;
            }
        }
    }
}

/// Why the program failed, from the end of its log.
fn reason(mut log: &File) -> String {
    let mut bytes = Vec::new();
    let size = log.metadata().map_or(0, |metadata| metadata.len());
    let tail = log.seek(SeekFrom::Start(size.saturating_sub(LOG_TAIL_BYTES)));
    // Without a log there is no error text.
    let _ = tail.and_then(|_| log.take(LOG_TAIL_BYTES).read_to_end(&mut bytes));
    last_words(&String::from_utf8_lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_at_the_end_of_the_log() {
        let mut log = tempfile::tempfile().expect("temporary file");
        let long = format!("ERROR: early\n{}\nlast\n", "x".repeat(20_000));
        io::Write::write_all(&mut log, long.as_bytes()).expect("writable");
        assert_eq!(reason(&log), "last");
    }

    #[test]
    fn the_places_of_pips_variables_stay_readable() {
        let of = |variables: &[(&str, &str)]| {
            let variables: Vec<_> = variables.iter().map(|&(name, value)| (name.into(), value.into())).collect();
            places_in(&variables)
        };
        let found = of(&[
            ("PIP_FIND_LINKS", "/tmp/wheels file:///srv/more https://x/simple"),
            ("PIP_NO_INDEX", "1"),
            ("HOME", "/root"),
        ]);
        assert_eq!(found, [PathBuf::from("/tmp/wheels"), PathBuf::from("/srv/more")]);
    }
}
