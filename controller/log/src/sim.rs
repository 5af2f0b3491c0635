//! A simulated disk in memory with crashes, torn writes and failures, for tests and the simulation.

mod mark;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::mark::SimMark;
use super::driver::{Driver, MarkFile, Segment, Space};

/// The unit that survives a crash: unsynced writes are kept or lost sector by sector.
const SECTOR_BYTES: usize = 512;

/// The disk. Clones share it. It outlives the drivers that use it, as a disk outlives processes.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<DiskState>>);

struct DiskState {
    segments: BTreeMap<u64, Contents>,
    mark: Contents,
    fail_marks: bool,
    /// Counts writes, syncs, and new and retired segments.
    operations: u64,
    crash_at_operation: Option<u64>,
    /// Counts crashes. Calls of drivers from before the latest crash fail.
    life: u64,
    syncs: u64,
    fail_sync: Option<u64>,
    fail_write: Option<u64>,
    crash_at_sync: Option<u64>,
    writes: u64,
    /// The shortest and longest duration of writing a group.
    latency: (Duration, Duration),
    drawn: u64,
    /// The capacity for segments and ballast; none for unlimited.
    capacity: Option<u64>,
    /// Whether the capacity is a quota and not the size of the disk.
    quota: bool,
    ballast: u64,
}

impl Default for DiskState {
    fn default() -> Self {
        Self {
            segments: BTreeMap::new(),
            mark: mark::empty(),
            fail_marks: false,
            operations: 0,
            crash_at_operation: None,
            life: 0,
            syncs: 0,
            fail_sync: None,
            fail_write: None,
            crash_at_sync: None,
            writes: 0,
            latency: (Duration::ZERO, Duration::ZERO),
            drawn: 0,
            capacity: None,
            quota: false,
            ballast: 0,
        }
    }
}

impl DiskState {
    fn free(&self) -> u64 {
        let taken: u64 = self.segments.values().map(|contents| contents.durable.len() as u64).sum();
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(taken + self.ballast))
    }

    /// Makes calls of all existing drivers fail, and clears pending faults.
    fn end_life(&mut self) {
        self.life += 1;
        self.fail_sync = None;
        self.fail_write = None;
        self.crash_at_sync = None;
        self.crash_at_operation = None;
    }

    fn full(&self) -> io::Error {
        if self.quota { io::ErrorKind::QuotaExceeded.into() } else { io::ErrorKind::StorageFull.into() }
    }
}

#[derive(Default, Clone)]
struct Contents {
    durable: Vec<u8>,
    pending: Vec<(usize, Vec<u8>)>,
}

