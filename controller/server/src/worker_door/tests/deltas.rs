//! Pieces of models' answers on their way through the door to those who follow.

use atlas_service::{LogOutput, LogReader};
use atlas_types::{Attempt, Delta, JobId};
use atlas_wire::session::ToLeader;
use expect_test::expect;

use super::WELCOME;
use super::fake::{Cluster, Worker, completed, line, report, soon};

fn delta((step, try_number): (u32, u32), offset: u64, text: &str) -> ToLeader {
    let delta = Delta { step, try_number, offset, text: text.to_owned() };
    ToLeader::Deltas { job: JobId(7), attempt: Attempt(1), deltas: vec![delta] }
}

/// What a follower hears next, in words.
async fn heard(reader: &mut LogReader) -> String {
    match soon(reader.next()).await {
        Some(LogOutput::Lines(lines)) => format!("{} lines", lines.len()),
        Some(LogOutput::Pieces(pieces)) => {
            let words = pieces.iter().map(|piece| format!("{} {}", piece.name, String::from_utf8_lossy(&piece.json)));
            words.collect::<Vec<_>>().join("\n")
        }
        None => "end".to_owned(),
    }
}

/// Waits until the door has taken in what the worker said so far.
async fn settled(worker: &mut Worker, number: u64) {
    worker.say(ToLeader::Renew { number }).await;
    assert_eq!(worker.hears().await, format!("RenewAck {{ number: {number} }}"));
}

#[tokio::test]
async fn followers_hear_pieces_of_answers_and_what_they_missed() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    assert_eq!(worker.hears().await, WELCOME);
    cluster.submit(7, "plain").await;
    worker.hears().await;
    worker.say(delta((0, 1), 0, "nobody hears it")).await;
    worker.say(line(7, 1, "hello")).await;
    settled(&mut worker, 1).await;
    let (service, caller) = (cluster.controller.service(), cluster.controller.local_caller());
    let mut reader = service.follow_logs(&caller, JobId(7), None, true).await.expect("a job");
    let mut deaf = service.follow_logs(&caller, JobId(7), None, false).await.expect("a job");
    assert_eq!((heard(&mut reader).await, heard(&mut deaf).await), ("1 lines".to_owned(), "1 lines".to_owned()));
    for (call, offset, text) in [((1, 1), 0, "He"), ((1, 1), 2, "llo"), ((1, 2), 0, "Hi")] {
        worker.say(delta(call, offset, text)).await;
    }
    let mut out = String::new();
    for _ in 0..3 {
        out += &heard(&mut reader).await;
        out.push('\n');
    }
    expect![[r#"
        delta {"attempt":1,"step":1,"try":1,"offset":0,"text":"He"}
        delta {"attempt":1,"step":1,"try":1,"offset":2,"text":"llo"}
        reset {"attempt":1,"step":1,"try":2}
        delta {"attempt":1,"step":1,"try":2,"offset":0,"text":"Hi"}
    "#]]
    .assert_eq(&out);
    // The reader does not read while more comes than waits for it.
    for offset in 0..100 {
        worker.say(delta((2, 1), offset, "x")).await;
    }
    settled(&mut worker, 2).await;
    expect![[r#"
        gap {"attempt":1,"step":2,"try":1,"from":0,"to":36}
        delta {"attempt":1,"step":2,"try":1,"offset":36,"text":"x"}"#]]
    .assert_eq(&heard(&mut reader).await);
    worker.say(report(1, 7, 1, completed("{}"))).await;
    while heard(&mut reader).await != "end" {}
    assert_eq!(heard(&mut deaf).await, "end");
}
