//! The package cache: packages are unpacked by digest under the data directory, within a size limit, and each is
//! fetched once for all waiting jobs.

mod seal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_package::Limits;
use atlas_types::Digest;
use tracing::{debug, warn};

use self::seal::Seal;
use crate::agent::{Agent, AgentError};
use crate::environment::{EnvironmentError, Environments, installing};
use crate::payloads::{TransferError, Transfers};
use crate::preparing::Preparing;
use crate::process::{Exposure, Quiet};

/// Why an agent is not available on this node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    #[error("could not fetch the package")]
    Fetch(#[source] TransferError),
    #[error("could not unpack the package")]
    Unpack(#[source] atlas_package::UnpackError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("the package on this node was modified and could not be removed")]
    Changed(#[source] std::io::Error),
    #[error("could not look at the files of the package")]
    Seal(#[source] std::io::Error),
    #[error("the work was interrupted")]
    CutShort,
}

/// The agents on this node.
#[derive(Clone)]
pub(crate) struct Packages {
    directory: PathBuf,
    bytes_max: u64,
    noop: bool,
    transfers: Transfers,
    environments: Environments,
    exposure: Exposure,
    loaded: Arc<Mutex<Loaded>>,
    turns: Turns,
}

/// One lock per directory: two jobs of one agent must not fetch it twice, and a package that is being fetched must not
/// be removed.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<BTreeMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>>);

impl Turns {
    fn of(&self, directory: &Path) -> Arc<tokio::sync::Mutex<()>> {
        // Every change is complete while the lock is held, so a panic elsewhere cannot corrupt the data.
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(directory.to_owned()).or_default())
    }
}

#[derive(Default)]
struct Loaded {
    agents: BTreeMap<Digest, Entry>,
    /// Packages of an earlier process that this one has not used: directories and their sizes.
    unloaded: BTreeMap<PathBuf, u64>,
    uses: u64,
}

struct Entry {
    agent: Arc<Agent>,
    bytes: u64,
    last_use: u64,
    seal: Seal,
    /// When its files were last known to be those of the package, if nothing could change them at that moment.
    known: Option<Quiet>,
    /// When its files were last looked at.
    looked_at: Duration,
}

/// How long the files of a package are not looked at again for attempts in processes that have already read them.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Packages {
    pub(crate) fn new(
        data_dir: &Path,
        bytes_max: u64,
        noop: bool,
        transfers: Transfers,
        environments: Environments,
        exposure: Exposure,
    ) -> Self {
        let directory = data_dir.join("packages");
        let loaded = Loaded { unloaded: unpacked(&directory), ..Loaded::default() };
        let loaded = Arc::new(Mutex::new(loaded));
        Self { directory, bytes_max, noop, transfers, environments, exposure, loaded, turns: Turns::default() }
    }

    /// The agent, if its package and its environment are ready, and whether its files are known to be those of the package: nothing can have
    /// changed them, or nobody reads them. For an attempt in a `warm` process a look of a moment ago is enough, because the process has its
    /// program already; another process must not be started for it without a look.
    pub(crate) fn ready(&self, digest: Digest, warm: bool) -> Option<(Arc<Agent>, bool)> {
        let quiet = self.exposure.quiet();
        let mut loaded = self.loaded();
        let entry = loaded.used(digest)?;
        let now = self.transfers.env.clock.monotonic();
        let is_looked_at = (quiet.is_some() && quiet == entry.known) || entry.agent.noop;
        let is_enough = is_looked_at || (warm && now.saturating_sub(entry.looked_at) < LOOK_EVERY);
        (is_enough && entry.agent.is_ready()).then(|| (Arc::clone(&entry.agent), is_looked_at))
    }

    /// The agent, if its package is unpacked, parsed, and as it was.
    async fn unchanged(&self, digest: Digest) -> Result<Option<Arc<Agent>>, PackageError> {
        let quiet = self.exposure.quiet();
        let found = self.loaded().used(digest).map(|entry| (Arc::clone(&entry.agent), entry.known, entry.seal));
        let Some((agent, known, seal)) = found else { return Ok(None) };
        if quiet.is_some() && quiet == known {
            return Ok(Some(agent));
        }
        let directory = agent.directory.clone();
        let looked_at = self.transfers.env.clock.monotonic();
        let same = self.blocking(move || Ok(Seal::of(&directory).is_ok_and(|now| now == seal))).await?;
        let mut loaded = self.loaded();
        if same {
            if let Some(entry) = loaded.agents.get_mut(&digest) {
                (entry.known, entry.looked_at) = (quiet, looked_at);
            }
            return Ok(Some(agent));
        }
        loaded.agents.remove(&digest);
        Ok(None)
    }

    /// The agent. If necessary its package is fetched and unpacked and its environment is created.
    pub(crate) async fn get(
        &self,
        digest: Digest,
        package_bytes: u64,
        preparing: &Preparing,
    ) -> Result<Arc<Agent>, PackageError> {
        let agent = self.unpack(digest, package_bytes, preparing).await?;
        if !agent.is_ready() {
            // Runs without the package's lock, so that other agents do not wait. Jobs of the same agent wait for the
            // first one.
            let make = async || self.environments.get(agent.requirements(), preparing).await.map(Arc::new);
            let made = agent.python.get_or_try_init(make);
            match agent.is_furnished.swap(true, Ordering::Relaxed) {
                false => made.await?,
                true => preparing.slow(&installing(agent.requirements()), made).await?,
            };
        }
        Ok(agent)
    }

    async fn unpack(
        &self,
        digest: Digest,
        package_bytes: u64,
        preparing: &Preparing,
    ) -> Result<Arc<Agent>, PackageError> {
        let directory = self.directory.join(digest.hex());
        let turn = self.turns.of(&directory);
        let _turn = turn.lock().await;
        if let Some(agent) = self.unchanged(digest).await? {
            return Ok(agent);
        }
        let quiet = self.exposure.quiet();
        // From here on the package is in use and cannot be evicted.
        self.loaded().unloaded.remove(&directory);
        let left = directory.clone();
        if !self.blocking(move || whole(&left, digest)).await? {
            let limits = Limits::default();
            let bytes_max = package_bytes.min(limits.archive_bytes_max);
            let fetched = preparing.slow("fetching the package", self.transfers.package(digest, bytes_max)).await;
            let archive = fetched.map_err(PackageError::Fetch)?;
            let to = directory.clone();
            self.blocking(move || atlas_package::unpack(&archive, &to, &limits).map_err(PackageError::Unpack)).await?;
        }
        let noop = self.noop;
        let load = move || {
            let seal = Seal::put_on(&directory).map_err(PackageError::Seal)?;
            Ok((Agent::load(&directory, noop)?, size_of(&directory), seal))
        };
        let (agent, bytes, seal) = self.blocking(load).await?;
        let agent = Arc::new(agent);
        self.keep(digest, &agent, bytes, (seal, quiet)).await?;
        Ok(agent)
    }

    /// Adds an agent to the cache and evicts others if necessary.
    async fn keep(
        &self,
        digest: Digest,
        agent: &Arc<Agent>,
        bytes: u64,
        (seal, known): (Seal, Option<Quiet>),
    ) -> Result<(), PackageError> {
        let dropped = {
            let mut loaded = self.loaded();
            loaded.uses += 1;
            let last_use = loaded.uses;
            loaded.unloaded.remove(&agent.directory);
            let looked_at = self.transfers.env.clock.monotonic();
            loaded.agents.insert(digest, Entry { agent: Arc::clone(agent), bytes, last_use, seal, known, looked_at });
            loaded.make_room(self.bytes_max)
        };
        for directory in dropped {
            let turn = self.turns.of(&directory);
            // If the directory is locked, the holder of the lock is about to use the package and will add it again.
            let Ok(_turn) = turn.try_lock() else { continue };
            debug!(package = %directory.display(), "package dropped from the cache");
            let removed = self.blocking(move || Ok(remove(&directory))).await?;
            if let Err(error) = removed {
                warn!(%error, "could not remove a package from the cache");
            }
        }
        Ok(())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, PackageError> + Send + 'static,
    ) -> Result<T, PackageError> {
        self.transfers.env.spawn_blocking("package", work).join().await.map_err(|_| PackageError::CutShort)?
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        // Every change is complete while the lock is held, so a panic elsewhere cannot corrupt the data.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loaded {
    /// An agent that is used now, if its package is unpacked and parsed.
    fn used(&mut self, digest: Digest) -> Option<&mut Entry> {
        self.uses += 1;
        let entry = self.agents.get_mut(&digest)?;
        entry.last_use = self.uses;
        Some(entry)
    }

    /// Evicts packages that were never used, then the least recently used ones, until the rest fits.
    fn make_room(&mut self, bytes_max: u64) -> Vec<PathBuf> {
        let mut dropped = Vec::new();
        while self.bytes() > bytes_max {
            if let Some((directory, _)) = self.unloaded.pop_first() {
                dropped.push(directory);
                continue;
            }
            let unused = self.agents.iter().filter(|(_, entry)| Arc::strong_count(&entry.agent) == 1);
            let Some((&digest, _)) = unused.min_by_key(|(_, entry)| entry.last_use) else { break };
            dropped.extend(self.agents.remove(&digest).map(|entry| entry.agent.directory.clone()));
        }
        dropped
    }

    fn bytes(&self) -> u64 {
        self.agents.values().map(|entry| entry.bytes).chain(self.unloaded.values().copied()).sum()
    }
}

/// The packages in the cache's directory with their sizes. Incomplete packages of ended processes are removed.
fn unpacked(directory: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let (partial, whole): (Vec<_>, Vec<_>) = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        // Earlier versions kept environments beside their packages.
        .partition(|path| path.extension().is_some_and(|end| end == atlas_package::PARTIAL || end == "env"));
    for path in partial.into_iter().filter(|path| !is_worked_on(path)) {
        if let Err(error) = std::fs::remove_dir_all(&path) {
            warn!(%error, package = %path.display(), "could not remove an incomplete package");
        }
    }
    whole.into_iter().map(|path| (path.clone(), size_of(&path))).collect()
}

/// True if a package exists and is unmodified. A modified one is removed: only files that match the digest may run, and
/// not every machine can keep agents from changing them.
fn whole(directory: &Path, digest: Digest) -> Result<bool, PackageError> {
    if !directory.is_dir() {
        return Ok(false);
    }
    match atlas_package::pack(directory) {
        // Bytecode compiled by Python is not part of the package, and Python would use it instead of the source.
        Ok(package) if package.digest == digest && remove_compiled(directory).is_ok() => return Ok(true),
        Ok(_) => warn!(package = %directory.display(), "a package on this node was modified, fetching it again"),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            warn!(error, package = %directory.display(), "a package on this node cannot be read, fetching it again");
        }
    }
    remove(directory).map_err(PackageError::Changed)?;
    Ok(false)
}

fn remove_compiled(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        if entry.file_name() == "__pycache__" {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            remove_compiled(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(package: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(package) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// True if a process that still runs is unpacking into this directory. The process id is part of the directory's name.
fn is_worked_on(partial: &Path) -> bool {
    let process = partial.file_name().and_then(|name| name.to_str()?.rsplit('.').nth(2)?.parse::<u32>().ok());
    process.is_some_and(|id| id != std::process::id() && Path::new("/proc").join(id.to_string()).exists())
}

/// The total size of all files below `directory`. Unreadable entries count as 0.
pub(crate) fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_unpacked_in_part_is_removed_when_a_worker_starts() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let named = |name: &str| dir.path().join(name);
        let (whole, partial, foreign) = (named("abc"), named("abc.4194305.0.partial"), named("abc.1.0.partial"));
        let beside = named("abc.env");
        for path in [&whole, &partial, &foreign, &beside] {
            std::fs::create_dir(path).expect("writable");
            std::fs::write(path.join("agent.yaml"), "12345").expect("writable");
        }
        assert_eq!(unpacked(dir.path()), BTreeMap::from([(whole, 5)]));
        assert!(!partial.exists() && foreign.exists() && !beside.exists());
    }
}
