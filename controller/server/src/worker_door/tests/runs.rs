//! Runs of chains that are called like agents.

use std::sync::Arc;

use atlas_types::{
    AgentPin, CancelJob, Command, Digest, JobId, JobStatus, Payload, RegisterAgent, RunDefinition, RunId, RunSpec,
    RunStatus, StartRun, SubmitJob, Verdict, Version,
};
use serde_json::json;

use super::fake::{Cluster, plain_agent, plain_submission, soon};

/// A leader that is lost between the start of a run and its job leaves a run that nobody wants once the job is cancelled.
#[tokio::test]
async fn a_run_whose_job_was_cancelled_before_it_got_it_does_nothing() {
    let cluster = Cluster::start().await;
    cluster.does(plain_agent("plain")).await;
    let Command::RegisterAgent(agent) = plain_agent("outer") else { panic!("an agent") };
    let spec = Arc::new(RunSpec { carried: true, ..(*agent.spec).clone() });
    let Command::SubmitJob(job) = plain_submission(7, "outer") else { panic!("a job") };
    let pin = AgentPin { version: Version { major: 1, minor: 0, patch: 0 }, digest: Digest([1; 32]) };
    let document = json!({"name": "outer", "steps": [{"agent": "plain"}]}).to_string();
    let start = StartRun {
        id: RunId(7),
        definition: RunDefinition::Given {
            chain: "outer".into(),
            steps: 1,
            document: Payload::inline(document.as_bytes()),
        },
        input: Payload::inline(b"{}"),
        priority: 0,
        metadata: b"{}".as_slice().into(),
    };
    cluster
        .does_all(vec![
            Command::RegisterAgent(RegisterAgent { spec, ..agent }),
            Command::SubmitJob(SubmitJob { verdict: Verdict::Accepted(pin), ..job }),
            Command::CancelJob(CancelJob { job: JobId(7), running: true }),
            Command::StartRun(start),
        ])
        .await;
    let handle = cluster.controller.service().handle().clone();
    let ended = async {
        loop {
            let state = handle.applied();
            if let Some(run) = state.run(RunId(7)).filter(|run| run.status.is_terminal()) {
                return (run.status, state.jobs_total());
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(soon(ended).await, (RunStatus::Cancelled, 1), "no step was submitted");
    assert_eq!(handle.applied().job(JobId(7)).map(|job| job.status), Some(JobStatus::Cancelled));
}
