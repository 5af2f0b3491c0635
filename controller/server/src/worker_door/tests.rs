//! Whole sessions: a real controller on one side, a worker that only talks on the other.

mod fake;

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{
    BootId, Command, Digest, FencingToken, JobId, LoseLease, NodeEpoch, Payload, PayloadBody, ReportKind, Usage,
};
use atlas_wire::convert::{digest_in, digest_out};
use atlas_wire::limits::CHUNK_BYTES;
use atlas_wire::proto::worker::v1::session_response::Kind;
use atlas_wire::proto::worker::v1::{FetchPayloadRequest, SessionRequest, SessionResponse, StorePayloadRequest};
use atlas_wire::session::ToLeader;
use bytes::Bytes;
use tokio_stream::StreamExt as _;

use super::{Door, Parts, outbox};
use fake::{Cluster, completed, hello, line, report, soon};

const WELCOME: &str = "welcome epoch 1 ttl 10s leases []";

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
    let entries = cluster.entries();
    drop(worker);
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, "welcome epoch 1 ttl 10s leases [(7, 1)]");
    assert_eq!(worker.hears().await, "cancel job 7 token 1");
    assert_eq!(cluster.entries(), entries);
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
    let mut new = cluster.worker("n1", 2).await;
    let welcome = new.hears().await;
    // The lost job comes to the node again, with the welcome or right after it.
    if welcome == "welcome epoch 2 ttl 10s leases []" {
        assert_eq!(new.hears().await, "grant job 7 token 2 attempt 2 of plain 1.0.0 needs_start false");
    } else {
        assert_eq!(welcome, "welcome epoch 2 ttl 10s leases [(7, 2)]");
    }
    let mut reason = old.hears().await;
    if reason == "revoke job 7 token 1" {
        reason = old.hears().await;
    }
    assert!(reason.starts_with("Aborted: "), "{reason}");
    new.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(new.hears().await, "report 1 Fenced");
    new.say(report(2, 7, 2, completed("2"))).await;
    assert_eq!(new.hears().await, "report 2 Applied");
    assert_eq!(cluster.job(7), "completed Some(2) None");
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
    let entries = cluster.entries();
    let frames: [(SessionRequest, &str); 4] = [
        (SessionRequest { kind: None }, "InvalidArgument: field \"session_request.kind\" is missing"),
        (hello("n1", 1).into(), "InvalidArgument: a stream has one hello"),
        (
            report(1, 7, 1, completed("{")).into(),
            "InvalidArgument: field \"report.output\" is not JSON, or nests too deep",
        ),
        (
            report(1, 7, 1, completed(&"1".repeat(70_000))).into(),
            "InvalidArgument: field \"payload.inline\" has 70000 bytes or items, more than 65536",
        ),
    ];
    for (frame, reason) in frames {
        let mut worker = cluster.worker("n1", 1).await;
        assert_eq!(worker.hears().await, "welcome epoch 1 ttl 10s leases [(7, 1)]");
        worker.say_frame(frame).await;
        assert_eq!(worker.hears().await, reason);
    }
    let mut stranger = cluster.stranger().await;
    stranger.say(ToLeader::Renew { number: 1 }).await;
    assert_eq!(stranger.hears().await, "InvalidArgument: the first frame is not a hello");
    assert_eq!(cluster.entries(), entries);
    assert_eq!(cluster.job(7), "running None None");
}

#[tokio::test]
async fn a_report_of_a_lease_that_was_never_granted_is_fenced() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    let entries = cluster.entries();
    worker.say(report(1, 99, 5, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Fenced");
    assert_eq!(cluster.entries(), entries);
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
    // Known by its number.
    worker.say(line(7, 2, "again")).await;
    let body = PayloadBody::Artifact { digest: Digest([9; 32]), size_bytes: 70_000 };
    let output = Payload { key_id: 0, body };
    worker.say(report(1, 7, 1, ReportKind::Completed { output, usage: Usage::default(), metadata: None })).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    assert_eq!(worker.hears().await, "stream of 7 attempt 1 to 2");
    let state = cluster.controller.service().handle().applied();
    let job = state.job(JobId(7)).expect("a job");
    let error = &job.failure.as_ref().expect("failed").error;
    assert!(error.starts_with("the result could not be recorded: there is no artifact sha256:0909"), "{error}");
    let Some(Payload { body: PayloadBody::Artifact { size_bytes, .. }, .. }) = job.stream else {
        panic!("{:?}", job.stream)
    };
    assert!(size_bytes > 120_000);
}

#[tokio::test]
async fn whoever_missed_something_gets_the_whole_set() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    cluster.submit(7, "plain").await;
    worker.hears().await;
    let door = Door::new(Parts {
        service: cluster.controller.service().clone(),
        env: Env::system(),
        session_ttl: Duration::from_secs(1),
        members: BTreeMap::new(),
    });
    let (out, outgoing) = outbox::outbox();
    let identity = ("n1".parse().expect("a name"), NodeEpoch(1), BootId(1));
    let Ok(_seat) = door.hub.enter(identity, out) else { panic!("refused") };
    door.hub.refresh();
    door.hub.hand_over(Some("there:7401"));
    let frames: Vec<_> = outgoing.collect().await;
    let leases = |frame: &Result<SessionResponse, _>| match frame.as_ref().map(|frame| &frame.kind) {
        Ok(Some(Kind::Welcome(welcome))) => welcome.leases.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!([leases(&frames[0]), leases(&frames[1])], [1, 1]);
    let Ok(SessionResponse { kind: Some(Kind::NotLeader(last)) }) = &frames[2] else { panic!("{frames:?}") };
    assert_eq!(last.leader_address, "there:7401");
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
