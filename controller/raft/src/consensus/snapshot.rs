//! Snapshots on disk: one file, written under a temporary name, synced, renamed, and verified whenever it is read.
//!
//! `[magic 8][format u32][header length u32][header][body][checksum u32][bytes before the checksum u64]`, little-endian.

use std::any::Any;
use std::fmt;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::{FileReader, FileWriter, Files};
use prost::Message;
use tokio::sync::watch;

use super::RaftSnapshotMeta;
use super::body::{SnapshotBody, decode};

const MAGIC: [u8; 8] = *b"ATLASSNP";
const FORMAT: u32 = 1;
const TRAILER_BYTES: u64 = 12;
const HEADER_BYTES_MAX: u32 = 1 << 20;
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a state into a snapshot.
pub(crate) type Source = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync>;

/// Reads the body of a snapshot as at a start, and reports errors.
pub(crate) type Check = fn(&mut dyn Read) -> io::Result<()>;

/// A complete snapshot file. It stays readable while it is in use, even after a newer one has replaced it.
#[derive(Clone)]
pub(crate) struct SnapshotFile {
    pub(crate) file: Arc<dyn FileReader>,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The state read from the file, kept for its installation.
    loaded: Arc<Mutex<Option<Box<dyn Any + Send>>>>,
    /// True once a read found that the content is damaged.
    damaged: Arc<watch::Sender<bool>>,
    /// Set for a received snapshot that is not the current one.
    _incoming: Option<Arc<Incoming>>,
}

/// A file that is being received or has arrived. Dropping the last reference removes the file, unless it was renamed.
pub(crate) struct Incoming {
    files: Arc<dyn Files>,
    pub(super) path: PathBuf,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // The file does not exist if it was installed or never created. If removal fails for another reason, the next
        // start removes it.
        let _ = self.files.remove(&self.path);
    }
}

impl fmt::Debug for SnapshotFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} bytes", self.path, self.bytes)
    }
}

/// A snapshot that is in use, and what it covers.
pub(crate) type Current = (RaftSnapshotMeta, SnapshotFile);

/// The directory of the snapshots, and the current one.
#[derive(Clone)]
pub(crate) struct Snapshots {
    files: Arc<dyn Files>,
    dir: PathBuf,
    current: Arc<Mutex<Option<Current>>>,
    /// Locked while the current snapshot is replaced, which needs disk syncs. Readers do not wait for this lock.
    adopting: Arc<Mutex<()>>,
    /// When a written snapshot last failed to read back.
    refused: Arc<Mutex<Option<Duration>>>,
}

