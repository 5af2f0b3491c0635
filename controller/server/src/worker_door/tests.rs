//! Whole sessions: a real controller on one side, a worker that only talks on the other.

#![expect(clippy::disallowed_methods, reason = "tests bound what they wait for by the machine's clock")]

mod fake;

use atlas_types::{Command, Digest, FencingToken, JobId, LoseLease, ReportKind};
use atlas_wire::convert::{digest_in, digest_out};
use atlas_wire::limits::CHUNK_BYTES;
use atlas_wire::proto::worker::v1::{FetchPayloadRequest, SessionRequest, StorePayloadRequest};
use atlas_wire::session::ToLeader;
use bytes::Bytes;

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
    let status = soon(client.fetch_payload(request)).await.err().expect("missing");
    assert_eq!(atlas_wire::Error::from(&status).code, "E3010");
}
