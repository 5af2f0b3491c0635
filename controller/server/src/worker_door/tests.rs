//! Tests whole sessions with a real controller and a worker that only sends and receives frames.

mod attachments;
mod deltas;
mod documents;
mod fake;
mod library;
mod logs;
mod models;
mod parks;
mod questions;
mod runs;
mod steps;
mod tls;
mod tools;

use atlas_format::decode_steps;
use atlas_state::State;
use atlas_types::{
    Attempt, Command, Cordon, Digest, DrainNode, Failure, FailureKind, FencingToken, JobId, Level, LoseLease, Micros,
    NodeHealth, NodeId, Payload, PayloadBody, ReportKind, StreamEvent, StreamKind, Timestamp, Usage,
};
use atlas_wire::convert::{digest_in, digest_out};
use atlas_wire::limits::CHUNK_BYTES;
use atlas_wire::proto::worker::v1::session_response::Kind;
use atlas_wire::proto::worker::v1::{FetchPayloadRequest, SessionRequest, SessionResponse, StorePayloadRequest};
use atlas_wire::session::ToLeader;
use bytes::Bytes;
use tokio_stream::StreamExt as _;

use super::hub::Stored;
use super::outbox;
use fake::{Cluster, completed, hello, identity, line, program, report, soon};

const WELCOME: &str = "welcome epoch 1 ttl 600s leases []";

