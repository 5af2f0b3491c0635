//! The tables: numbered migrations, each applied once, by one program at a time.

use deadpool_postgres::Object;

use tokio_postgres::types::Type;

use crate::{ExportError, statement};

/// The migrations in order. They are never changed after a release; a new one is appended.
const MIGRATIONS: [&str; 2] = [include_str!("../migrations/1_tables.sql"), include_str!("../migrations/2_views.sql")];

/// The number of the advisory lock under which tables are changed: "atlas" in ASCII.
const LOCK: i64 = 0x61_746c_6173;

/// Brings the tables to the version of this program.
pub(crate) async fn migrate(client: &mut Object) -> Result<(), ExportError> {
    let failed = ExportError::doing("create the tables");
    let transaction = statement::begin(client).await.map_err(&failed)?;
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)]).await.map_err(&failed)?;
    let found =
        transaction.query_typed_one("SELECT to_regnamespace('atlas') IS NOT NULL", &[]).await.map_err(&failed)?;
    // A user that may not create schemas can use one that an administrator has created.
    if !found.get::<_, bool>(0) {
        transaction.batch_execute("CREATE SCHEMA atlas").await.map_err(&failed)?;
    }
    let table = "CREATE TABLE IF NOT EXISTS atlas.migration (
        version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
    transaction.batch_execute(table).await.map_err(&failed)?;
    let found = "SELECT coalesce(max(version), 0) FROM atlas.migration";
    let found: i32 = transaction.query_typed_one(found, &[]).await.map_err(&failed)?.get(0);
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if found > known {
        return Err(ExportError::TooNew { found, known });
    }
    for (version, sql) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        transaction.batch_execute(sql).await.map_err(&failed)?;
        let sql = "INSERT INTO atlas.migration (version) VALUES ($1)";
        transaction.execute_typed(sql, &[(&version, Type::INT4)]).await.map_err(&failed)?;
    }
    transaction.commit().await.map_err(&failed)
}