impl Contents {
    /// Makes all written data durable.
    fn settle(&mut self) {
        for (at, bytes) in std::mem::take(&mut self.pending) {
            self.durable[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// The content that a reader sees.
    fn seen(&self) -> Vec<u8> {
        let mut seen = self.clone();
        seen.settle();
        seen.durable
    }

    /// Keeps or loses each unsynced sector at random: sometimes all or none of them, otherwise each on its own.
    fn tear(&mut self, draw: &mut u64) {
        for (offset, bytes) in std::mem::take(&mut self.pending) {
            let whole = next(draw) % 3;
            for (at, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                if whole == 0 || whole == 1 && next(draw).is_multiple_of(2) {
                    let start = offset + at * SECTOR_BYTES;
                    self.durable[start..start + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
}

impl SimDisk {
    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A driver for this disk, which fails after the next crash.
    pub fn driver(&self) -> SimDriver {
        SimDriver { disk: self.clone(), life: self.state().life, takes_time: false, marks: true }
    }

    /// Like [`Self::driver`], for a program that keeps no durable mark.
    pub fn unmarked_driver(&self) -> SimDriver {
        self.driver().unmarked()
    }

    /// Like [`Self::driver`], for a simulated runtime: writing a group takes the time set with
    /// [`SimDisk::set_latency`].
    pub fn slow_driver(&self) -> SimDriver {
        SimDriver { takes_time: true, ..self.driver() }
    }

    /// Sets the shortest and longest duration of writing a group.
    pub fn set_latency(&self, least: Duration, most: Duration) {
        self.state().latency = (least, most);
    }

    /// Power failure: each unsynced sector is kept or lost at random.
    pub fn crash(&self, seed: u64) {
        let mut draw = seed;
        let mut state = self.state();
        state.end_life();
        for contents in state.segments.values_mut() {
            contents.tear(&mut draw);
        }
        state.mark.tear(&mut draw);
    }

    /// The process is killed but the machine continues: all written data reaches the disk, synced or not.
    pub fn kill(&self) {
        let mut state = self.state();
        state.end_life();
        for contents in state.segments.values_mut() {
            contents.settle();
        }
        state.mark.settle();
    }

    /// Cuts the power at the `n`-th following operation, counted from 0, on a segment or on the mark.
    /// [`SimDisk::crash`] then decides which unsynced data is left.
    pub fn lose_power_at_operation(&self, n: u64) {
        let mut state = self.state();
        state.crash_at_operation = Some(state.operations + n);
    }

    /// Makes the `n`-th following sync fail, counted from 0.
    pub fn fail_sync(&self, n: u64) {
        let mut state = self.state();
        state.fail_sync = Some(state.syncs + n);
    }

    /// Cuts the power at the `n`-th following sync, counted from 0. It fails, and so does every later call until
    /// [`SimDisk::crash`] decides how much is left of the write before it.
    pub fn lose_power_at_sync(&self, n: u64) {
        let mut state = self.state();
        state.crash_at_sync = Some(state.syncs + n);
    }

    /// Makes the `n`-th following write fail, counted from 0.
    pub fn fail_write(&self, n: u64) {
        let mut state = self.state();
        state.fail_write = Some(state.writes + n);
    }

    /// Sets the capacity for segments and ballast, which may be less than before; none for unlimited.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        let mut state = self.state();
        (state.capacity, state.quota) = (bytes, false);
    }

    /// Sets the capacity as a quota.
    pub fn set_quota(&self, bytes: Option<u64>) {
        let mut state = self.state();
        (state.capacity, state.quota) = (bytes, true);
    }

    /// The number of syncs so far.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// The numbers of the segments on the disk.
    pub fn sequences(&self) -> Vec<u64> {
        self.state().segments.keys().copied().collect()
    }

    /// Passes a segment's durable bytes to `change`, to inspect or damage them.
    pub fn with<T>(&self, sequence: u64, change: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        self.state().segments.get_mut(&sequence).map(|contents| change(&mut contents.durable))
    }

    /// Removes a whole segment.
    pub fn remove(&self, sequence: u64) {
        self.state().segments.remove(&sequence);
    }

    /// A disk with the same durable bytes.
    pub fn copy(&self) -> Self {
        let state = self.state();
        let (mut segments, mut mark) = (state.segments.clone(), state.mark.clone());
        segments.values_mut().chain([&mut mark]).for_each(|contents| contents.pending.clear());
        Self(Arc::new(Mutex::new(DiskState { segments, mark, ..DiskState::default() })))
    }
}

/// Draws the next number of a splitmix64 sequence.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Segments on a [`SimDisk`].
pub struct SimDriver {
    disk: SimDisk,
    life: u64,
    takes_time: bool,
    marks: bool,
}

impl SimDriver {
    /// This driver without a durable mark.
    pub fn unmarked(self) -> Self {
        Self { marks: false, ..self }
    }

    fn state(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        alive(&self.disk, self.life)
    }

    fn segment(&self, sequence: u64, bytes: u64) -> Arc<dyn Segment> {
        Arc::new(SimSegment { disk: self.disk.clone(), life: self.life, sequence, bytes })
    }
}

fn alive(disk: &SimDisk, life: u64) -> io::Result<MutexGuard<'_, DiskState>> {
    let state = disk.state();
    if state.life == life { Ok(state) } else { Err(io::Error::other("the machine crashed")) }
}

/// Like [`alive`], for a call that changes something. The power may be cut at such a call.
fn begin(disk: &SimDisk, life: u64) -> io::Result<MutexGuard<'_, DiskState>> {
    let mut state = alive(disk, life)?;
    state.operations += 1;
    if state.crash_at_operation == Some(state.operations - 1) {
        state.life += 1;
        return Err(io::Error::other("the machine crashed"));
    }
    Ok(state)
}

impl Driver for SimDriver {
    fn list(&mut self) -> io::Result<Vec<u64>> {
        Ok(self.state()?.segments.keys().copied().collect())
    }

    fn open(&mut self, sequence: u64) -> io::Result<Arc<dyn Segment>> {
        let bytes = self.state()?.segments.get(&sequence).ok_or(io::ErrorKind::NotFound)?.durable.len();
        Ok(self.segment(sequence, bytes as u64))
    }

    fn create(&mut self, sequence: u64, _least: u64, usual: u64) -> io::Result<Arc<dyn Segment>> {
        let mut state = begin(&self.disk, self.life)?;
        if state.free() < usual {
            return Err(state.full());
        }
        let durable = vec![0; usize::try_from(usual).unwrap_or(usize::MAX)];
        state.segments.insert(sequence, Contents { durable, pending: Vec::new() });
        drop(state);
        Ok(self.segment(sequence, usual))
    }

    fn retire(&mut self, sequence: u64) -> io::Result<()> {
        begin(&self.disk, self.life)?.segments.remove(&sequence);
        Ok(())
    }

    fn mark(&mut self) -> io::Result<Option<Arc<dyn MarkFile>>> {
        let mark = SimMark { disk: self.disk.clone(), life: self.life };
        Ok(self.marks.then(|| Arc::new(mark) as Arc<dyn MarkFile>))
    }

    fn space(&self) -> Arc<dyn Space> {
        Arc::new(self.disk.clone())
    }

    fn name(&self, sequence: u64) -> String {
        format!("segment {sequence}")
    }

    fn delay(&mut self) -> Option<Duration> {
        if !self.takes_time {
            return None;
        }
        let mut state = self.disk.state();
        let (least, most) = state.latency;
        let span = u64::try_from(most.saturating_sub(least).as_micros()).unwrap_or(u64::MAX);
        let drawn = if span == 0 { 0 } else { next(&mut state.drawn) % span };
        Some(least + Duration::from_micros(drawn))
    }
}

impl Space for SimDisk {
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.state().free())
    }

    fn set_ballast(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        state.ballast = 0;
        if state.free() < bytes {
            return Err(state.full());
        }
        state.ballast = bytes;
        Ok(())
    }
}

struct SimSegment {
    disk: SimDisk,
    life: u64,
    sequence: u64,
    bytes: u64,
}

impl Segment for SimSegment {
    fn size(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let state = alive(&self.disk, self.life)?;
        let contents = state.segments.get(&self.sequence).ok_or(io::ErrorKind::NotFound)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(buf.len());
        buf.copy_from_slice(contents.durable.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        for (at, written) in &contents.pending {
            let (from, to) = (start.max(*at), end.min(at + written.len()));
            if from < to {
                buf[from - start..to - start].copy_from_slice(&written[from - at..to - at]);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = begin(&self.disk, self.life)?;
        state.writes += 1;
        if state.fail_write == Some(state.writes - 1) {
            return Err(io::Error::other("write failed as told"));
        }
        let contents = state.segments.get_mut(&self.sequence).ok_or(io::ErrorKind::NotFound)?;
        assert!(offset + bytes.len() as u64 <= self.bytes, "a write goes past the end of its segment");
        contents.pending.push((usize::try_from(offset).unwrap_or(usize::MAX), bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = begin(&self.disk, self.life)?;
        state.syncs += 1;
        if state.crash_at_sync == Some(state.syncs - 1) {
            state.life += 1;
            return Err(io::Error::other("the machine crashed"));
        }
        if state.fail_sync == Some(state.syncs - 1) {
            return Err(io::Error::other("sync failed as told"));
        }
        state.segments.get_mut(&self.sequence).ok_or(io::ErrorKind::NotFound)?.settle();
        Ok(())
    }
}
