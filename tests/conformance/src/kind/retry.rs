//! Retries: the replicated state gets a job with the row's retry count; the job ends, and its retry is compared.

use std::sync::Arc;

use atlas_allocation::Free;
use atlas_types::{
    AgentKind, AgentName, AgentPin, BootId, CancelJob, ClusterTime, Command, CompleteJob, Digest, FailJob, Failure,
    FailureKind, GrantLease, Inventory, Job, JobId, Micros, Namespace, NodeId, Origin, Payload, PayloadBody, Reason,
    RegisterAgent, RegisterNode, Request, RunSpec, SubmitJob, Timestamp, Usage, Verdict, Version,
};
use serde_json::{Map, Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, text, unknown};

const AGENT: &str = "a";
const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };
const DIGEST: Digest = Digest([1; 32]);
/// The job of the row.
const JOB: JobId = JobId(1);
/// The original job of the retries, which exists only in the history.
const ORIGINAL: JobId = JobId(2);
const USAGE: Usage = Usage { warmup: Micros(0), execution: Micros(0), warm: false, idle: 0 };

pub(super) fn judge(row: &Row) -> Judged {
    if let Some(member) = unknown(&row.expect, &["retried", "delay", "job"]) {
        return Err(Stop::skip(format!("retries of which \"{member}\" is expected")));
    }
    let given = &row.input["job"];
    let registered = row.input["registered"] == true;
    let mut world = World::new(&row.input["retry"], registered)?;
    world.submit(given, registered)?;
    // A job of an unregistered agent has already failed at its submission.
    if registered {
        let retries = given["retry_count"].as_u64().unwrap_or(0);
        world.count(u32::try_from(retries).map_err(|error| Stop::system("count so many retries", error))?)?;
        world.change(row.text("new_status"))?;
    }
    let answer = match world.job(JOB)?.successor {
        None => json!({"retried": false}),
        Some(next) => world.shown(world.job(next)?, given, &row.expect)?,
    };
    compare(&row.expect, &answer, &Captures::new())
}

/// A state with one node and, if the row says so, one agent.
struct World {
    state: atlas_state::State,
    clock: ClusterTime,
    node: NodeId,
}

impl World {
    fn new(retry: &Value, registered: bool) -> Result<Self, Stop> {
        let node = NodeId::new("local").map_err(|error| Stop::system("name a node", error))?;
        let mut world = Self { state: atlas_state::State::new(1), clock: ClusterTime(0), node: node.clone() };
        let inventory = Inventory { places: 1, ..Inventory::default() };
        world.apply(Command::RegisterNode(RegisterNode { node, boot_id: BootId(1), inventory }))?;
        if registered {
            world.apply(Command::RegisterAgent(RegisterAgent {
                name: agent()?,
                version: VERSION,
                digest: DIGEST,
                package_bytes: 1,
                kind: AgentKind::Agent,
                capabilities: Vec::new(),
                contract: Payload::inline(b"{}"),
                spec: Arc::new(spec(retry)?),
                labels: Default::default(),
                immutable: false,
            }))?;
        }
        Ok(world)
    }

    fn submit(&mut self, given: &Value, registered: bool) -> Result<(), Stop> {
        let failure = Failure { kind: FailureKind::NoAgent, error: "".into() };
        let pin = AgentPin { version: VERSION, digest: DIGEST };
        let verdict = if registered { Verdict::Accepted(pin) } else { Verdict::Refused { pin: None, failure } };
        let input = Payload::inline(given["input_data"].to_string().as_bytes());
        let priority = given["priority"].as_i64().unwrap_or(0);
        self.apply(Command::SubmitJob(SubmitJob { priority, ..SubmitJob::new(JOB, agent()?, verdict, input) }))
    }

    /// Gives the job this retry count. The state does not allow more retries than the contract permits, so a higher
    /// count is replaced by the maximum.
    fn count(&mut self, retries: u32) -> Result<(), Stop> {
        let permitted = self.job(JOB)?.spec.as_ref().map_or(0, |spec| spec.retry.max_retries);
        let retries = retries.min(permitted);
        if retries == 0 {
            return Ok(());
        }
        let mut image = self.state.to_image();
        for job in image.jobs.iter_mut().map(Arc::make_mut) {
            (job.retry_count, job.original) = (retries, Some(ORIGINAL));
        }
        let state = atlas_state::State::from_image(image);
        self.state = state.map_err(|error| Stop::system("count the job's retries", error))?;
        Ok(())
    }

