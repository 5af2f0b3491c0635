//! Logs of running attempts that are stored before their end.

use atlas_service::{LogOutput, LogReader};
use atlas_types::{Attempt, JobId, StreamEvent, StreamKind, Timestamp};
use atlas_wire::session::ToLeader;

use super::WELCOME;
use super::fake::{Cluster, completed, line, report, soon};

/// A line of the second attempt.
fn second(number: u64, text: &str) -> ToLeader {
    let (level, text) = ("info".to_owned(), text.to_owned());
    let event = StreamEvent { number, at: Timestamp(2_000_000), kind: StreamKind::Log, level, text };
    ToLeader::StreamEvents { job: JobId(7), attempt: Attempt(2), events: vec![event] }
}

/// Attempt and text of each line of job 7.
async fn log(cluster: &Cluster) -> Vec<String> {
    let caller = cluster.controller.local_caller();
    let log = soon(cluster.controller.service().logs(&caller, JobId(7))).await.expect("a log");
    let lines: Vec<serde_json::Value> = serde_json::from_slice(&log).expect("an array");
    lines.iter().map(|line| format!("{} {}", line["attempt"], line["text"].as_str().unwrap_or_default())).collect()
}

/// Waits until job 7 has a stored log.
async fn stored(cluster: &Cluster) {
    let state = || cluster.controller.service().handle().applied();
    soon(async {
        while state().job(JobId(7)).is_none_or(|job| job.stream.is_none()) {
            atlas_env::Env::system().clock.sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn followed(reader: &mut LogReader, lines: usize) -> Vec<(u32, u64)> {
    let mut seen = Vec::new();
    while seen.len() < lines {
        let Some(LogOutput::Lines(some)) = soon(reader.next()).await else { panic!("it ended after {seen:?}") };
        seen.extend(some.iter().map(|line| (line.attempt.0, line.number)));
    }
    seen
}

#[tokio::test]
async fn the_lines_of_a_lost_worker_stay_and_come_before_those_of_the_next_attempt() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    cluster.submit(7, "plain").await;
    worker.hears().await;
    worker.say(line(7, 1, "one")).await;
    worker.say(line(7, 2, "two")).await;
    worker.say(ToLeader::Renew { number: 1 }).await;
    worker.hears().await;
    drop(worker);
    stored(&cluster).await;
    assert_eq!(log(&cluster).await, ["1 one", "1 two"]);

    // Another process of the node: the lease is lost, and the job gets its second attempt.
    let (mut worker, welcome) = cluster.successor("n1", 2).await;
    if !welcome.ends_with("[(7, 2)]") {
        worker.hears().await;
    }
    worker.say(second(1, "three")).await;
    worker.say(ToLeader::Renew { number: 1 }).await;
    worker.hears().await;
    assert_eq!(log(&cluster).await, ["1 one", "1 two", "2 three"]);
    let (service, caller) = (cluster.controller.service(), cluster.controller.local_caller());
    let mut reader = service.follow_logs(&caller, JobId(7), None, false).await.expect("a job");
    assert_eq!(followed(&mut reader, 3).await, [(1, 1), (1, 2), (2, 1)]);
    let mut late = service.follow_logs(&caller, JobId(7), Some((Attempt(1), 1)), false).await.expect("a job");
    assert_eq!(followed(&mut late, 2).await, [(1, 2), (2, 1)]);

    worker.say(second(2, "four")).await;
    worker.say(report(1, 7, 2, completed("{}"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    assert_eq!(log(&cluster).await, ["1 one", "1 two", "2 three", "2 four"]);
    assert_eq!(followed(&mut reader, 1).await, [(2, 2)]);
    assert_eq!(soon(reader.next()).await, None);
}

#[tokio::test]
async fn a_stored_log_that_cannot_be_read_is_not_replaced() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    cluster.submit(7, "plain").await;
    worker.hears().await;
    worker.say(line(7, 1, "one")).await;
    worker.say(ToLeader::Renew { number: 1 }).await;
    worker.hears().await;
    drop(worker);
    stored(&cluster).await;
    let (mut worker, welcome) = cluster.successor("n1", 2).await;
    if !welcome.ends_with("[(7, 2)]") {
        worker.hears().await;
    }
    worker.say(second(1, "two")).await;
    worker.say(ToLeader::Renew { number: 1 }).await;
    worker.hears().await;

    let job = || cluster.controller.service().handle().applied().job(JobId(7)).cloned().expect("a job");
    let before = job();
    let file = cluster.artifact(before.stream.as_ref().expect("a stored log"));
    let away = file.with_extension("away");
    std::fs::rename(&file, &away).expect("it is there");
    let store = || {
        let lease = before.lease.clone().expect("it runs");
        cluster.controller.service().store_log(JobId(7), lease.node.clone(), lease.token)
    };
    assert!(soon(store()).await.is_err());
    assert_eq!(job().stream, before.stream);
    assert_eq!(log(&cluster).await, ["1 the stored lines of earlier attempts could not be read", "2 two"]);

    std::fs::rename(&away, &file).expect("it is back");
    soon(store()).await.expect("stored");
    assert_eq!(log(&cluster).await, ["1 one", "2 two"]);
    assert_ne!(job().stream, before.stream);
}

#[tokio::test]
async fn a_long_log_is_stored_while_its_attempt_runs() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    cluster.submit(7, "plain").await;
    worker.hears().await;
    let text = "x".repeat(10 << 10);
    for number in 1..=8 {
        worker.say(line(7, number, &text)).await;
    }
    worker.say(ToLeader::Renew { number: 1 }).await;
    assert_eq!(worker.hears().await, "RenewAck { number: 1 }");
    stored(&cluster).await;
    assert_eq!(log(&cluster).await.len(), 8);
}
