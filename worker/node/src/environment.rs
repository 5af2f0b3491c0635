//! Isolated Python environments: for an agent whose contract lists packages, an interpreter that sees these packages
//! and the standard library, but no packages of the machine.
//!
//! An environment is identified by its interpreter and its packages, so that all agents with the same needs share it,
//! and a new agent version with the same packages installs nothing. It is created once, under a lock, with the
//! machine's `venv` and `pip`; operators configure pip with the worker's `PIP_…` variables. Pip is confined, because
//! packages may run build scripts.

mod key;
mod program;
mod words;

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use atlas_env::Env;
use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use tracing::{debug, info, warn};

use self::key::key_of;
use self::program::{Program, remove_temporary};
use crate::preparing::Preparing;
use crate::process::Supervisor;
use crate::provider::Settings;
use crate::python::{Environment, Python};

/// The extension of environment directories.
const SUFFIX: &str = "env";

/// The extension of a file beside the environment, where no script of a package can write it. Written last, with the interpreter's path and
/// the environment's size. An environment without this file is created again. The file's time is that of the environment's last use.
const COMPLETE: &str = "complete";

/// The output of `venv` and `pip`.
const LOG: &str = "atlas-install.log";

/// The interval at which pip's output is read, and at which another process's lock is checked.
const LOOK: Duration = Duration::from_millis(100);

/// Why an environment could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("{0}")]
    NoPython(String),
    /// A requirement that starts with a dash would be an option of pip.
    #[error("\"{0}\" is not a requirement: it starts with a dash")]
    Dash(String),
    #[error("could not write a Python environment")]
    Write(#[source] io::Error),
    #[error("could not {doing}: {why}")]
    Step { doing: &'static str, why: String },
    #[error("preparation timed out after {}s while {doing}", .limit.as_secs_f64())]
    TimedOut { doing: String, limit: Duration },
    #[error("the work was interrupted")]
    CutShort,
}

/// The directory in which the processes of one user share environments. None if the user has no home directory.
pub fn shared_environments() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    cache.is_absolute().then(|| cache.join("atlas").join("environments"))
}

/// Creates environments.
#[derive(Clone)]
pub(crate) struct Environments {
    pub(crate) env: Env,
    pub(crate) settings: Arc<Settings>,
    pub(crate) supervisor: Arc<Supervisor>,
    /// The directory of the environments.
    pub(crate) directory: PathBuf,
    pub(crate) bytes_max: u64,
}

/// The location of an environment.
struct Site {
    base: Python,
    directory: PathBuf,
    lock: File,
}

impl Environments {
    /// The environment for `requirements`. It is created if it does not exist.
    pub(crate) async fn get(
        &self,
        requirements: &[String],
        preparing: &Preparing,
    ) -> Result<Environment, EnvironmentError> {
        if let Some(option) = requirements.iter().find(|text| text.trim_start().starts_with('-')) {
            return Err(EnvironmentError::Dash(option.clone()));
        }
        let (settings, root, wanted) = (Arc::clone(&self.settings), self.directory.clone(), requirements.to_vec());
        let site = self.blocking(move || Site::find(&settings, &root, &wanted)).await?;
        let (site, here) = self.blocking(move || site.probe()).await?;
        if here {
            return Ok(site.environment());
        }
        let installing = installing(requirements);
        preparing.begin(&installing).await;
        let Some(site) = self.take(site, preparing).await? else {
            return Err(EnvironmentError::TimedOut { doing: installing, limit: preparing.limit });
        };
        let (site, here) = self.blocking(move || site.probe_complete()).await?;
        if !here {
            self.make(&site, requirements, preparing, &installing).await?;
        }
        preparing.end().await;
        let (root, bytes_max) = (self.directory.clone(), self.bytes_max);
        self.blocking(move || {
            site.lock.lock_shared().map_err(EnvironmentError::Write)?;
            remove_old(&root, bytes_max);
            Ok(site.environment())
        })
        .await
    }

    /// Waits for exclusive use of an environment. None if the time limit of the preparation passes first.
    async fn take(&self, site: Site, preparing: &Preparing) -> Result<Option<Site>, EnvironmentError> {
        loop {
            match site.lock.try_lock() {
                Ok(()) => return Ok(Some(site)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(EnvironmentError::Write(error)),
            }
            if preparing.left().is_zero() {
                return Ok(None);
            }
            self.env.clock.sleep(LOOK).await;
        }
    }

    async fn make(
        &self,
        site: &Site,
        requirements: &[String],
        preparing: &Preparing,
        installing: &str,
    ) -> Result<(), EnvironmentError> {
        let (directory, base, start) = (site.directory.clone(), &site.base, self.env.clock.monotonic());
        let cleared = directory.clone();
        self.blocking(move || clear(&cleared)).await?;
        let venv = ["-I", "-m", "venv", "--without-pip"].map(OsString::from).into_iter();
        let venv = Program {
            doing: "make a Python environment",
            installing,
            program: base.program.clone(),
            arguments: venv.chain([directory.clone().into_os_string()]).collect(),
            directory: &directory,
            runs_packages: false,
        };
        self.step(venv, preparing).await?;
        // Uses the machine's pip, so that pip need not be installed in every environment.
        let python = site.python().into_os_string();
        let pip = ["-P", "-m", "pip", "--python"].map(OsString::from).into_iter().chain([python]);
        let install =
            ["install", "--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar", "off", "--"];
        let pip = Program {
            doing: "install the agent's Python packages",
            installing,
            program: base.program.clone(),
            arguments: pip.chain(install.map(OsString::from)).chain(requirements.iter().map(OsString::from)).collect(),
            directory: &directory,
            runs_packages: true,
        };
        self.step(pip, preparing).await?;
        let (at, program) = (directory.clone(), base.program.clone());
        self.blocking(move || {
            let mark = format!("{}\n{}\n", program.display(), crate::packages::size_of(&at));
            remove_temporary(&at).map_err(EnvironmentError::Write)?;
            fs::write(at.with_extension(COMPLETE), mark).map_err(EnvironmentError::Write)
        })
        .await?;
        let took = self.env.clock.monotonic().saturating_sub(start);
        info!(environment = %directory.display(), ?took, "Python packages are installed");
        Ok(())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, EnvironmentError> + Send + 'static,
    ) -> Result<T, EnvironmentError> {
        self.env.spawn_blocking("python environment", work).join().await.map_err(|_| EnvironmentError::CutShort)?
    }
}

impl Site {
    fn find(settings: &Settings, root: &Path, requirements: &[String]) -> Result<Self, EnvironmentError> {
        let base = settings.python.get().map_err(|why| EnvironmentError::NoPython(why.to_owned()))?.clone();
        fs::create_dir_all(root).map_err(EnvironmentError::Write)?;
        let key = key_of(&base, requirements, &settings.pip_environment);
        let lock = open_lock(&root.join(&key).with_extension("lock")).map_err(EnvironmentError::Write)?;
        Ok(Self { base, directory: root.join(&key).with_extension(SUFFIX), lock })
    }

