//! The transaction that writes a batch and its watermark.

use std::sync::LazyLock;

use atlas_types::EventSeq;
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::Type;

use crate::rows::Rows;
use crate::statement::Value;
use crate::table::{Calls, Jobs, Runs};
use crate::{ExportError, partition, statement};

/// What happened to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is in the database.
    Done,
    /// Another exporter has changed the watermark. Nothing was written.
    Elsewhere,
}

/// The watermark of the database.
pub(crate) async fn watermark(client: &mut Object) -> Result<EventSeq, ExportError> {
    let failed = ExportError::doing("read the watermark");
    let row = statement::ask_one(client, "SELECT watermark FROM atlas.progress").await.map_err(&failed)?;
    Ok(EventSeq(row.get::<_, i64>(0).unsigned_abs()))
}

/// Writes the rows that come after `after`, and the new watermark.
pub(crate) async fn write(client: &mut Object, after: EventSeq, rows: &Rows) -> Result<Written, ExportError> {
    let failed = ExportError::doing("write rows");
    let transaction = statement::begin(client).await.map_err(&failed)?;
    // Locks the row, so that of two exporters one waits for the other and then finds another watermark.
    let found = "SELECT watermark FROM atlas.progress FOR UPDATE";
    let found: i64 = transaction.query_typed_one(found, &[]).await.map_err(&failed)?.get(0);
    if found != column(after) {
        return Ok(Written::Elsewhere);
    }
    partition::create(&transaction, &rows.months).await?;
    static STATEMENTS: LazyLock<[String; 3]> =
        LazyLock::new(|| [Jobs::statement(), Calls::statement(), Runs::statement()]);
    let [jobs, calls, runs] = &*STATEMENTS;
    let filled: [(&String, usize, Vec<Value<'_>>); 3] = [
        (jobs, rows.jobs.len(), rows.jobs.values()),
        (calls, rows.calls.len(), rows.calls.values()),
        (runs, rows.runs.len(), rows.runs.values()),
    ];
    for (statement, _, values) in filled.into_iter().filter(|(_, len, _)| *len > 0) {
        transaction.execute_typed(statement, &values).await.map_err(&failed)?;
    }
    for erased in &rows.erased {
        erase(&transaction, erased).await.map_err(&failed)?;
    }
    let sql = "UPDATE atlas.progress SET watermark = $1, written_at = now()";
    transaction.execute_typed(sql, &[(&column(rows.through), Type::INT8)]).await.map_err(&failed)?;
    transaction.commit().await.map_err(&failed)?;
    Ok(Written::Done)
}

/// Erases what a job, or every job of a namespace that ended before, has said.
async fn erase(
    transaction: &Transaction<'_>,
    (event, namespace, job): &(i64, String, Option<String>),
) -> Result<(), tokio_postgres::Error> {
    if let Some(job) = job {
        let statement = "UPDATE atlas.job SET error = NULL, metadata = '{}', words = ''
            WHERE id = $1 AND namespace = $2 AND event_seq < $3";
        let values: [Value<'_>; 3] = [(job, Type::TEXT), (namespace, Type::TEXT), (event, Type::INT8)];
        return transaction.execute_typed(statement, &values).await.map(drop);
    }
    for table in ["atlas.job", "atlas.call", "atlas.run"] {
        let statement = format!("DELETE FROM {table} WHERE namespace = $1 AND event_seq < $2");
        transaction.execute_typed(&statement, &[(namespace, Type::TEXT), (event, Type::INT8)]).await?;
    }
    Ok(())
}

/// An event number as a column. Numbers never reach 2^63.
pub(crate) fn column(seq: EventSeq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}
