//! Approvals that nobody gave in time.
//!
//! No door records them, because the cluster ends them by itself. The leader records each once it is applied, with the time, the rule and the
//! outcome that the state has. A leader that dies at that moment has no record, so the next one begins with those of the time before: a record
//! may be there twice, of two controllers or of one that was started again.

use std::sync::Arc;
use std::time::Duration;

use atlas_api::catalogue::APPROVAL_LATE;
use atlas_audit::{Decision, Record};
use atlas_desk::Desk;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{Door, Event, EventRecord, Principal, Question, QuestionEnd, Timestamp};
use tokio::sync::broadcast::error::RecvError;

/// The verb of their records.
const VERB: &str = "expireQuestion";
/// How far a new leader looks back.
const BACK: Duration = Duration::from_secs(60);

/// Records them as long as this member leads.
pub async fn record_unanswered(desk: Arc<Desk>) {
    if !desk.audit.is_on() {
        return std::future::pending().await;
    }
    let clock = &desk.env.clock;
    // A controller that was started again may have ended some right before it stopped, however long that is ago.
    let (begun, state_then) = (clock.monotonic(), desk.handle.applied().at());
    let mut leadership = desk.handle.leadership();
    while leadership.wait_for(leads).await.is_ok() {
        let is_new = clock.monotonic().saturating_sub(begun) < BACK;
        let since = if is_new { state_then } else { desk.handle.applied().at() };
        tokio::select! {
            biased;
            ended = leadership.wait_for(|now| !leads(now)) => if ended.is_err() {
                return;
            },
            () = lead(&desk, before(since)) => return,
        }
    }
}

fn leads(leadership: &Leadership) -> bool {
    matches!(leadership, Leadership::Leader { .. })
}

fn before(time: Timestamp) -> Timestamp {
    Timestamp(time.0.saturating_sub(i64::try_from(BACK.as_micros()).unwrap_or(i64::MAX)))
}

/// Records what ended since a time, and then what ends. Completes when the log ends.
async fn lead(desk: &Desk, mut since: Timestamp) {
    let is_one = |event: &EventRecord| matches!(&event.event, Event::QuestionEnded { question } if is_late(question));
    let mut batches = desk.handle.subscribe_to(move |batch| batch.events.iter().any(is_one));
    let mut looks_back = true;
    loop {
        if std::mem::take(&mut looks_back) {
            let state = desk.handle.applied();
            let records = state.all_questions().filter(|question| question.ended_at >= since);
            desk.record_unanswered(records.filter_map(|question| record(&state, question)).collect()).await;
        }
        match batches.recv().await {
            Ok(batch) => {
                let ended = batch.events.iter().filter_map(|event| match &event.event {
                    Event::QuestionEnded { question } => record(&batch.state, question),
                    _ => None,
                });
                desk.record_unanswered(ended.collect()).await;
                since = batch.state.at();
            }
            Err(RecvError::Lagged(_)) => looks_back = true,
            Err(RecvError::Closed) => return,
        }
    }
}

fn is_late(question: &Question) -> bool {
    question.rule.is_some() && matches!(question.end, Some(QuestionEnd::Expired))
}

/// The record of an approval that nobody gave; none if the question is another one.
fn record(state: &State, question: &Question) -> Option<Record> {
    let rule = question.rule.as_ref().filter(|_| is_late(question))?;
    let submitter = state.job(question.job).map(|job| job.principal.to_string()).unwrap_or_default();
    Some(Record {
        at_ms: u64::try_from(question.ended_at.0 / 1_000).unwrap_or(0),
        principal: Principal::cluster().to_string(),
        on_behalf_of: String::new(),
        namespace: question.namespace.to_string(),
        door: Door::Duty.as_str().to_owned(),
        verb: VERB.to_owned(),
        // The name of a rule may have spaces, so it is last.
        object: format!(
            "question/{} job/{} submitter/{submitter} policy/{} rule/{}",
            question.id, question.job, rule.policy, rule.rule
        ),
        decision: Decision::Deny,
        code: APPROVAL_LATE.code.to_owned(),
        request_id: String::new(),
        count: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_leader_looks_back_a_minute() {
        assert_eq!(before(Timestamp(61_000_000)), Timestamp(1_000_000));
        assert_eq!(before(Timestamp(i64::MIN)), Timestamp(i64::MIN));
    }
}
