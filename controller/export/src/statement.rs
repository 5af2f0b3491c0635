//! Statements that need nothing from their connection but the transaction that they are in.
//!
//! A pooler such as PgBouncer can give each transaction another connection to the server. So no statement is prepared under a name,
//! all settings are those of a transaction, and there is no statement outside of one.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

/// Settings of each transaction. One that is stopped in the middle must not hold its locks for long, and a partition that cannot be
/// created soon must not make readers wait behind it.
const SETTINGS: &str = "SET LOCAL statement_timeout = '30s'; SET LOCAL lock_timeout = '5s';
    SET LOCAL idle_in_transaction_session_timeout = '30s'; SET LOCAL TIME ZONE 'UTC'; SET LOCAL client_min_messages = 'warning'";

/// A value of a statement, with its type in the database.
pub(crate) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// Begins a transaction.
pub(crate) async fn begin(client: &mut Object) -> Result<Transaction<'_>, Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(SETTINGS).await?;
    Ok(transaction)
}

/// The first row of a query, in a transaction of its own.
pub(crate) async fn ask(client: &mut Object, sql: &str, values: &[Value<'_>]) -> Result<Option<Row>, Error> {
    let transaction = begin(client).await?;
    let row = transaction.query_typed_opt(sql, values).await?;
    transaction.commit().await?;
    Ok(row)
}

/// The only row of a query, in a transaction of its own.
pub(crate) async fn ask_one(client: &mut Object, sql: &str) -> Result<Row, Error> {
    let transaction = begin(client).await?;
    let row = transaction.query_typed_one(sql, &[]).await?;
    transaction.commit().await?;
    Ok(row)
}
