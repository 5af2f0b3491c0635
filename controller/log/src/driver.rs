//! The interface below the log: segments as random-access files of fixed size.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// An open segment. Writes are whole aligned blocks from one thread at a time. Reads may come from any thread.
pub trait Segment: Send + Sync + 'static {
    /// Its capacity in bytes.
    fn size(&self) -> u64;

    /// Fills `buf` from `offset`. A short read is an error.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes`, the content of a [`super::block::Block`], at `offset`. Not durable yet.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes all written data durable.
    fn sync(&self) -> io::Result<()>;
}

/// The file of the durable mark. Only one thread at a time writes it.
pub trait MarkFile: Send + Sync + 'static {
    /// Reads the whole file.
    fn read(&self) -> io::Result<Vec<u8>>;

    /// Writes `bytes` at `offset`. Not durable yet.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes all written data durable.
    fn sync(&self) -> io::Result<()>;
}

/// The free space on the disk of the segments. Queried separately from the writer, which must not be delayed.
pub trait Space: Send + Sync + 'static {
    /// The free space available to this program, in bytes.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Reserves `bytes` that can be freed in an emergency; 0 frees them.
    fn set_ballast(&self, bytes: u64) -> io::Result<()>;
}

/// The storage of the segments.
pub trait Driver: Send + 'static {
    /// The numbers of the existing segments, ascending.
    fn list(&mut self) -> io::Result<Vec<u64>>;

    /// Opens an existing segment.
    fn open(&mut self, sequence: u64) -> io::Result<Arc<dyn Segment>>;

    /// Creates a segment of at least `least`, preferably `usual` bytes, with zeros or the content of a retired segment.
    /// Its name is durable on return. If there is no space, nothing is created and the call may be repeated.
    fn create(&mut self, sequence: u64, least: u64, usual: u64) -> io::Result<Arc<dyn Segment>>;

    /// Removes a segment or keeps it for reuse. Readers that still have it open may see other data from now on.
    fn retire(&mut self, sequence: u64) -> io::Result<()>;

    /// The file of the durable mark; none if the driver keeps no marks.
    fn mark(&mut self) -> io::Result<Option<Arc<dyn MarkFile>>> {
        Ok(None)
    }

    /// The free space on the disk; unlimited for a driver that writes nothing.
    fn space(&self) -> Arc<dyn Space> {
        Arc::new(Endless)
    }

    /// The name of the segment in error messages.
    fn name(&self, sequence: u64) -> String;

    /// The time that the disk will take for the next group, if the driver simulates time: the writer task then sleeps
    /// for it before the write. None if writes and syncs block, in which case the log has a writer thread.
    fn delay(&mut self) -> Option<Duration> {
        None
    }
}

/// Unlimited space.
struct Endless;

impl Space for Endless {
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn set_ballast(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
}
