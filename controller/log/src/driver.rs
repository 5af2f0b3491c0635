//! The interface below the log: segments as random-access files of fixed size.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// One segment, open. Writes are whole aligned blocks and come from one thread at a time; reads come from anywhere.
pub trait Segment: Send + Sync + 'static {
    /// Bytes it can hold.
    fn size(&self) -> u64;

    /// Fills `buf` from `offset`; less than that is an error.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes`, a [`super::block::Block`]'s, at `offset`. Not durable yet.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
}

/// The file of the durable mark. Written by one thread at a time.
pub trait MarkFile: Send + Sync + 'static {
    /// Everything in it.
    fn read(&self) -> io::Result<Vec<u8>>;

    /// Writes `bytes` at `offset`. Not durable yet.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
}

/// The room on the disk that segments are on. Asked apart from the writer, which it must not hold up.
pub trait Space: Send + Sync + 'static {
    /// Bytes that are free for this program.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Sets `bytes` aside, to be given back in an emergency; 0 gives them back.
    fn set_ballast(&self, bytes: u64) -> io::Result<()>;
}

/// Where segments live.
pub trait Driver: Send + 'static {
    /// The numbers of the existing segments, ascending.
    fn list(&mut self) -> io::Result<Vec<u64>>;

    /// Opens an existing segment.
    fn open(&mut self, sequence: u64) -> io::Result<Arc<dyn Segment>>;

    /// Makes a segment of at least `least` bytes, better `usual`, which holds zeros or what a retired segment held. Its name is
    /// durable on return. If there is no room nothing was made, and it may be tried again.
    fn create(&mut self, sequence: u64, least: u64, usual: u64) -> io::Result<Arc<dyn Segment>>;

    /// Takes a segment away, maybe to be used again. Readers that still have it open may read other data from now on.
    fn retire(&mut self, sequence: u64) -> io::Result<()>;

    /// The file of the durable mark; none where no marks are kept.
    fn mark(&mut self) -> io::Result<Option<Arc<dyn MarkFile>>> {
        Ok(None)
    }

    /// The room on the disk; without end for a driver that writes nothing.
    fn space(&self) -> Arc<dyn Space> {
        Arc::new(Endless)
    }

    /// What errors call the segment.
    fn name(&self, sequence: u64) -> String;

    /// How long the disk will take for the next group, where that is time of the async runtime and passes before the write. None
    /// where writes and syncs block for as long as they take: the log then has a thread for them.
    fn delay(&mut self) -> Option<Duration> {
        None
    }
}

/// Room without end.
struct Endless;

impl Space for Endless {
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn set_ballast(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
}
