//! The artifact store: packages and large payloads by digest, in a directory of each controller (docs/adr/0009-artifacts.md).
//!
//! An artifact is durable on a majority of the voters before a command may refer to it, and held for a while, so that
//! it exists when the command is applied. A controller with a missing or damaged copy fetches the artifact from another
//! one; every read is verified against the digest, so that damage is detected.

mod disk;
mod spread;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::{Env, FileReader, is_full};
use atlas_types::{Digest, ErrorKind};
use bytes::Bytes;
use futures::StreamExt;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, Semaphore};

use crate::peers::{Outgoing, PeerError, Peers};
use disk::Disk;

/// A hash that distinguishes bodies.
pub fn hash(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = digest_of(bytes).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Why an artifact could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No controller has the artifact.
    #[error("no such artifact: {0}")]
    Missing(Digest),
    /// The bytes do not match the digest.
    #[error("artifact {0} is damaged")]
    Damaged(Digest),
    /// It is larger than allowed.
    #[error("an artifact of {bytes} bytes is larger than {max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A disk operation on the artifact failed.
    #[error("could not {doing} artifact {digest}")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The artifact.
        digest: Digest,
        /// The system's error.
        source: io::Error,
    },
    /// A disk operation on the directory failed.
    #[error("could not {doing} the directory of artifacts")]
    Directory {
        /// The operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The artifact is not on this controller, and a controller that may have it did not answer.
    #[error("could not fetch artifact {digest}")]
    Away {
        /// The artifact.
        digest: Digest,
        /// The peer's error.
        source: PeerError,
    },
    /// Too few voters have the artifact, so nothing may refer to it yet.
    #[error("artifact {digest} is stored on only {stored} of the voters, which is not a majority")]
    TooFew {
        /// The artifact.
        digest: Digest,
        /// The number of voters that have it.
        stored: usize,
    },
    /// The process is stopping.
    #[error("the artifact store has stopped")]
    Stopped,
}

impl ArtifactError {
    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing(_) | Self::Damaged(_) => ErrorKind::Gone,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Away { .. } | Self::TooFew { .. } => ErrorKind::Unavailable,
            Self::Io { source, .. } | Self::Directory { source, .. } if is_full(source) => ErrorKind::NoSpace,
            Self::Io { .. } | Self::Directory { .. } | Self::Stopped => ErrorKind::Internal,
        }
    }
}

/// Options of an artifact store.
#[derive(Debug, Clone)]
pub struct ArtifactOptions {
    /// The directory.
    pub root: PathBuf,
    /// The size of the largest artifact.
    pub bytes_max: u64,
    /// How long an artifact without references is kept after it was last stored or requested by its digest.
    pub hold: Duration,
}

impl ArtifactOptions {
    /// The defaults for a directory.
    pub fn new(root: PathBuf) -> Self {
        Self { root, bytes_max: 64 << 20, hold: Duration::from_secs(3_600) }
    }
}

/// The digest of some bytes.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// The most artifacts that are sent at once. Each needs memory for one part, not for the whole artifact.
const SENDS_MAX: usize = 16;
/// Size of the parts in which an artifact is read to be sent.
const CHUNK_BYTES: u64 = 256 << 10;
/// The pause between two parts when an artifact is only checked. This limits the check to a few MiB per second.
const CHECK_PAUSE: Duration = Duration::from_millis(50);

/// A controller's directory of artifacts. Cheap to clone.
#[derive(Clone)]
pub struct Artifacts {
    inner: Arc<Inner>,
}

struct Inner {
    disk: Disk,
    peers: Arc<dyn Peers>,
    env: Env,
    sends: Arc<Semaphore>,
    /// Artifacts that are being fetched. Several requests for one artifact share one fetch.
    fetching: Mutex<BTreeSet<Digest>>,
    fetched: Notify,
}

impl Artifacts {
    /// A store in a directory, which is created by the first write.
    pub fn new(options: ArtifactOptions, peers: Arc<dyn Peers>, env: Env) -> Self {
        let ArtifactOptions { root, bytes_max, hold } = options;
        let disk = Disk::new(root, bytes_max, hold, env.clone());
        let sends = Arc::new(Semaphore::new(SENDS_MAX));
        let (fetching, fetched) = (Mutex::default(), Notify::new());
        Self { inner: Arc::new(Inner { disk, peers, env, sends, fetching, fetched }) }
    }

    /// The size of the largest artifact.
    pub fn bytes_max(&self) -> u64 {
        self.inner.disk.bytes_max()
    }

    /// How long an artifact without references is kept.
    pub fn hold_time(&self) -> Duration {
        self.inner.disk.hold_time()
    }

    /// Stores bytes durably on a majority of the voters and returns their digest. A command may then refer to the
    /// artifact.
    pub async fn store(&self, bytes: Bytes) -> Result<Digest, ArtifactError> {
        let digest = self.keep(bytes).await?;
        self.spread(digest).await?;
        Ok(digest)
    }

