//! The columns that the export writes: each table is declared once, and its struct of columns and its statement come from that.
//!
//! Rows are sent by column, as arrays, so that one statement writes a whole batch.

use std::time::SystemTime;

use serde_json::Value;
use tokio_postgres::types::Type;

use crate::statement::Value as Parameter;

/// Columns whose text the database splits into words.
const WORDS: &str = "tsvector";

macro_rules! table {
    ($( #[doc = $doc:literal] )* $columns:ident of $row:ident in $table:literal { $( $column:ident: $rust:ty = $sql:literal, )* }) => {
        $( #[doc = $doc] )*
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct $row { $( pub(crate) $column: $rust, )* }

        /// The same by column.
        #[derive(Debug, Default)]
        pub(crate) struct $columns { len: usize, $( $column: Vec<$rust>, )* }

        impl $columns {
            pub(crate) fn push(&mut self, row: $row) {
                self.len += 1;
                $( self.$column.push(row.$column); )*
            }

            pub(crate) fn len(&self) -> usize {
                self.len
            }

            pub(crate) fn values(&self) -> Vec<Parameter<'_>> {
                vec![ $( (&self.$column, array_of($sql)), )* ]
            }

            /// The statement that writes all rows; rows that exist are left as they are.
            pub(crate) fn statement() -> String {
                statement($table, &[ $( (stringify!($column), $sql), )* ])
            }
        }
    };
}

/// The type of an array of values of a column.
fn array_of(sql: &str) -> Type {
    match sql {
        "bigint" => Type::INT8_ARRAY,
        "boolean" => Type::BOOL_ARRAY,
        "timestamptz" => Type::TIMESTAMPTZ_ARRAY,
        "jsonb" => Type::JSONB_ARRAY,
        _ => Type::TEXT_ARRAY,
    }
}

fn statement(table: &str, columns: &[(&str, &str)]) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    let names = join(columns.iter().map(|(name, _)| (*name).to_owned()).collect());
    let arrays = columns.iter().zip(1..).map(|((_, sql), number)| {
        let sql = if *sql == WORDS { "text" } else { sql };
        format!("${number}::{sql}[]")
    });
    let values = columns.iter().map(|(name, sql)| match *sql {
        WORDS => format!("to_tsvector('simple', {name})"),
        _ => (*name).to_owned(),
    });
    format!(
        "INSERT INTO {table} ({names}) SELECT {} FROM unnest({}) AS rows ({names}) ON CONFLICT DO NOTHING",
        join(values.collect()),
        join(arrays.collect()),
    )
}

table! {
    /// An ended job.
    Jobs of JobRow in "atlas.job" {
        event_seq: i64 = "bigint",
        completed_at: SystemTime = "timestamptz",
        id: String = "text",
        namespace: String = "text",
        agent: String = "text",
        version: Option<String> = "text",
        status: &'static str = "text",
        failure_kind: Option<&'static str> = "text",
        error: Option<String> = "text",
        priority: i64 = "bigint",
        queue_seq: i64 = "bigint",
        created_at: SystemTime = "timestamptz",
        started_at: Option<SystemTime> = "timestamptz",
        warmup_us: i64 = "bigint",
        execution_us: i64 = "bigint",
        warm: bool = "boolean",
        attempts: i64 = "bigint",
        retry_count: i64 = "bigint",
        original: Option<String> = "text",
        parent: Option<String> = "text",
        run: Option<String> = "text",
        step_index: Option<i64> = "bigint",
        node: Option<String> = "text",
        principal: String = "text",
        door: &'static str = "text",
        model: Option<String> = "text",
        tokens_input: i64 = "bigint",
        tokens_output: i64 = "bigint",
        cost_nanodollars: i64 = "bigint",
        labels: Value = "jsonb",
        metadata: Value = "jsonb",
        words: String = "tsvector",
    }
}

table! {
    /// A recorded model call.
    Calls of CallRow in "atlas.call" {
        event_seq: i64 = "bigint",
        completed_at: SystemTime = "timestamptz",
        number: i64 = "bigint",
        job: String = "text",
        namespace: String = "text",
        agent: String = "text",
        model: Option<String> = "text",
        duration_us: i64 = "bigint",
        tokens_input: i64 = "bigint",
        tokens_output: i64 = "bigint",
        cost_nanodollars: i64 = "bigint",
    }
}

table! {
    /// An ended run of a chain.
    Runs of RunRow in "atlas.run" {
        event_seq: i64 = "bigint",
        completed_at: SystemTime = "timestamptz",
        id: String = "text",
        namespace: String = "text",
        chain: String = "text",
        status: &'static str = "text",
        error: Option<String> = "text",
        steps: i64 = "bigint",
        total_steps: i64 = "bigint",
        created_at: SystemTime = "timestamptz",
        principal: String = "text",
        door: &'static str = "text",
    }
}
