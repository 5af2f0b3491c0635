//! Receives a snapshot from another member into a file, which is deleted unless the snapshot is installed.

use std::io;
use std::sync::Arc;

use atlas_env::Env;
use atlas_wire::proto::peer::v1 as wire;
use futures::{Stream, StreamExt};
use tokio::sync::watch;
use tonic::Status;

use crate::consensus::RaftSnapshotMeta;
use crate::consensus::snapshot::{SnapshotFile, Snapshots};
use atlas_log::Space;

/// Loads a received snapshot, checks it against its announced header, and keeps the loaded state with the file.
pub(crate) type Load = Arc<dyn Fn(&SnapshotFile, &RaftSnapshotMeta) -> io::Result<()> + Send + Sync>;

/// Receives snapshots, one at a time. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Receiver {
    snapshots: Snapshots,
    space: Arc<dyn Space>,
    load: Load,
    /// Counts started transfers. The latest one comes from the current leader and cancels any other.
    begun: Arc<watch::Sender<u64>>,
    env: Env,
}

impl Receiver {
    /// A receiver into the directory of `snapshots`, which is on the disk of `space`.
    pub(crate) fn new(snapshots: Snapshots, space: Arc<dyn Space>, load: Load, env: Env) -> Self {
        Self { snapshots, space, load, begun: Arc::new(watch::Sender::new(0)), env }
    }

    /// Receives a complete snapshot and loads it. An unusable snapshot is rejected here, because Raft would report it
    /// as a failure of this member's own disk. The loaded state is kept for the installation.
    pub(super) async fn take<S>(
        &self,
        meta: &RaftSnapshotMeta,
        bytes: Option<u64>,
        parts: S,
    ) -> Result<SnapshotFile, Status>
    where
        S: Stream<Item = Result<wire::SnapshotRequest, Status>> + Unpin,
    {
        let snapshot = self.receive(bytes, parts).await?;
        let (load, file, meta) = (Arc::clone(&self.load), snapshot.clone(), meta.clone());
        let loading = self.env.spawn_blocking("snapshot-load", move || load(&file, &meta));
        let loaded = loading.join().await.map_err(|_| Status::data_loss("reading the snapshot panicked"))?;
        match loaded {
            Ok(()) => Ok(snapshot),
            Err(error) => {
                let error = atlas_env::chain(&error);
                tracing::warn!(%error, "could not use a received snapshot");
                Err(Status::data_loss(format!("the snapshot cannot be used: {error}")))
            }
        }
    }

    /// Writes the chunks of a snapshot to a file and syncs it. `bytes` is the announced size: without room for it
    /// nothing is written, and a snapshot of another size is refused.
    pub(super) async fn receive<S>(&self, bytes: Option<u64>, mut parts: S) -> Result<SnapshotFile, Status>
    where
        S: Stream<Item = Result<wire::SnapshotRequest, Status>> + Unpin,
    {
        let failed = |error: io::Error| Status::unavailable(format!("could not store the snapshot: {error}"));
        self.begun.send_modify(|begun| *begun += 1);
        let mut later = self.begun.subscribe();
        if let (Some(bytes), Ok(free)) = (bytes, self.space.free_bytes())
            && free < bytes
        {
            return Err(failed(io::ErrorKind::StorageFull.into()));
        }
        let mut received = 0;
        let (incoming, mut file) = self.snapshots.begin(self.env.entropy.u64()).map_err(failed)?;
        loop {
            let part = tokio::select! {
                biased;
                _ = later.changed() => return Err(Status::aborted("another snapshot is being sent")),
                part = parts.next() => part,
            };
            let Some(part) = part.transpose()? else { break };
            received += part.chunk.len() as u64;
            if bytes.is_some_and(|bytes| received > bytes) {
                return Err(other_length(bytes, received));
            }
            // Each chunk is written on a blocking thread, which takes the file and returns it.
            let written = self.env.spawn_blocking("snapshot-part", move || {
                let outcome = file.write_all(&part.chunk);
                (file, outcome)
            });
            let (back, outcome) = written.join().await.map_err(|_| Status::unavailable("stopping"))?;
            outcome.map_err(failed)?;
            file = back;
        }
        if bytes.is_some_and(|bytes| received != bytes) {
            return Err(other_length(bytes, received));
        }
        let synced = self.env.spawn_blocking("snapshot-sync", move || file.sync());
        synced.join().await.map_err(|_| Status::unavailable("stopping"))?.map_err(failed)?;
        self.snapshots.arrived(incoming).map_err(failed)
    }
}

