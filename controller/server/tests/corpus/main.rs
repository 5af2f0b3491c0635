//! Bad input: some five hundred files, created by the generator in this folder, each sent to a controller as a client would.
//!
//! Each gives a coded error or a correct effect, and never a 5xx, a panic, much time or much memory. The controller runs within this
//! process, so that its processor time and its memory can be read; that is why this is a program of its own with one test.

mod client;
mod framing;
mod json;
mod measure;
mod package;
mod schema;
mod write;
mod yaml;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use client::{Reply, Server};
use measure::Gauge;
use write::{Case, Expect, Kind};

// The controller's allocator.
use atlas_heap as _;

/// How often a case may be tried until its time is within the bound: a background task may have run beside it.
const TRIES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "the figures of a run")]
async fn no_input_does_harm() {
    let panics = count_panics();
    let folder = tempfile::tempdir().expect("a folder");
    let count = write::write_all(folder.path());
    assert!(count >= 400, "the generator made {count} files only");
    let cases = write::read_all(folder.path());
    assert_eq!(cases.len(), count);
    let server = Server::start().await;
    warm_up(&server).await;
    let gauge = Gauge::default();
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(why) = judge(&server, &gauge, case).await {
            wrong.push(format!("{}: {why}", case.name));
        }
    }
    eprintln!("{count} files; {}", gauge.costs());
    assert_eq!(panics.load(Ordering::Relaxed), 0, "a panic");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(server.get("/api/health").await.status, 200);
}

/// Counts panics of all threads; the controller catches those of its handlers.
fn count_panics() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, usual) = (count.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        counted.fetch_add(1, Ordering::Relaxed);
        usual(panic);
    }));
    count
}

/// One-time work of the process is not counted: the rules are compiled, the agent that inputs go to is registered.
async fn warm_up(server: &Server) {
    let registered = server.register(package::of_contract(json::AGENT.as_bytes())).await;
    assert_eq!(registered.status, 201, "{registered:?}");
    let submitted = server.submit(br#"{"agent": "corpus", "input": {"n": 1}}"#).await;
    assert_eq!(submitted.status, 201, "{submitted:?}");
}

async fn judge(server: &Server, gauge: &Gauge, case: &Case) -> Result<(), String> {
    let mut least = Err(String::new());
    for _ in 0..TRIES {
        let before = gauge.begin();
        let reply = send(server, case).await;
        let mut cost = gauge.check(&before);
        outcome(case.kind, case.expect, &reply)?;
        if case.kind == Kind::Schema && reply.status == 201 {
            for submission in schema::SUBMISSIONS {
                let before = gauge.begin();
                let reply = server.submit(submission.as_bytes()).await;
                outcome(Kind::Json, Expect::Either, &reply)?;
                cost = cost.and_then(|most| Ok(most.max(gauge.check(&before)?)));
            }
        }
        least = cost;
        if least.is_ok() {
            break;
        }
    }
    gauge.note(&case.name, least?);
    Ok(())
}

async fn send(server: &Server, case: &Case) -> Reply {
    match case.kind {
        Kind::Yaml => server.register(package::of_contract(&case.bytes)).await,
        Kind::Schema => server.register(package::of_contract(&schema::contract(&case.bytes))).await,
        Kind::Package => server.register(case.bytes.clone()).await,
        Kind::Json => server.submit(&case.bytes).await,
        Kind::Http => server.raw(&case.bytes).await,
    }
}

fn outcome(kind: Kind, expect: Expect, reply: &Reply) -> Result<(), String> {
    let refused = (400..500).contains(&reply.status);
    // What is not a request has no answer of ours: the connection ends, or the layer below says that it is bad.
    let framed = kind == Kind::Http && (reply.status == 0 || reply.code.is_none());
    // What the interface has no path or method for is answered as Atlas for Python answers it, as text.
    let nothing_there = ["404: Not Found", "405: Method Not Allowed"].contains(&&*reply.body) && reply.code.is_some();
    if refused && !framed && !nothing_there {
        let json: serde_json::Value =
            serde_json::from_str(&reply.body).map_err(|error| format!("{error} in {reply:?}"))?;
        if !(json["error"].is_string() || json["detail"].is_string()) || reply.code.is_none() {
            return Err(format!("no coded error: {reply:?}"));
        }
    }
    let as_expected = match expect {
        Expect::Accepted => (200..300).contains(&reply.status),
        Expect::Refused => refused || framed && reply.status == 0,
        Expect::Either => (200..500).contains(&reply.status) || framed && reply.status == 0,
    };
    if as_expected { Ok(()) } else { Err(format!("expected {expect:?}: {reply:?}")) }
}
