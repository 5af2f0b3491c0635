//! Whether the rows of the database are those of this cluster's history.
//!
//! A database that was restored from an old backup has an older watermark with the rows that belong to it: the export continues
//! there. A cluster that was restored from an old backup is another matter. It numbers its events again from the point of the backup,
//! so rows after that point describe jobs that no longer exist. They are found by comparing jobs, and replaced.

use atlas_env::Env;
use atlas_history::{Gap, History, HistoryError, Part};
use atlas_types::EventSeq;
use deadpool_postgres::Object;
use tokio_postgres::types::Type;

use crate::write::column;
use crate::{ExportError, statement, write};

/// The bytes of history that are compared at once.
const PART_BYTES: usize = 1 << 20;

/// What connects a database with a cluster.
pub(crate) struct Lineage<'a> {
    pub(crate) history: &'a dyn History,
    pub(crate) env: &'a Env,
    /// The id of this cluster.
    pub(crate) cluster: u128,
    /// The last event of the cluster.
    pub(crate) committed: EventSeq,
}

impl Lineage<'_> {
    /// Makes sure that the database continues this history, and returns its watermark. Replaces rows of another history only if
    /// the database has jobs in common with this one.
    pub(crate) async fn settle(&self, client: &mut Object) -> Result<EventSeq, ExportError> {
        let failed = ExportError::doing("read the watermark");
        let sql = "SELECT cluster, watermark FROM atlas.progress";
        let row = statement::ask_one(client, sql).await.map_err(&failed)?;
        let (found, watermark): (Option<String>, i64) = (row.get(0), row.get(1));
        let own = format!("{:032x}", self.cluster);
        let watermark = EventSeq(watermark.unsigned_abs());
        let is_own = found.as_ref().is_none_or(|found| *found == own);
        if is_own && watermark <= self.committed && self.ends_alike(client).await? {
            if found.is_none() {
                let failed = ExportError::doing("name the cluster");
                let transaction = statement::begin(client).await.map_err(&failed)?;
                let sql = "UPDATE atlas.progress SET cluster = $1 WHERE cluster IS NULL";
                transaction.execute_typed(sql, &[(&own, Type::TEXT)]).await.map_err(&failed)?;
                transaction.commit().await.map_err(&failed)?;
            }
            return write::watermark(client).await;
        }
        let common = self.common(client, watermark).await?;
        if let (None, Some(found)) = (common, found.filter(|_| !is_own && watermark > EventSeq(0))) {
            return Err(ExportError::OtherCluster { found });
        }
        let common = common.unwrap_or(EventSeq(0));
        self.rewind(client, watermark, common, &own).await?;
        Ok(common)
    }

    /// Whether the last job of the database is the one that the history has in its place. True if there is none to compare.
    async fn ends_alike(&self, client: &mut Object) -> Result<bool, ExportError> {
        let sql = "SELECT event_seq, id FROM atlas.job ORDER BY event_seq DESC LIMIT 1";
        let last = statement::ask(client, sql, &[]).await.map_err(ExportError::doing("read the last job"))?;
        let Some(last) = last else { return Ok(true) };
        let (event, id): (i64, String) = (last.get(0), last.get(1));
        let jobs = self.history.ended_by(vec![EventSeq(event.unsigned_abs())]).await.map_err(ExportError::History)?;
        // A job that the history has dropped, or does not have yet, tells nothing.
        Ok(jobs.first().is_none_or(|job| job.id.to_string() == id))
    }

    /// The last event up to which the database has the jobs of the history; none if they have no job in common.
    async fn common(&self, client: &mut Object, watermark: EventSeq) -> Result<Option<EventSeq>, ExportError> {
        let failed = ExportError::doing("compare jobs");
        let oldest = statement::ask_one(client, "SELECT min(event_seq) FROM atlas.job").await.map_err(&failed)?;
        // The database may have dropped older jobs by its own retention.
        let Some(oldest) = oldest.get::<_, Option<i64>>(0) else { return Ok(None) };
        let (mut reached, mut common) = (EventSeq(0), None);
        while reached < watermark {
            let gap = Gap { after: reached, through: watermark };
            let part = self.history.part(gap, PART_BYTES).await.map_err(ExportError::History)?;
            if part.reached <= reached {
                break;
            }
            reached = part.reached;
            let jobs = self.jobs(part).await?;
            let jobs = jobs.into_iter().filter(|(event, _)| *event >= oldest);
            let (events, ids): (Vec<i64>, Vec<String>) = jobs.unzip();
            let sql = "SELECT event_seq FROM unnest($1::bigint[], $2::text[]) AS ours (event_seq, id)
                WHERE NOT EXISTS (SELECT FROM atlas.job WHERE job.event_seq = ours.event_seq AND job.id = ours.id)
                ORDER BY event_seq LIMIT 1";
            let values: [statement::Value<'_>; 2] = [(&events, Type::INT8_ARRAY), (&ids, Type::TEXT_ARRAY)];
            let differs = statement::ask(client, sql, &values).await.map_err(&failed)?;
            let differs: Option<i64> = differs.map(|row| row.get(0));
            let alike = events.iter().filter(|event| differs.is_none_or(|differs| **event < differs)).max();
            common = alike.map(|event| EventSeq(event.unsigned_abs())).or(common);
            if differs.is_some() {
                break;
            }
        }
        Ok(common)
    }

    /// The ended jobs of a part, with their events.
    async fn jobs(&self, part: Part) -> Result<Vec<(i64, String)>, ExportError> {
        let decode = move || -> Result<Vec<(i64, String)>, HistoryError> {
            let mut jobs = Vec::new();
            for record in &part.records {
                if let Some(job) = record.ended()? {
                    jobs.push((column(record.seq), job.id.to_string()));
                }
            }
            Ok(jobs)
        };
        let task = self.env.spawn_blocking("export-compare", decode);
        task.join().await.map_err(|_| ExportError::Stopped)?.map_err(ExportError::History)
    }

    /// Removes all rows after `common`, so that the export writes them again.
    async fn rewind(
        &self,
        client: &mut Object,
        watermark: EventSeq,
        common: EventSeq,
        own: &str,
    ) -> Result<(), ExportError> {
        let failed = ExportError::doing("replace the rows of another history");
        let transaction = statement::begin(client).await.map_err(&failed)?;
        // These rows can be many.
        transaction.batch_execute("SET LOCAL statement_timeout = '10min'").await.map_err(&failed)?;
        for table in ["job", "call", "run"] {
            let sql = format!("DELETE FROM atlas.{table} WHERE event_seq > $1");
            transaction.execute_typed(&sql, &[(&column(common), Type::INT8)]).await.map_err(&failed)?;
        }
        let sql = "UPDATE atlas.progress SET watermark = $1, cluster = $2, rebuilds = rebuilds + 1, rebuilt_at = now()
            WHERE watermark = $3";
        let (common, watermark) = (column(common), column(watermark));
        let values: [statement::Value<'_>; 3] = [(&common, Type::INT8), (&own, Type::TEXT), (&watermark, Type::INT8)];
        let changed = transaction.execute_typed(sql, &values).await.map_err(&failed)?;
        if changed == 1 {
            transaction.commit().await.map_err(&failed)?;
            tracing::warn!(
                from = common,
                "the cluster was restored from a backup: rows of the history database are replaced from this event on"
            );
        }
        Ok(())
    }
}