    /// Stores bytes durably on this controller only, for the duration of a hold.
    pub async fn keep(&self, bytes: Bytes) -> Result<Digest, ArtifactError> {
        let (size, max) = (bytes.len() as u64, self.bytes_max());
        if size > max {
            return Err(ArtifactError::TooLarge { bytes: size, max });
        }
        self.on_disk("artifact-store", move |disk| disk.write(&bytes)).await
    }

    /// Ensures that a majority of the voters has an artifact and holds it, so that a command may refer to it.
    pub async fn pin(&self, digest: Digest) -> Result<(), ArtifactError> {
        if !self.hold(vec![digest]).await?.contains(&true) {
            self.fetch(digest).await?;
        }
        self.spread(digest).await
    }

    /// Reads and verifies an artifact. A missing or damaged one is fetched first.
    pub async fn read(&self, digest: Digest) -> Result<Bytes, ArtifactError> {
        let error = match self.on_disk("artifact-read", move |disk| disk.read(digest)).await {
            Err(error @ (ArtifactError::Missing(_) | ArtifactError::Damaged(_))) => error,
            read => return read,
        };
        match self.fetch(digest).await {
            Ok(()) => self.on_disk("artifact-read", move |disk| disk.read(digest)).await,
            Err(ArtifactError::Missing(_)) => Err(error),
            Err(error) => Err(error),
        }
    }

    /// Fetches an artifact from another controller, unless this one has it. [`ArtifactError::Missing`] if no controller
    /// has it.
    pub async fn fetch(&self, digest: Digest) -> Result<(), ArtifactError> {
        let _turn = self.turn(digest).await;
        if self.size(digest).await?.is_some() {
            return Ok(());
        }
        let mut away = None;
        for member in self.inner.peers.group().others_by_use() {
            match self.fetch_from(member, digest).await {
                Ok(()) => return Ok(()),
                Err(Fetch::Lacking) => {}
                Err(Fetch::Away(error)) => away = Some(error),
                Err(Fetch::Here(error)) => return Err(error),
            }
        }
        Err(away.map_or(ArtifactError::Missing(digest), |source| ArtifactError::Away { digest, source }))
    }

    async fn fetch_from(&self, member: atlas_types::MemberId, digest: Digest) -> Result<(), Fetch> {
        let away = |error: PeerError| if error.is_lack() { Fetch::Lacking } else { Fetch::Away(error) };
        let mut chunks = self.inner.peers.get(member, digest).await.map_err(away)?;
        let mut receiver = self.receive(digest).await.map_err(Fetch::Here)?;
        while let Some(chunk) = chunks.next().await {
            receiver.write(chunk.map_err(away)?).await.map_err(Fetch::Here)?;
        }
        match receiver.finish().await {
            Ok(()) => Ok(()),
            Err(ArtifactError::Damaged(_)) => {
                tracing::warn!(%member, %digest, "a member sent a damaged artifact");
                Err(Fetch::Lacking)
            }
            Err(error) => Err(Fetch::Here(error)),
        }
    }

    /// Waits until no other task fetches this artifact.
    async fn turn(&self, digest: Digest) -> Turn<'_> {
        loop {
            let fetched = self.inner.fetched.notified();
            if self.inner.fetching().insert(digest) {
                return Turn { inner: &self.inner, digest };
            }
            fetched.await;
        }
    }
}

/// Functions for the other members, and for the tasks that check and collect artifacts.
impl Artifacts {
    /// For each artifact, whether this controller has it. Existing ones are held for a while, even without references.
    pub async fn hold(&self, digests: Vec<Digest>) -> Result<Vec<bool>, ArtifactError> {
        self.on_disk("artifact-hold", move |disk| digests.iter().map(|digest| disk.hold(*digest)).collect()).await
    }

