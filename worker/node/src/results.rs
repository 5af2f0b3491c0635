//! Results of attempts that must not run twice, kept on disk until the leader has acknowledged them.
//!
//! A worker that is killed after such an attempt has ended leaves its result here. The next process of the node
//! delivers it under the boot id of the killed process, because only that process holds the lease. A result that the
//! leader no longer accepts, because the lease has ended, is set aside in a readable form: the job may be in doubt, and
//! the file shows what its attempt did.

mod record;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use atlas_env::{Files, chain};
use atlas_types::{BootId, NodeId, Report};
use sha2::{Digest as _, Sha256};
use tracing::{error, warn};

use self::record::{Name, readable};

/// The directory for results that the leader did not accept.
const ASIDE: &str = "not-taken";

/// The results on disk.
#[derive(Clone)]
pub(crate) struct Results {
    files: Arc<dyn Files>,
    directory: PathBuf,
    kept: Arc<AtomicUsize>,
    /// The lock of the data directory, held while the process runs.
    _lock: Arc<File>,
}

/// The results that an earlier process of the node left.
pub(crate) struct Earlier {
    pub(crate) boot: BootId,
    /// Its results with their report numbers.
    pub(crate) reports: Vec<(u64, Report)>,
}

/// Why a result was not saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    #[error("{} results are already waiting for an answer", Results::RECORDS_MAX)]
    TooMany,
    #[error("could not write \"{}\"", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Results {
    /// The most results that wait for an answer.
    const RECORDS_MAX: usize = 4_096;

    /// The most results that are set aside. The oldest is removed first.
    const ASIDE_MAX: usize = 1_000;

    /// Opens the results of `node` under `data_dir`, including those of an earlier process. Blocks.
    pub(crate) fn open(
        files: Arc<dyn Files>,
        data_dir: &Path,
        node: &NodeId,
        lock: File,
    ) -> io::Result<(Self, Option<Earlier>)> {
        // A node's name may contain characters that file names may not.
        let tag: String = Sha256::digest(node.as_str()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let directory = data_dir.join("results").join(tag);
        files.create_dir_all(&directory)?;
        let results = Self { files, directory, kept: Arc::default(), _lock: Arc::new(lock) };
        let earlier = results.earlier()?;
        Ok((results, earlier))
    }

    /// Writes the result that `boot` reports under `number`. It is durable when this returns. Blocks.
    pub(crate) fn save(&self, boot: BootId, number: u64, report: &Report) -> Result<(), SaveError> {
        if self.kept.load(Ordering::Relaxed) >= Self::RECORDS_MAX {
            return Err(SaveError::TooMany);
        }
        let path = self.path(boot, number);
        let bytes = record::encode(number, report);
        let written = self.files.write_durably(&path, &bytes);
        written.map_err(|source| SaveError::Write { path, source })?;
        self.kept.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes a result that the leader accepted.
    pub(crate) fn forget(&self, boot: BootId, number: u64) {
        self.remove(&self.path(boot, number));
    }

    /// Sets aside a result that the leader refused or did not answer in time. Blocks.
    pub(crate) fn not_taken(&self, boot: BootId, number: u64) {
        let path = self.path(boot, number);
        match self.read(&path) {
            Ok((_, report)) => self.lay_aside(&path, &report),
            // The result could not be written.
            Err(why) => warn!(why, "no result to set aside"),
        }
    }

    fn path(&self, boot: BootId, number: u64) -> PathBuf {
        self.directory.join(Name { boot, number }.to_string())
    }

    fn remove(&self, path: &Path) {
        match self.files.remove(path) {
            Ok(()) => _ = self.kept.fetch_sub(1, Ordering::Relaxed),
            // The result could not be written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => warn!(%error, record = %path.display(), "could not remove an acknowledged result"),
        }
    }

    fn read(&self, path: &Path) -> Result<(u64, Report), String> {
        let size = self.files.size(path).map_err(|error| error.to_string())?.unwrap_or(0);
        if size > record::BYTES_MAX {
            return Err(format!("it has {size} bytes, more than {}", record::BYTES_MAX));
        }
        record::decode(&self.files.read(path).map_err(|error| error.to_string())?).map_err(|error| chain(&error))
    }

    /// The results of the previous process. Results of older processes, whose leases have certainly ended, and
    /// unreadable records are set aside.
    fn earlier(&self) -> io::Result<Option<Earlier>> {
        let mut found = Vec::new();
        for path in self.files.list(&self.directory)? {
            let Some(name) = Name::of(&path) else { continue };
            match self.read(&path) {
                Ok((number, report)) if number == name.number => {
                    self.kept.fetch_add(1, Ordering::Relaxed);
                    found.push((written(&path), name, path, report));
                }
                Ok((number, _)) => self.refuse(&path, &format!("it contains report {number}")),
                Err(why) => self.refuse(&path, &why),
            }
        }
        let Some(boot) = found.iter().max_by_key(|(at, ..)| *at).map(|(_, name, ..)| name.boot) else {
            return Ok(None);
        };
        let (last, older): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, name, ..)| name.boot == boot);
        for (_, _, path, report) in &older {
            self.lay_aside(path, report);
        }
        let reports = last.into_iter().map(|(_, name, _, report)| (name.number, report)).collect();
        Ok(Some(Earlier { boot, reports }))
    }

    /// Moves an unreadable record to the directory for set-aside results.
    fn refuse(&self, path: &Path, why: &str) {
        let name = path.file_name().unwrap_or_default();
        let to = self.directory.join(ASIDE).join(name).with_extension("bad");
        let moved = self.make_room().and_then(|()| self.files.rename(path, &to));
        error!(record = %path.display(), why, "a saved result cannot be read and is not reported; its job will be in doubt");
        if let Err(error) = moved {
            warn!(%error, record = %path.display(), "could not move the file away");
        }
    }

    /// Writes a result in readable form and removes its record.
    fn lay_aside(&self, path: &Path, report: &Report) {
        let file = self.directory.join(ASIDE).join(format!("{}.{}.json", report.job, report.token.0));
        let written = self.make_room().and_then(|()| self.files.write_durably(&file, readable(report).as_bytes()));
        match written {
            Ok(()) => {
                warn!(
                    job = %report.job, file = %file.display(),
                    "the leader no longer accepts this result; if the job is in doubt, the file shows what its attempt did"
                );
                self.remove(path);
            }
            Err(error) => warn!(%error, file = %file.display(), "could not set a result aside"),
        }
    }

    /// Creates the directory for set-aside results and makes room for one more.
    fn make_room(&self) -> io::Result<()> {
        let aside = self.directory.join(ASIDE);
        self.files.create_dir_all(&aside)?;
        let mut there = self.files.list(&aside)?;
        there.sort_by_key(|path| written(path));
        let surplus = (there.len() + 1).saturating_sub(Self::ASIDE_MAX);
        there.iter().take(surplus).try_for_each(|path| self.files.remove(path))
    }
}

