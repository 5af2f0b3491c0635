//! Tests that the leader lets tries of limited models begin, over workers and streams.

use atlas_types::{Command, Expect, FencingToken, JobId, Micros, Namespace, PutObject};
use atlas_wire::session::{ModelAsk, ModelUse, ModelUses, ToLeader, ToWorker};

use super::fake::{Cluster, Worker};

async fn limit(cluster: &Cluster, concurrency: u32) {
    let spec = format!(r#"{{"limits":{{"concurrency":{concurrency}}},"name":"m","provider":"openai"}}"#);
    let (kind, name) = ("model".parse().expect("a kind"), "small".parse().expect("a name"));
    let put = PutObject {
        kind,
        name,
        labels: Default::default(),
        spec: spec.into_bytes().into(),
        spec_version: 1,
        expect: Expect::Any,
    };
    cluster.does(Command::PutObject(put)).await;
}

fn ask(number: u64, job: u64) -> ToLeader {
    let token = FencingToken(job);
    ToLeader::AskModel(ModelAsk { number, job: JobId(job), token, model: "small".to_owned(), tokens: 10 })
}

fn held(number: u64, job: u64) -> ToLeader {
    let (namespace, age) = (Namespace::default_namespace(), Micros::from_secs(1));
    let held = ModelUse { number, job: JobId(job), namespace, model: "small".to_owned(), tokens: 10, age };
    ToLeader::AnnounceModels(ModelUses { held: vec![held], past: Vec::new() })
}

/// The number of the next try that may begin.
async fn begins(worker: &mut Worker) -> u64 {
    loop {
        match worker.frame().await {
            ToWorker::ModelGranted { number } => return number,
            ToWorker::Welcome(_) | ToWorker::Grant(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_try_waits_for_those_of_other_workers_and_of_broken_streams() {
    let cluster = Cluster::start().await;
    limit(&cluster, 1).await;
    let nothing = || ToLeader::AnnounceModels(ModelUses::default());
    let mut first = cluster.worker("n1", 1).await;
    first.say(nothing()).await;
    first.hears().await;
    for job in [1, 2] {
        cluster.submit(job, "plain").await;
        first.hears().await;
    }
    first.say(ask(1, 1)).await;
    first.say(ask(2, 2)).await;
    assert_eq!(begins(&mut first).await, 1);
    let service = cluster.controller.service();
    let waits = || service.model_wait_here(JobId(2)).expect("it leads").unwrap_or_default();
    let one = "waits for model \"small\": 1 of 1 calls in flight";
    // The question is read after the answer to the one before it was sent.
    super::fake::soon(async {
        while waits() != one {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The worker comes back with the try under way, and asks again for the other one.
    drop(first);
    let mut first = cluster.worker("n1", 1).await;
    first.say(held(1, 1)).await;
    first.say(ask(2, 2)).await;
    first.say(ToLeader::ModelDone { number: 1, tokens: Some(3) }).await;
    assert_eq!(begins(&mut first).await, 2);
    // A changed limit holds at once for what waits.
    first.say(ask(3, 1)).await;
    limit(&cluster, 2).await;
    assert_eq!(begins(&mut first).await, 3);
    assert_eq!(waits(), "");
}

#[tokio::test]
async fn a_limit_that_goes_lets_more_begin_than_a_stream_holds() {
    const TRIES: u64 = 5_000;
    let cluster = Cluster::start().await;
    limit(&cluster, 1).await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.say(ToLeader::AnnounceModels(ModelUses::default())).await;
    worker.hears().await;
    cluster.submit(1, "plain").await;
    worker.hears().await;
    for number in 1..=TRIES {
        worker.say(ask(number, 1)).await;
    }
    assert_eq!(begins(&mut worker).await, 1);
    limit(&cluster, 10_000).await;
    for number in 2..=TRIES {
        assert_eq!(begins(&mut worker).await, number);
    }
}
