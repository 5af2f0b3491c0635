//! Measures searches in documents: how fast they are among many generated chunks, and how good among documents that people judged.

mod generated;
mod semanlink;

use anyhow::Result;
use atlas_env::Env;

use crate::figures::Row;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let mut rows = generated::run(env)?;
    rows.extend(semanlink::run()?);
    Ok(rows)
}
