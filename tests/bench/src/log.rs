//! Measures appends to our log, compared with a simple loop that writes and syncs the same blocks.

use std::sync::mpsc;

use anyhow::{Context, Result};
use atlas_env::Env;
use atlas_log::{FileDriver, Limits, Log, LogId};
use bytes::Bytes;

use crate::figures::{Row, median};

/// The numbers of entries per sync.
const BATCHES: [usize; 4] = [1, 16, 64, 256];

/// The number of syncs of one row.
const SYNCS: usize = 2000;

/// The size used in the comparison of log stores that led to the choice of our log.
const ENTRY_BYTES: usize = 200;

pub(crate) fn run(env: &Env, rows: &[Row]) -> Result<Vec<Row>> {
    let fsync = median(rows, "limit_fsync", 1);
    BATCHES.into_iter().map(|batch| Ok(appends(env, batch)?.median_against("one bare sync", fsync))).collect()
}

fn appends(env: &Env, batch: usize) -> Result<Row> {
    let folder = tempfile::tempdir_in(".")?;
    let limits = Limits::default();
    let driver = FileDriver::open(folder.path(), limits.segment_bytes, env)?;
    let log = Log::open(Box::new(driver), limits, Some(1), env)?;
    log.set_inline(true);
    let data = Bytes::from(vec![7; ENTRY_BYTES]);
    let mut latencies = Vec::with_capacity(SYNCS);
    let mut index = 0;
    let begun = env.clock.monotonic();
    for _ in 0..SYNCS {
        let (done, durable) = mpsc::sync_channel(1);
        let entries: Vec<_> =
            (0..batch as u64).map(|n| (LogId { term: 1, node: 1, index: index + n }, data.clone())).collect();
        index += batch as u64;
        let started = env.clock.monotonic();
        // Sending cannot fail, because the receiver waits below.
        log.append(entries, Box::new(move |result| _ = done.send(result.is_ok())))?;
        let durable = durable.recv().context("the log answers")?;
        anyhow::ensure!(durable, "an append failed");
        latencies.push(env.clock.monotonic() - started);
    }
    let mut row = Row::rate("log_append", batch, latencies, env.clock.monotonic() - begun);
    row.value *= batch as f64;
    Ok(row)
}
