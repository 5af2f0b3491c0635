//! Restores from backups, of the database and of the cluster.

use atlas_postgres::Postgres;

use super::node::{Node, wait_for};

const IDS: &str = "SELECT string_agg(queue_seq::text, ' ' ORDER BY event_seq) FROM atlas.jobs";

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_restored_from_an_old_backup_is_filled_again() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 10).await;
    let export = node.export(&postgres);
    node.exported(&postgres).await;
    export.stop().await;
    // The backup was taken after four jobs: each has two events.
    for table in ["job", "call", "run"] {
        postgres.sql(&format!("DELETE FROM atlas.{table} WHERE event_seq > 8"));
    }
    postgres.sql("UPDATE atlas.progress SET watermark = 8");
    node.jobs(11, 1).await;
    let _export = node.export(&postgres);
    node.exported(&postgres).await;
    assert_eq!(postgres.sql(IDS), "1 2 3 4 5 6 7 8 9 10 11");
    assert_eq!(postgres.sql("SELECT rebuilds FROM atlas.progress"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_restored_cluster_does_not_have_are_replaced() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 10).await;
    node.synced().await;
    let export = node.export(&postgres);
    node.exported(&postgres).await;
    export.stop().await;
    // Its backup was taken after four jobs, and it has run other jobs since.
    let restored = node.restored(2, 8).await;
    restored.jobs(101, 3).await;
    restored.synced().await;
    let _export = restored.export(&postgres);
    restored.exported(&postgres).await;
    assert_eq!(postgres.sql(IDS), "1 2 3 4 101 102 103");
    assert_eq!(postgres.sql("SELECT right(cluster, 1), rebuilds FROM atlas.progress"), "2|1");
    assert_eq!(postgres.sql("SELECT count(*) FROM atlas.calls"), "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_copied_back_under_its_own_id_is_noticed() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 10).await;
    node.synced().await;
    let export = node.export(&postgres);
    node.exported(&postgres).await;
    export.stop().await;
    let copied = node.restored(1, 8).await;
    // It is past the watermark already, with other jobs.
    copied.jobs(101, 20).await;
    copied.synced().await;
    let _export = copied.export(&postgres);
    copied.exported(&postgres).await;
    let expected: Vec<_> = (1..=4).chain(101..=120).map(|id: u64| id.to_string()).collect();
    assert_eq!(postgres.sql(IDS), expected.join(" "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_cluster_is_left_alone() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 10).await;
    let export = node.export(&postgres);
    node.exported(&postgres).await;
    export.stop().await;
    let other = Node::start(2);
    other.jobs(101, 5).await;
    other.synced().await;
    let _export = other.export(&postgres);
    other.failing().await;
    assert_eq!(postgres.sql(IDS), "1 2 3 4 5 6 7 8 9 10");
    wait_for(|| postgres.sql("SELECT right(cluster, 1) FROM atlas.progress") == "1").await;
}