#[tokio::test]
async fn a_job_is_granted_completed_and_acknowledged_with_its_lines() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    cluster.submit(7, "plain").await;
    assert_eq!(worker.hears().await, "grant job 7 token 1 attempt 1 of plain 1.0.0 needs_start false");
    worker.say(line(7, 1, "hello")).await;
    worker.say(report(1, 7, 1, completed("{\"a\":1}"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    assert_eq!(worker.hears().await, "stream of 7 attempt 1 to 1");
    let said = r#"[{"attempt":1,"number":1,"at":1.0,"kind":"log","level":"info","text":"hello"}]"#;
    assert_eq!(cluster.job(7), format!(r#"completed Some({{"a":1}}) Some({said})"#));
    soon(cluster.controller.shutdown()).await;
    assert_eq!(worker.hears().await, "Shutdown");
    assert_eq!(worker.hears().await, "end");
}

#[tokio::test]
async fn a_reconnect_is_no_entry_and_brings_the_leases_again() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    cluster.submit(7, "plain").await;
    worker.hears().await;
    cluster.cancel(7).await;
    assert_eq!(worker.hears().await, "cancel job 7 token 1");
    let events = cluster.events();
    drop(worker);
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, "welcome epoch 1 ttl 600s leases [(7, 1)]");
    assert_eq!(worker.hears().await, "cancel job 7 token 1");
    assert_eq!(cluster.events(), events);
    worker.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    assert_eq!(cluster.job(7), "cancelled None None");
}

#[tokio::test]
async fn a_restart_fences_what_the_older_process_held() {
    let cluster = Cluster::start().await;
    let mut old = cluster.worker("n1", 1).await;
    old.hears().await;
    cluster.submit(7, "plain").await;
    assert_eq!(old.hears().await, "grant job 7 token 1 attempt 1 of plain 1.0.0 needs_start false");
    drop(old);
    let (mut new, welcome) = cluster.successor("n1", 2).await;
    // The node gets the lost job again, in the welcome or right after it.
    if welcome == "welcome epoch 2 ttl 600s leases []" {
        assert_eq!(new.hears().await, "grant job 7 token 2 attempt 2 of plain 1.0.0 needs_start false");
    } else {
        assert_eq!(welcome, "welcome epoch 2 ttl 600s leases [(7, 2)]");
    }
    new.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(new.hears().await, "report 1 Fenced");
    new.say(report(2, 7, 2, completed("2"))).await;
    assert_eq!(new.hears().await, "report 2 Applied");
    assert_eq!(cluster.job(7), "completed Some(2) None");
}

#[tokio::test]
async fn a_second_worker_of_a_name_is_refused_while_the_first_renews() {
    let cluster = Cluster::start().await;
    let mut first = cluster.worker("n1", 1).await;
    assert_eq!(first.hears().await, WELCOME);
    for boot in [2, 3] {
        let refused = cluster.worker("n1", boot).await.hears().await;
        let (before, after) = (
            "Aborted: node \"n1\" is the worker at 127.0.0.1:",
            ", which renews its session; the worker at 127.0.0.1:",
        );
        assert!(refused.starts_with(before) && refused.contains(after), "{refused}");
    }
    let (address, holder) = rival(&cluster.until(|state| rival(state).is_some()).await).expect("noted");
    assert!(address.starts_with("127.0.0.1:") && holder.starts_with("127.0.0.1:") && address != holder);
    cluster.submit(7, "plain").await;
    assert_eq!(first.hears().await, "grant job 7 token 1 attempt 1 of plain 1.0.0 needs_start false");
    first.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(first.hears().await, "report 1 Applied");
    drop(first);
    let (_, welcome) = cluster.successor("n1", 4).await;
    assert_eq!(welcome, "welcome epoch 2 ttl 600s leases []");
}

/// The addresses of a worker that was refused the name `n1`, and of the one that has it.
fn rival(state: &State) -> Option<(String, String)> {
    let rival = state.node(&identity().0)?.node.rival.clone()?;
    Some((rival.address.to_string(), rival.holder.to_string()))
}

#[tokio::test]
async fn the_session_of_a_worker_that_leaves_ends_at_once() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    worker.say(ToLeader::Draining).await;
    assert_eq!(worker.hears().await, "hand back in its own time");
    cluster.submit(7, "plain").await;
    worker.say(ToLeader::Leaving).await;
    assert!(worker.hears().await.starts_with("Aborted: this node's session was lost"));
    let state = cluster.controller.service().handle().applied();
    assert_eq!(state.node(&identity().0).expect("known").node.health, NodeHealth::Down);
    assert_eq!(cluster.job(7), "pending None None");
    let (_, welcome) = cluster.successor("n1", 2).await;
    assert!(welcome.starts_with("welcome epoch 2"), "{welcome}");
}

#[tokio::test]
async fn a_node_whose_stream_broke_gets_nothing_and_is_lost_soon_if_it_holds_nothing() {
    let cluster = Cluster::start().await;
    let mut busy = cluster.worker_of("n1", 1, 4).await;
    busy.hears().await;
    cluster.submit(7, "plain").await;
    busy.hears().await;
    let mut idle = cluster.worker_of("n2", 2, 4).await;
    idle.hears().await;
    drop((busy, idle));
    let health = |state: &State, node: &str| state.node(&node.parse().expect("a name")).map(|found| found.node.health);
    cluster.until(|state| health(state, "n2") == Some(NodeHealth::Down)).await;
    // The session lives for 600 s, and with it the lease.
    cluster.submit(8, "plain").await;
    let state = cluster.controller.service().handle().applied();
    assert_eq!(health(&state, "n1"), Some(NodeHealth::Ready));
    assert_eq!((cluster.job(7), cluster.job(8)), ("running None None".to_owned(), "pending None None".to_owned()));
    let mut back = cluster.worker_of("n1", 1, 4).await;
    let welcome = back.hears().await;
    assert!(welcome.starts_with("welcome epoch 1 ttl 600s leases [(7, 1)"), "{welcome}");
    if !welcome.contains("(8, 2)") {
        assert_eq!(back.hears().await, "grant job 8 token 2 attempt 1 of plain 1.0.0 needs_start false");
    }
}

#[tokio::test]
async fn whoever_is_gone_before_it_is_admitted_is_not_registered() {
    let cluster = Cluster::start().await;
    let (out, outgoing) = outbox::outbox();
    drop(outgoing);
    let ToLeader::Hello(hello) = hello("n1", 1) else { panic!("a hello") };
    assert!(soon(cluster.door().admit(hello, (&"127.0.0.1:1".into(), 1), &out)).await.is_none());
    let state = soon(cluster.controller.service().handle().read()).await.expect("leads");
    assert_eq!(state.nodes().count(), 0);
}

#[tokio::test]
async fn of_two_streams_of_one_process_the_newer_stays() {
    let cluster = Cluster::start().await;
    let mut old = cluster.worker("n1", 1).await;
    assert_eq!(old.hears().await, WELCOME);
    let mut new = cluster.worker("n1", 1).await;
    assert_eq!(new.hears().await, WELCOME);
    assert_eq!(old.hears().await, "Aborted: replaced by a newer stream of this node");
    cluster.submit(7, "plain").await;
    assert_eq!(new.hears().await, "grant job 7 token 1 attempt 1 of plain 1.0.0 needs_start false");
}

#[tokio::test]
async fn a_lost_lease_is_revoked_and_what_the_node_gives_back_is_not() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    worker.hears().await;
    cluster.does(Command::LoseLease(LoseLease { job: JobId(7), token: FencingToken(1) })).await;
    assert_eq!(worker.hears().await, "revoke job 7 token 1");
    assert_eq!(worker.hears().await, "grant job 7 token 2 attempt 2 of plain 1.0.0 needs_start false");
    worker.say(report(1, 7, 2, ReportKind::NotHeld)).await;
    let mut heard = [worker.hears().await, worker.hears().await];
    heard.sort();
    assert_eq!(heard, ["grant job 7 token 3 attempt 3 of plain 1.0.0 needs_start false", "report 1 Applied"]);
}

