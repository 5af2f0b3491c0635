//! Jobs: get, list, wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{Caller, Consistency, Error};
use atlas_history::{JobFilter, has_words};
use atlas_state::State;
use atlas_types::{AgentName, EventSeq, Job, JobId, JobStatus, PayloadBody, Reason, Timestamp};

use crate::Records;
use crate::tree::usage as usage_of_tree;
use crate::view::{Shown, View, reason_word, waiting};

/// Selects jobs.
#[derive(Debug, Clone, Default)]
pub struct JobQuery {
    pub status: Option<JobStatus>,
    pub agent: Option<AgentName>,
    /// With all these labels.
    pub labels: Vec<(String, String)>,
    /// With all these [`words`](atlas_history::words) in their errors and labels.
    pub words: Vec<String>,
    /// Submitted at or after.
    pub since: Option<Timestamp>,
    /// Submitted at or before.
    pub until: Option<Timestamp>,
    /// Submitted before this job.
    pub before: Option<JobId>,
    /// The most jobs to return.
    pub limit: usize,
    /// How many jobs to skip.
    pub offset: usize,
}

impl JobQuery {
    fn admits(&self, job: &Job) -> bool {
        self.status.is_none_or(|status| job.status == status)
            && self.agent.as_ref().is_none_or(|agent| job.agent == *agent)
            && self.since.is_none_or(|since| job.created_at >= since)
            && self.until.is_none_or(|until| job.created_at <= until)
            && self.labels.iter().all(|(key, wanted)| job.labels.get(key) == Some(wanted))
            && has_words(job, &self.words)
    }
}

/// The location of a listed job.
enum JobLocation {
    /// In the state.
    Live(Arc<Job>),
    /// In the history: the event that ended it, and its id.
    Archived(EventSeq, JobId),
}

/// The most jobs that a list skips. For older jobs, clients must give a time.
const OFFSET_MAX: usize = 100_000;
/// The most jobs of the state that one list examines.
const LOOKED_AT_MAX: usize = 100_000;

/// Reading jobs and waiting for them.
impl Records {
    /// One job.
    pub async fn job(&self, caller: &Caller, id: JobId, view: View, consistency: Consistency) -> Result<Shown, Error> {
        let state = self.desk.state(consistency).await?;
        let job = self.desk.job_in(caller, &state, id).await?;
        let wait = match view {
            View::Full => self.model_wait(&state, &job).await,
            View::Plain => None,
        };
        let mut shown = self.show(job, view, Some(&state)).await?;
        if let Some(sentence) = wait {
            shown.waiting = Some((reason_word(shown.job.reason), sentence));
        }
        Ok(shown)
    }

    /// Jobs of the state and the history, newest first. Large payloads are not loaded; [`Self::load`] does that.
    pub async fn jobs(
        &self,
        caller: &Caller,
        query: &JobQuery,
        view: View,
        consistency: Consistency,
    ) -> Result<Vec<Shown>, Error> {
        let state = self.desk.state(consistency).await?;
        let limit = query.limit.clamp(1, self.desk.limits.list_max);
        let wanted = limit + query.offset.min(OFFSET_MAX);
        let before = match query.before {
            Some(id) => Some(self.desk.job_in(caller, &state, id).await?.queue_seq),
            None => None,
        };
        let live = state.jobs(&caller.namespace, query.status, before).take(LOOKED_AT_MAX);
        let live = live.filter(|job| query.admits(job)).take(wanted);
        let mut places: Vec<(u64, JobLocation)> =
            live.map(|job| (job.queue_seq, JobLocation::Live(job.clone()))).collect();
        let filter = JobFilter {
            namespace: Some(caller.namespace.clone()),
            status: query.status,
            agent: query.agent.clone(),
            since: query.since,
            until: query.until,
            before,
            labels: query.labels.clone(),
            words: query.words.clone(),
            by_end: false,
            // Jobs that are also in the state must not take the place of others.
            limit: wanted + places.len(),
        };
        let archived = self.desk.archived_list(&state, filter).await?;
        // A member of an older release knows no `before`, and answers with newer jobs as well.
        let archived = archived
            .into_iter()
            .filter(|listed| state.job(listed.id).is_none() && before.is_none_or(|before| listed.queue_seq < before));
        places.extend(archived.map(|listed| (listed.queue_seq, JobLocation::Archived(listed.event, listed.id))));
        places.sort_by_key(|(queue_seq, _)| std::cmp::Reverse(*queue_seq));
        let page: Vec<JobLocation> =
            places.into_iter().skip(query.offset).take(limit).map(|(_, place)| place).collect();
        let event = |place: &JobLocation| match place {
            JobLocation::Archived(event, _) => Some(*event),
            JobLocation::Live(_) => None,
        };
        let fetched = self.desk.archived_by(&state, page.iter().filter_map(event).collect()).await?;
        let mut fetched: BTreeMap<JobId, Arc<Job>> = fetched.into_iter().map(|job| (job.id, job)).collect();
        let jobs = page.into_iter().filter_map(|place| match place {
            JobLocation::Live(job) => Some(job),
            // A member of an older release answers without the filters that it does not know.
            JobLocation::Archived(_, id) => fetched.remove(&id).filter(|job| query.admits(job)),
        });
        let waits = |job: &Job| if view == View::Full { self.why(&state, job) } else { None };
        Ok(jobs.map(|job| Shown { waiting: waits(&job), ..Shown::inline(job).with_usage(&state) }).collect())
    }