    /// The artifacts that this controller does not have.
    pub async fn lacking(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, ArtifactError> {
        self.on_disk("artifact-look", move |disk| {
            let mut lacking = Vec::new();
            for digest in digests {
                if disk.size(digest)?.is_none() {
                    lacking.push(digest);
                }
            }
            Ok(lacking)
        })
        .await
    }

    /// Starts to receive an artifact from a peer.
    pub async fn receive(&self, digest: Digest) -> Result<Receiver, ArtifactError> {
        let incoming = self.on_disk("artifact-store", move |disk| disk.begin(digest)).await?;
        Ok(Receiver { incoming: Some(incoming), artifacts: self.clone() })
    }

    /// Opens an artifact of this controller to send it in parts.
    pub async fn open(&self, digest: Digest) -> Result<Sender, ArtifactError> {
        let file = self.on_disk("artifact-read", move |disk| disk.open(digest)).await?;
        Ok(Sender { file, digest, hash: Sha256::new(), offset: 0, artifacts: self.clone() })
    }

    /// All artifacts of this controller, except those known to be damaged.
    pub async fn all(&self) -> Result<Vec<Digest>, ArtifactError> {
        self.on_disk("artifact-list", Disk::list).await
    }

    /// Reads an artifact of this controller slowly, and replaces it with another controller's copy if it is damaged.
    /// Returns whether it was damaged. [`ArtifactError::Damaged`] if no member has an intact copy.
    pub async fn check(&self, digest: Digest) -> Result<bool, ArtifactError> {
        let mut sender = self.open(digest).await?;
        loop {
            match sender.next().await {
                Ok(Some(_)) => self.inner.env.clock.sleep(CHECK_PAUSE).await,
                Ok(None) => return Ok(false),
                Err(ArtifactError::Damaged(_)) => break,
                Err(error) => return Err(error),
            }
        }
        match self.fetch(digest).await {
            Ok(()) => Ok(true),
            Err(ArtifactError::Missing(_)) => Err(ArtifactError::Damaged(digest)),
            Err(error) => Err(error),
        }
    }

    /// Artifacts without a hold. The caller must check whether something refers to them.
    pub async fn loose(&self) -> Result<Vec<Digest>, ArtifactError> {
        self.on_disk("artifact-list", Disk::loose).await
    }

    /// Removes artifacts without a hold. Returns the number of bytes freed.
    pub async fn remove(&self, digests: Vec<Digest>) -> Result<u64, ArtifactError> {
        self.on_disk("artifact-remove", move |disk| digests.into_iter().map(|digest| disk.remove(digest)).sum()).await
    }

    /// Removes incomplete files of earlier processes. Returns their number.
    pub async fn sweep(&self) -> Result<usize, ArtifactError> {
        self.on_disk("artifact-sweep", Disk::sweep).await
    }

    async fn size(&self, digest: Digest) -> Result<Option<u64>, ArtifactError> {
        self.on_disk("artifact-look", move |disk| disk.size(digest)).await
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Disk) -> Result<T, ArtifactError> + Send + 'static,
    ) -> Result<T, ArtifactError> {
        let inner = self.inner.clone();
        let task = self.inner.env.spawn_blocking(name, move || work(&inner.disk));
        task.join().await.map_err(|_| ArtifactError::Stopped)?
    }
}

impl Inner {
    fn fetching(&self) -> MutexGuard<'_, BTreeSet<Digest>> {
        self.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a member did not provide an artifact.
enum Fetch {
    /// It has no intact copy.
    Lacking,
    /// It did not answer.
    Away(PeerError),
    /// The artifact could not be stored on this controller.
    Here(ArtifactError),
}

/// The right to fetch one artifact.
struct Turn<'a> {
    inner: &'a Inner,
    digest: Digest,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.inner.fetching().remove(&self.digest);
        self.inner.fetched.notify_waiters();
    }
}

/// An artifact that is being received. Dropping it before its end removes the file.
pub struct Receiver {
    incoming: Option<disk::Incoming>,
    artifacts: Artifacts,
}

impl Receiver {
    /// Writes the next bytes. [`ArtifactError::TooLarge`] if they exceed the limit.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), ArtifactError> {
        let Some(mut incoming) = self.incoming.take() else { return Err(ArtifactError::Stopped) };
        let write = move |_: &Disk| incoming.write(&chunk).map(|()| incoming);
        self.incoming = Some(self.artifacts.on_disk("artifact-store", write).await?);
        Ok(())
    }

    /// Makes the artifact durable and holds it. [`ArtifactError::Damaged`] if the bytes do not match the digest.
    pub async fn finish(mut self) -> Result<(), ArtifactError> {
        let Some(incoming) = self.incoming.take() else { return Err(ArtifactError::Stopped) };
        self.artifacts.on_disk("artifact-store", move |disk| disk.finish(incoming)).await
    }
}

/// An artifact that is being sent, one part at a time.
pub struct Sender {
    file: Arc<dyn FileReader>,
    digest: Digest,
    hash: Sha256,
    offset: u64,
    artifacts: Artifacts,
}

impl Sender {
    /// Its size.
    pub fn size_bytes(&self) -> u64 {
        self.file.size()
    }

    /// The next part; none at the end. [`ArtifactError::Damaged`] instead of the end if the bytes do not match the
    /// digest.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ArtifactError> {
        let (file, digest, offset) = (self.file.clone(), self.digest, self.offset);
        let size = (file.size() - offset).min(CHUNK_BYTES);
        if size == 0 {
            let whole = Digest(std::mem::take(&mut self.hash).finalize().into()) == digest;
            return if whole { Ok(None) } else { Err(self.artifacts.inner.disk.damaged(digest)) };
        }
        let mut hash = std::mem::take(&mut self.hash);
        let read = move |_: &Disk| {
            let mut chunk = vec![0; usize::try_from(size).unwrap_or_default()];
            let failed = |source| ArtifactError::Io { doing: "read", digest, source };
            file.read_exact_at(offset, &mut chunk).map_err(failed)?;
            hash.update(&chunk);
            Ok((Bytes::from(chunk), hash))
        };
        let (chunk, hash) = self.artifacts.on_disk("artifact-read", read).await?;
        (self.hash, self.offset) = (hash, offset + size);
        Ok(Some(chunk))
    }

    /// The parts for a peer, which verifies them itself. If reading fails, the stream ends early.
    pub fn into_outgoing(self) -> Outgoing {
        Box::pin(futures::stream::unfold(self, |mut sender| async move {
            match sender.next().await {
                Ok(chunk) => chunk.map(|chunk| (chunk, sender)),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "could not send an artifact");
                    None
                }
            }
        }))
    }
}
