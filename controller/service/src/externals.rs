//! The way to orchestrators that are programs outside of the cluster. It is behind a trait: this crate opens no sockets.

use std::sync::Arc;
use std::time::Duration;

use atlas_types::{Job, Namespace};
use bytes::Bytes;
use futures::future::BoxFuture;

/// A job as programs see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedJob {
    pub job: Arc<Job>,
    /// Its input, JSON.
    pub input: Bytes,
    /// The contract of its agent, JSON; empty if there is none.
    pub agent: Bytes,
}

/// What a program decided about a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExternalDecision {
    /// `allow`, `reject` or `redirect`.
    pub action: &'static str,
    pub reason: String,
    pub agent_name: String,
    pub priority: Option<i64>,
    pub rule: String,
}

/// The way to programs that decide.
pub trait Externals: Send + Sync {
    /// Asks the program at an address about jobs of a namespace. An error says why there is no answer.
    fn decide<'a>(
        &'a self,
        address: &'a str,
        namespace: &'a Namespace,
        jobs: Vec<AskedJob>,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<ExternalDecision>, String>>;
}

/// No way to any program.
pub struct NoExternals;

impl Externals for NoExternals {
    fn decide<'a>(
        &'a self,
        _: &'a str,
        _: &'a Namespace,
        _: Vec<AskedJob>,
        _: Duration,
    ) -> BoxFuture<'a, Result<Vec<ExternalDecision>, String>> {
        Box::pin(std::future::ready(Err("this controller reaches no orchestrators".to_owned())))
    }
}
