//! Tests that journal steps are recorded, folded, refused and granted again.

use std::sync::Arc;

use atlas_format::encode_steps;
use atlas_service::{Caller, Consistency, ForkRequest, RetryRequest, StepQuery};
use atlas_types::{
    ClusterConfig, Command, ConfigureCluster, Door, FencingToken, Fold, JobId, LoseLease, Payload, PayloadBody,
    RequestId, Step, StepKey, StepKind, StepUsage,
};
use atlas_wire::session::{ToLeader, ToWorker};
use bytes::Bytes;

use super::fake::{Cluster, Worker, completed, report};

fn step(outcome: &str) -> Arc<Step> {
    let (outcome, usage) = (Payload::inline(outcome.as_bytes()), StepUsage::default());
    Arc::new(Step { kind: StepKind::Model, key: StepKey([1; 16]), outcome, usage })
}

fn steps(outcomes: &[&str]) -> Vec<Arc<Step>> {
    outcomes.iter().map(|outcome| step(outcome)).collect()
}

pub(super) fn record(number: u64, job: u64, token: u64, from: u64, outcomes: &[&str]) -> ToLeader {
    let (job, token, steps) = (JobId(job), FencingToken(token), steps(outcomes));
    ToLeader::RecordSteps { number, job, token, from, steps }
}

async fn fold(cluster: &Cluster, number: u64, upto: u64, bytes: Vec<u8>) -> ToLeader {
    let size_bytes = bytes.len() as u64;
    let digest = cluster.controller.service().artifacts().store(Bytes::from(bytes)).await.expect("stored");
    let artifact = Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes } };
    let (job, token) = (JobId(7), FencingToken(1));
    ToLeader::FoldSteps { number, job, token, fold: Fold { upto, artifact } }
}

/// The answer to a frame, without its number.
async fn answer(worker: &mut Worker, said: ToLeader) -> String {
    worker.say(said).await;
    match worker.frame().await {
        ToWorker::StepsAck { result, .. } => format!("{result:?}"),
        other => panic!("{other:?}"),
    }
}

async fn running() -> (Cluster, Worker) {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    worker.hears().await;
    (cluster, worker)
}

