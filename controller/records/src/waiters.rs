//! Callers that wait for jobs to end: released by the event that ends the job, without polling.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_types::{Job, JobId};
use tokio::sync::oneshot;

type Waiting = HashMap<JobId, Vec<(u64, oneshot::Sender<Arc<Job>>)>>;

/// All callers that wait at this controller. Cheap to clone.
#[derive(Clone, Default)]
pub struct Waiters {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    waiting: Waiting,
    next: u64,
}

/// One caller's registration. Dropping it removes the registration.
pub struct Waiter {
    waiters: Waiters,
    job: JobId,
    number: u64,
    released: oneshot::Receiver<Arc<Job>>,
}

impl Waiters {
    /// Registers a waiter. Register before checking whether the job has ended, because the end could otherwise be
    /// missed.
    pub fn wait(&self, job: JobId) -> Waiter {
        let (release, released) = oneshot::channel();
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        inner.waiting.entry(job).or_default().push((number, release));
        Waiter { waiters: self.clone(), job, number, released }
    }

    /// Releases all waiters for `job`.
    pub fn release(&self, job: &Arc<Job>) {
        let waiting = self.lock().waiting.remove(&job.id);
        for (_, release) in waiting.into_iter().flatten() {
            // A caller that stopped waiting does not need the answer.
            let _ = release.send(job.clone());
        }
    }

    /// Releases all waiters for `job` without a result, so that they look the job up.
    pub fn give_up(&self, job: JobId) {
        self.lock().waiting.remove(&job);
    }

    /// True if there are no waiters, in which case a batch need not be searched.
    pub fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// The jobs that callers wait for. After missed events each of them is looked up.
    pub fn jobs(&self) -> Vec<JobId> {
        self.lock().waiting.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Waits until the job has ended; none if its end may have been missed.
    pub async fn ended(&mut self) -> Option<Arc<Job>> {
        (&mut self.released).await.ok()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut inner = self.waiters.lock();
        if let Some(places) = inner.waiting.get_mut(&self.job) {
            places.retain(|(number, _)| *number != self.number);
            if places.is_empty() {
                inner.waiting.remove(&self.job);
            }
        }
    }
}
