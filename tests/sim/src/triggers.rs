//! Triggers: the leader plans and fires them, and each planned time is fired once whatever happens to leaders.

use std::collections::BTreeMap;

use atlas_objects::TriggerStatus;
use atlas_state::State;
use atlas_types::{
    AgentName, Command, EventSeq, Failure, FailureKind, FireTrigger, FiredBy, Job, JobId, Object, Observation,
    ObserveObjects, Origin, Payload, Request, Seq, SubmitJob, Timestamp, Verdict,
};

use crate::Bug;
use crate::coverage::Coverage;
use crate::oracle::Oracle;

/// Time between two firings.
const PERIOD: i64 = 700_000;

/// A planned time of a trigger.
pub(crate) type Tick = (EventSeq, Timestamp);

/// The commands of the leader task at the time `wall`. `fired` is what this leader believes to have fired; only a bug needs it.
pub(crate) fn due(state: &State, wall: Timestamp, bug: Option<Bug>, fired: &mut BTreeMap<Tick, Seq>) -> Vec<Request> {
    let unplanned = state.unplanned_triggers().filter_map(|key| state.object(key));
    let mut commands: Vec<Request> = unplanned.map(|object| plan(object, Timestamp(wall.0 + PERIOD))).collect();
    for (tick, key) in state.next_fires().take_while(|(tick, _)| *tick <= wall) {
        let Some(object) = state.object(key) else { continue };
        let next = Timestamp(wall.0.max(tick.0) + PERIOD);
        let job = job(state, object.uid, *tick);
        if bug == Some(Bug::FiringInTwoCommands) {
            let since = *fired.entry((object.uid, *tick)).or_insert(state.seq());
            if !commands.is_empty() || state.job(job.id).is_some() {
                // The other command is part of a later entry.
            } else if since == state.seq() {
                commands.push(Request { origin: origin(object), command: Command::SubmitJob(job) });
            } else {
                commands.push(plan(object, next));
            }
            continue;
        }
        let command = FireTrigger {
            name: key.name.clone(),
            uid: object.uid,
            revision: object.revision,
            by: FiredBy::Schedule,
            tick: *tick,
            next,
            missed: 0,
            job: Some(Box::new(job)),
        };
        commands.push(Request { origin: origin(object), command: Command::FireTrigger(command) });
    }
    commands
}

fn origin(object: &Object) -> Origin {
    Origin::duty(object.key.namespace.clone())
}

fn plan(object: &Object, next: Timestamp) -> Request {
    let mut status = TriggerStatus::of(object);
    (status.planned_revision, status.armed, status.next_fire) = (object.revision.0, true, next.0);
    let status = status.document().unwrap_or_default().into();
    let observation = Observation { key: object.key.clone(), uid: object.uid, revision: object.revision, status };
    let command = Command::ObserveObjects(ObserveObjects { observations: vec![observation] });
    Request { origin: origin(object), command }
}

/// A job that ends at once. Its id differs when the same time is fired again, as one that is drawn does.
fn job(state: &State, uid: EventSeq, tick: Timestamp) -> SubmitJob {
    let failure = Failure { kind: FailureKind::NoAgent, error: "there is no such agent".into() };
    SubmitJob {
        id: JobId(0x7_0000_0000).derive(uid.0).derive(tick.0.cast_unsigned()).derive(state.seq().0),
        agent: AgentName::new("nobody").unwrap_or_else(|_| unreachable!("the name above is one")),
        verdict: Verdict::Refused { pin: None, failure },
        input: Payload::inline(b"{}"),
        priority: 0,
        metadata: format!("{{\"trigger\":{},\"tick\":{}}}", uid.0, tick.0).into_bytes().into(),
        labels: std::sync::Arc::default(),
        execution_timeout: None,
        spawner: None,
        not_before: None,
        bearer: false,
        budget_nanodollars: None,
    }
}

impl Oracle {
    /// A job was submitted: each time of a trigger has one.
    pub(crate) fn trigger_fired(&mut self, job: &Job, coverage: &mut Coverage) {
        let metadata = String::from_utf8_lossy(&job.metadata);
        if !metadata.starts_with("{\"trigger\"") {
            return;
        }
        coverage.count("triggers fired");
        if !self.ticks.insert(metadata.into_owned()) {
            self.violate(format!("{} was started for a time that had fired: {:?}", job.id, job.metadata));
        }
    }
}
