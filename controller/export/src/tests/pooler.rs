//! A pooler between the leader and the server gives each transaction whichever connection is free.

use atlas_postgres::{Bouncer, Postgres};
use tokio_postgres::{Client, NoTls};

use super::node::Node;

/// A client that is in a transaction, and so has a connection to the server for itself.
async fn holder(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
    atlas_env::Env::system().spawn("connection", async { drop(connection.await) });
    client.batch_execute("BEGIN").await.expect("begun");
    client
}

/// The value of a setting on the client's connection.
async fn setting(client: &Client, name: &str) -> String {
    let found = client.query_typed_one(&format!("SELECT current_setting('{name}')"), &[]).await;
    found.expect("a setting").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_export_continues_on_other_connections_of_a_pooler() {
    let Some(postgres) = Postgres::start() else { return };
    let Some(bouncer) = Bouncer::start(&postgres, 2) else { return };
    let node = Node::start(1);
    node.jobs(1, 10).await;
    let _export = node.export_to(&bouncer.url(), None);
    node.exported(&postgres).await;
    // Takes the connection that served the export, so that the next batch is written by another one.
    let first = holder(&bouncer.url()).await;
    for setting_name in ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] {
        assert_eq!(setting(&first, setting_name).await, "0", "{setting_name} is left behind for the next client");
    }
    node.jobs(11, 10).await;
    node.exported(&postgres).await;
    // Both connections have changed hands.
    first.batch_execute("COMMIT").await.expect("ended");
    let second = holder(&bouncer.url()).await;
    node.jobs(21, 10).await;
    node.exported(&postgres).await;
    second.batch_execute("COMMIT").await.expect("ended");
    node.jobs(31, 10).await;
    node.exported(&postgres).await;
    let found = postgres.sql("SELECT count(*), count(DISTINCT id) FROM atlas.jobs");
    assert_eq!(found, "40|40");
    // The exporter would connect again after an error, and a statement that was prepared elsewhere is one.
    let log = std::fs::read_to_string(postgres.log()).expect("a log");
    let errors: Vec<&str> =
        log.lines().filter(|line| line.contains("prepared statement") || line.contains("WARNING:")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
