//! Backups as a stream: the service collects the data, and the archive is sent part by part as it is made.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_env::Env;
use atlas_raft::Handle;
use atlas_recovery::archive::{About, Encoder, HISTORY, STATE, artifact_part};
use atlas_service::{Backup, Error, Service};
use atlas_types::{Digest, Timestamp};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The size of one piece of the stream.
const PIECE_BYTES: usize = 256 << 10;
/// The most bytes of the file with the time of the last backup.
const LAST_BYTES_MAX: u64 = 64;
/// The most pieces that wait for the reader.
const PIECES_MAX: usize = 4;

/// The next data for a backup's reader. After an error the backup is incomplete and unusable.
pub(crate) type Piece = io::Result<Bytes>;

/// Makes backups, one at a time, because each needs disk space for a copy of the state and the history.
#[derive(Clone)]
pub(crate) struct Backups {
    folder: PathBuf,
    handle: Handle,
    one: Arc<Semaphore>,
    env: Env,
}

impl Backups {
    /// Backups of the controller in `data_dir`. When the last one was made is known from before.
    pub(crate) fn new(data_dir: &Path, handle: Handle, env: Env) -> Self {
        let backups = Self { folder: data_dir.join("backup"), handle, one: Arc::new(Semaphore::new(1)), env };
        if let Some(at) = backups.last() {
            backups.handle.note_backup(at);
        }
        backups
    }

    /// The file with the time of the last complete backup, in microseconds since 1970.
    fn last_path(&self) -> PathBuf {
        self.folder.with_file_name("last-backup")
    }

    /// None if there was none, or if the file is damaged.
    fn last(&self) -> Option<Timestamp> {
        let mut text = String::new();
        std::fs::File::open(self.last_path()).ok()?.take(LAST_BYTES_MAX).read_to_string(&mut text).ok()?;
        text.trim().parse().ok().map(Timestamp)
    }

    /// Notes that a backup is complete. A time that cannot be written is known until the controller stops.
    fn made(&self, at: Timestamp) {
        self.handle.note_backup(at);
        if let Err(error) = std::fs::write(self.last_path(), format!("{}\n", at.0)) {
            tracing::warn!(error = &error as &dyn std::error::Error, "could not write the time of the backup");
        }
    }

    /// Collects a backup and sends it. Refused while another backup is being made.
    pub(crate) async fn begin(&self, service: Service) -> Result<mpsc::Receiver<Piece>, Error> {
        let busy = |_| Error::NoBackup("another backup is being made");
        let permit = Arc::clone(&self.one).try_acquire_owned().map_err(busy)?;
        self.clear(true).await?;
        let Backup { state, artifacts } = service.backup(self.folder.join(HISTORY)).await?;
        let (path, taken_at) = (self.folder.join(STATE), self.env.clock.wall());
        let about = blocking(&self.env, "backup-state", move || {
            let image = state.to_image();
            let mut file = io::BufWriter::new(std::fs::File::create(path)?);
            atlas_format::encode_snapshot(&image, &mut file).map_err(io::Error::other)?;
            Ok(About::of(&image, env!("CARGO_PKG_VERSION"), (taken_at.0.max(0) / 1_000_000).unsigned_abs()))
        });
        let about = about.await.map_err(|error| Error::backup_failed(&error))?;
        let (sender, receiver) = mpsc::channel(PIECES_MAX);
        let sending = Sending { backups: self.clone(), service, sender, _permit: permit };
        self.env.spawn("backup", async move {
            match sending.send(&about, artifacts.into_iter().collect()).await {
                Ok(true) => sending.backups.made(taken_at),
                Ok(false) => tracing::warn!("a backup lacks artifacts, which it names at its end"),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "a backup was not sent completely");
                    let _ = sending.sender.send(Err(error)).await;
                }
            }
            let _ = sending.backups.clear(false).await;
        });
        Ok(receiver)
    }

    /// Removes the files of this or an earlier backup. With `again` the folder is created again for the next backup.
    async fn clear(&self, again: bool) -> Result<(), Error> {
        let folder = self.folder.clone();
        let clearing = blocking(&self.env, "backup-clear", move || {
            match std::fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            if again { std::fs::create_dir_all(&folder) } else { Ok(()) }
        });
        clearing.await.map_err(|error| Error::backup_failed(&error))
    }
}

/// Runs file operations on a blocking thread.
async fn blocking<T: Send + 'static>(
    env: &Env,
    name: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    env.spawn_blocking(name, work).join().await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
}

/// A backup that is being sent.
struct Sending {
    backups: Backups,
    service: Service,
    sender: mpsc::Sender<Piece>,
    _permit: OwnedSemaphorePermit,
}

impl Sending {
    /// Whether all of it was there to be sent.
    async fn send(&self, about: &About, artifacts: Vec<Digest>) -> io::Result<bool> {
        let (mut encoder, first) = Encoder::new(about);
        self.give(first).await?;
        for part in [STATE, HISTORY] {
            self.file(&mut encoder, part).await?;
        }
        let mut missing = Vec::new();
        for digest in artifacts {
            // Missing artifacts are reported at the end, because the rest of the backup is still useful.
            match self.service.artifact(digest).await {
                Ok(bytes) => self.artifact(&mut encoder, digest, bytes).await?,
                Err(_) => missing.push(digest),
            }
        }
        self.give(encoder.finish(&missing)).await?;
        Ok(missing.is_empty())
    }

    async fn file(&self, encoder: &mut Encoder, part: &str) -> io::Result<()> {
        let file = self.backups.env.files.open(&self.backups.folder.join(part))?;
        let size = file.size();
        self.give(encoder.begin(part, size)).await?;
        let mut offset = 0;
        while offset < size {
            let len = PIECE_BYTES.min(usize::try_from(size - offset).unwrap_or(PIECE_BYTES));
            let file = Arc::clone(&file);
            let piece = blocking(&self.backups.env, "backup-read", move || {
                let mut piece = vec![0; len];
                file.read_exact_at(offset, &mut piece).map(|()| piece)
            });
            let piece = piece.await?;
            encoder.data(&piece);
            offset += piece.len() as u64;
            self.give(piece).await?;
        }
        self.give(encoder.end().map_err(io::Error::other)?).await
    }

    async fn artifact(&self, encoder: &mut Encoder, digest: Digest, bytes: Bytes) -> io::Result<()> {
        self.give(encoder.begin(&artifact_part(&digest), bytes.len() as u64)).await?;
        encoder.data(&bytes);
        self.give(bytes).await?;
        self.give(encoder.end().map_err(io::Error::other)?).await
    }

    /// Sends a piece to the reader.
    async fn give(&self, piece: impl Into<Bytes>) -> io::Result<()> {
        let piece = piece.into();
        if piece.is_empty() {
            return Ok(());
        }
        self.sender.send(Ok(piece)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
