//! Queries on many rows: the database reads what it shows, and no table as a whole.

use atlas_postgres::Postgres;

use super::node::Node;

/// Rows that are like those of jobs, in two months.
const ROWS: &str = "INSERT INTO atlas.job
    SELECT n, '2026-11-01'::timestamptz + n * interval '40 seconds', 'job-' || n, 'default', 'agent-' || n % 100, '1.0.0',
        CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'completed' END, NULL, NULL, 0, n,
        '2026-11-01'::timestamptz + n * interval '40 seconds', NULL, 0, 0, true, 1, 0, NULL, NULL, NULL, NULL, 'n1', 'local',
        'http', NULL, 0, 0, 0, jsonb_build_object('team', 'team-' || n % 5000), '{}',
        to_tsvector('simple', 'agent-' || n % 100 || ' word' || n % 5000)
    FROM generate_series(1, 100000) AS n";

/// The plan of a query on the view of jobs.
fn plan(postgres: &Postgres, query: &str) -> String {
    postgres.sql(&format!("EXPLAIN {query}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_query_of_a_list_reads_a_whole_table() {
    let Some(postgres) = Postgres::start() else { return };
    let node = Node::start(1);
    node.jobs(1, 1).await;
    let export = node.export(&postgres);
    node.exported(&postgres).await;
    export.stop().await;
    for (month, next) in [("2026_12", "2027-01-01"), ("2026_11", "2026-12-01")] {
        let from = format!("{}-01", month.replace('_', "-"));
        postgres.sql(&format!(
            "CREATE TABLE IF NOT EXISTS atlas.job_{month} PARTITION OF atlas.job
             FOR VALUES FROM ('{from} 00:00:00+00') TO ('{next} 00:00:00+00')"
        ));
    }
    postgres.sql("TRUNCATE atlas.job");
    postgres.sql(ROWS);
    postgres.sql("ANALYZE atlas.job");
    for condition in [
        "true",
        "agent = 'agent-7'",
        "status = 'failed'",
        "agent = 'agent-7' AND status = 'completed'",
        "queue_seq < 50000",
        "agent = 'agent-7' AND queue_seq < 50000",
        "labels @> '{\"team\": \"team-77\"}'",
        "words @@ plainto_tsquery('simple', 'word77')",
        "created_at BETWEEN '2026-11-10' AND '2026-11-11'",
    ] {
        let query =
            format!("SELECT id, agent, status FROM atlas.jobs WHERE {condition} ORDER BY queue_seq DESC LIMIT 50");
        let plan = plan(&postgres, &query);
        assert!(!plan.contains("Seq Scan"), "{condition}:\n{plan}");
        assert_eq!(postgres.sql(&query).lines().count().min(20), 20, "{condition}");
    }
    let query = "SELECT id, agent, status FROM atlas.jobs WHERE created_at BETWEEN '2026-11-10' AND '2026-11-11' ORDER BY created_at DESC LIMIT 50";
    let by_time = plan(&postgres, query);
    assert!(!by_time.contains("Seq Scan") && !by_time.contains("->  Sort"), "{by_time}");
    let one = plan(&postgres, "SELECT * FROM atlas.jobs WHERE id = 'job-77'");
    assert!(!one.contains("Seq Scan"), "{one}");
}
