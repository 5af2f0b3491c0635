//! Ended jobs that have left the state, and old events: read from this controller's history, or from another member
//! while the history has a gap or does not catch up.
//!
//! A job leaves the state when the histories of a majority have it. This controller may not be part of that majority:
//! it waits until its own history has caught up with the pruned state, and asks another member for events that it
//! missed.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_artifacts::{Query, QueryResult};
use atlas_history::{Gap, HistoryError, JobFilter, JobKey, Part, StoredEvent};
use atlas_state::State;
use atlas_types::{EventSeq, Job, JobId};

use crate::{Desk, Error};

/// The time limit for this controller's own history to catch up. It is usually behind by a fraction of a second.
const OWN_MAX: Duration = Duration::from_secs(5);
/// The approximate size of a history part in one answer to a peer.
const PART_BYTES_MAX: usize = 1 << 20;
/// The most jobs in one answer to a peer, so that jobs with the largest payloads fit into a frame.
const JOBS_MAX: usize = 32;

/// Reads for this controller.
impl Desk {
    /// A job that is not in `state`.
    pub async fn archived(&self, state: &State, id: JobId) -> Result<Option<Arc<Job>>, Error> {
        let known = self.is_known(state.pruned_through());
        if let Some(job) = self.history.job(id).await.map_err(|error| reading(&error))? {
            return Ok(Some(job));
        }
        let has_all = self.has_all(state).await;
        if !known
            && has_all
            && let Some(job) = self.history.job(id).await.map_err(|error| reading(&error))?
        {
            return Ok(Some(job));
        }
        if has_all {
            return Ok(None);
        }
        Ok(self.ask(state, Query::Job(id)).await?.jobs.pop())
    }

    /// At most `limit` ended jobs with ids in a range, by id.
    pub(crate) async fn archived_between(
        &self,
        state: &State,
        (first, last): (JobId, JobId),
        limit: usize,
    ) -> Result<Vec<JobId>, Error> {
        if self.has_all(state).await {
            return self.history.jobs_between(first, last, limit).await.map_err(|error| reading(&error));
        }
        Ok(self.ask(state, Query::Between { first, last, limit }).await?.ids)
    }

    /// Ended jobs, newest submission first. Returns their keys.
    pub async fn archived_list(&self, state: &State, filter: JobFilter) -> Result<Vec<JobKey>, Error> {
        if self.has_all(state).await {
            return self.history.list(filter).await.map_err(|error| reading(&error));
        }
        Ok(self.ask(state, Query::List(filter)).await?.listed)
    }

    /// The jobs that these events ended, in this order.
    pub async fn archived_by(&self, state: &State, events: Vec<EventSeq>) -> Result<Vec<Arc<Job>>, Error> {
        // Events of a list that another member answered may not be here yet.
        let last = events.iter().max().copied().unwrap_or_default();
        if self.has(last).await {
            return self.history.ended_by(events).await.map_err(|error| reading(&error));
        }
        let (mut left, mut jobs) = (&events[..], Vec::with_capacity(events.len()));
        while !left.is_empty() {
            let found = self.ask(state, Query::EndedBy(left.to_vec())).await?;
            left = left.get(found.answered.max(1)..).unwrap_or_default();
            jobs.extend(found.jobs);
        }
        Ok(jobs)
    }

    /// Events after `after`, in order, at most `limit`.
    pub async fn archived_events(&self, after: EventSeq, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        match self.history.events(after, limit).await {
            Err(HistoryError::Gone { .. }) if !self.is_whole() => {}
            found => return found.map_err(told),
        }
        let gap = Gap { after, through: EventSeq(u64::MAX) };
        for member in self.peers.group().others_by_use() {
            let Ok(part) = self.peers.history(member, gap).await else { continue };
            // A member without these events has a gap itself, or has not caught up.
            if part.reached > after {
                let mut events = part.events(after).map_err(told)?;
                events.truncate(limit);
                return Ok(events);
            }
        }
        Err(Error::HistoryBehind)
    }

    /// Whether this history has all jobs that have left the state.
    async fn has_all(&self, state: &State) -> bool {
        self.has(state.pruned_through()).await
    }

    /// Whether this history has all events up to this one, soon at the latest. One on a full disk does not: others are asked, and nobody
    /// waits for it again until it moves.
    async fn has(&self, through: EventSeq) -> bool {
        let synced = *self.history.synced().borrow();
        if synced < through && *self.stalled_history() == Some(synced) {
            return false;
        }
        if self.known(through).await.is_err() {
            *self.stalled_history() = Some(*self.history.synced().borrow());
            return false;
        }
        self.is_whole()
    }

    fn stalled_history(&self) -> MutexGuard<'_, Option<EventSeq>> {
        self.standstill.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if this history has no gap.
    fn is_whole(&self) -> bool {
        self.history.gaps().borrow().is_empty()
    }

    fn is_known(&self, through: EventSeq) -> bool {
        *self.history.synced().borrow() >= through
    }

    /// Waits until this controller's history has everything up to an event.
    pub async fn known(&self, through: EventSeq) -> Result<(), Error> {
        let mut synced = self.history.synced();
        tokio::select! {
            biased;
            reached = synced.wait_for(|synced| *synced >= through) => {
                reached.map(|_| ()).map_err(|_| Error::HistoryBehind)
            }
            () = self.env.clock.sleep(OWN_MAX) => Err(Error::HistoryBehind),
        }
    }

    /// Asks the other members in turn until one answers.
    async fn ask(&self, state: &State, query: Query) -> Result<QueryResult, Error> {
        for member in self.peers.group().others_by_use() {
            match self.peers.query(member, state.pruned_through(), query.clone()).await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "could not read a member's history")
                }
            }
        }
        Err(Error::HistoryBehind)
    }
}

/// Answers for peers.
impl Desk {
    /// The part that this controller's history can give for a peer's gap.
    pub async fn history_part(&self, gap: Gap) -> Result<Part, Error> {
        self.history.part(gap, PART_BYTES_MAX).await.map_err(|error| reading(&error))
    }

    /// Answers a peer's question about ended jobs. [`Error::HistoryBehind`] if this history has a gap as well.
    pub async fn history_query(&self, through: EventSeq, query: Query) -> Result<QueryResult, Error> {
        self.known(through).await?;
        if !self.is_whole() {
            return Err(Error::HistoryBehind);
        }
        let history = &self.history;
        let mut found = QueryResult::default();
        let answered = match query {
            Query::Job(id) => history.job(id).await.map(|job| found.jobs.extend(job)),
            Query::Between { first, last, limit } => {
                history.jobs_between(first, last, limit).await.map(|ids| found.ids = ids)
            }
            Query::List(filter) => history.list(filter).await.map(|listed| found.listed = listed),
            Query::EndedBy(mut events) => {
                events.truncate(JOBS_MAX);
                found.answered = events.len();
                history.ended_by(events).await.map(|jobs| found.jobs = jobs)
            }
        };
        answered.map(|()| found).map_err(|error| reading(&error))
    }
}

fn reading(error: &HistoryError) -> Error {
    Error::internal("read history", error)
}

fn told(error: HistoryError) -> Error {
    match error {
        HistoryError::Gone { earliest } => Error::EventsGone { earliest },
        error => Error::internal("read events from history", &error),
    }
}
