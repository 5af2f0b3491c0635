//! Functions of this process that serve agents instead of a program.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use atlas_types::{Attachments, Attempt, Failure, JobId};

use crate::journal::Journal;

/// A job for the function.
pub struct InsideJob {
    pub job: JobId,
    /// Number of the attempt, from 1.
    pub attempt: Attempt,
    /// The input as JSON text.
    pub input: Arc<[u8]>,
    /// The journal that the attempt continues.
    pub journal: Journal,
    /// Secrets, a bearer and models for this attempt alone.
    pub attachments: Attachments,
}

/// The end of a job, once it has come.
pub(crate) type Ending = Pin<Box<dyn Future<Output = Result<String, Failure>> + Send>>;

/// The function. It returns the job's output as JSON text.
#[derive(Clone)]
pub struct Inside(Arc<dyn Fn(InsideJob) -> Ending + Send + Sync>);

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl Inside {
    /// The function as an agent. Its future is dropped when the attempt is stopped or takes too long.
    pub fn new<F>(run: impl Fn(InsideJob) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, Failure>> + Send + 'static,
    {
        Self(Arc::new(move |job| Box::pin(run(job))))
    }
}

impl Inside {
    /// Begins a job.
    pub(crate) fn begin(&self, job: InsideJob) -> Ending {
        (self.0)(job)
    }
}