#[tokio::test]
async fn the_deadline_of_a_drain_reaches_the_worker_on_every_stream_and_ends_with_the_drain() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    let node = NodeId::new("n1").expect("a name");
    let drain = |seconds: Option<u64>| {
        Command::DrainNode(DrainNode { node: node.clone(), deadline: seconds.map(Micros::from_secs) })
    };
    cluster.does(drain(None)).await;
    assert_eq!(worker.hears().await, "hand back in its own time");
    cluster.does(drain(Some(300))).await;
    assert_eq!(worker.hears().await, "hand back within 300 s");
    cluster.does(drain(Some(0))).await;
    assert_eq!(worker.hears().await, "hand back within 0 s");
    cluster.does(drain(Some(60))).await;
    assert_eq!(worker.hears().await, "hand back within 60 s");
    drop(worker);
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, format!("{WELCOME}, hand back within 60 s"));
    cluster.does(drain(None)).await;
    assert_eq!(worker.hears().await, "hand back in its own time");
    cluster.does(Command::Cordon(Cordon { node, cordoned: false })).await;
    assert_eq!(worker.hears().await, "hand back nothing");
}

#[tokio::test]
async fn an_older_worker_is_not_told_of_a_deadline() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    let door = cluster.door();
    let mut batches = cluster.controller.service().handle().subscribe_to(|_| true);
    let (out, outgoing) = outbox::outbox();
    let Ok(_seat) = door.hub.enter(identity(), program(Level(3), true), &Stored::default(), out) else {
        panic!("refused")
    };
    let node = NodeId::new("n1").expect("a name");
    cluster.does(Command::DrainNode(DrainNode { node: node.clone(), deadline: Some(Micros::from_secs(1)) })).await;
    soon(async {
        while let Ok(batch) = batches.recv().await {
            door.hub.deliver(&batch);
            if batch.state.node(&node).is_some_and(|found| found.node.drain_until.is_some()) {
                break;
            }
        }
    })
    .await;
    door.hub.hand_over(None);
    let frames: Vec<_> = soon(outgoing.collect()).await;
    assert_eq!(frames.len(), 2, "its welcome and its end: {frames:?}");
}