#[tokio::test]
async fn steps_are_recorded_under_the_lease_and_the_next_attempt_gets_them() {
    let (cluster, mut worker) = running().await;
    worker.say(record(5, 7, 1, 0, &["1", "2"])).await;
    assert_eq!(worker.hears().await, "StepsAck { number: 5, result: Applied }");
    assert_eq!(answer(&mut worker, record(6, 7, 1, 0, &["1", "2"])).await, "Applied");
    assert_eq!(answer(&mut worker, record(7, 7, 9, 2, &["3"])).await, "Fenced");
    cluster.does(Command::LoseLease(LoseLease { job: JobId(7), token: FencingToken(1) })).await;
    assert_eq!(worker.hears().await, "revoke job 7 token 1");
    let ToWorker::Grant(assignment) = worker.frame().await else { panic!("no grant") };
    let assigned = assignment.journal.expect("a journal");
    assert_eq!((assigned.journal.steps.clone(), assigned.unfolded), (steps(&["1", "2"]), None));
    assert_eq!(answer(&mut worker, record(8, 7, 1, 2, &["3"])).await, "Fenced");
    assert_eq!(answer(&mut worker, record(9, 7, 2, 2, &["3"])).await, "Applied");
    worker.say(report(1, 7, 2, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    assert_eq!(answer(&mut worker, record(10, 7, 2, 3, &["4"])).await, "Fenced");
}

#[tokio::test]
async fn steps_that_contradict_the_journal_are_refused_with_both_sides() {
    let (_cluster, mut worker) = running().await;
    assert_eq!(answer(&mut worker, record(1, 7, 1, 0, &["1"])).await, "Applied");
    let key = "01".repeat(16);
    let differs = format!(
        "Refused {{ step: 0, why: \"step 0 is recorded as model {key} and was sent as model {key}, or with another outcome\" }}"
    );
    assert_eq!(answer(&mut worker, record(2, 7, 1, 0, &["2"])).await, differs);
    assert_eq!(
        answer(&mut worker, record(3, 7, 1, 5, &["2"])).await,
        "Refused { step: 5, why: \"step 5 does not follow the journal, whose next step is 1\" }"
    );
    assert_eq!(
        answer(&mut worker, record(4, 7, 1, 1, &["1", "1e999"])).await,
        "Refused { step: 2, why: \"the number at \\\"\\\" of its outcome is beyond the range of numbers\" }"
    );
    let deep = format!("{}1{}", "[".repeat(3_000), "]".repeat(3_000));
    assert_eq!(
        answer(&mut worker, record(5, 7, 1, 1, &[&deep])).await,
        "Refused { step: 1, why: \"its outcome is nested more than 100 levels\" }"
    );
}

#[tokio::test]
async fn a_journal_without_room_cannot_begin_until_there_is_some() {
    let (cluster, mut worker) = running().await;
    let limited = |journal_bytes_max| {
        let config = ClusterConfig { journal_bytes_max, ..ClusterConfig::default() };
        Command::ConfigureCluster(ConfigureCluster { config })
    };
    cluster.does(limited(32_767)).await;
    assert_eq!(answer(&mut worker, record(1, 7, 1, 0, &["1"])).await, "NoRoom");
    cluster.does(limited(32_768)).await;
    assert_eq!(answer(&mut worker, record(1, 7, 1, 0, &["1"])).await, "Applied");
    // One that has begun has its room.
    cluster.does(limited(1)).await;
    assert_eq!(answer(&mut worker, record(2, 7, 1, 1, &["2"])).await, "Applied");
}

#[tokio::test]
async fn a_fold_holds_exactly_the_steps_that_it_replaces() {
    let (cluster, mut worker) = running().await;
    assert_eq!(answer(&mut worker, record(1, 7, 1, 0, &["1", "2", "3"])).await, "Applied");
    let cases = [
        (b"junk".to_vec(), "Refused { step: 2, why: \"its artifact does not hold steps\" }"),
        (encode_steps(&steps(&["1"])), "Refused { step: 1, why: \"the artifact does not hold the recorded step\" }"),
        (
            encode_steps(&steps(&["1", "4"])),
            "Refused { step: 1, why: \"the artifact does not hold the recorded step\" }",
        ),
        (
            encode_steps(&steps(&["1", "2", "3"])),
            "Refused { step: 2, why: \"the artifact does not hold the recorded step\" }",
        ),
        (encode_steps(&steps(&["1", "2"])), "Applied"),
        (encode_steps(&steps(&["1", "2"])), "Applied"),
    ];
    for (number, (bytes, expected)) in (2..).zip(cases) {
        let said = fold(&cluster, number, 2, bytes).await;
        assert_eq!(answer(&mut worker, said).await, expected);
    }
    assert_eq!(answer(&mut worker, record(8, 7, 1, 3, &["4"])).await, "Applied");
    let state = cluster.controller.service().handle().applied();
    let journal = state.journal(JobId(7)).expect("a journal");
    assert_eq!((journal.folds.len(), journal.first(), journal.next()), (1, 2, 4));
}

/// The steps that a client reads, by number and outcome.
async fn read(cluster: &Cluster, job: JobId, after: Option<u64>, limit: usize) -> Vec<(u64, String)> {
    let (service, caller) = (cluster.controller.service(), Caller::anonymous(Door::Http));
    let query = StepQuery { after, limit };
    let steps = service.steps(&caller, job, query, Consistency::Linearizable).await.expect("a journal");
    let mut text = Vec::new();
    steps.write(&mut text);
    let steps: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("JSON");
    steps.iter().map(|step| (step["step"].as_u64().expect("a number"), step["outcome"].to_string())).collect()
}

fn numbered(outcomes: &[(u64, &str)]) -> Vec<(u64, String)> {
    outcomes.iter().map(|&(number, outcome)| (number, outcome.to_owned())).collect()
}

#[tokio::test]
async fn steps_are_read_from_folds_and_from_the_state_while_the_job_runs_and_after_its_end() {
    let (cluster, mut worker) = running().await;
    let job = JobId(7);
    assert_eq!(read(&cluster, job, None, 10).await, []);
    assert_eq!(answer(&mut worker, record(1, 7, 1, 0, &["1", "2", "3"])).await, "Applied");
    let said = fold(&cluster, 2, 2, encode_steps(&steps(&["1", "2"]))).await;
    assert_eq!(answer(&mut worker, said).await, "Applied");
    assert_eq!(answer(&mut worker, record(3, 7, 1, 3, &["4"])).await, "Applied");
    for ended in [false, true] {
        if ended {
            worker.say(report(1, 7, 1, completed("1"))).await;
            assert_eq!(worker.hears().await, "report 1 Applied");
        }
        let all = numbered(&[(0, "1"), (1, "2"), (2, "3"), (3, "4")]);
        assert_eq!(read(&cluster, job, None, 10).await, all);
        assert_eq!(read(&cluster, job, Some(0), 2).await, all[1..3]);
        assert_eq!(read(&cluster, job, Some(1), 1).await, all[2..3]);
        assert_eq!(read(&cluster, job, Some(9), 1).await, []);
    }
}

#[tokio::test]
async fn a_retry_that_resumes_is_granted_with_the_steps_of_the_ended_job() {
    let (cluster, mut worker) = running().await;
    assert_eq!(answer(&mut worker, record(1, 7, 1, 0, &["1", "2"])).await, "Applied");
    worker.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    let (service, caller) = (cluster.controller.service(), Caller::anonymous(Door::Http));
    for (resume, expected) in [(true, 2), (false, 0)] {
        let new = service
            .retry(&caller, JobId(7), RetryRequest { resume, ..RetryRequest::default() })
            .await
            .expect("a new job");
        let ToWorker::Grant(assignment) = worker.frame().await else { panic!("no grant") };
        assert_eq!(assignment.job, new);
        assert_eq!(assignment.journal.expect("a journal").journal.steps.len(), expected);
    }
}

/// A fold is cut where the last copied step is one of its steps.
#[tokio::test]
async fn a_fork_is_granted_with_the_first_steps_of_another_job() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker_of("n1", 1, 20).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    worker.hears().await;
    assert_eq!(answer(&mut worker, record(1, 7, 1, 0, &["1", "2", "3"])).await, "Applied");
    let said = fold(&cluster, 2, 3, encode_steps(&steps(&["1", "2", "3"]))).await;
    assert_eq!(answer(&mut worker, said).await, "Applied");
    assert_eq!(answer(&mut worker, record(3, 7, 1, 3, &["4", "5"])).await, "Applied");
    let (service, caller) = (cluster.controller.service(), Caller::anonymous(Door::Http));
    for count in 1..=5 {
        let request = ForkRequest { steps: count, ..ForkRequest::default() };
        let fork = service.fork(&caller, JobId(7), &request).await.expect("a fork");
        let ToWorker::Grant(assignment) = worker.frame().await else { panic!("no grant") };
        // The same version and model: the fork goes on as the other job would.
        assert_eq!((assignment.job, assignment.fork_steps), (fork, None));
        let texts: Vec<(u64, String)> = (0..count).map(|number| (number, (number + 1).to_string())).collect();
        assert_eq!(read(&cluster, fork, None, 10).await, texts);
    }
    // Copies are no model calls.
    let metrics = service.metrics().render();
    assert!(metrics.contains("atlas_llm_turns_total{agent=\"plain\",model=\"\"} 5\n"), "{metrics}");
    let refused = async |steps, model: Option<&str>, version: Option<&str>| {
        let (model, version) = (model.map(str::to_owned), version.map(str::to_owned));
        let request = ForkRequest { steps, model, version, ..ForkRequest::default() };
        let error = service.fork(&caller, JobId(7), &request).await.expect_err("refused");
        format!("{} {error}", error.entry().code)
    };
    let many = "E3016 the job has recorded 5 steps, and a fork cannot go on after 6; the numbers are 1 to 5";
    assert_eq!(refused(6, None, None).await, many);
    assert!(refused(0, None, None).await.starts_with("E3016 "));
    assert_eq!(refused(2, Some("nowhere"), None).await, "E1115 no such model: \"nowhere\"");
    assert!(refused(2, None, Some("9.9.9")).await.starts_with("E1101 "));
    let request = ForkRequest { steps: 2, request_id: RequestId::new("once").ok(), ..ForkRequest::default() };
    let first = service.fork(&caller, JobId(7), &request).await.expect("a fork");
    assert_eq!(service.fork(&caller, JobId(7), &request).await.expect("the first answer"), first);
    let other = ForkRequest { steps: 3, ..request };
    assert_eq!(service.fork(&caller, JobId(7), &other).await.expect_err("another body").entry().code, "E3004");
}
