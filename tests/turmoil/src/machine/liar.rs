//! Disks with deliberate bugs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use atlas_log::{Driver, Segment};

/// The false report of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Reports a sync that was not made.
    NotSynced,
    /// Reports a failed sync as successful.
    NotFailed,
}

/// A driver with false reports.
pub(crate) struct Liar<D> {
    pub(crate) disk: D,
    pub(crate) lie: Lie,
}

struct LyingSegment {
    segment: Arc<dyn Segment>,
    lie: Lie,
}

impl<D> Liar<D> {
    fn lying(&self, segment: Arc<dyn Segment>) -> Arc<dyn Segment> {
        Arc::new(LyingSegment { segment, lie: self.lie })
    }
}

impl<D: Driver> Driver for Liar<D> {
    fn list(&mut self) -> io::Result<Vec<u64>> {
        self.disk.list()
    }

    fn open(&mut self, sequence: u64) -> io::Result<Arc<dyn Segment>> {
        let segment = self.disk.open(sequence)?;
        Ok(self.lying(segment))
    }

    fn create(&mut self, sequence: u64, least: u64, usual: u64) -> io::Result<Arc<dyn Segment>> {
        let segment = self.disk.create(sequence, least, usual)?;
        Ok(self.lying(segment))
    }

    fn retire(&mut self, sequence: u64) -> io::Result<()> {
        self.disk.retire(sequence)
    }

    fn name(&self, sequence: u64) -> String {
        self.disk.name(sequence)
    }

    fn delay(&mut self) -> Option<Duration> {
        self.disk.delay()
    }
}

impl Segment for LyingSegment {
    fn size(&self) -> u64 {
        self.segment.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.segment.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.segment.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        match self.lie {
            Lie::NotSynced => Ok(()),
            Lie::NotFailed => self.segment.sync().or(Ok(())),
        }
    }
}
