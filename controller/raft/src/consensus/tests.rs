//! Runs openraft's storage suite on the simulated disk and on files, and tests concurrent snapshots and missing
//! entries.

use std::io::{self, Read};

use atlas_env::Env;
use atlas_types::EventSeq;
use futures::stream;
use openraft::storage::RaftStateMachine;
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::{EntryPayload, RaftSnapshotBuilder, StorageError};
use tempfile::TempDir;
use tokio::sync::watch;

use super::log_store::LogStore;
use super::machine::{Machine, MachineStore};
use super::snapshot::{SnapshotFile, Snapshots, Source};
use super::{Proposal, RaftEntry, RaftLogId, RaftSnapshotMeta, Reply, Types, body};
use atlas_log::sim::SimDisk;
use atlas_log::{Driver, FileDriver, Limits, Log};

/// Counts the entries that it applies. The suite leaves gaps between their indexes.
#[derive(Default)]
struct Counter<const GAPLESS: bool = false>(u64);

impl<const GAPLESS: bool> Machine for Counter<GAPLESS> {
    type State = u64;
    type Entry = ();

    const GAPLESS: bool = GAPLESS;

    fn apply(&mut self, _id: RaftLogId, _proposal: &Proposal) -> io::Result<Reply> {
        self.0 += 1;
        Ok(Reply::Applied)
    }

    fn decode(_proposal: &Proposal) -> io::Result<()> {
        Ok(())
    }

    fn replay(&mut self, _id: RaftLogId, (): &(), _proposal: &Proposal) -> io::Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn replayed(&mut self) {
        self.0 += REPLAYED;
    }

    fn snapshot(&self) -> (Source, EventSeq) {
        let count = self.0;
        (Box::new(move |out| out.write_all(&count.to_le_bytes())), EventSeq(count))
    }

    fn read(body: &mut dyn Read) -> io::Result<u64> {
        let mut count = [0; 8];
        body.read_exact(&mut count)?;
        match u64::from_le_bytes(count) {
            UNLOADABLE => Err(io::Error::other("no state has this number")),
            count => Ok(count),
        }
    }

    fn restore(&mut self, _: u64, count: u64) -> io::Result<u64> {
        Ok(std::mem::replace(&mut self.0, count))
    }
}

/// Counted when the log is replayed.
const REPLAYED: u64 = 1_000;

/// A state whose snapshot can be written but not loaded.
const UNLOADABLE: u64 = 13;

struct Stores {
    on_files: bool,
    inline: bool,
    /// The member that owns the log. The suite's entries are from member 0.
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
        // Small limits, so that several segments are written and the cache evicts entries.
        let limits =
            Limits { first_segment_bytes: 1 << 16, segment_bytes: 1 << 16, cache_bytes: 64, ..Limits::default() };
        let log = Log::open(driver, limits, None, &env).expect("an empty log opens");
        log.set_inline(self.inline);
        let snapshots = Snapshots::open(env.files.clone(), dir.path().join("snapshots")).expect("writable");
        let (_, history) = watch::channel(EventSeq(u64::MAX));
        Ok((dir, LogStore::new(log, self.member), MachineStore::new(Counter::default(), None, snapshots, history, env)))
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

fn log_id(index: u64) -> RaftLogId {
    body::raft_log_id(atlas_log::LogId { term: 1, node: 1, index })
}

fn meta(index: u64) -> RaftSnapshotMeta {
    RaftSnapshotMeta { last_log_id: Some(log_id(index)), ..RaftSnapshotMeta::default() }
}

fn snapshots(dir: &TempDir) -> Snapshots {
    Snapshots::open(Env::system().files, dir.path().join("snapshots")).expect("writable")
}

/// A snapshot file that has just been received.
fn arrived(snapshots: &Snapshots, index: u64, count: u64) -> SnapshotFile {
    let (incoming, _) = snapshots.begin(index).expect("writable");
    let source: Source = Box::new(move |out| out.write_all(&count.to_le_bytes()));
    snapshots.write_whole(&incoming.path, &meta(index), &source).expect("written");
    snapshots.arrived(incoming).expect("there")
}

/// Names of the files in the directory of the snapshots.
fn names(dir: &TempDir) -> Vec<String> {
    let paths = Env::system().files.list(&dir.path().join("snapshots")).expect("listable");
    paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

const AT_20: &str = "0000000000000014-0000000000000001.snap";

#[test]
fn a_snapshot_never_replaces_a_newer_one() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let snapshots = snapshots(&dir);
    let newer = arrived(&snapshots, 20, 20);
    snapshots.adopt(&meta(20), &newer.path).expect("adopted");
    let older: Source = Box::new(|out| out.write_all(&10_u64.to_le_bytes()));
    let (found, _) =
        snapshots.write(&meta(10), &older, |body| Counter::<false>::read(body).map(drop)).expect("written");
    assert_eq!(found, meta(20), "whoever wrote the older one is given the newer one");
    assert_eq!(snapshots.current().map(|(meta, _)| meta), Some(meta(20)));
    assert_eq!(names(&dir), [AT_20]);
}

#[tokio::test]
async fn a_snapshot_that_is_installed_while_another_is_built_stays() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let snapshots = snapshots(&dir);
    let (synced, history) = watch::channel(EventSeq(0));
    let mut store = MachineStore::new(Counter::<false>(10), None, snapshots.clone(), history, Env::system());
    let mut builder = store.get_snapshot_builder().await;
    let building = builder.build_snapshot();
    let installing = async {
        store.install_snapshot(&meta(20), arrived(&snapshots, 20, 20)).await.expect("installed");
        synced.send_replace(EventSeq(20));
    };
    let (built, ()) = tokio::join!(building, installing);
    assert_eq!(built.expect("built").meta, meta(20));
    assert_eq!(names(&dir), [AT_20]);
}

