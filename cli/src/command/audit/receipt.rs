//! `atlasctl audit receipt`: the evidence of one job, and its verification.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use atlas_audit::{Damage, ReceiptVerifier};
use serde_json::{Value, json};

use super::verify::lines;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words::could_not;

/// Options of `atlasctl audit receipt`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The job, or the beginning of its id.
    job: String,
    /// A new file, instead of the output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) async fn show(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let answer = context.client()?.get(&["api", "jobs", &options.job, "receipt"], &[]).await?;
    let lines: Vec<&str> = answer["lines"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // What a controller sends is checked like a file.
    let verifier = verified(lines.iter().map(|line| Ok((*line).to_owned())))?;
    let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    let Some(path) = &options.out else {
        context.show(&Shown { value: answer, text, names: Vec::new() })?;
        return Ok(Exit::Done);
    };
    let failed = |error: std::io::Error| could_not("write", path, &error);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    let (job, count, head) = (verifier.job(), verifier.count(), verifier.head());
    let value = json!({ "job": job, "entries": count, "head": head, "file": path.display().to_string() });
    let text = format!("receipt of {job}, {count} entries\nhead {head}\n");
    context.show(&Shown { value, text, names: Vec::new() })?;
    context.next(&format!("next: atlasctl audit verify {}", path.display()));
    Ok(Exit::Done)
}

/// Verifies the entries of a receipt.
fn verified(lines: impl Iterator<Item = Result<String, Failure>>) -> Result<ReceiptVerifier, Failure> {
    let mut verifier = ReceiptVerifier::default();
    let damaged = |entry: u64, damage: &Damage| {
        let failure =
            Failure::new("E0129", Exit::Invalid, format!("the receipt is damaged at entry {entry}: {damage}"));
        failure.with_next("ask the cluster for the receipt again, and compare the two")
    };
    for line in lines {
        let entry = verifier.count() + 1;
        verifier.line(&line?).map_err(|damage| damaged(entry, &damage))?;
    }
    verifier.finish().map_err(|damage| damaged(verifier.count() + 1, &damage))?;
    Ok(verifier)
}

pub(super) fn verify(context: &Context, path: &Path) -> Result<Exit, Failure> {
    let verifier = verified(lines(path)?)?;
    let (job, count, head) = (verifier.job(), verifier.count(), verifier.head());
    let value = json!({ "job": job, "entries": count, "head": head });
    let text = format!("verified {count} entries of the receipt of {job}\nhead {head}\n");
    context.show(&Shown { value, text, names: Vec::new() })?;
    Ok(Exit::Done)
}