    fn python(&self) -> PathBuf {
        self.directory.join("bin").join("python")
    }

    /// True if the environment exists and is complete. It is then locked for shared use.
    fn probe(self) -> Result<(Self, bool), EnvironmentError> {
        match self.lock.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok((self, false)),
            Err(TryLockError::Error(error)) => return Err(EnvironmentError::Write(error)),
        }
        let (site, here) = self.probe_complete()?;
        if !here {
            site.lock.unlock().map_err(EnvironmentError::Write)?;
        }
        Ok((site, here))
    }

    /// True if the environment is complete. The check also counts as a use.
    fn probe_complete(self) -> Result<(Self, bool), EnvironmentError> {
        let mark = self.directory.with_extension(COMPLETE);
        // An environment without a readable mark was never completed.
        let text = fs::read_to_string(&mark).unwrap_or_default();
        let here = text.lines().next().is_some_and(|program| Path::new(program) == self.base.program)
            && self.directory.is_dir();
        if here {
            // If the update of the time fails, the environment only looks older than it is.
            let touched = File::options().append(true).open(&mark);
            let _ = touched.map(|file| futimens(&file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW));
        }
        Ok((self, here))
    }

    fn environment(self) -> Environment {
        Environment::new(self.python(), self.lock)
    }
}

/// The description of installing `requirements`.
pub(crate) fn installing(requirements: &[String]) -> String {
    let plural = if requirements.len() == 1 { "" } else { "s" };
    format!("installing {} package{plural}", requirements.len())
}

fn open_lock(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Removes what an interrupted process left, and creates the directory.
fn clear(directory: &Path) -> Result<(), EnvironmentError> {
    remove_mark(directory).map_err(EnvironmentError::Write)?;
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(EnvironmentError::Write(error)),
        _ => fs::create_dir_all(directory).map_err(EnvironmentError::Write),
    }
}

/// Removes the file that says that an environment is complete.
fn remove_mark(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.with_extension(COMPLETE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes unused environments, least recently used first, until the rest fits.
fn remove_old(root: &Path, bytes_max: u64) {
    let mut found: Vec<(SystemTime, PathBuf, u64)> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            path.extension().is_some_and(|extension| extension == SUFFIX).then_some(())?;
            let mark = path.with_extension(COMPLETE);
            let used = fs::metadata(&mark).and_then(|mark| mark.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            let size = fs::read_to_string(mark).ok().and_then(|text| text.lines().nth(1)?.parse().ok());
            Some((used, path, size.unwrap_or(0)))
        })
        .collect();
    found.sort();
    let mut bytes: u64 = found.iter().map(|(_, _, size)| size).sum();
    for (_, path, size) in found {
        if bytes <= bytes_max {
            return;
        }
        let free = open_lock(&path.with_extension("lock")).is_ok_and(|lock| {
            // The lock is held until the directory is removed. The mark goes first: without it, the rest is no environment.
            // The mark goes first: without it, a rest of the directory is no environment.
            lock.try_lock().is_ok() && remove_mark(&path).is_ok() && fs::remove_dir_all(&path).is_ok()
        });
        if free {
            debug!(environment = %path.display(), "a Python environment was removed to make room");
            bytes -= size;
        }
    }
    if bytes > bytes_max {
        warn!(bytes, bytes_max, "the Python environments in use exceed the cache limit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_environments_make_room_and_those_in_use_stay() {
        let dir = tempfile::tempdir().expect("temporary directory");
        for (name, at) in [("a", 1), ("b", 2), ("c", 3)] {
            let environment = dir.path().join(name).with_extension(SUFFIX);
            fs::create_dir(&environment).expect("writable");
            let mark = environment.with_extension(COMPLETE);
            fs::write(&mark, "/usr/bin/python3\n100\n").expect("writable");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
            File::options().write(true).open(mark).and_then(|file| file.set_modified(time)).expect("settable");
        }
        let used = open_lock(&dir.path().join("a.lock")).expect("writable");
        used.lock_shared().expect("free");
        remove_old(dir.path(), 250);
        let left = |name: &str| dir.path().join(name).with_extension(SUFFIX).exists();
        assert_eq!((left("a"), left("b"), left("c")), (true, false, true));
    }
}
