//! Partitions: one a month and table, created when the first row of its month is written and dropped as a whole.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use crate::ExportError;

/// The tables that have partitions.
const TABLES: [&str; 3] = ["job", "call", "run"];

/// The first day of the month of a time, in UTC.
pub(crate) fn month_of(at: SystemTime) -> Date {
    let day = Timestamp::try_from(at).map_or(date(1970, 1, 1), |at| at.to_zoned(TimeZone::UTC).date());
    day.first_of_month()
}

fn name(table: &str, month: Date) -> String {
    format!("{table}_{:04}_{:02}", month.year(), month.month())
}

/// Creates the partitions of these months that do not exist.
pub(crate) async fn create(transaction: &Transaction<'_>, months: &BTreeSet<Date>) -> Result<(), ExportError> {
    let failed = ExportError::doing("create a partition");
    for month in months {
        let next = month.last_of_month().tomorrow().unwrap_or(Date::MAX);
        for table in TABLES {
            let name = name(table, *month);
            let found = transaction
                .query_typed_one("SELECT to_regclass($1) IS NOT NULL", &[(&format!("atlas.{name}"), Type::TEXT)])
                .await
                .map_err(&failed)?;
            // Creating a partition waits for all readers of the table, so it is not tried for each batch.
            if !found.get::<_, bool>(0) {
                let sql = format!(
                    "CREATE TABLE IF NOT EXISTS atlas.{name} PARTITION OF atlas.{table}
                     FOR VALUES FROM ('{month} 00:00:00+00') TO ('{next} 00:00:00+00')"
                );
                transaction.batch_execute(&sql).await.map_err(&failed)?;
            }
        }
    }
    Ok(())
}

/// The end of the last month that is dropped at `now`.
fn before(now: SystemTime, keep: Duration) -> Date {
    month_of(now.checked_sub(keep).unwrap_or(SystemTime::UNIX_EPOCH))
}

/// Drops the partitions whose newest row is older than `keep`. Returns their names.
pub(crate) async fn drop_old(
    transaction: &Transaction<'_>,
    now: SystemTime,
    keep: Duration,
) -> Result<Vec<String>, ExportError> {
    let failed = ExportError::doing("drop a partition");
    let rows = transaction
        .query_typed(
            "SELECT child.relname::text, parent.relname::text FROM pg_inherits
             JOIN pg_class child ON child.oid = inhrelid JOIN pg_class parent ON parent.oid = inhparent
             WHERE parent.relnamespace = 'atlas'::regnamespace AND parent.relkind = 'p' AND child.relkind = 'r'",
            &[],
        )
        .await
        .map_err(&failed)?;
    let limit = before(now, keep);
    let mut dropped = Vec::new();
    for row in rows {
        let (child, parent): (String, String) = (row.get(0), row.get(1));
        let is_old = parse(&child, &parent).is_some_and(|month| month < limit);
        if is_old {
            transaction.batch_execute(&format!("DROP TABLE atlas.{child}")).await.map_err(&failed)?;
            dropped.push(child);
        }
    }
    Ok(dropped)
}

/// The month of a partition of ours; none for a table that somebody else attached.
fn parse(child: &str, parent: &str) -> Option<Date> {
    let table = TABLES.into_iter().find(|table| *table == parent)?;
    let (year, month) = child.strip_prefix(table)?.strip_prefix('_')?.split_once('_')?;
    let month = Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()?;
    (child == name(table, month)).then_some(month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SystemTime {
        text.parse::<Timestamp>().expect("a time").into()
    }

    #[test]
    fn a_month_begins_at_midnight_in_utc() {
        assert_eq!(month_of(at("2026-11-30T23:59:59.999999Z")), date(2026, 11, 1));
        assert_eq!(month_of(at("2026-12-01T00:00:00Z")), date(2026, 12, 1));
        assert_eq!(name("job", date(2026, 12, 1)), "job_2026_12");
    }

    #[test]
    fn only_names_of_ours_are_read() {
        assert_eq!(parse("job_2026_12", "job"), Some(date(2026, 12, 1)));
        for (child, parent) in [("job_2026_13", "job"), ("job_2026_1", "job"), ("x_2026_01", "x"), ("job; DROP", "job")]
        {
            assert_eq!(parse(child, parent), None, "{child}");
        }
    }

    #[test]
    fn a_month_goes_once_its_last_day_is_old() {
        let keep = Duration::from_secs(30 * 86_400);
        assert_eq!(before(at("2026-12-30T00:00:00Z"), keep), date(2026, 11, 1));
        assert_eq!(before(at("2026-12-31T00:00:00Z"), keep), date(2026, 12, 1));
    }
}