impl Snapshots {
    /// Opens the directory and reads the newest snapshot; older ones and half-written ones are removed.
    pub(crate) fn open(files: Arc<dyn Files>, dir: PathBuf) -> io::Result<Self> {
        files.create_dir_all(&dir)?;
        if let Some(parent) = dir.parent() {
            files.sync_dir(parent)?;
        }
        let mut found = Vec::new();
        // The names sort by index.
        for path in files.list(&dir)? {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("tmp") => files.remove(&path)?,
                Some("snap") => found.push(path),
                _ => {}
            }
        }
        let mut current = None;
        if let Some(newest) = found.pop() {
            let file = SnapshotFile::open(files.as_ref(), &newest)?;
            // A damaged snapshot is an error, because the log entries that it covers may be purged.
            let (meta, ()) = file.read(|_| Ok(()))?;
            current = Some((meta, file));
        }
        // An older snapshot is left over after a crash between two steps of its replacement.
        found.iter().try_for_each(|path| files.remove(path))?;
        let current = Arc::new(Mutex::new(current));
        Ok(Self { files, dir, current, adopting: Arc::default(), refused: Arc::default() })
    }

    /// Sets when a written snapshot last failed to read back, or clears it.
    pub(crate) fn set_refused(&self, at: Option<Duration>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// When a written snapshot last failed to read back, unless a later one was good.
    pub(crate) fn refused(&self) -> Option<Duration> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest snapshot.
    pub(crate) fn current(&self) -> Option<Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates a file for a snapshot that is being received, under a unique name.
    pub(crate) fn begin(&self, name: u64) -> io::Result<(Incoming, Box<dyn FileWriter>)> {
        let path = self.dir.join(format!("incoming-{name:016x}.tmp"));
        let incoming = Incoming { files: Arc::clone(&self.files), path };
        let file = self.files.create(&incoming.path)?;
        Ok((incoming, file))
    }

    /// Opens a file that was received completely.
    pub(crate) fn arrived(&self, incoming: Incoming) -> io::Result<SnapshotFile> {
        let file = SnapshotFile::open(self.files.as_ref(), &incoming.path)?;
        Ok(SnapshotFile { _incoming: Some(Arc::new(incoming)), ..file })
    }

    /// Writes a snapshot, reads it back, and makes it the current one, unless a newer one became current meanwhile.
    /// Returns the current one. A file that could not be written completely is removed. [`io::ErrorKind::InvalidData`]
    /// if the file did not read back.
    pub(crate) fn write(&self, meta: &RaftSnapshotMeta, source: &Source, check: Check) -> io::Result<Current> {
        let temporary = self.dir.join("new.tmp");
        let written = self.write_whole(&temporary, meta, source).and_then(|()| self.read_back(&temporary, meta, check));
        // The first failure is reported, not the result of the removal.
        written.inspect_err(|_| drop(self.files.remove(&temporary)))?;
        self.adopt(meta, &temporary)
    }

    /// Reads a snapshot as a start does. The log entries that it covers are dropped afterwards, so an unreadable
    /// snapshot would lose the state.
    fn read_back(&self, path: &Path, meta: &RaftSnapshotMeta, check: Check) -> io::Result<()> {
        let unusable = |error: io::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let (found, ()) = SnapshotFile::open(self.files.as_ref(), path)?.read(|body| check(body)).map_err(unusable)?;
        if found == *meta { Ok(()) } else { Err(unusable(io::Error::other("its header does not read back correctly"))) }
    }

    /// A placeholder for a snapshot that could not be written. It covers nothing and cannot be read.
    pub(crate) fn none(&self) -> Current {
        let (loaded, damaged) = (Arc::default(), Arc::new(watch::Sender::new(true)));
        let file = SnapshotFile {
            file: Arc::new(Nothing),
            path: self.dir.clone(),
            bytes: 0,
            loaded,
            damaged,
            _incoming: None,
        };
        (RaftSnapshotMeta::default(), file)
    }

    pub(super) fn write_whole(&self, temporary: &Path, meta: &RaftSnapshotMeta, source: &Source) -> io::Result<()> {
        let file = self.files.create(temporary)?;
        let mut out = Summed { inner: BufWriter::with_capacity(BUFFER_BYTES, file), crc: 0, bytes: 0 };
        let header = SnapshotBody::from(meta).encode_to_vec();
        out.write_all(&MAGIC)?;
        out.write_all(&FORMAT.to_le_bytes())?;
        out.write_all(&(header.len() as u32).to_le_bytes())?;
        out.write_all(&header)?;
        source(&mut out)?;
        let (crc, bytes) = (out.crc, out.bytes);
        out.inner.write_all(&crc.to_le_bytes())?;
        out.inner.write_all(&bytes.to_le_bytes())?;
        out.inner.into_inner().map_err(io::IntoInnerError::into_error)?.sync()
    }

    /// Makes the whole and synced file at `temporary` the current snapshot, unless the current one reaches further: a
    /// snapshot may be installed while an older one is being built, and then the log begins after the newer one.
    /// Returns the current one.
    pub(crate) fn adopt(&self, meta: &RaftSnapshotMeta, temporary: &Path) -> io::Result<Current> {
        let _adopting = self.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current();
        if let Some((current, file)) = &before
            && current.last_log_id > meta.last_log_id
        {
            self.files.remove(temporary)?;
            return Ok((current.clone(), file.clone()));
        }
        let (term, index) = meta.last_log_id.map_or((0, 0), |id| (id.leader_id.term, id.index));
        let path = self.dir.join(format!("{index:016x}-{term:016x}.snap"));
        self.files.rename(temporary, &path)?;
        self.files.sync_dir(&self.dir)?;
        let adopted = (meta.clone(), SnapshotFile::open(self.files.as_ref(), &path)?);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(adopted.clone());
        if let Some((_, before)) = before.filter(|(_, before)| before.path != path) {
            self.files.remove(&before.path)?;
        }
        Ok(adopted)
    }
}

impl SnapshotFile {
    /// Opens a snapshot file.
    pub(crate) fn open(files: &dyn Files, path: &Path) -> io::Result<Self> {
        let file = files.open(path)?;
        let bytes = file.size();
        let (loaded, damaged) = (Arc::default(), Arc::new(watch::Sender::new(false)));
        Ok(Self { file, path: path.to_owned(), bytes, loaded, damaged, _incoming: None })
    }

