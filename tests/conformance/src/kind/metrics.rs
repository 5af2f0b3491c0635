//! The figures per agent, which count changes of the status of jobs.

use atlas_service::{Stats, Transition};
use atlas_types::{AgentName, JobStatus, Micros, Timestamp};
use serde_json::{Map, Value};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text};

/// An arbitrary time, because rows do not depend on the last minute.
const NOW: Timestamp = Timestamp(1);

pub(super) fn judge(row: &Row) -> Judged {
    let stats = Stats::default();
    for change in items(&row.input, "transitions") {
        let agent = AgentName::new(text(change, "agent")).map_err(|error| Stop::system("name an agent", error))?;
        let number = |member| change.get(member).and_then(Value::as_f64).unwrap_or(0.0);
        let execution = Micros((number("execution_ms") * 1e3).round() as u64);
        stats.count([Transition {
            agent: &agent,
            from: status(change, "from")?,
            to: status(change, "to")?,
            // An execution without warm-up time ran in a warm slot.
            warm: number("warmup_ms") <= 0.0,
            retry: number("retry_count") > 0.0,
            execution,
            at: NOW,
        }]);
    }
    compare(&row.expect, &like(&row.expect, stats.all(NOW)), &Captures::new())
}

fn status(change: &Value, member: &str) -> Result<JobStatus, Stop> {
    text(change, member).parse().map_err(|_| Stop::skip(format!("jobs that are \"{}\"", text(change, member))))
}

/// The members of `value` that a row compares, without those that depend on the time.
fn like(expected: &Value, value: Value) -> Value {
    match (expected, value) {
        (Value::Object(expected), Value::Object(mut members)) => {
            let timed = |name: &str| name == "throughput_per_min" && !expected.contains_key(name);
            members.retain(|name, _| !timed(name));
            let shown = members.into_iter().map(|(name, value)| {
                let value = like(expected.get(&name).unwrap_or(&Value::Null), value);
                (name, value)
            });
            Value::Object(shown.collect::<Map<_, _>>())
        }
        (_, value) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_warm_job_and_a_failed_retry_are_counted() {
        let done = json!({"agent": "a", "from": "running", "to": "completed", "warmup_ms": 0.0, "execution_ms": 2.5});
        let failed = json!({"agent": "a", "from": "running", "to": "failed", "warmup_ms": 9.0, "retry_count": 2});
        let expect = json!({"global": {"$contains": {"total_jobs": 2, "error_rate": 0.5, "retry_rate": 0.5, "warm_hit_rate": 1.0}}, "agents": {"a": {"$contains": {"total_retries": 1, "latency_p99_ms": 2.5}}}});
        let row = |expect| Row {
            id: "m".to_owned(),
            kind: "metrics".to_owned(),
            input: json!({"transitions": [done, failed]}),
            expect,
            differs: Vec::new(),
            requirements: Vec::new(),
        };
        assert_eq!(judge(&row(expect)), Ok(()));
        assert!(matches!(judge(&row(json!({"global": {}, "agents": {}}))), Err(Stop::Fail(_))));
    }
}
