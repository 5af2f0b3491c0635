//! Looking ahead and back: the next times of a trigger, what a firing would start, and times that are made up for.

use atlas_artifacts::hash;
use atlas_triggers::{Kind, Target, Zone};
use atlas_types::{FiredBy, RequestId, Timestamp, Verdict};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::firing::{Wanted, chain};
use super::{Trigger, not_found, seconds, timestamp, trigger_key};
use crate::Submission;
use crate::{Caller, Consistency, Error, Service};

/// Most times of one answer, and most jobs of one backfill.
const TIMES_MAX: usize = 100;

/// Times that are made up for.
#[derive(Debug, Clone, Copy)]
pub struct Backfill {
    /// From this time on, seconds since 1970.
    pub from: f64,
    /// Up to this time.
    pub to: f64,
    /// Only lists the times.
    pub dry_run: bool,
}

/// A time, and the same as text in the time zone of the trigger.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalTime {
    /// Seconds since 1970.
    pub time: f64,
    pub local: String,
}

/// One time of a backfill.
#[derive(Debug, Clone)]
pub struct Backfilled {
    pub at: LocalTime,
    /// None in a dry run.
    pub job: Option<String>,
}

impl Service {
    /// The next times at which a trigger fires, seconds since 1970. None of a disabled one, and of one that is called.
    pub async fn next_firings(&self, caller: &Caller, id: &str, count: usize) -> Result<Vec<LocalTime>, Error> {
        let trigger = self.found(caller, id, Consistency::Linearizable).await?;
        let status = trigger.planned();
        if !status.armed || status.next_fire <= 0 {
            return Ok(Vec::new());
        }
        let zone = zone_of(&trigger);
        let mut ticks = vec![seconds(Timestamp(status.next_fire))];
        if !matches!(trigger.definition.kind, Kind::OneShot { .. }) {
            let count = count.clamp(1, TIMES_MAX);
            while ticks.len() < count {
                let last = ticks.last().copied().unwrap_or_default();
                let next = trigger.definition.following(last);
                if next <= last {
                    break;
                }
                ticks.push(next);
            }
        }
        let shown = |tick: f64| {
            let time = trigger.fires_at(tick);
            LocalTime { local: zone.local(time), time }
        };
        Ok(ticks.into_iter().map(shown).collect())
    }

    /// What a call with this body would start. Nothing is started, and no signature is needed.
    pub async fn test_trigger(&self, caller: &Caller, id: &str, body: &Value) -> Result<Value, Error> {
        let trigger = self.found(caller, id, Consistency::Linearizable).await?;
        let empty = Map::new();
        let members = match body {
            Value::Null => &empty,
            Value::Object(members) => members,
            _ => return Err(Error::Malformed("'body' must be a JSON object".to_owned())),
        };
        let more = trigger.definition.rules.input_of(members);
        let more = more.map_err(|path| Error::Malformed(format!("the call has no '{path}'")))?;
        let mut start = trigger.definition.submission(trigger.id());
        start.input.extend(more);
        let state = self.shared.read().await?;
        let input = Value::Object(start.input);
        let (agent, chain, version, error) = match start.target {
            Target::Chain(name) => {
                let error = chain(caller, &name, &state).err().map(|error| error.to_string());
                (String::new(), name, None, error.unwrap_or_default())
            }
            Target::Agent(name) => {
                let submission = Submission {
                    priority: start.priority,
                    ..Submission::new(name.parse()?, Bytes::from(input.to_string()))
                };
                let (version, error) = match self.shared.jobs.judge(caller, &submission, &state).await {
                    Ok(Verdict::Accepted(pin) | Verdict::Asked { pin, .. }) => (Some(pin.version), String::new()),
                    Ok(Verdict::Refused { pin, failure }) => (pin.map(|pin| pin.version), failure.error.to_string()),
                    Err(error @ Error::PolicyDenied { .. }) => (None, error.to_string()),
                    Err(error) => return Err(error),
                };
                (name, String::new(), version, error)
            }
        };
        let signed = trigger.spec.webhook_secret.is_some() || trigger.definition.rules.hmac.is_some();
        Ok(json!({
            "agent_name": agent,
            "chain_name": chain,
            "agent_version": version.map(|version| version.to_string()),
            "input_data": input,
            "priority": start.priority,
            "metadata": start.metadata,
            "accepted": error.is_empty(),
            "error": error,
            "signed": signed,
            "signature": trigger.definition.rules.scheme.header(),
            "enabled": trigger.is_enabled(),
        }))
    }

    /// Fires a trigger for the times between two that have passed, each once. A repeat within the time for which requests are
    /// remembered starts no second job.
    pub async fn backfill_trigger(
        &self,
        caller: &Caller,
        id: &str,
        wanted: Backfill,
    ) -> Result<Vec<Backfilled>, Error> {
        let trigger = self.found(caller, id, Consistency::Linearizable).await?;
        let times = times_between(&trigger, wanted, seconds(self.shared.env.clock.wall()))?;
        let zone = zone_of(&trigger);
        let mut done = Vec::with_capacity(times.len());
        for time in times {
            let tick = timestamp(time);
            let job = if wanted.dry_run {
                None
            } else {
                let name = format!("backfill-{}-{}", trigger.object.uid, tick.0);
                let known_by = Some((RequestId::new(&name)?, hash(name.as_bytes())));
                let fired = Wanted { by: FiredBy::Backfill, tick: Some(tick), input: &Map::new(), known_by };
                Some(self.fire_wanted(caller, id, &fired, |_| Ok(()), not_found).await?)
            };
            done.push(Backfilled { at: LocalTime { local: zone.local(time), time }, job });
        }
        Ok(done)
    }

    async fn found(&self, caller: &Caller, id: &str, consistency: Consistency) -> Result<Trigger, Error> {
        let state = self.state(consistency).await?;
        let key = trigger_key(&caller.namespace, id).map_err(|_| not_found())?;
        Trigger::read(state.object(&key).ok_or_else(not_found)?)
    }
}

fn zone_of(trigger: &Trigger) -> Zone {
    trigger.definition.rules.time_zone.clone().unwrap_or_else(Zone::utc)
}

/// The times of a trigger between two, ascending.
fn times_between(trigger: &Trigger, wanted: Backfill, now: f64) -> Result<Vec<f64>, Error> {
    if !matches!(trigger.definition.kind, Kind::Cron { .. } | Kind::Interval { .. }) {
        let kind = trigger.definition.kind.name();
        return Err(Error::Malformed(format!("a trigger of the type {kind} has no times to make up for")));
    }
    let to = wanted.to.min(now);
    if !wanted.from.is_finite() || !to.is_finite() || wanted.from > to || wanted.from < 0.0 {
        return Err(Error::Malformed("'from' must be before 'to', and both in the past".to_owned()));
    }
    let mut times = Vec::new();
    // The first time may be `from` itself; an interval counts from there.
    let mut last = match trigger.definition.kind {
        Kind::Cron { .. } => wanted.from - 1.0,
        _ => wanted.from,
    };
    loop {
        let next = trigger.definition.following(last.max(1e-6));
        if next <= last || next > to {
            return Ok(times);
        }
        if times.len() == TIMES_MAX {
            let text =
                format!("there are more than {TIMES_MAX} times between 'from' and 'to'; make up for them in parts");
            return Err(Error::Malformed(text));
        }
        times.push(next);
        last = next;
    }
}