#[tokio::test]
async fn a_missing_entry_stops_the_member() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (_, history) = watch::channel(EventSeq(u64::MAX));
    let mut store = MachineStore::new(Counter::<true>(0), None, snapshots(&dir), history, Env::system());
    let entries = |indexes: [u64; 2]| {
        stream::iter(indexes.map(|index| {
            let payload = EntryPayload::Normal(Proposal::new(Vec::new()));
            Ok((RaftEntry { log_id: log_id(index), payload }, None))
        }))
    };
    store.apply(entries([0, 1])).await.expect("applied");
    let error = store.apply(entries([2, 4])).await.expect_err("entry 3 is missing");
    assert_eq!(error.to_string(), "entry 4 does not follow entry 2, the last applied entry");
    assert_eq!(store.applied_state().await.expect("known").0, Some(log_id(2)));
}

#[tokio::test]
async fn the_end_of_a_replay_is_told_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let snapshots = snapshots(&dir);
    let (_synced, history) = watch::channel(EventSeq(u64::MAX));
    let mut store = MachineStore::new(Counter::<true>(0), Some(3), snapshots, history, Env::system());
    let entries = |indexes: std::ops::RangeInclusive<u64>| {
        stream::iter(indexes.map(|index| {
            // The last one that is replayed is none of the machine's.
            let normal = || EntryPayload::Normal(Proposal::new(Vec::new()));
            let payload = if index == 3 { EntryPayload::Blank } else { normal() };
            Ok((RaftEntry { log_id: log_id(index), payload }, None))
        }))
    };
    for (indexes, expected) in [(0..=1, 2), (2..=3, 3 + REPLAYED), (4..=6, 6 + REPLAYED)] {
        store.apply(entries(indexes)).await.expect("applied");
        assert_eq!(store.counted(), EventSeq(expected));
    }
}

#[tokio::test]
async fn a_snapshot_that_does_not_read_back_is_not_adopted_and_the_member_goes_on() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let snapshots = snapshots(&dir);
    let (_synced, history) = watch::channel(EventSeq(u64::MAX));
    let mut store = MachineStore::new(Counter::<false>(UNLOADABLE), None, snapshots.clone(), history, Env::system());
    let built = store.get_snapshot_builder().await.build_snapshot().await.expect("no failure of the disk");
    assert_eq!(built.meta, RaftSnapshotMeta::default(), "it covers nothing, so nothing is purged");
    drop(built);
    assert_eq!(names(&dir), Vec::<String>::new());
    assert!(snapshots.current().is_none() && snapshots.refused().is_some());

    let older = arrived(&snapshots, 20, 20);
    snapshots.adopt(&meta(20), &older.path).expect("adopted");
    let built = store.get_snapshot_builder().await.build_snapshot().await.expect("no failure of the disk");
    assert_eq!(built.meta, meta(20), "what there was stays");
    assert_eq!(names(&dir), [AT_20]);
}

#[test]
fn a_snapshot_that_changed_on_disk_is_not_sent_whole() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let snapshots = snapshots(&dir);
    let file = arrived(&snapshots, 20, 20);
    for size in [1, 7, 11, 12, 13, 1 << 20] {
        let sent: Vec<u8> = file.chunks(size).flatten().collect();
        assert_eq!(sent, std::fs::read(&file.path).expect("readable"), "in parts of {size}");
    }
    assert!(!file.is_damaged());
    let whole = std::fs::read(&file.path).expect("readable");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&file.path, &damaged).expect("writable");
        let file = SnapshotFile::open(Env::system().files.as_ref(), &file.path).expect("there");
        assert!(file.chunks(11).map(|chunk| chunk.len()).sum::<usize>() < whole.len(), "byte {at}");
        assert!(file.is_damaged());
        assert!(file.chunks(11).next().is_none(), "it is not sent again");
    }
}
