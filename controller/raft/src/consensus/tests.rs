//! openraft's own storage suite, on the simulated disk and on files.

use std::io::{self, Read};

use atlas_env::Env;
use atlas_types::EventSeq;
use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;
use tokio::sync::watch;

use super::log_store::LogStore;
use super::machine::{Machine, MachineStore};
use super::snapshot::{Snapshots, Source};
use super::{Proposal, RaftLogId, Reply, Types};
use crate::log::sim::SimDisk;
use crate::log::{Driver, FileDriver, Limits, Log};

/// Counts what it applies.
#[derive(Default)]
struct Counter(u64);

impl Machine for Counter {
    type State = u64;

    fn apply(&mut self, _id: RaftLogId, _proposal: &Proposal) -> io::Result<Reply> {
        self.0 += 1;
        Ok(Reply::Applied)
    }

    fn snapshot(&self) -> (Source, EventSeq) {
        let count = self.0;
        (Box::new(move |out| out.write_all(&count.to_le_bytes())), EventSeq(0))
    }

    fn read(body: &mut dyn Read) -> io::Result<u64> {
        let mut count = [0; 8];
        body.read_exact(&mut count)?;
        Ok(u64::from_le_bytes(count))
    }

    fn restore(&mut self, _: u64, count: u64) -> io::Result<u64> {
        Ok(std::mem::replace(&mut self.0, count))
    }
}

struct Stores {
    on_files: bool,
    inline: bool,
    /// Whose log it is; the suite's entries are of member 0.
    member: u64,
}

impl StoreBuilder<Types, LogStore, MachineStore<Counter>, TempDir> for Stores {
    async fn build(&self) -> Result<(TempDir, LogStore, MachineStore<Counter>), StorageError<Types>> {
        let env = Env::system();
        let dir = tempfile::tempdir().expect("temporary directory");
        let driver: Box<dyn Driver> = if self.on_files {
            Box::new(FileDriver::open(&dir.path().join("log"), 1 << 16, &env).expect("free"))
        } else {
            Box::new(SimDisk::default().driver())
        };
        // Little room, so that segments end and the cache forgets.
        let limits =
            Limits { first_segment_bytes: 1 << 16, segment_bytes: 1 << 16, cache_bytes: 64, ..Limits::default() };
        let log = Log::open(driver, limits, None, &env).expect("an empty log opens");
        log.set_inline(self.inline);
        let snapshots = Snapshots::open(env.files.clone(), dir.path().join("snapshots")).expect("writable");
        let (_, history) = watch::channel(EventSeq(u64::MAX));
        Ok((dir, LogStore::new(log, self.member), MachineStore::new(Counter::default(), snapshots, history, env)))
    }
}

#[tokio::test]
async fn the_storage_suite_passes_in_memory() {
    Suite::test_all(Stores { on_files: false, inline: true, member: 0 }).await.expect("conforms");
}

#[tokio::test]
async fn the_storage_suite_passes_on_files_with_the_writer_thread() {
    Suite::test_all(Stores { on_files: true, inline: false, member: 0 }).await.expect("conforms");
}

#[tokio::test]
async fn the_storage_suite_passes_on_files_of_a_follower() {
    Suite::test_all(Stores { on_files: true, inline: false, member: 1 }).await.expect("conforms");
}
