//! Limits of models, at the leader: which try of a call may begin, and which limit a job waits for.
//!
//! The worker door passes on what workers ask and announce. What the limits are is read from the applied state each time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_desk::{Desk, LeadershipLost};
use atlas_limiter::{Grant, Limiter, Limits, ModelKey, Session, Wait, WaitReason};
use atlas_model::ModelSpec;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{Job, JobId, JobStatus, NodeHealth, Object, ObjectKey, ObjectKind, ObjectName};
use tokio::sync::Notify;

/// How long the leader is asked which limit a job waits for. Whoever shows the job does not wait longer for it.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// The tries of all workers.
#[derive(Debug, Default)]
pub struct ModelLimits {
    limiter: Mutex<Limiter>,
    changed: Notify,
}

impl ModelLimits {
    /// Changes what is known of the tries. What may begin now is looked at afterwards.
    pub fn change<T>(&self, change: impl FnOnce(&mut Limiter) -> T) -> T {
        let changed = change(&mut self.limiter());
        self.look();
        changed
    }

    /// Another try may begin, for example because a limit was changed.
    pub fn look(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change since the last time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tries that begin now, and when to look again if nothing changes before. `room` takes the place of a grant on a stream, if there is one.
pub fn grant_models(
    desk: &Desk,
    of: &ModelLimits,
    room: &mut dyn FnMut(&Session) -> bool,
) -> (Vec<Grant>, Option<Duration>) {
    let state = desk.handle.applied();
    let mut limiter = of.limiter();
    // Also while nobody asks: a node that is lost meanwhile takes along what it used.
    if !limiter.is_informed() {
        let nodes = state.nodes().map(|node| &node.node).filter(|node| node.health == NodeHealth::Ready);
        limiter.look(&nodes.map(|node| (node.id.clone(), node.epoch)).collect::<BTreeSet<_>>());
    }
    limiter.grants(desk.env.clock.monotonic(), &|key| limits(&state, key), room)
}

/// Which limit of a model an attempt of a job waits for, as the leader knows.
pub fn model_wait_here(desk: &Desk, of: &ModelLimits, job: JobId) -> Result<Option<String>, LeadershipLost> {
    if !matches!(*desk.handle.leadership().borrow(), Leadership::Leader { .. }) {
        return Err(LeadershipLost);
    }
    let (state, now) = (desk.handle.applied(), desk.env.clock.monotonic());
    let wait = of.limiter().wait_of(job, now, &|key| limits(&state, key));
    Ok(wait.map(|(key, wait)| sentence(&key, &wait)))
}

/// The same of a job on any member. None also if the leader does not answer soon.
pub async fn model_wait(desk: &Desk, of: &ModelLimits, state: &State, job: &Job) -> Option<String> {
    // Nobody is asked for jobs whose namespace has no limits.
    let kind = ObjectKind::new("model").ok()?;
    let is_limited = |object: &Arc<Object>| limits_of(object).is_some();
    if job.status != JobStatus::Running || !state.objects(&job.namespace, &kind, None).any(is_limited) {
        return None;
    }
    let job = job.id;
    if let Ok(found) = model_wait_here(desk, of, job) {
        return found;
    }
    let leader = desk.peers.group().leader?;
    let answer = tokio::select! {
        answer = desk.peers.model_wait(leader, job) => answer,
        () = desk.env.clock.sleep(ANSWER_MAX) => return None,
    };
    answer.inspect_err(|error| tracing::debug!(%error, "the leader did not say what a job waits for")).ok()?
}

/// The limits of a model as its object says now; none if there is no such object, or no limit.
fn limits(state: &State, key: &ModelKey) -> Option<Limits> {
    let kind = ObjectKind::new("model").ok()?;
    let name = ObjectName::new(&key.model).ok()?;
    limits_of(state.object(&ObjectKey { namespace: key.namespace.clone(), kind, name })?)
}

fn limits_of(object: &Object) -> Option<Limits> {
    let atlas_model::Limits { concurrency, requests_per_minute, tokens_per_minute } =
        ModelSpec::read(&object.spec).ok()?.limits;
    let limits = Limits { concurrency, requests: requests_per_minute, tokens: tokens_per_minute };
    limits.is_some().then_some(limits)
}

fn sentence(key: &ModelKey, wait: &Wait) -> String {
    let next = |next: Duration| format!("next in {} s", next.as_secs_f64().ceil());
    let why = match wait.reason {
        WaitReason::Concurrency { held, limit } => format!("{held} of {limit} calls in flight"),
        WaitReason::Requests { used, limit, next: left } => {
            format!("{used} of {limit} requests in this minute; {}", next(left))
        }
        WaitReason::Tokens { used, limit, wanted, next: left } => {
            format!("{used} of {limit} tokens in this minute, and the next call may use {wanted}; {}", next(left))
        }
        WaitReason::Nodes => "the leader is new, and not all workers have said which calls are in flight".to_owned(),
        WaitReason::Unknown { next: left } => {
            format!("the leader is new, and a lost worker knew what was used in this minute; {}", next(left))
        }
        WaitReason::None => "its turn comes now".to_owned(),
    };
    let before = match wait.before {
        0 => String::new(),
        1 => "; 1 call waits before it".to_owned(),
        before => format!("; {before} calls wait before it"),
    };
    format!("waits for model \"{}\": {why}{before}", key.model)
}

#[cfg(test)]
mod tests {
    use atlas_types::Namespace;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(before: usize, reason: WaitReason, expected: &Expect) {
        let key = ModelKey { namespace: Namespace::default_namespace(), model: "fast".to_owned() };
        expected.assert_eq(&sentence(&key, &Wait { before, reason }));
    }

    #[test]
    fn a_wait_names_the_model_and_the_limit() {
        let next = Duration::from_millis(11_200);
        check(
            0,
            WaitReason::Concurrency { held: 4, limit: 4 },
            &expect![[r#"waits for model "fast": 4 of 4 calls in flight"#]],
        );
        check(
            1,
            WaitReason::Requests { used: 3, limit: 3, next },
            &expect![[
                r#"waits for model "fast": 3 of 3 requests in this minute; next in 12 s; 1 call waits before it"#
            ]],
        );
        check(
            2,
            WaitReason::Tokens { used: 90, limit: 100, wanted: 30, next },
            &expect![[
                r#"waits for model "fast": 90 of 100 tokens in this minute, and the next call may use 30; next in 12 s; 2 calls wait before it"#
            ]],
        );
        check(
            0,
            WaitReason::Nodes,
            &expect![[
                r#"waits for model "fast": the leader is new, and not all workers have said which calls are in flight"#
            ]],
        );
        check(
            0,
            WaitReason::Unknown { next },
            &expect![[
                r#"waits for model "fast": the leader is new, and a lost worker knew what was used in this minute; next in 12 s"#
            ]],
        );
    }
}