    /// Keeps the state read from the snapshot until it is installed.
    pub(crate) fn keep<S: Any + Send>(&self, state: S) {
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(state));
    }

    /// Takes the kept state. A second call returns none.
    pub(crate) fn take_kept<S: Any>(&self) -> Option<S> {
        let kept = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.and_then(|state| state.downcast().ok()).map(|state| *state)
    }

    /// True once a read found that the content is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        *self.damaged.borrow()
    }

    /// Completes when the snapshot is found to be damaged.
    pub(crate) async fn damaged(&self) {
        let mut damaged = self.damaged.subscribe();
        if damaged.wait_for(|damaged| *damaged).await.is_err() {
            // The receiver is gone.
            std::future::pending::<()>().await;
        }
    }

    /// Reads the snapshot: checks all of it, then gives its body to `restore`.
    pub(crate) fn read<T>(
        &self,
        restore: impl FnOnce(&mut dyn Read) -> io::Result<T>,
    ) -> io::Result<(RaftSnapshotMeta, T)> {
        let damaged = |what| {
            let path = self.path.display();
            io::Error::new(io::ErrorKind::InvalidData, format!("the snapshot \"{path}\" is damaged: {what}"))
        };
        let body_end = self.bytes.checked_sub(TRAILER_BYTES).ok_or_else(|| damaged("it is too short"))?;
        let crc = self.checksum(body_end)?;
        let mut trailer = [0; TRAILER_BYTES as usize];
        self.file.read_exact_at(body_end, &mut trailer)?;
        if trailer[..4] != crc.to_le_bytes() || trailer[4..] != body_end.to_le_bytes() {
            return Err(damaged("its checksum does not match"));
        }
        let whole = At { file: self.file.as_ref(), offset: 0, end: body_end };
        let mut input = BufReader::with_capacity(BUFFER_BYTES, whole);
        let mut fixed = [0; 16];
        input.read_exact(&mut fixed)?;
        if fixed[..8] != MAGIC {
            return Err(damaged("it does not begin like a snapshot"));
        }
        let format = u32::from_le_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]);
        if format > FORMAT {
            return Err(damaged("its format is newer than this program"));
        }
        let len = u32::from_le_bytes([fixed[12], fixed[13], fixed[14], fixed[15]]);
        if len > HEADER_BYTES_MAX {
            return Err(damaged("its header is too long"));
        }
        let mut header = vec![0; len as usize];
        input.read_exact(&mut header)?;
        let header: SnapshotBody = decode("a snapshot's header", &header[..]).map_err(io::Error::other)?;
        let meta = header.try_into().map_err(io::Error::other)?;
        Ok((meta, restore(&mut input)?))
    }

    /// The file in chunks of `size` bytes, for sending. The last chunk is left out if the checksum does not match, and
    /// the snapshot is then marked as damaged.
    pub(crate) fn chunks(&self, size: usize) -> impl Iterator<Item = Vec<u8>> + use<> {
        let (snapshot, mut offset) = (self.clone(), 0);
        let mut sum =
            Checksum { crc: 0, bytes: 0, body_end: self.bytes.saturating_sub(TRAILER_BYTES), trailer: Vec::new() };
        std::iter::from_fn(move || {
            let mut chunk = vec![0; size.min(usize::try_from(snapshot.bytes - offset).unwrap_or(size))];
            if chunk.is_empty() || snapshot.is_damaged() {
                return None;
            }
            let read = snapshot.file.read_exact_at(offset, &mut chunk);
            offset += chunk.len() as u64;
            sum.add(&chunk);
            let whole = read.and_then(|()| if offset < snapshot.bytes { Ok(()) } else { sum.check() });
            if let Err(error) = whole {
                let path = snapshot.path.display();
                tracing::error!(%error, %path, "the snapshot being sent is damaged, writing a new one");
                snapshot.damaged.send_replace(true);
                return None;
            }
            Some(chunk)
        })
    }

    fn checksum(&self, end: u64) -> io::Result<u32> {
        let mut input = At { file: self.file.as_ref(), offset: 0, end };
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut crc = 0;
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok(crc),
                read => crc = crc32c::crc32c_append(crc, &buffer[..read]),
            }
        }
    }
}

/// Computes the checksum of a file that is read in chunks, for comparison with the stored one.
struct Checksum {
    crc: u32,
    bytes: u64,
    body_end: u64,
    trailer: Vec<u8>,
}

impl Checksum {
    fn add(&mut self, part: &[u8]) {
        let left = usize::try_from(self.body_end - self.bytes.min(self.body_end)).unwrap_or(usize::MAX);
        let (body, trailer) = part.split_at(part.len().min(left));
        self.crc = crc32c::crc32c_append(self.crc, body);
        self.bytes += part.len() as u64;
        self.trailer.extend_from_slice(trailer);
    }

    fn check(&self) -> io::Result<()> {
        let wanted = [&self.crc.to_le_bytes()[..], &self.body_end.to_le_bytes()].concat();
        if self.trailer == wanted {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum does not match"))
    }
}

/// The file of a placeholder snapshot.
struct Nothing;

impl FileReader for Nothing {
    fn size(&self) -> u64 {
        0
    }

    fn read_exact_at(&self, _offset: u64, _buf: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Reads a range of a file without moving the cursor that all readers share.
struct At<'f> {
    file: &'f dyn FileReader,
    offset: u64,
    end: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let limit = buf.len().min(left);
        self.file.read_exact_at(self.offset, &mut buf[..limit])?;
        self.offset += limit as u64;
        Ok(limit)
    }
}

/// Counts and checksums the bytes that pass through.
struct Summed<W> {
    inner: W,
    crc: u32,
    bytes: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buf)?;
        self.crc = crc32c::crc32c_append(self.crc, &buf[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
