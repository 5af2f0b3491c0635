//! Tests one directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use atlas_env::{Clock, FileWriter, Files, SystemFiles};
use atlas_types::{MemberId, Timestamp};

use super::*;
use crate::peers::NoPeers;

const HOLD: Duration = Duration::from_secs(60);

struct One {
    dir: tempfile::TempDir,
    artifacts: Artifacts,
}

impl One {
    fn new(hold: Duration) -> Self {
        Self::on(hold, Env::system())
    }

    fn on(hold: Duration, env: Env) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = ArtifactOptions { root: dir.path().join("artifacts"), bytes_max: 1 << 20, hold };
        let artifacts = Artifacts::new(options, Arc::new(NoPeers(MemberId(1))), env);
        Self { dir, artifacts }
    }

    fn path(&self, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        self.dir.path().join("artifacts").join(&hex[..2]).join(&hex[2..])
    }
}

/// A clock that the test advances.
#[derive(Default)]
struct ByHand(AtomicU64);

impl ByHand {
    fn go_on(&self, by: Duration) {
        self.0.fetch_add(by.as_secs(), Ordering::Relaxed);
    }
}

impl Clock for ByHand {
    fn wall(&self) -> Timestamp {
        Timestamp::default()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test]
async fn what_is_stored_reads_back_under_its_digest() {
    let one = One::new(HOLD);
    let digest = one.artifacts.store(bytes("abc")).await.expect("stored");
    assert_eq!(digest.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert!(one.path(digest).exists());
    assert_eq!(one.artifacts.store(bytes("abc")).await.expect("stored again"), digest);
    assert_eq!(one.artifacts.read(digest).await.expect("read"), "abc");
}

#[tokio::test]
async fn an_artifact_that_is_stored_again_is_durable_before_it_is_said_to_be() {
    let files = Arc::new(Unsynced::default());
    let one = One::on(HOLD, Env { files: files.clone(), ..Env::system() });
    files.fails.store(true, Ordering::Relaxed);
    // The file is renamed before the sync of its directory fails.
    one.artifacts.store(bytes("abc")).await.expect_err("its name is not durable");
    let digest = digest_of(b"abc");
    assert!(one.path(digest).exists());
    one.artifacts.store(bytes("abc")).await.expect_err("its name is still not durable");
    one.artifacts.pin(digest).await.expect_err("nor for a command that would refer to it");
    files.fails.store(false, Ordering::Relaxed);
    one.artifacts.store(bytes("abc")).await.expect("durable by now");
    let dir = one.path(digest).parent().expect("a folder").to_owned();
    assert!(files.synced().contains(&dir));
    // A durable name is not synced again.
    files.synced().clear();
    one.artifacts.store(bytes("abc")).await.expect("durable");
    assert_eq!(*files.synced(), BTreeSet::new());
}

/// The system's files. Records which directories are synced, and fails syncs of artifact directories on demand.
#[derive(Default)]
struct Unsynced {
    fails: AtomicBool,
    synced: Mutex<BTreeSet<PathBuf>>,
}

impl Unsynced {
    fn synced(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Unsynced {
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let has_artifacts = dir.file_name().is_some_and(|name| name.len() == 2);
        if has_artifacts && self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("failed as told"));
        }
        SystemFiles.sync_dir(dir)?;
        self.synced().insert(dir.to_owned());
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWriter>> {
        SystemFiles.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn FileReader>> {
        SystemFiles.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemFiles.rename(from, to)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        SystemFiles.read(path)
    }

    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        SystemFiles.write_durably(path, bytes)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        SystemFiles.create_dir_all(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemFiles.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        SystemFiles.list(dir)
    }

    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        SystemFiles.size(path)
    }
}

#[tokio::test]
async fn damage_is_noticed_and_the_only_copy_stays_where_it_is() {
    let one = One::new(HOLD);
    let digest = one.artifacts.store(bytes("abc")).await.expect("stored");
    std::fs::write(one.path(digest), b"abd").expect("writable");
    for _ in 0..2 {
        let error = one.artifacts.read(digest).await.expect_err("damaged");
        assert!(matches!(error, ArtifactError::Damaged(_) | ArtifactError::Missing(_)), "{error}");
    }
    assert!(one.path(digest).exists());
    // Storing the artifact again repairs it, and the damaged file is kept for inspection.
    one.artifacts.store(bytes("abc")).await.expect("stored");
    assert_eq!(one.artifacts.read(digest).await.expect("read"), "abc");
    assert_eq!(std::fs::read(one.dir.path().join("artifacts/damaged").join(digest.hex())).expect("kept"), b"abd");
}

#[tokio::test]
async fn missing_and_oversized_artifacts_are_refused() {
    let one = One::new(HOLD);
    let error = one.artifacts.read(Digest([0; 32])).await.expect_err("missing");
    assert!(matches!(error, ArtifactError::Missing(_)), "{error}");
    let error = one.artifacts.pin(Digest([0; 32])).await.expect_err("missing");
    assert!(matches!(error, ArtifactError::Missing(_)), "{error}");
    let error = one.artifacts.store(Bytes::from(vec![0; (1 << 20) + 1])).await.expect_err("too large");
    assert_eq!(error.to_string(), "an artifact of 1048577 bytes is larger than 1048576");
}

#[tokio::test]
async fn bytes_that_are_not_what_they_are_called_are_not_taken() {
    let one = One::new(HOLD);
    let digest = digest_of(b"right");
    let mut receiver = one.artifacts.receive(digest).await.expect("opened");
    receiver.write(bytes("wrong")).await.expect("written");
    assert!(matches!(receiver.finish().await, Err(ArtifactError::Damaged(_))));
    let mut receiver = one.artifacts.receive(digest).await.expect("opened");
    let error = receiver.write(Bytes::from(vec![0; (1 << 20) + 1])).await.expect_err("too large");
    assert!(matches!(error, ArtifactError::TooLarge { .. }), "{error}");
    drop(receiver);
    assert!(!one.path(digest).exists());
    let left = std::fs::read_dir(one.dir.path().join("artifacts/incoming")).expect("listable").count();
    assert_eq!(left, 0, "nothing is left of what was refused");
}

#[tokio::test]
async fn what_a_crash_left_is_swept_and_what_arrives_now_is_not() {
    let one = One::new(HOLD);
    let digest = one.artifacts.store(bytes("abc")).await.expect("stored");
    let incoming = one.dir.path().join("artifacts/incoming");
    std::fs::write(incoming.join("00.0000000000000001-0.partial"), b"half").expect("writable");
    std::fs::write(one.path(digest).with_extension("0000000000000001.tmp"), b"half").expect("writable");
    let receiver = one.artifacts.receive(digest_of(b"x")).await.expect("opened");
    assert_eq!(one.artifacts.sweep().await.expect("swept"), 2);
    assert_eq!(std::fs::read_dir(&incoming).expect("listable").count(), 1);
    let mut receiver = receiver;
    receiver.write(bytes("x")).await.expect("written");
    receiver.finish().await.expect("durable");
    assert_eq!(one.artifacts.read(digest_of(b"x")).await.expect("read"), "x");
}

#[tokio::test]
async fn what_is_held_is_not_removed() {
    let clock = Arc::new(ByHand::default());
    let one = One::on(HOLD, Env { clock: clock.clone(), ..Env::system() });
    let digest = one.artifacts.store(bytes("abc")).await.expect("stored");
    clock.go_on(HOLD - Duration::from_secs(1));
    assert_eq!(one.artifacts.loose().await.expect("listed"), []);
    assert_eq!(one.artifacts.remove(vec![digest]).await.expect("asked"), 0);
    clock.go_on(Duration::from_secs(2));
    assert_eq!(one.artifacts.loose().await.expect("listed"), [digest], "the hold has ended");
    // A job can start to refer to the artifact between the check and the removal.
    assert_eq!(one.artifacts.hold(vec![digest, Digest([0; 32])]).await.expect("asked"), [true, false]);
    assert_eq!(one.artifacts.remove(vec![digest]).await.expect("asked"), 0);
    clock.go_on(HOLD + Duration::from_secs(1));
    assert_eq!(one.artifacts.loose().await.expect("listed"), [digest]);
    assert_eq!(one.artifacts.remove(vec![digest]).await.expect("asked"), 3);
    assert_eq!(one.artifacts.hold(vec![digest]).await.expect("asked"), [false]);
}