/// The modification time of a file. Unknown times count as the oldest.
fn written(path: &Path) -> SystemTime {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use atlas_env::Env;
    use atlas_types::{FencingToken, JobId, Payload, ReportKind, Usage};

    use super::*;

    fn open(dir: &Path) -> (Results, Option<Earlier>) {
        let lock = File::create(dir.join("worker.lock")).expect("writable");
        Results::open(Env::system().files, dir, &NodeId::new("n1").expect("valid name"), lock).expect("opens")
    }

    fn report(token: u64) -> Report {
        let output = Payload::inline(b"{\"sent\":1}");
        let kind = ReportKind::Completed { output, usage: Usage::default(), metadata: None };
        Report { job: JobId(token), token: FencingToken(token), kind }
    }

    #[test]
    fn what_was_not_answered_is_found_again() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let (results, earlier) = open(dir.path());
        assert!(earlier.is_none());
        for number in 1..=3 {
            results.save(BootId(7), number, &report(number)).expect("writable");
        }
        results.forget(BootId(7), 2);
        drop(results);
        let (results, earlier) = open(dir.path());
        let earlier = earlier.expect("two results");
        assert_eq!((earlier.boot, earlier.reports), (BootId(7), vec![(1, report(1)), (3, report(3))]));
        results.not_taken(BootId(7), 1);
        let aside = results.directory.join(ASIDE).join("job-0000000000000001.1.json");
        let text = std::fs::read_to_string(aside).expect("laid aside");
        assert_eq!(
            text,
            "{\"job\":\"job-0000000000000001\",\"token\":1,\"outcome\":\"completed\",\"output\":{\"sent\":1}}\n"
        );
    }

    #[test]
    fn a_damaged_record_is_refused_and_the_others_are_read() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let (results, _) = open(dir.path());
        for number in 1..=3 {
            results.save(BootId(7), number, &report(number)).expect("writable");
        }
        let mut bytes = std::fs::read(results.path(BootId(7), 1)).expect("written");
        *bytes.last_mut().expect("some") ^= 1;
        std::fs::write(results.path(BootId(7), 1), bytes).expect("writable");
        std::fs::write(results.path(BootId(7), 2), "").expect("writable");
        drop(results);
        let (results, earlier) = open(dir.path());
        assert_eq!(earlier.expect("one result").reports, vec![(3, report(3))]);
        let aside = results.files.list(&results.directory.join(ASIDE)).expect("laid aside");
        assert_eq!(aside.len(), 2);
    }
}
