//! Tests of the totals: each ended job counts once, also after retention, an upgrade, a repeat and in a copy.

use atlas_types::{JobStatus, Namespace};
use expect_test::{Expect, expect};

use super::tests::{BEFORE_6, BEFORE_7, event, file, open, synced};
use super::*;

/// Job 2 and job 4 of `echo` complete, job 3 of `count` fails, job 5 of `count` is cancelled.
async fn fill(history: &SqliteHistory) {
    for (seq, id, status) in [
        (1, 2, JobStatus::Completed),
        (2, 3, JobStatus::Failed),
        (3, 4, JobStatus::Completed),
        (4, 5, JobStatus::Cancelled),
    ] {
        history.append([event(seq, id, JobStatus::Running, status)].into()).await.expect("queued");
    }
    synced(history, 4).await;
}

async fn check(history: &SqliteHistory, expected: &Expect) {
    let totals = history.totals().await.expect("reads");
    let agents = totals.agents.iter().map(|agent| {
        let of = (agent.completed, agent.failed, agent.cancelled);
        format!("{}: {of:?}, warm {}, retries {}\n", agent.agent, agent.warm, agent.retries)
    });
    let agents: String = agents.collect();
    let ends: Vec<String> = totals.ends.iter().map(|end| format!("{} {}", end.event, end.agent)).collect();
    expected.assert_eq(&format!("through {}\n{agents}{}\n", totals.through, ends.join(", ")));
}

#[tokio::test]
async fn each_ended_job_counts_once() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    fill(&history).await;
    fill(&history).await;
    let all = expect![[r#"
        through 4
        count: (0, 1, 1), warm 0, retries 1
        echo: (2, 0, 0), warm 2, retries 2
        1 echo, 2 count, 3 echo
    "#]];
    check(&history, &all).await;
    let namespace = Namespace::default_namespace();
    let kept = KeepRule { namespace, jobs_max: Some(1), age_max: None };
    history.keep([kept].into()).await.expect("queued");
    history.close().await.expect("closes");
    let history = open(&path).expect("opens again");
    assert!(history.job(JobId(2)).await.expect("reads").is_none(), "retention has removed it");
    check(&history, &all).await;
}

#[tokio::test]
async fn a_file_of_version_5_counts_its_jobs() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    fill(&history).await;
    history.close().await.expect("closes");
    let connection = Connection::open(&path).expect("opens");
    let older = format!("{BEFORE_7} {BEFORE_6} PRAGMA user_version = 5");
    connection.execute_batch(&older).expect("as version 5 left it");
    let history = open(&path).expect("opens");
    check(
        &history,
        &expect![[r#"
            through 4
            count: (0, 1, 1), warm 0, retries 1
            echo: (2, 0, 0), warm 2, retries 2
            1 echo, 2 count, 3 echo
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_copy_counts_the_jobs_that_it_includes() {
    let (dir, path) = file();
    let history = open(&path).expect("opens");
    fill(&history).await;
    let copied = dir.path().join("copy.sqlite");
    history.copy(copied.clone(), EventSeq(2)).await.expect("copied");
    check(
        &open(&copied).expect("opens"),
        &expect![[r#"
            through 2
            count: (0, 1, 0), warm 0, retries 1
            echo: (1, 0, 0), warm 1, retries 1
            1 echo, 2 count
        "#]],
    )
    .await;
}
