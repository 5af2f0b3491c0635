//! Tests with a real server: what is exported, and what happens to it when either side fails.

mod faults;
mod node;
mod plans;
mod pooler;
mod restore;

use std::time::Duration;

use atlas_postgres::Postgres;
use atlas_types::Timestamp;
use expect_test::{Expect, expect};

use node::{Node, wait_for};

fn check(postgres: &Postgres, sql: &str, expected: &Expect) {
    expected.assert_eq(&(postgres.sql(sql) + "\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_calls_and_costs_can_be_queried() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 10).await;
    let _export = node.export(&postgres);
    node.exported(&postgres).await;
    check(
        &postgres,
        "SELECT event_seq, id, agent, version, status, failure_kind, error, created_at, completed_at, waited_seconds,
            execution_seconds, warm, node, door, model, tokens_input, cost_usd, labels, metadata
         FROM atlas.jobs WHERE queue_seq IN (4, 5) ORDER BY queue_seq",
        &expect![[r#"
            8|job-0000000000000004|echo|1.2.3|completed|||2026-11-25 00:00:04+00|2026-11-25 00:00:07+00|1|1.5|t|n1|http|m-1|100|0.003|{"team": "blue"}|{"ticket": 7}
            10|job-0000000000000005|count|1.2.3|failed|timeout|too slow|2026-11-25 00:00:05+00|2026-11-25 00:00:08+00|1|1.5|t|n1|http|m-1|100|0.003|{"team": "blue"}|{"ticket": 7}
        "#]],
    );
    check(
        &postgres,
        "SELECT day, agent, jobs, failed, tokens_input, tokens_output, round(cost_usd::numeric, 6) FROM atlas.cost_by_day ORDER BY agent",
        &expect![[r#"
            2026-11-25|count|5|1|500|100|0.015000
            2026-11-25|echo|5|1|500|100|0.015000
        "#]],
    );
    check(
        &postgres,
        "SELECT job, number, model, duration_seconds, tokens_output, cost_usd FROM atlas.calls ORDER BY event_seq LIMIT 1",
        &expect![[r#"
            job-0000000000000001|0|m-1|0.25|20|0.003
        "#]],
    );
    assert_eq!(node.metrics.history_exported.get(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_erased_is_erased_here_too() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 3).await;
    let _export = node.export(&postgres);
    node.exported(&postgres).await;
    node.ended(4, |job| job.metadata = br#"{"name":"Ann"}"#.as_slice().into()).await;
    node.erase(Some(4)).await;
    node.exported(&postgres).await;
    let rows = "SELECT id, status, error, metadata, words FROM atlas.job ORDER BY event_seq DESC LIMIT 1";
    check(
        &postgres,
        rows,
        &expect![[r#"
            job-0000000000000004|failed||{}|
        "#]],
    );
    node.erase(None).await;
    node.ended(5, |_| ()).await;
    node.exported(&postgres).await;
    check(
        &postgres,
        "SELECT id FROM atlas.job UNION SELECT job FROM atlas.call ORDER BY 1",
        &expect![[r#"
            job-0000000000000005
        "#]],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_the_database_refuses_do_not_stop_the_export() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    let _export = node.export(&postgres);
    node.ended(1, |job| {
        job.metadata = br#"{"nul":"a\u0000b","\u0000":[{"x":"\u0000"}],"n":1e308}"#.as_slice().into();
        job.failure.as_mut().expect("it failed").error = "nul \0 and \u{1f980}".into();
        job.labels = std::sync::Arc::new([("a\0".to_owned(), "b\0".to_owned())].into());
    })
    .await;
    node.ended(2, |job| job.metadata = br#"{"half":"\ud800"}"#.as_slice().into()).await;
    node.ended(3, |job| job.metadata = br#"{"n":1e999999}"#.as_slice().into()).await;
    node.ended(4, |job| job.completed_at = Timestamp(i64::MAX)).await;
    node.ended(5, |job| job.completed_at = Timestamp(i64::MIN)).await;
    node.ended(6, |job| job.failure.as_mut().expect("it failed").error = "é".repeat(1 << 20).into()).await;
    node.ended(7, |job| job.queue_seq = u64::MAX).await;
    node.exported(&postgres).await;
    check(
        &postgres,
        "SELECT id, left(error, 9), completed_at, labels, metadata->'nul' FROM atlas.jobs ORDER BY event_seq",
        &expect![[r#"
            job-0000000000000001|nul � and|2026-11-25 00:00:04+00|{"a�": "b�"}|"a�b"
            job-0000000000000002|too slow|2026-11-25 00:00:05+00|{"team": "blue"}|
            job-0000000000000003|too slow|2026-11-25 00:00:06+00|{"team": "blue"}|
            job-0000000000000004|too slow|9998-12-31 23:59:59+00|{"team": "blue"}|
            job-0000000000000005|too slow|1970-01-01 00:00:00+00|{"team": "blue"}|
            job-0000000000000006|ééééééééé|2026-11-25 00:00:09+00|{"team": "blue"}|
            job-0000000000000007|too slow|2026-11-25 00:00:10+00|{"team": "blue"}|
        "#]],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn old_months_are_dropped() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    let at = |text: &str| Timestamp(text.parse::<jiff::Timestamp>().expect("a time").as_microsecond());
    node.ended(1, |job| job.completed_at = at("2001-01-31T23:59:59Z")).await;
    node.ended(2, |job| job.completed_at = at("2001-02-01T00:00:00Z")).await;
    node.ended(3, |job| job.completed_at = Timestamp(node::now())).await;
    let export = node.export(&postgres);
    node.exported(&postgres).await;
    export.stop().await;
    check(
        &postgres,
        "SELECT count(*) FROM atlas.jobs",
        &expect![[r#"
        3
    "#]],
    );
    let _export = node.export_to(&postgres.url(), Some(Duration::from_secs(30 * 86_400)));
    wait_for(|| postgres.sql("SELECT count(*) FROM atlas.jobs") == "1").await;
    let partitions = "SELECT count(*) FROM pg_class WHERE relname ~ '^(job|call|run)_2001'";
    check(
        &postgres,
        partitions,
        &expect![[r#"
        0
    "#]],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_newer_program_are_left_alone() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    postgres.sql("CREATE SCHEMA atlas");
    postgres.sql("CREATE TABLE atlas.migration (version integer PRIMARY KEY, applied_at timestamptz DEFAULT now())");
    postgres.sql("INSERT INTO atlas.migration (version) VALUES (99)");
    node.jobs(1, 1).await;
    let _export = node.export(&postgres);
    node.failing().await;
    check(
        &postgres,
        "SELECT to_regclass('atlas.job') IS NULL",
        &expect![[r#"
        t
    "#]],
    );
}