fn other_length(announced: Option<u64>, received: u64) -> Status {
    let announced = announced.unwrap_or_default();
    Status::data_loss(format!("a snapshot of {announced} bytes was announced, {received} bytes arrived"))
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, stream};
    use tempfile::TempDir;

    use super::*;
    use atlas_log::sim::SimDisk;

    fn receiver(dir: &TempDir, disk: &SimDisk) -> Receiver {
        let env = Env::system();
        let snapshots = Snapshots::open(env.files.clone(), dir.path().join("snapshots")).expect("writable");
        Receiver::new(snapshots, Arc::new(disk.clone()), Arc::new(|_, _| Ok(())), env)
    }

    fn files(dir: &TempDir) -> usize {
        Env::system().files.list(&dir.path().join("snapshots")).expect("listable").len()
    }

    fn part(bytes: &'static [u8]) -> Result<wire::SnapshotRequest, Status> {
        Ok(wire::SnapshotRequest { head: None, chunk: bytes::Bytes::from_static(bytes) })
    }

    #[tokio::test]
    async fn what_does_not_arrive_whole_takes_no_room() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let receiver = receiver(&dir, &SimDisk::default());
        let broken = stream::iter([part(b"half"), Err(Status::cancelled("the leader was deposed"))]);
        assert!(receiver.receive(None, broken).await.is_err());
        assert_eq!(files(&dir), 0);
    }

    #[tokio::test]
    async fn what_nobody_receives_any_more_takes_no_room() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let receiver = receiver(&dir, &SimDisk::default());
        let endless = stream::iter([part(b"half")]).chain(stream::pending());
        let mut receiving = Box::pin(receiver.receive(None, endless));
        assert!(receiving.as_mut().now_or_never().is_none());
        assert_eq!(files(&dir), 1);
        drop(receiving);
        assert_eq!(files(&dir), 0);
    }

    #[tokio::test]
    async fn what_is_not_installed_takes_no_room() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let receiver = receiver(&dir, &SimDisk::default());
        let whole = receiver.receive(Some(5), stream::iter([part(b"wh"), part(b"ole")])).await.expect("received");
        assert_eq!((files(&dir), whole.bytes), (1, 5));
        drop(whole);
        assert_eq!(files(&dir), 0);
    }

    #[tokio::test]
    async fn another_length_than_was_announced_is_refused() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let receiver = receiver(&dir, &SimDisk::default());
        let parts = || stream::iter([part(b"wh"), part(b"ole")]);
        let longer = receiver.receive(Some(4), parts()).await.expect_err("one byte too many");
        let shorter = receiver.receive(Some(6), parts()).await.expect_err("one byte is missing");
        for refused in [&longer, &shorter] {
            assert_eq!(refused.code(), tonic::Code::DataLoss);
        }
        assert_eq!(longer.message(), "a snapshot of 4 bytes was announced, 5 bytes arrived");
        assert_eq!(files(&dir), 0);
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_refused_before_raft_sees_it() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let unusable: Load = Arc::new(|_, _| Err(io::ErrorKind::InvalidData.into()));
        let receiver = Receiver { load: unusable, ..receiver(&dir, &SimDisk::default()) };
        let taken = receiver.take(&RaftSnapshotMeta::default(), Some(5), stream::iter([part(b"whole")])).await;
        assert_eq!(taken.expect_err("it cannot be used").code(), tonic::Code::DataLoss);
        assert_eq!(files(&dir), 0);
    }

    #[tokio::test]
    async fn a_later_snapshot_takes_the_place_of_an_earlier_one() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let receiver = receiver(&dir, &SimDisk::default());
        let earlier = receiver.receive(None, stream::pending());
        let later = receiver.receive(None, stream::iter([part(b"whole")]));
        let (earlier, later) = tokio::join!(earlier, later);
        assert_eq!(earlier.expect_err("it gave way").code(), tonic::Code::Aborted);
        assert_eq!(later.expect("received").bytes, 5);
    }

    #[tokio::test]
    async fn without_room_for_all_of_it_nothing_is_written() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = SimDisk::default();
        disk.set_capacity(Some(4));
        let receiver = receiver(&dir, &disk);
        assert!(receiver.receive(Some(5), stream::pending()).await.is_err());
        assert_eq!(files(&dir), 0);
    }
}
