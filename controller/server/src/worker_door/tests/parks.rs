//! Tests that attempts park their jobs, and that running jobs get their messages.

use atlas_types::{
    CancelJob, Command, DeliverMessage, FencingToken, JobId, Mail, MessageId, Micros, Park, Payload, SpawnStep,
    Spawner, StepKey, Timestamp, Wait,
};
use atlas_wire::session::{ToLeader, ToWorker};

use super::fake::{Cluster, Worker, completed, line, report};
use super::steps::record;

const FAR: Wait = Wait::Time { at: Timestamp(i64::MAX / 2) };

fn park(number: u64, token: u64, waits: &[Wait], (journal_length, read): (u64, u64)) -> ToLeader {
    let park = Park { journal_length, waits: waits.to_vec(), used: Micros(5), read };
    ToLeader::Park { number, job: JobId(7), token: FencingToken(token), park }
}

fn message(id: &str) -> Command {
    let id = MessageId::new(id).expect("a name");
    let payload = Payload::inline(b"1");
    Command::DeliverMessage(DeliverMessage { job: JobId(7), id, answers: None, channel: None, payload })
}

fn mail_of(mail: &Mail) -> (u64, Vec<&str>) {
    (mail.first, mail.messages.iter().map(|message| message.id.as_str()).collect())
}

/// A running job with one recorded step.
async fn running() -> (Cluster, Worker) {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    worker.hears().await;
    worker.say(record(1, 7, 1, 0, &["1"])).await;
    worker.hears().await;
    (cluster, worker)
}

/// The next frame, which must be messages.
async fn messages(worker: &mut Worker) -> Mail {
    match worker.frame().await {
        ToWorker::Messages { job: JobId(7), mail, .. } => mail,
        other => panic!("{other:?}"),
    }
}

/// The mail of the next grant.
async fn granted(worker: &mut Worker) -> (Mail, Timestamp) {
    match worker.frame().await {
        ToWorker::Grant(assignment) => assignment.journal.map(|journal| (journal.mail, journal.slept_until)),
        other => panic!("{other:?}"),
    }
    .expect("a journal")
}

#[tokio::test]
async fn a_job_parks_until_a_message_and_a_repeat_gets_the_same_answer() {
    let (cluster, mut worker) = running().await;
    worker.say(park(1, 1, &[Wait::Message, FAR], (1, 0))).await;
    let mut heard = [worker.hears().await, worker.hears().await];
    heard.sort();
    assert_eq!(heard, ["ParkAck { number: 1, result: Parked }", "revoke job 7 token 1"]);
    worker.say(park(2, 1, &[Wait::Message, FAR], (1, 0))).await;
    assert_eq!(worker.hears().await, "ParkAck { number: 2, result: Parked }");
    worker.say(park(3, 9, &[FAR], (1, 0))).await;
    assert_eq!(worker.hears().await, "ParkAck { number: 3, result: Fenced }");
    cluster.does(message("m1")).await;
    let (mail, slept_until) = granted(&mut worker).await;
    assert_eq!((mail_of(&mail), slept_until), ((0, vec!["m1"]), Timestamp::NOT_YET));
    worker.say(park(4, 1, &[FAR], (1, 0))).await;
    assert_eq!(worker.hears().await, "ParkAck { number: 4, result: Fenced }");
    worker.say(report(1, 7, 2, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
}

#[tokio::test]
async fn a_running_job_gets_its_messages_and_a_wait_that_is_over_leaves_the_lease() {
    let (cluster, mut worker) = running().await;
    cluster.does(message("m1")).await;
    assert_eq!(mail_of(&messages(&mut worker).await), (0, vec!["m1"]));
    cluster.does(message("m2")).await;
    assert_eq!(mail_of(&messages(&mut worker).await), (1, vec!["m2"]));
    worker.say(park(1, 1, &[Wait::Message], (1, 1))).await;
    assert_eq!(mail_of(&messages(&mut worker).await), (1, vec!["m2"]));
    assert_eq!(worker.hears().await, "ParkAck { number: 1, result: Ready }");
    worker.say(park(2, 1, &[Wait::Time { at: Timestamp(1) }], (1, 2))).await;
    assert_eq!(worker.hears().await, "ParkAck { number: 2, result: Ready }");
    // A child that does not exist yet is answered by its spawn.
    worker.say(park(3, 1, &[Wait::Child { job: JobId(9) }], (1, 2))).await;
    assert_eq!(worker.hears().await, "ParkAck { number: 3, result: Ready }");
    drop(worker);
    let mut worker = cluster.worker("n1", 1).await;
    let mut welcome = worker.welcome().await;
    let journal = welcome.leases.remove(0).journal.expect("a journal");
    assert_eq!(mail_of(&journal.mail), (0, vec!["m1", "m2"]));
}

#[tokio::test]
async fn a_park_that_contradicts_the_journal_is_refused() {
    let (cluster, mut worker) = running().await;
    let cases = [
        ((2, 0), "the journal has 1 steps, so nothing can go on after 2"),
        ((1, 1), "the job cannot have read 1 messages, its inbox has had 0"),
    ];
    for ((steps, read), why) in cases {
        worker.say(park(1, 1, &[FAR], (steps, read))).await;
        assert_eq!(worker.hears().await, format!("ParkAck {{ number: 1, result: Refused {{ why: \"{why}\" }} }}"));
    }
    cluster.does(Command::CancelJob(CancelJob { job: JobId(7), running: true })).await;
    assert_eq!(worker.hears().await, "cancel job 7 token 1");
    worker.say(park(2, 1, &[FAR], (1, 0))).await;
    let mut heard = [worker.hears().await, worker.hears().await];
    heard.sort();
    assert_eq!(heard, ["ParkAck { number: 2, result: Fenced }", "revoke job 7 token 1"]);
    assert_eq!(cluster.job(7), "cancelled None None");
}

#[tokio::test]
async fn a_job_that_only_leaves_its_node_is_queued_again_after_a_moment() {
    let (_cluster, mut worker) = running().await;
    worker.say(park(1, 1, &[], (1, 0))).await;
    let mut heard = [worker.hears().await, worker.hears().await];
    heard.sort();
    assert_eq!(heard, ["ParkAck { number: 1, result: Parked }", "revoke job 7 token 1"]);
    let (mail, slept_until) = granted(&mut worker).await;
    assert!(mail.messages.is_empty() && slept_until > Timestamp::NOT_YET);
}

#[tokio::test]
async fn the_lines_of_an_attempt_are_stored_when_it_parks() {
    let (cluster, mut worker) = running().await;
    worker.say(line(7, 1, "hello")).await;
    worker.say(park(1, 1, &[FAR], (1, 0))).await;
    worker.hears().await;
    worker.hears().await;
    let state = cluster.controller.service().handle().applied();
    let log = state.job(JobId(7)).and_then(|job| job.stream.clone()).expect("a stored log");
    let text = std::fs::read_to_string(cluster.artifact(&log)).expect("the lines");
    assert!(text.contains("hello"), "{text}");
}

#[test]
fn a_later_attempt_finds_the_child_of_a_step() {
    let step = |number, key| SpawnStep { number, key: StepKey([key; 16]) };
    let child = step(1, 1).child(JobId(7));
    assert_eq!(child, step(1, 1).child(JobId(7)));
    for other in [step(2, 1).child(JobId(7)), step(1, 2).child(JobId(7)), step(1, 1).child(JobId(8))] {
        assert_ne!(child, other);
    }
    assert_ne!(child, Spawner { job: JobId(7), token: FencingToken(1) }.child(1));
}
