//! When a trigger fires next, and which triggers are due (compatibility §14.3 and §14.4).

use serde_json::{Map, Value};

use crate::{Definition, Kind, Target};

/// What changes when a trigger fires. Times are seconds since 1970, 0 stands for never.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    pub last_fired: f64,
    pub next_fire: f64,
    pub fire_count: u64,
    /// The job of the last firing, or empty.
    pub last_job_id: String,
}

impl Definition {
    /// The next time, for a trigger that is created, changed or enabled at `now` and fired last at `last_fired`. It may
    /// have passed: then the trigger is due at once. 0 for a webhook.
    pub fn next_fire(&self, last_fired: f64, now: f64) -> f64 {
        let last = if last_fired > 0.0 { last_fired } else { now };
        match &self.kind {
            #[expect(clippy::cast_precision_loss, reason = "the times of the next decades are far below 2^53")]
            Kind::Cron { cron } => {
                let next = self.rules.time_zone.as_ref().map_or_else(|| cron.next(last), |zone| zone.next(cron, last));
                next.map_or(0.0, |next| next as f64)
            }
            Kind::Interval { seconds } => last + seconds,
            Kind::OneShot { at } => *at,
            Kind::Webhook => 0.0,
        }
    }
}

/// What a firing starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    pub target: Target,
    pub input: Map<String, Value>,
    pub priority: i64,
    /// The metadata of the trigger, and which trigger it was.
    pub metadata: Map<String, Value>,
}

impl Definition {
    /// What a firing of the trigger `id` starts.
    pub fn submission(&self, id: &str) -> Submission {
        let mut metadata = self.metadata.clone();
        metadata.insert("_trigger_id".into(), id.into());
        metadata.insert("_trigger_type".into(), self.kind.name().into());
        Submission { target: self.target.clone(), input: self.input.clone(), priority: self.priority, metadata }
    }
}

/// The triggers that fire at `now`, the earliest first.
pub fn due<'a, K>(triggers: impl IntoIterator<Item = (K, &'a Definition, &'a State)>, now: f64) -> Vec<K> {
    let mut due: Vec<(f64, K)> = triggers
        .into_iter()
        .filter(|(_, definition, state)| {
            let is_timed = !matches!(definition.kind, Kind::Webhook);
            definition.enabled && is_timed && state.next_fire > 0.0 && state.next_fire <= now
        })
        .map(|(key, _, state)| (state.next_fire, key))
        .collect();
    // The order of triggers that are due at the same time stays.
    due.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    due.into_iter().map(|(_, key)| key).collect()
}

/// The trigger after it fired at `now` and started `job`. Times that were missed count as one.
pub fn fired(definition: &mut Definition, state: &mut State, job: String, now: f64) {
    *state = State { last_fired: now, next_fire: 0.0, fire_count: state.fire_count + 1, last_job_id: job };
    match definition.kind {
        Kind::OneShot { .. } => definition.enabled = false,
        _ => state.next_fire = definition.next_fire(now, now),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trigger(members: Value) -> Definition {
        let mut members = members;
        members["agent_name"] = json!("echo");
        Definition::parse(&members).expect("a definition")
    }

    fn at(next_fire: f64) -> State {
        State { next_fire, ..State::default() }
    }

    #[test]
    fn the_next_time_depends_on_the_last() {
        let interval = trigger(json!({"trigger_type": "interval", "interval_seconds": 10}));
        assert!((interval.next_fire(0.0, 100.0) - 110.0).abs() < 1e-9);
        assert!((interval.next_fire(40.0, 100.0) - 50.0).abs() < 1e-9, "may have passed");
        let hourly = trigger(json!({"trigger_type": "cron", "cron_expr": "0 * * * *"}));
        assert!((hourly.next_fire(0.0, 7_300.0) - 10_800.0).abs() < 1e-9);
        assert!((hourly.next_fire(3_600.0, 20_000.0) - 7_200.0).abs() < 1e-9);
        let once = trigger(json!({"trigger_type": "one_shot", "fire_at": 5}));
        assert!((once.next_fire(0.0, 100.0) - 5.0).abs() < 1e-9);
        assert!(trigger(json!({"trigger_type": "webhook"})).next_fire(9.0, 9.0).abs() < 1e-9);
    }

    #[test]
    fn due_are_enabled_triggers_whose_time_has_come() {
        let interval = trigger(json!({"trigger_type": "interval", "interval_seconds": 10}));
        let disabled = Definition { enabled: false, ..interval.clone() };
        let webhook = trigger(json!({"trigger_type": "webhook"}));
        let states = [at(30.0), at(20.0), at(31.0), at(0.0), at(20.0), at(20.0)];
        let triggers = [&interval, &interval, &interval, &interval, &disabled, &webhook];
        let all =
            triggers.into_iter().zip(&states).enumerate().map(|(key, (definition, state))| (key, definition, state));
        assert_eq!(due(all, 30.0), [1, 0]);
    }

    #[test]
    fn missed_times_are_one_firing() {
        let mut interval = trigger(json!({"trigger_type": "interval", "interval_seconds": 10}));
        let mut state = at(30.0);
        fired(&mut interval, &mut state, "job-1".into(), 95.0);
        assert_eq!(state, State { last_fired: 95.0, next_fire: 105.0, fire_count: 1, last_job_id: "job-1".into() });

        let mut once = trigger(json!({"trigger_type": "one_shot", "fire_at": 5}));
        fired(&mut once, &mut state, "job-2".into(), 100.0);
        assert!(!once.enabled && due([((), &once, &state)], 1e12).is_empty());
    }
}