#[tokio::test]
async fn a_job_that_must_not_run_twice_waits_for_its_start() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "once").await;
    assert_eq!(worker.hears().await, "grant job 7 token 1 attempt 1 of once 1.0.0 needs_start true");
    worker.say(report(1, 7, 1, ReportKind::Started)).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    cluster.submit(8, "once").await;
    worker.hears().await;
    cluster.cancel(8).await;
    assert_eq!(worker.hears().await, "cancel job 8 token 2");
    worker.say(report(2, 8, 2, ReportKind::Started)).await;
    let mut heard = [worker.hears().await, worker.hears().await];
    heard.sort();
    assert_eq!(heard, ["report 2 Fenced", "revoke job 8 token 2"]);
}

#[tokio::test]
async fn renewals_are_acknowledged() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    for number in [1, 2] {
        worker.say(ToLeader::Renew { number }).await;
        assert_eq!(worker.hears().await, format!("RenewAck {{ number: {number} }}"));
    }
}

#[tokio::test]
async fn malformed_frames_end_the_session_and_change_nothing() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    let events = cluster.events();
    let frames: [(SessionRequest, &str); 3] = [
        (SessionRequest { kind: None }, "InvalidArgument: field \"session_request.kind\" is missing"),
        (hello("n1", 1).into(), "InvalidArgument: a second hello on one stream"),
        (
            report(1, 7, 1, completed(&"1".repeat(70_000))).into(),
            "InvalidArgument: field \"payload.inline\" has 70000 bytes or items, more than 65536",
        ),
    ];
    for (frame, reason) in frames {
        let mut worker = cluster.worker("n1", 1).await;
        assert_eq!(worker.hears().await, "welcome epoch 1 ttl 600s leases [(7, 1)]");
        worker.say_frame(frame).await;
        assert_eq!(worker.hears().await, reason);
    }
    let mut stranger = cluster.stranger().await;
    stranger.say(ToLeader::Renew { number: 1 }).await;
    assert_eq!(stranger.hears().await, "InvalidArgument: the first frame is not a hello");
    assert_eq!(cluster.events(), events);
    assert_eq!(cluster.job(7), "running None None");
}

#[tokio::test]
async fn a_report_of_a_lease_that_was_never_granted_is_fenced() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    let events = cluster.events();
    worker.say(report(1, 99, 5, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Fenced");
    assert_eq!(cluster.events(), events);
}

#[tokio::test]
async fn long_streams_are_stored_and_outputs_that_are_not_here_fail_their_job() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    worker.hears().await;
    for number in 1..=2 {
        worker.say(line(7, number, &"x".repeat(60_000))).await;
    }
    // This line was already received, which its number shows.
    worker.say(line(7, 2, "again")).await;
    let body = PayloadBody::Artifact { digest: Digest([9; 32]), size_bytes: 70_000 };
    let output = Payload { key_id: 0, body };
    worker.say(report(1, 7, 1, ReportKind::Completed { output, usage: Usage::default(), metadata: None })).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    assert_eq!(worker.hears().await, "stream of 7 attempt 1 to 2");
    let state = cluster.controller.service().handle().applied();
    let job = state.job(JobId(7)).expect("a job");
    let error = &job.failure.as_ref().expect("failed").error;
    assert!(error.starts_with("could not record the result: no such artifact: sha256:0909"), "{error}");
    let Some(Payload { body: PayloadBody::Artifact { size_bytes, .. }, .. }) = job.stream.as_deref() else {
        panic!("{:?}", job.stream)
    };
    assert!(*size_bytes > 120_000);
}

