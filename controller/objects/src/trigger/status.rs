//! What the cluster says about a trigger: when it fires next, and how it fired.

use std::sync::Arc;

use atlas_types::{EventSeq, FiredBy, Object, STATUS_BYTES_MAX, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::kind::{Refusal, read};

/// Most firings that a status lists.
pub const FIRINGS_MAX: usize = 10;
/// Most bytes of the reason for which a trigger did not fire.
const ERROR_BYTES_MAX: usize = 512;

/// One firing of a trigger. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firing {
    /// When it fired.
    pub at: i64,
    /// The time for which it fired; that of the call for one that was called.
    pub tick: i64,
    /// What made it fire: the name of a [`FiredBy`].
    pub by: String,
    /// The job that it started; none if the firing was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// The status of a trigger. Times are microseconds since 1970, 0 stands for never.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerStatus {
    /// The revision of the spec for which `next_fire` was computed; 0 if it never was.
    pub planned_revision: u64,
    /// Whether it fires at `next_fire`. One that is disabled, or has fired for the only time, does not.
    pub armed: bool,
    /// The time for which it fires next, without its delay. One that is paused has the time that was next when it was paused, or none.
    pub next_fire: i64,
    /// What `next_fire` is a time of: the schedule as the leader writes it; empty if nothing was planned.
    pub schedule: String,
    pub last_fired: i64,
    pub fire_count: u64,
    /// The job of the last firing; empty if there was none.
    pub last_job_id: String,
    /// What a one-shot trigger has fired for ([`crate::TriggerSpec::shot`]); empty if it has not.
    pub spent: String,
    /// Times that passed without a firing: the cluster was away, or the overlap rule skipped them.
    pub missed: u64,
    /// Why it did not fire when it was due; empty if it did.
    pub error: String,
    /// The last firings, the newest first.
    pub firings: Vec<Firing>,
}

impl TriggerStatus {
    /// The status of a trigger. One that cannot be read counts as none.
    pub fn of(object: &Object) -> Self {
        if object.status.is_empty() {
            return Self::default();
        }
        read(&object.status).unwrap_or_default()
    }

    /// The status after a leader task's note, which keeps the firings that were applied since. A note that cannot be read replaces what is
    /// there.
    pub fn with_note(found: &Object, note: &Arc<[u8]>) -> Arc<[u8]> {
        let noted = read::<Self>(note).and_then(|note| Self::of(found).noted(note).document());
        noted.map_or_else(|_| Arc::clone(note), Into::into)
    }

    /// Its canonical bytes.
    pub fn document(&self) -> Result<Vec<u8>, Refusal> {
        let refused = |text: String| Refusal::new("status", text);
        let value: Value = serde_json::to_value(self).map_err(|error| refused(error.to_string()))?;
        let bytes = canonical(&value).map_err(|error| refused(error.to_string()))?;
        if bytes.len() > STATUS_BYTES_MAX { Err(refused("is too large".to_owned())) } else { Ok(bytes) }
    }

    /// When it fires next, [`Timestamp::NOT_YET`] for never, if the plan is of this revision of the spec; none if it has to be planned.
    pub fn planned(&self, revision: EventSeq) -> Option<Timestamp> {
        let next = if self.armed { Timestamp(self.next_fire) } else { Timestamp::NOT_YET };
        (self.planned_revision == revision.0).then_some(next)
    }

    /// Notes a firing, or one that was skipped.
    pub fn fired(&mut self, at: Timestamp, tick: Timestamp, by: FiredBy, started: Option<String>) {
        let job = started;
        match &job {
            Some(job) => {
                self.last_fired = at.0;
                self.fire_count = self.fire_count.saturating_add(1);
                self.last_job_id.clone_from(job);
            }
            None => self.missed = self.missed.saturating_add(1),
        }
        self.firings.insert(0, Firing { at: at.0, tick: tick.0, by: by.as_str().to_owned(), job });
        self.firings.truncate(FIRINGS_MAX);
        self.error.clear();
    }

    /// What a leader task noted about a trigger whose status is now this one. Its note was made from an older status: firings that were applied
    /// since stay, and so does a plan of the same revision, whose time may have fired.
    #[must_use]
    fn noted(self, note: Self) -> Self {
        if note.planned_revision == self.planned_revision {
            return Self { error: note.error, ..self };
        }
        let Self { planned_revision, armed, next_fire, schedule, error, .. } = note;
        Self { planned_revision, armed, next_fire, schedule, error, ..self }
    }

    /// Notes why it does not fire.
    pub fn failed(&mut self, why: &str) {
        let end = (0..=ERROR_BYTES_MAX.min(why.len())).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0);
        self.error = why[..end].to_owned();
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn firings_are_bounded_and_the_status_fits() {
        let mut status = TriggerStatus { planned_revision: u64::MAX, next_fire: i64::MAX, ..Default::default() };
        for number in 0..20 {
            let by = if number % 2 == 0 { FiredBy::Schedule } else { FiredBy::Backfill };
            status.fired(Timestamp(i64::MAX), Timestamp(i64::MAX - 1), by, Some(format!("job-{number:016x}")));
        }
        status.fired(Timestamp(7), Timestamp(6), FiredBy::Schedule, None);
        status.failed(&"\u{1}é".repeat(400));
        assert_eq!((status.fire_count, status.missed, status.firings.len()), (20, 1, FIRINGS_MAX));
        assert!(status.document().expect("it fits").len() < STATUS_BYTES_MAX);
        assert!(status.error.len() <= ERROR_BYTES_MAX);
    }

    #[test]
    fn a_status_is_written_and_read() {
        let mut status = TriggerStatus { planned_revision: 3, armed: true, next_fire: 9, ..Default::default() };
        status.fired(Timestamp(2_000_000), Timestamp(1_000_000), FiredBy::Webhook, Some(format!("job-{:016x}", 1)));
        let bytes = status.document().expect("a document");
        expect![[r#"{"armed":true,"error":"","fire_count":1,"firings":[{"at":2000000,"by":"webhook","job":"job-0000000000000001","tick":1000000}],"last_fired":2000000,"last_job_id":"job-0000000000000001","missed":0,"next_fire":9,"planned_revision":3,"schedule":"","spent":""}"#]]
            .assert_eq(std::str::from_utf8(&bytes).expect("text"));
        assert_eq!(read::<TriggerStatus>(&bytes).as_ref(), Ok(&status));
        assert_eq!(status.planned(EventSeq(3)), Some(Timestamp(9)));
        assert_eq!(status.planned(EventSeq(4)), None);
        status.armed = false;
        assert_eq!(status.planned(EventSeq(3)), Some(Timestamp::NOT_YET));
    }
}
