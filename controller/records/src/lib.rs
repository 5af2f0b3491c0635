//! Jobs as clients read them: lists and waits (`jobs`), their JSON form (`view`), trees, recorded steps, traces, explanations, and the questions that
//! they ask people.

mod evals;
mod explain;
mod jobs;
mod outage;
mod question_signal;
mod questions;
mod steps;
mod traces;
mod tree;
mod view;
mod waiters;

use std::sync::Arc;

use atlas_desk::Desk;
use atlas_lines::JobLogs;
use atlas_platform::{ModelLimits, Stats};
use atlas_state::State;
use atlas_types::Job;
use tokio::sync::Semaphore;

pub use jobs::JobQuery;
pub use question_signal::QuestionSignal;
pub use questions::{QuestionQuery, open_below, ruled, shown as shown_question};
pub use steps::{StepQuery, Steps};
pub use traces::{TraceQuery, is_traced};
pub use tree::{JOBS_MAX, Tree, write_all};
pub use view::{Shown, View, change_word, write_frame};
pub use waiters::{Waiter, Waiters};

use evals::Evals;

/// Explanations of jobs that are made at one time.
const EXPLANATIONS_MAX: usize = 2;

/// The jobs of a cluster, for whoever reads them here or waits for them.
pub struct Records {
    desk: Arc<Desk>,
    logs: JobLogs,
    model_limits: Arc<ModelLimits>,
    stats: Stats,
    waiters: Waiters,
    questions: QuestionSignal,
    evals: Evals,
    /// One permit for each explanation of a job that is made at one time.
    explanations: Semaphore,
}

impl Records {
    /// Those that a controller reads. What they say of running jobs comes from the logs, the limits of models and the statistics.
    pub fn new(desk: Arc<Desk>, logs: JobLogs, model_limits: Arc<ModelLimits>, stats: Stats) -> Self {
        Self {
            desk,
            logs,
            model_limits,
            stats,
            waiters: Waiters::default(),
            questions: QuestionSignal::default(),
            evals: Evals::default(),
            explanations: Semaphore::new(EXPLANATIONS_MAX),
        }
    }

    /// Those who wait for the ends of jobs.
    pub fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Those who wait for questions.
    pub fn question_signal(&self) -> &QuestionSignal {
        &self.questions
    }

    async fn model_wait(&self, state: &State, job: &Job) -> Option<String> {
        atlas_platform::model_wait(&self.desk, &self.model_limits, state, job).await
    }
}