#[tokio::test]
async fn whoever_missed_something_says_hello_again_and_lines_of_ended_jobs_are_forgotten() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    worker.hears().await;
    let door = cluster.door();
    let (out, outgoing) = outbox::outbox();
    let Ok(_seat) = door.hub.enter(identity(), program(Level::CURRENT, true), &Stored::default(), out) else {
        panic!("refused")
    };
    let event = StreamEvent {
        number: 1,
        at: Timestamp(1),
        kind: StreamKind::Log,
        level: "info".to_owned(),
        text: "hello".to_owned(),
    };
    let streams = door.service.streams();
    for job in [7, 8] {
        streams.push(JobId(job), Attempt(1), vec![event.clone()]);
    }
    door.hub.start_over();
    let frames: Vec<_> = outgoing.collect().await;
    let [Err(reason)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(reason.message(), "the controller fell behind its log");
    assert!(streams.collect(JobId(7), Attempt(1)).is_some());
    assert!(streams.collect(JobId(8), Attempt(1)).is_none());
}

#[tokio::test]
async fn workers_of_a_member_that_does_not_lead_are_sent_to_the_leader() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    let door = cluster.door();
    let (out, outgoing) = outbox::outbox();
    let Ok(_seat) = door.hub.enter(identity(), program(Level::CURRENT, true), &Stored::default(), out) else {
        panic!("refused")
    };
    door.hub.hand_over(Some("there:7401"));
    let frames: Vec<_> = outgoing.collect().await;
    let Ok(SessionResponse { kind: Some(Kind::NotLeader(last)) }) = &frames[1] else { panic!("{frames:?}") };
    assert_eq!(last.leader_address, "there:7401");
}

#[tokio::test]
async fn inputs_and_steps_without_room_in_a_welcome_are_told_by_reference() {
    const JOBS: u64 = 600;
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker_of("n1", 1, JOBS as u32).await;
    worker.hears().await;
    cluster.submit_large(1..=JOBS).await;
    for _ in 0..JOBS {
        assert!(worker.hears().await.starts_with("grant"));
    }
    // Some at a time, so that the test waits for few syncs.
    for together in (1..=JOBS).collect::<Vec<_>>().chunks(12) {
        for &number in together {
            worker.say(steps::record(number, number, number, 0, &[&format!("\"{number:0>30000}\"")])).await;
        }
        for _ in together {
            assert!(worker.hears().await.ends_with("result: Applied }"));
        }
    }
    drop(worker);
    let mut worker = cluster.worker_of("n1", 1, JOBS as u32).await;
    let welcome = worker.welcome().await;
    assert_eq!(welcome.leases.len() as u64, JOBS);
    let bodies = welcome.leases.iter().map(|lease| &lease.input.body);
    let digest = |body: &PayloadBody| match body {
        PayloadBody::Artifact { digest, .. } => Some(*digest),
        PayloadBody::Inline(_) => None,
    };
    let digests: Vec<_> = bodies.filter_map(digest).collect();
    assert!(digests.len() > 150 && digests.len() < 400, "{}", digests.len());
    let journals = welcome.leases.iter().filter_map(|lease| lease.journal.as_ref());
    let unfolded: Vec<_> = journals.clone().filter_map(|journal| journal.unfolded.as_ref()).collect();
    let inline = journals.map(|journal| journal.journal.steps.len()).sum::<usize>();
    assert!(!unfolded.is_empty() && inline + unfolded.len() == JOBS as usize, "{inline} and {}", unfolded.len());
    let PayloadBody::Artifact { digest, .. } = unfolded[0].body else { panic!("{:?}", unfolded[0]) };
    let steps = cluster.controller.service().artifacts().read(digest).await.expect("stored");
    assert_eq!(decode_steps(&steps).expect("steps").len(), 1);
    let input = cluster.controller.service().artifacts().read(digests[0]).await.expect("stored");
    assert_eq!(input.len(), 65_000);
}