    /// Waits until a job has ended, at most `timeout`, and returns the job (compatibility §6.3). In the full view, a
    /// job in doubt is returned at once as well, because its status does not change until an operator decides.
    pub async fn wait(&self, caller: &Caller, id: JobId, view: View, timeout: Duration) -> Result<Shown, Error> {
        let mut over = self.desk.env.clock.sleep(timeout);
        let done = |job: &Job| job.status.is_terminal() || (view == View::Full && job.reason == Reason::InDoubt);
        loop {
            let mut waiter = self.waiters.wait(id);
            let shown = self.job(caller, id, View::Full, Consistency::Linearizable).await?;
            if done(shown.job()) {
                return Ok(shown);
            }
            tokio::select! {
                biased;
                settled = waiter.ended() => if let Some(job) = settled.filter(|job| done(job)) {
                    return self.show(job, View::Full, None).await;
                },
                () = &mut over => return self.job(caller, id, View::Full, Consistency::Linearizable).await,
            }
        }
    }

    /// Like [`Self::wait`], for a job's retry family: waits until a member has ended that is not retried.
    pub async fn wait_family(&self, caller: &Caller, id: JobId, view: View, timeout: Duration) -> Result<Shown, Error> {
        let clock = &self.desk.env.clock;
        let until = clock.monotonic() + timeout;
        let mut shown = self.wait(caller, id, view, timeout).await?;
        while let Some(next) = shown.job().successor {
            match self.wait(caller, next, view, until.saturating_sub(clock.monotonic())).await {
                Ok(member) => shown = member,
                // The job ended so long ago that it was already deleted.
                Err(Error::UnknownJob) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(shown)
    }

    /// Why a job makes no progress: the planner's reason, or the preparation that its worker reports, as far as this
    /// member knows.
    fn why(&self, state: &State, job: &Job) -> Option<(&'static str, String)> {
        let preparing = || {
            let doing = (job.reason == Reason::Running).then(|| self.logs.streams().preparing(job.id, job.attempt))?;
            Some(("preparing", format!("preparing: {}", doing?)))
        };
        waiting(state, job).or_else(preparing)
    }

    /// A job with the data that its object contains in addition to its record.
    pub async fn show(&self, job: Arc<Job>, view: View, state: Option<&State>) -> Result<Shown, Error> {
        let mut shown = Shown::inline(job);
        self.load(&mut shown).await?;
        if let (View::Full, Some(state)) = (view, state) {
            shown.waiting = self.why(state, &shown.job);
            shown = shown.with_usage(state);
            shown.tree = usage_of_tree(state, shown.job.id);
        }
        Ok(shown)
    }

    /// Loads the payloads of a job that are not inline.
    pub async fn load(&self, shown: &mut Shown) -> Result<(), Error> {
        for payload in [Some(&shown.job.input), shown.job.output.as_ref()].into_iter().flatten() {
            if let PayloadBody::Artifact { digest, .. } = &payload.body {
                shown.artifacts.push((*digest, self.desk.artifact(*digest).await?));
            }
        }
        Ok(())
    }
}
