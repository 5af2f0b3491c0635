//! Isolated Python environments: for an agent whose contract lists packages, an interpreter that sees these, the standard library,
//! and no package of the machine.
//!
//! An environment belongs to one package of an agent and lies beside it in the cache, as `<digest>.env`: it is counted with it and
//! goes with it. It is made once, before the first attempt begins, by the machine's own `venv` and `pip`; where pip looks is the
//! operator's affair, in the `PIP_…` variables that the worker has. What pip runs is held like an agent, since packages may build
//! themselves.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use tracing::info;

use crate::process::{Change, Keeper, Spawn};
use crate::provider::Settings;
use crate::python::Python;

/// The ending of the folders' names.
const SUFFIX: &str = "env";

/// Written last, with the interpreter's path in it: an environment without it, or of another interpreter, is made anew.
const COMPLETE: &str = "atlas-complete";

/// What `venv` and `pip` print.
const LOG: &str = "atlas-install.log";

/// How long one step may take: packages may have to be downloaded, and built.
const STEP_MAX: Duration = Duration::from_secs(600);

/// How much of the log's end is looked at for the reason of a failure.
const LOG_TAIL_BYTES: usize = 4 << 10;

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("{0}")]
    NoPython(String),
    /// It would be an option of pip's.
    #[error("\"{0}\" is no requirement: it starts with a dash")]
    Dash(String),
    #[error("could not write a Python environment")]
    Write(#[source] io::Error),
    #[error("could not {doing}: {why}")]
    Step { doing: &'static str, why: String },
    #[error("the work was cut short")]
    CutShort,
}

/// Makes environments.
#[derive(Clone)]
pub(crate) struct Environments {
    pub(crate) env: Env,
    pub(crate) settings: Arc<Settings>,
    pub(crate) keeper: Arc<Keeper>,
}

/// Where the environment of an unpacked package lies.
pub(crate) fn directory_of(package: &Path) -> PathBuf {
    package.with_extension(SUFFIX)
}

impl Environments {
    /// The interpreter of the environment of the package unpacked at `package`, made if it is not there.
    pub(crate) async fn make(&self, package: &Path, requirements: &[String]) -> Result<PathBuf, EnvironmentError> {
        if let Some(option) = requirements.iter().find(|text| text.trim_start().starts_with('-')) {
            return Err(EnvironmentError::Dash(option.clone()));
        }
        let directory = directory_of(package);
        let python = directory.join("bin").join("python");
        let (settings, to) = (Arc::clone(&self.settings), directory.clone());
        let begun = self.env.spawn_blocking("python environment", move || begin(&settings, &to)).join().await;
        let Begun { base, done } = begun.map_err(|_| EnvironmentError::CutShort)??;
        if done {
            return Ok(python);
        }
        let start = self.env.clock.monotonic();
        let venv = ["-I", "-m", "venv", "--without-pip"].map(OsString::from).into_iter();
        let venv = venv.chain([directory.clone().into_os_string()]).collect();
        self.step("make a Python environment", &base, venv, &directory).await?;
        // The machine's pip, so that none has to be unpacked into every environment.
        let pip =
            ["-P", "-m", "pip", "--python"].map(OsString::from).into_iter().chain([python.clone().into_os_string()]);
        let install =
            ["install", "--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar", "off", "--"];
        let install = pip.chain(install.map(OsString::from)).chain(requirements.iter().map(OsString::from)).collect();
        self.step("install the agent's Python packages", &base, install, &directory).await?;
        let mark = directory.join(COMPLETE);
        fs::write(mark, base.program.as_os_str().as_encoded_bytes()).map_err(EnvironmentError::Write)?;
        let took = self.env.clock.monotonic().saturating_sub(start);
        info!(environment = %directory.display(), ?took, "Python packages are installed");
        Ok(python)
    }

    /// Runs one program to its end.
    async fn step(
        &self,
        doing: &'static str,
        base: &Python,
        arguments: Vec<OsString>,
        directory: &Path,
    ) -> Result<(), EnvironmentError> {
        let failed = |why: String| EnvironmentError::Step { doing, why };
        let (keeper, program, environment) =
            (Arc::clone(&self.keeper), base.program.clone(), self.settings.pip_environment.clone());
        let at = directory.to_owned();
        let started = self.env.spawn_blocking("start pip", move || {
            let log = File::options().create(true).append(true).open(at.join(LOG))?;
            keeper.spawn(Spawn {
                program: program.into(),
                arguments,
                directory: &at,
                environment,
                stdin: Stdio::null(),
                stdout: log.try_clone()?.into(),
                stderr: log.into(),
                passed: Vec::new(),
                // It serves whichever attempt comes next.
                leased: false,
            })
        });
        let started = started.join().await.map_err(|_| EnvironmentError::CutShort)?;
        let mut tree = started.map_err(EnvironmentError::Write)?;
        let until = self.env.clock.monotonic() + STEP_MAX;
        let change = loop {
            if let Some(change) = tree.change() {
                break Some(change);
            }
            let left = until.saturating_sub(self.env.clock.monotonic());
            if left.is_zero() {
                break None;
            }
            tree.wait_for_change(left).await;
        };
        tree.kill().await;
        match change {
            Some(Change::Exited(status)) if status.success() => Ok(()),
            Some(Change::Exited(_)) => Err(failed(last_words(&directory.join(LOG)))),
            Some(Change::NotStarted { errno }) => Err(failed(nix::errno::Errno::from_raw(errno).desc().to_owned())),
            None => Err(failed(format!("not done after {} s", STEP_MAX.as_secs()))),
        }
    }
}

/// What was found when an environment was asked for.
struct Begun {
    base: Python,
    /// It is there already.
    done: bool,
}

/// Finds the interpreter, and clears away what an earlier process left in part.
fn begin(settings: &Settings, directory: &Path) -> Result<Begun, EnvironmentError> {
    let base = settings.python.get().map_err(|why| EnvironmentError::NoPython(why.to_owned()))?.clone();
    // One that cannot be read was never completed.
    let mark = fs::read(directory.join(COMPLETE)).unwrap_or_default();
    let done = mark == base.program.as_os_str().as_encoded_bytes();
    if !done {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(EnvironmentError::Write(error)),
            _ => fs::create_dir_all(directory).map_err(EnvironmentError::Write)?,
        }
    }
    Ok(Begun { base, done })
}

/// Pip's last error, or whatever was printed last.
fn last_words(log: &Path) -> String {
    // Without a log there is nothing to tell.
    let bytes = fs::read(log).unwrap_or_default();
    let tail = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_TAIL_BYTES)..]);
    let lines = || tail.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().rev().find_map(|line| line.strip_prefix("ERROR: "));
    error.or_else(|| lines().next_back()).unwrap_or("it ended without a word").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_told() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let log = dir.path().join(LOG);
        assert_eq!(last_words(&log), "it ended without a word");
        fs::write(&log, "Looking\nERROR: first\nERROR: second\nnotice\n").expect("writable");
        assert_eq!(last_words(&log), "second");
        fs::write(&log, "No module named venv\n\n").expect("writable");
        assert_eq!(last_words(&log), "No module named venv");
    }

    #[test]
    fn it_lies_beside_its_package() {
        assert_eq!(directory_of(Path::new("/c/packages/ab12")), Path::new("/c/packages/ab12.env"));
    }
}