#[tokio::test]
async fn a_result_that_no_client_could_read_fails_its_job_and_is_acknowledged() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    let deep = format!("{}1{}", "{\"a\":".repeat(3_000), "}".repeat(3_000));
    let completed_with = |output: &str, metadata: &str| ReportKind::Completed {
        output: Payload::inline(output.as_bytes()),
        usage: Usage::default(),
        metadata: Some(metadata.as_bytes().into()),
    };
    let cases = [
        (completed("{"), "the output is not JSON that every client can read"),
        (completed("1e999"), "the number at \"\" of the output is beyond the range of numbers"),
        (completed(r#"{"a":"\ud80"}"#), "the output is not JSON that every client can read"),
        (completed(&deep), "the output is nested more than 100 levels"),
        (completed_with("1", "[]"), "the metadata is not a JSON object"),
        (completed_with("1", r#"{"a":-1e999}"#), "the number at \"/a\" of the metadata is beyond the range of numbers"),
    ];
    for (number, (kind, reason)) in (1..).zip(cases) {
        cluster.submit(number, "plain").await;
        assert!(worker.hears().await.starts_with("grant"));
        worker.say(report(number, number, number, kind)).await;
        assert_eq!(worker.hears().await, format!("report {number} Applied"));
        assert_eq!(cluster.failure(number), format!("Internal: could not record the result: {reason}"));
    }
    cluster.submit(50, "plain").await;
    worker.hears().await;
    let failure = Failure { kind: FailureKind::Agent, error: "it broke".into() };
    let output = Some(Payload::inline(deep.as_bytes()));
    let kind = ReportKind::Failed { failure, output, usage: Usage::default(), metadata: None, cancelled: false };
    worker.say(report(50, 50, 7, kind)).await;
    assert_eq!(worker.hears().await, "report 50 Applied");
    assert_eq!(cluster.failure(50), "Agent: it broke");
}

#[tokio::test]
async fn a_flood_of_warm_counts_becomes_few_entries() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    let entries = cluster.entries();
    for turn in 0..500_u32 {
        worker.say(ToLeader::WarmChanged { digest: Digest([1; 32]), idle: turn % 7 + 1 }).await;
    }
    let last = 499 % 7 + 1;
    let warm = || {
        let state = cluster.controller.service().handle().applied();
        let node = state.node(&"n1".parse().expect("a name")).expect("a node").node.clone();
        node.warm.get(&Digest([1; 32])).copied()
    };
    soon(async {
        while warm() != Some(last) {
            worker.say(ToLeader::Renew { number: 1 }).await;
            worker.hears().await;
        }
    })
    .await;
    assert!(cluster.entries() - entries < 50, "{}", cluster.entries() - entries);
}

#[tokio::test]
async fn payloads_travel_in_chunks() {
    let cluster = Cluster::start().await;
    let mut client = cluster.client().await;
    let bytes = Bytes::from(vec![b'7'; 2 * CHUNK_BYTES + 1]);
    let chunks = [bytes.slice(..CHUNK_BYTES), bytes.slice(CHUNK_BYTES..)];
    let requests = tokio_stream::iter(chunks.map(|chunk| StorePayloadRequest { chunk }));
    let stored = soon(client.store_payload(requests)).await.expect("stored").into_inner();
    assert_eq!(stored.size_bytes, bytes.len() as u64);
    let digest = digest_in("digest", &stored.digest).expect("32 bytes");
    assert_eq!(digest, atlas_service::digest_of(&bytes));
    let request = FetchPayloadRequest { digest: stored.digest };
    let mut chunks = soon(client.fetch_payload(request)).await.expect("there").into_inner();
    let mut found = Vec::new();
    while let Some(chunk) = soon(chunks.message()).await.expect("whole") {
        found.extend_from_slice(&chunk.chunk);
    }
    assert_eq!(found, bytes);
    let request = FetchPayloadRequest { digest: digest_out(Digest([9; 32])) };
    let status = soon(client.fetch_payload(request)).await.expect_err("missing");
    assert_eq!(atlas_wire::Error::from(&status).code, "E3010");
}
