//! Failures of the database and of the leader: nothing is lost, nothing is written twice, and nothing waits for the database.

use atlas_env::Env;
use atlas_postgres::Postgres;

use super::node::{Node, wait_for};

/// Each job is there once, and the watermark is that of the history.
fn check_complete(postgres: &Postgres, node: &Node, jobs: u64) {
    let found = postgres.sql("SELECT count(*), count(DISTINCT id), min(queue_seq), max(queue_seq) FROM atlas.jobs");
    assert_eq!(found, format!("{jobs}|{jobs}|1|{jobs}"));
    assert_eq!(postgres.sql("SELECT watermark FROM atlas.progress"), node.last().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_killed_under_load_blocks_nothing_and_loses_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    let _export = node.export(&postgres);
    let mut next = 1;
    for _ in 0..3 {
        node.jobs(next, 1_000).await;
        wait_for(|| postgres.try_sql("SELECT count(*) > 0 FROM atlas.job").is_ok_and(|found| found == "t")).await;
        node.jobs(next + 1_000, 1_000).await;
        postgres.kill();
        // While the database is down, the history takes events and syncs them.
        node.jobs(next + 2_000, 1_000).await;
        node.synced().await;
        node.failing().await;
        next += 3_000;
        postgres.launch();
        node.exported(&postgres).await;
    }
    check_complete(&postgres, &node, next - 1);
    wait_for(|| node.metrics.history_export_lag.get() == 0).await;
    assert_eq!(node.metrics.history_export_failing.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_answers_nothing_blocks_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    let export = node.export(&postgres);
    node.jobs(1, 10).await;
    node.exported(&postgres).await;
    postgres.freeze();
    node.jobs(11, 1_000).await;
    node.synced().await;
    // Neither does it keep a controller from stopping.
    export.stop().await;
    postgres.thaw();
    let _export = node.export(&postgres);
    node.exported(&postgres).await;
    check_complete(&postgres, &node, 1_010);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_leader_continues() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    let _export = node.export(&postgres);
    node.jobs(1, 500).await;
    node.exported(&postgres).await;
    node.jobs(501, 500).await;
    // Its export is interrupted wherever it is.
    node.loses_leadership();
    node.synced().await;
    let next = node.other().await;
    next.jobs(1_001, 500).await;
    let _next_export = next.export(&postgres);
    next.exported(&postgres).await;
    check_complete(&postgres, &next, 1_500);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_exporters_at_once_write_nothing_twice() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 5_000).await;
    node.synced().await;
    let other = node.other().await;
    // The old leader does not know yet that it leads no more.
    let (_one, _two) = (node.export(&postgres), other.export(&postgres));
    node.exported(&postgres).await;
    check_complete(&postgres, &node, 5_000);
    let rows = node.metrics.history_exported.get() + other.metrics.history_exported.get();
    assert_eq!(rows, 10_000, "jobs and calls, each written by one of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_an_old_leader_left_open_delays_the_next_one() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    let export = node.export(&postgres);
    node.jobs(1, 10).await;
    node.exported(&postgres).await;
    export.stop().await;
    let (client, connection) = tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await.expect("connects");
    let _connection = Env::system().spawn("connection", async move { drop(connection.await) });
    client.batch_execute("BEGIN; SELECT watermark FROM atlas.progress FOR UPDATE").await.expect("locked");
    let _export = node.export(&postgres);
    node.jobs(11, 10).await;
    // The server gives up waiting for the lock.
    node.failing().await;
    client.batch_execute("ROLLBACK").await.expect("released");
    node.exported(&postgres).await;
    check_complete(&postgres, &node, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_comes_late_gets_everything() {
    let Some(postgres) = Postgres::start() else { return };
    postgres.kill();
    let node = Node::start(1);
    let _export = node.export(&postgres);
    node.jobs(1, 10).await;
    node.failing().await;
    assert!(node.metrics.history_export_lag.get() > 0);
    postgres.launch();
    node.exported(&postgres).await;
    check_complete(&postgres, &node, 10);
    wait_for(|| node.metrics.history_export_failing.get() == 0).await;
}
