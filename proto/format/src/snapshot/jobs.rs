//! The jobs of a snapshot, which are most of it. Batches of their records are decoded on a second thread while the
//! reader goes on; if that thread is busy, the reader decodes a batch itself. The result is in the order of the records.

use std::collections::BTreeMap;
use std::mem;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use atlas_types::Job;

use super::{Kind, Shared, read_record};
use crate::SnapshotError;

/// The place of jobs in the order of records.
pub(super) const RANK: u8 = 4;
/// The first byte of a record with a job: its field, which has a length.
const KEY: u8 = 4 << 3 | 2;
/// Jobs of a batch. A snapshot with fewer needs no second thread.
const BATCH: usize = 512;
/// Bytes from which on a batch is full.
const BATCH_BYTES: usize = 1 << 20;

/// Whether a record says that it is a job.
pub(super) fn is_job(record: &[u8]) -> bool {
    record.first() == Some(&KEY)
}

/// The jobs of batches, by the first record of each.
type Decoded = BTreeMap<u64, Result<Vec<Arc<Job>>, SnapshotError>>;

pub(super) struct JobRecords<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    batch: Batch,
    shared: Option<Shared>,
    decoded: Decoded,
    second: Option<(SyncSender<Batch>, ScopedJoinHandle<'scope, Decoded>)>,
}

impl<'scope, 'env> JobRecords<'scope, 'env> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { scope, batch: Batch::default(), shared: None, decoded: Decoded::new(), second: None }
    }

    /// Takes the bytes of a record. `shared` has what the agents before the jobs share with them.
    pub(super) fn push(&mut self, record: u64, bytes: &[u8], shared: &mut Shared) {
        self.shared.get_or_insert_with(|| shared.clone());
        if self.batch.ends.is_empty() {
            self.batch.first = record;
        }
        self.batch.bytes.extend_from_slice(bytes);
        self.batch.ends.push(self.batch.bytes.len());
        if self.batch.ends.len() == BATCH || self.batch.bytes.len() >= BATCH_BYTES {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        let batch = mem::take(&mut self.batch);
        if self.second.is_none() {
            self.second = self.start();
        }
        let batch = match &self.second {
            Some((second, _)) => match second.try_send(batch) {
                Ok(()) => return,
                Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => batch,
            },
            None => batch,
        };
        self.decode(&batch);
    }

    fn decode(&mut self, batch: &Batch) {
        let jobs = batch.decode(self.shared.get_or_insert_default());
        self.decoded.insert(batch.first, jobs);
    }

    /// The second thread; none if the system has none left.
    fn start(&self) -> Option<(SyncSender<Batch>, ScopedJoinHandle<'scope, Decoded>)> {
        let mut shared = self.shared.clone().unwrap_or_default();
        let (batches, received) = sync_channel::<Batch>(1);
        let work = move || received.iter().map(|batch| (batch.first, batch.decode(&mut shared))).collect();
        let thread = Builder::new().name("decode-jobs".to_owned()).spawn_scoped(self.scope, work);
        Some((batches, thread.ok()?))
    }

    /// All jobs, or the first error.
    pub(super) fn finish(mut self) -> Result<Vec<Arc<Job>>, SnapshotError> {
        let last = mem::take(&mut self.batch);
        if !last.ends.is_empty() {
            self.decode(&last);
        }
        if let Some((batches, thread)) = self.second {
            drop(batches);
            self.decoded.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        let mut jobs = Vec::with_capacity(self.decoded.values().flatten().map(Vec::len).sum());
        for decoded in self.decoded.into_values() {
            jobs.extend(decoded?);
        }
        Ok(jobs)
    }
}

/// Records of jobs that follow each other.
#[derive(Default)]
struct Batch {
    first: u64,
    bytes: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
}

impl Batch {
    fn decode(&self, shared: &mut Shared) -> Result<Vec<Arc<Job>>, SnapshotError> {
        let mut jobs = Vec::with_capacity(self.ends.len());
        let mut from = 0;
        for (record, &end) in (self.first..).zip(&self.ends) {
            let wrong = |source| SnapshotError::Record { record, source };
            match read_record(&self.bytes[from..end]).map_err(wrong)? {
                Kind::Job(message) => jobs.push(shared.job(message).map_err(wrong)?),
                _ => return Err(SnapshotError::Order { record }),
            }
            from = end;
        }
        Ok(jobs)
    }
}