    /// Changes the status of the waiting job; every change except a cancel needs a lease first.
    fn change(&mut self, status: &str) -> Result<(), Stop> {
        let job = JOB;
        match status {
            "pending" => return Ok(()),
            "cancelled" => return self.apply(Command::CancelJob(CancelJob { job, running: false })),
            _ => {}
        }
        let node = self.node.clone();
        let found = self.state.node(&node).ok_or_else(|| Stop::fail("the node is gone"))?;
        let (epoch, inventory) = (found.node.epoch, &found.node.inventory);
        let allocation = Free::of(inventory).fit(inventory, &Default::default(), 0);
        let allocation = allocation.ok_or_else(|| Stop::fail("the node has no room"))?;
        self.apply(Command::GrantLease(GrantLease { job, node: node.clone(), epoch, allocation }))?;
        let token = self.state.lease(job).ok_or_else(|| Stop::fail("the job has no lease"))?.token;
        let (usage, metadata, stream) = (USAGE, None, None);
        self.apply(match status {
            "running" => return Ok(()),
            "failed" => {
                let failure = Failure { kind: FailureKind::Agent, error: "".into() };
                Command::FailJob(FailJob { job, node, token, failure, output: None, usage, metadata, stream })
            }
            "completed" => {
                let output = Payload::inline(b"{}");
                Command::CompleteJob(CompleteJob { job, node, token, output, usage, metadata, stream })
            }
            other => return Err(Stop::skip(format!("jobs that become \"{other}\""))),
        })
    }

    fn job(&self, id: JobId) -> Result<&Arc<Job>, Stop> {
        self.state.job(id).ok_or_else(|| Stop::fail(format!("{id} is not in the state")))
    }

    /// The retry with the members that the row compares.
    fn shown(&self, next: &Job, given: &Value, expected: &Value) -> Result<Value, Stop> {
        let delay = match next.reason {
            Reason::Backoff { until } => (until.0 - self.clock.0) as f64 / 1e6,
            _ => 0.0,
        };
        let first = [text(given, "original_job_id"), text(given, "id")].into_iter().find(|id| !id.is_empty());
        let mut job = Map::new();
        for name in expected.get("job").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            let value = match name.as_str() {
                "agent_name" => json!(next.agent.as_str()),
                "metadata" => serde_json::from_slice(&next.metadata).unwrap_or_default(),
                "input_data" => match &next.input.body {
                    PayloadBody::Inline(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
                    PayloadBody::Artifact { .. } => Value::Null,
                },
                "priority" => json!(next.priority),
                "retry_count" => json!(next.retry_count),
                "original_job_id" => json!(next.original.filter(|id| [JOB, ORIGINAL].contains(id)).and(first)),
                "status" => json!(next.status.as_str()),
                other => return Err(Stop::skip(format!("retries of which \"{other}\" is expected"))),
            };
            job.insert(name.clone(), value);
        }
        let mut answer = json!({"retried": true, "delay": delay, "job": job});
        if let Some(members) = answer.as_object_mut() {
            members.retain(|name, _| expected.get(name).is_some());
        }
        Ok(answer)
    }

    fn apply(&mut self, command: Command) -> Result<(), Stop> {
        let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
        let at = Timestamp(1);
        self.state.begin_entry(at, self.clock);
        let (outcome, _) = self.state.apply(&request, at, self.clock);
        self.state.end_entry();
        outcome.map(drop).map_err(|rejection| Stop::fail(format!("the state refuses: {rejection}")))
    }
}

fn agent() -> Result<AgentName, Stop> {
    AgentName::new(AGENT).map_err(|error| Stop::system("name an agent", error))
}

/// The run settings of a contract with this retry rule.
fn spec(retry: &Value) -> Result<RunSpec, Stop> {
    let mut contract = json!({"agent": {"name": AGENT, "version": VERSION.to_string()}});
    if !retry.is_null() {
        contract["agent"]["retry"] = retry.clone();
    }
    let contract = atlas_contract::parse(contract.to_string().as_bytes());
    Ok(contract.map_err(|error| Stop::fail(format!("the contract is refused: {error}")))?.run_spec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(retry: &Value, count: u64, status: &str, expect: Value) -> Judged {
        let job =
            json!({"id": "job-x", "retry_count": count, "original_job_id": "", "input_data": {"k": 1}, "priority": 4});
        let input = json!({"retry": retry, "registered": true, "new_status": status, "job": job});
        judge(&Row {
            id: "r".to_owned(),
            kind: "retry".to_owned(),
            input,
            expect,
            differs: Vec::new(),
            requirements: Vec::new(),
        })
    }

    #[test]
    fn a_failure_is_retried_with_growing_delays_until_the_last() {
        let rule = &json!({"max_retries": 2, "backoff_base": 1.5});
        let job = json!({"input_data": {"k": 1}, "priority": 4, "retry_count": 2, "original_job_id": "job-x"});
        assert_eq!(judged(rule, 1, "failed", json!({"retried": true, "delay": 3.0, "job": job})), Ok(()));
        assert_eq!(judged(rule, 2, "failed", json!({"retried": false})), Ok(()));
        for status in ["completed", "cancelled", "running", "pending"] {
            assert_eq!(judged(rule, 0, status, json!({"retried": false})), Ok(()), "{status}");
        }
        assert_eq!(judged(&Value::Null, 0, "failed", json!({"retried": false})), Ok(()));
        assert_eq!(judged(rule, 3, "failed", json!({"retried": false})), Ok(()));
        assert!(matches!(judged(rule, 0, "failed", json!({"retried": false})), Err(Stop::Fail(_))));
    }
}
