//! Fetches every artifact that the state or the history refers to, on every controller.
//!
//! An artifact is on a majority before anything refers to it; the other controllers fetch it as soon as the reference
//! is applied, and in periodic full passes, because files can be lost with a disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atlas_artifacts::ArtifactError;
use atlas_desk::{Desk, Error};
use atlas_types::{Digest, EventSeq};
use futures::StreamExt;

use crate::WantedArtifacts;

/// The pause between two checks of new references. The member that stores an artifact usually sends it here earlier.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The pause before a full pass is repeated because a member did not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The interval between two full passes.
const PASS_INTERVAL: Duration = Duration::from_secs(3_600);
/// The most artifacts that are fetched at once.
const FETCHES_MAX: usize = 4;
/// The most artifacts that are checked in one call.
const PAGE: usize = 1_024;

/// How complete the data of a controller is (ADR 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completeness {
    /// Its history has every event that some other history still has.
    pub history: bool,
    /// It has every artifact that the state or the history refers to.
    pub artifacts: bool,
    /// The last event at the time of the check.
    pub through: EventSeq,
}

/// The artifacts of a controller, and what it may lack of them.
pub struct Upkeep {
    desk: Arc<Desk>,
    wanted: WantedArtifacts,
}

/// Fetches missing artifacts while the controller runs.
pub async fn fill(upkeep: Arc<Upkeep>) {
    let Upkeep { desk, wanted } = &*upkeep;
    let clock = &desk.env.clock;
    let mut pass_at = clock.monotonic();
    loop {
        clock.sleep(LOOK_INTERVAL).await;
        let noted = wanted.take();
        if desk.peers.group().others.is_empty() {
            continue;
        }
        let missed = wanted.all.swap(false, Ordering::Relaxed);
        let filled = if missed || clock.monotonic() >= pass_at {
            if clock.monotonic() >= pass_at {
                wanted.history.store(0, Ordering::Relaxed);
            }
            pass_at = clock.monotonic() + PASS_INTERVAL;
            upkeep.fill_all().await
        } else {
            upkeep.fetch_all(noted.into_iter().collect()).await.map_err(Error::Artifact)
        };
        match filled {
            Ok(missing) => {
                desk.metrics.artifact_missing.set(i64::try_from(missing.lost + missing.away).unwrap_or(i64::MAX));
                if missing.away > 0 {
                    pass_at = pass_at.min(clock.monotonic() + RETRY_INTERVAL);
                }
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "could not fetch artifacts, trying again");
                pass_at = clock.monotonic() + RETRY_INTERVAL;
            }
        }
    }
}

/// How many artifacts could not be fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Artifacts that no member has.
    pub(crate) lost: usize,
    /// Artifacts that a member without an answer may have.
    pub(crate) away: usize,
}

impl std::ops::AddAssign for Missing {
    fn add_assign(&mut self, more: Self) {
        self.lost += more.lost;
        self.away += more.away;
    }
}

impl Upkeep {
    /// For a controller that has just started and knows of nothing that is missing.
    pub fn new(desk: Arc<Desk>) -> Self {
        Self { desk, wanted: WantedArtifacts::default() }
    }

    /// What may be missing here.
    pub fn wanted(&self) -> &WantedArtifacts {
        &self.wanted
    }

    /// Fetches all missing artifacts that the state or the history refers to.
    async fn fill_all(&self) -> Result<Missing, Error> {
        let digests: Vec<Digest> = self.desk.handle.applied().artifacts().collect();
        let mut missing = Missing::default();
        for page in digests.chunks(PAGE) {
            missing += self.fetch_all(page.to_vec()).await.map_err(Error::Artifact)?;
        }
        let mut after = EventSeq(self.wanted.history.load(Ordering::Relaxed));
        loop {
            let page = self.desk.history.artifacts(after, PAGE).await;
            // Events that fill a gap later come after its beginning, so the pass covers only events before it.
            let front = self.desk.history.gaps().borrow().first().map_or(EventSeq(u64::MAX), |gap| gap.after);
            let mut page = page.map_err(|error| Error::internal("read history", &error))?;
            page.retain(|(event, _)| *event <= front);
            let Some((last, _)) = page.last().copied() else { return Ok(missing) };
            let found = self.fetch_all(page.into_iter().map(|(_, digest)| digest).collect()).await;
            let found = found.map_err(Error::Artifact)?;
            missing += found;
            after = last;
            if missing.away == 0 {
                self.wanted.history.store(last.0, Ordering::Relaxed);
            }
        }
    }

    /// Fetches the missing ones of some artifacts.
    async fn fetch_all(&self, digests: Vec<Digest>) -> Result<Missing, ArtifactError> {
        let lacking = self.desk.artifacts.lacking(digests).await?;
        let fetches = futures::stream::iter(lacking).map(|digest| self.desk.artifacts.fetch(digest));
        let mut fetches = fetches.buffer_unordered(FETCHES_MAX);
        let mut missing = Missing::default();
        while let Some(fetched) = fetches.next().await {
            match fetched {
                Ok(()) => {}
                Err(ArtifactError::Missing(digest)) => {
                    tracing::warn!(%digest, "no member has a referenced artifact");
                    missing.lost += 1;
                }
                Err(ArtifactError::Away { .. }) => missing.away += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(missing)
    }
}

impl Upkeep {
    /// How complete this controller's data is. Missing artifacts are fetched first, so this call may take long.
    pub async fn completeness(&self) -> Completeness {
        let Self { desk, .. } = self;
        let through = desk.handle.applied().event_seq();
        // After a state came as a snapshot, the history learns of it a moment later and then has a gap.
        let known = desk.known(through).await.is_ok();
        let history = known && desk.history.gaps().borrow().is_empty();
        let artifacts = history && self.fill_all().await.is_ok_and(|missing| missing.away == 0);
        Completeness { history, artifacts, through }
    }
}
