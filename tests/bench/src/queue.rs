//! Measures a queue of jobs in PostgreSQL, as many teams build one: a table, `FOR UPDATE SKIP LOCKED`, durable commits.
//!
//! It does what Atlas does for a job without work: the job is stored, taken, and its result stored, each with a commit of its own. What Atlas
//! does besides is left out, so it is the most that such a queue can do: there is no server before the database, and the client learns of the
//! end within this process instead of asking the database. Without PostgreSQL, nothing is measured.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use atlas_env::Env;
use atlas_postgres::Postgres;
use futures::future::{select, try_join_all};
use tokio::sync::{Semaphore, oneshot};
use tokio_postgres::{Client, NoTls, Statement};

use crate::figures::Row;

/// The numbers of concurrent jobs.
const CONCURRENCIES: [usize; 2] = [1, 64];

/// The most connections that take jobs. More are slower on two cores.
const WORKERS_MAX: usize = 16;

/// The warm-up time, which is not counted, and the measured time, both as for Atlas's jobs.
const WARM_UP: Duration = Duration::from_millis(1500);
const MEASURED: Duration = Duration::from_secs(5);

const TABLE: &str = "
    CREATE TABLE jobs (id bigserial PRIMARY KEY, agent text NOT NULL, status text NOT NULL, input jsonb NOT NULL, output jsonb,
                       created_at timestamptz NOT NULL DEFAULT now(), ended_at timestamptz);
    CREATE INDEX waiting ON jobs (id) WHERE status = 'queued'";
const SUBMIT: &str = "INSERT INTO jobs (agent, status, input) VALUES ('noop', 'queued', '{}') RETURNING id";
const TAKE: &str = "
    UPDATE jobs SET status = 'running' WHERE id =
        (SELECT id FROM jobs WHERE status = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id";
const END: &str = "UPDATE jobs SET status = 'completed', output = '{}', ended_at = now() WHERE id = $1";

/// What the clients and the workers of this process tell each other.
struct Told {
    /// One permit for each submitted job that nobody has taken.
    waiting: Semaphore,
    /// Who waits for the end of a job; an end that comes before its client waits.
    ends: Mutex<HashMap<i64, Option<oneshot::Sender<()>>>>,
}

pub(crate) fn run(env: &Env, rows: &[Row]) -> Result<Vec<Row>> {
    let Some(server) = Postgres::start() else { return Ok(Vec::new()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        open(env, &server).await?.batch_execute(TABLE).await.context("could not create the table")?;
        let mut measured = Vec::new();
        for concurrency in CONCURRENCIES {
            let row = load(env, &server, concurrency).await?;
            let ours = rows.iter().find(|row| row.name == "jobs_noop" && row.concurrency == concurrency);
            measured.push(match ours {
                Some(ours) if concurrency == 1 => row.median_against("Atlas's no-op", ours.p50_us),
                Some(ours) => row.value_against("Atlas's no-ops", ours.value),
                None => row,
            });
        }
        Ok(measured)
    })
}

async fn load(env: &Env, server: &Postgres, concurrency: usize) -> Result<Row> {
    let told = Arc::new(Told { waiting: Semaphore::new(0), ends: Mutex::default() });
    let warm = env.clock.monotonic() + WARM_UP;
    let clients = try_join_all((0..concurrency).map(|_| client(env, server, &told, warm)));
    let workers = try_join_all((0..concurrency.min(WORKERS_MAX)).map(|_| worker(env, server, &told)));
    match select(std::pin::pin!(clients), std::pin::pin!(workers)).await {
        futures::future::Either::Left((latencies, _)) => {
            Ok(Row::rate("queue_postgres", concurrency, latencies?.concat(), MEASURED))
        }
        futures::future::Either::Right((ended, _)) => {
            ended?;
            anyhow::bail!("the workers ended")
        }
    }
}

/// Submits one job after the other, and waits for the end of each.
async fn client(env: &Env, server: &Postgres, told: &Told, warm: Duration) -> Result<Vec<Duration>> {
    let connection = open(env, server).await?;
    let submit = prepared(&connection, SUBMIT).await?;
    let mut latencies = Vec::new();
    loop {
        let begun = env.clock.monotonic();
        if begun > warm + MEASURED {
            return Ok(latencies);
        }
        let id: i64 = connection.query_one(&submit, &[]).await?.try_get(0)?;
        told.waiting.add_permits(1);
        let (end, ended) = oneshot::channel();
        // Its end may have come already.
        let early = told.ends.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Some(end)).is_some();
        if !early {
            ended.await?;
        }
        told.ends.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if begun >= warm {
            latencies.push(env.clock.monotonic() - begun);
        }
    }
}

/// Takes waiting jobs and ends them. Never completes.
async fn worker(env: &Env, server: &Postgres, told: &Told) -> Result<()> {
    let connection = open(env, server).await?;
    let (take, end) = (prepared(&connection, TAKE).await?, prepared(&connection, END).await?);
    loop {
        told.waiting.acquire().await?.forget();
        // The job of this permit may be locked by another worker, which then takes this one's.
        let Some(row) = connection.query_opt(&take, &[]).await? else {
            told.waiting.add_permits(1);
            continue;
        };
        let id: i64 = row.try_get(0)?;
        connection.execute(&end, &[&id]).await?;
        let waits = told.ends.lock().unwrap_or_else(PoisonError::into_inner).insert(id, None);
        if let Some(Some(client)) = waits {
            // The client may have ended with an error.
            let _ = client.send(());
        }
    }
}

async fn open(env: &Env, server: &Postgres) -> Result<Client> {
    let (client, connection) =
        tokio_postgres::connect(&server.url(), NoTls).await.context("could not connect to PostgreSQL")?;
    // It ends with its client, which reports what failed.
    env.spawn("postgres", connection);
    Ok(client)
}

async fn prepared(client: &Client, text: &str) -> Result<Statement> {
    client.prepare(text).await.with_context(|| format!("could not prepare: {}", text.trim()))
}
