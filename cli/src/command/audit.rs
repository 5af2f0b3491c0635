//! `atlasctl audit`: who did what, and who was denied it.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_audit::{Damage, Decision, LINE_BYTES_MAX, ReceiptVerifier, Record, Verifier};
use atlas_env::Env;
use serde_json::{Value, json};

use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;
use crate::words::could_not;

/// Records in one request.
const PAGE: &str = "1000";
/// After this number there is no record.
const AFTER_ALL: &str = "9007199254740991";
/// How often `tail` asks for more.
const PAUSE: Duration = Duration::from_secs(1);

/// Verbs of `atlasctl audit`. Each controller has the records of its own doors: choose one with --server.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Prints new records until Ctrl-C.
    Tail(Filter),
    /// Prints the records that match a filter, oldest first.
    Query(Filter),
    /// Checks that no record was changed, removed or inserted; of a file, such as a receipt, without a cluster.
    Verify(File),
    /// Prints the receipt of a job that has ended: what it was, who asked, where it ran, what it called and how it ended.
    Receipt(Receipt),
    /// Writes all records to a file, as they are, to be verified elsewhere.
    Export(Export),
}

/// Which records.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only those of this principal.
    #[arg(long)]
    principal: Option<String>,
    /// Only those of this operation, such as submitJob or putObject.
    #[arg(long)]
    verb: Option<String>,
    /// Only those about objects that begin with this, such as agent/ or secret/db.
    #[arg(long)]
    object: Option<String>,
    /// Only those with this decision.
    #[arg(long, value_parser = ["allow", "failed", "deny", "dropped"])]
    decision: Option<String>,
    /// Only those of the last so much time.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    since: Option<Duration>,
    /// Starts after the record of this number.
    #[arg(long, value_name = "NUMBER", value_parser = words::parse_number)]
    after: Option<u64>,
}

/// Options of `atlasctl audit verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct File {
    /// A file of exported records, or a receipt; without one, the records of the controller.
    file: Option<PathBuf>,
}

/// Options of `atlasctl audit receipt`.
#[derive(Debug, clap::Args)]
pub(crate) struct Receipt {
    /// The job, or the beginning of its id.
    job: String,
    /// A new file, in place of the output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Options of `atlasctl audit export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// A new file.
    file: PathBuf,
    /// Starts after the record of this number: the last one of the export before.
    #[arg(long, value_name = "NUMBER", value_parser = words::parse_number)]
    after: Option<u64>,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Tail(filter) => tail(context, filter).await,
        Verb::Query(filter) => {
            let client = context.client()?;
            let print = |line: String| show(context, &line);
            each(&client, &filter.query(context.look.now), filter.after.unwrap_or(0), print).await?;
            Ok(Exit::Done)
        }
        Verb::Verify(options) => verify(context, options).await,
        Verb::Receipt(options) => receipt(context, options).await,
        Verb::Export(options) => export(context, options).await,
    }
}

impl Filter {
    /// The query, at a time in Unix seconds.
    fn query(&self, now: f64) -> Vec<(&'static str, String)> {
        let since = self.since.map(|since| ("since", (now - since.as_secs_f64()).max(0.0).to_string()));
        let text = |name, value: &Option<String>| value.clone().map(|value| (name, value));
        [
            text("principal", &self.principal),
            text("verb", &self.verb),
            text("object", &self.object),
            text("decision", &self.decision),
            since,
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Calls a function with each record after a number; the number of the last one that was looked at.
async fn each(
    client: &Client,
    filter: &[(&'static str, String)],
    mut after: u64,
    mut call: impl FnMut(String) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    loop {
        let from = after.to_string();
        let mut query: Vec<(&str, &str)> = filter.iter().map(|(name, value)| (*name, value.as_str())).collect();
        query.extend([("after", from.as_str()), ("limit", PAGE)]);
        let page = client.get(&["api", "audit"], &query).await?;
        for line in page["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            call(line.to_owned())?;
        }
        // An answer that does not move on ends the loop.
        let last = page["last"].as_u64().unwrap_or(after);
        if page["more"] != true || last <= after {
            return Ok(last.max(after));
        }
        after = last;
    }
}

async fn tail(context: &Context, filter: &Filter) -> Result<Exit, Failure> {
    let client = context.client()?;
    let query = filter.query(context.look.now);
    let mut after = match filter.after {
        Some(after) => after,
        // Only what is new.
        None => {
            let page = client.get(&["api", "audit"], &[("after", AFTER_ALL), ("limit", "1")]).await?;
            page["end"].as_u64().unwrap_or(0)
        }
    };
    loop {
        after = each(&client, &query, after, |line| show(context, &line)).await?;
        Env::system().clock.sleep(PAUSE).await;
    }
}

fn show(context: &Context, line: &str) -> Result<(), Failure> {
    let value: Value = serde_json::from_str(line).map_err(Failure::answer)?;
    let names = value["number"].as_u64().map(|number| format!("audit/{number}")).into_iter().collect();
    let text = match serde_json::from_value::<Record>(value.clone()) {
        Ok(record) => told(&record),
        Err(_) => format!("{line}\n"),
    };
    context.show(&Shown { value, text, names })
}

/// A record in one line.
fn told(record: &Record) -> String {
    let time = words::date_and_time(record.at_ms as f64 / 1e3);
    if record.decision == Decision::Dropped {
        return format!("{time}  {} denials were not recorded one by one\n", record.count);
    }
    let mut text = format!("{time}  {:<6}  {}", record.decision.as_str(), record.principal);
    if !record.on_behalf_of.is_empty() {
        text += &format!(" for {}", record.on_behalf_of);
    }
    text += &format!("  {} {}", record.verb, record.object);
    if !record.namespace.is_empty() {
        text += &format!(" in {}", record.namespace);
    }
    if !record.code.is_empty() {
        text += &format!("  {}", record.code);
    }
    text + "\n"
}

async fn receipt(context: &Context, options: &Receipt) -> Result<Exit, Failure> {
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

fn verify_receipt(context: &Context, path: &Path) -> Result<Exit, Failure> {
    let verifier = verified(lines(path)?)?;
    let (job, count, head) = (verifier.job(), verifier.count(), verifier.head());
    let value = json!({ "job": job, "entries": count, "head": head });
    let text = format!("verified {count} entries of the receipt of {job}\nhead {head}\n");
    context.show(&Shown { value, text, names: Vec::new() })?;
    Ok(Exit::Done)
}

async fn verify(context: &Context, options: &File) -> Result<Exit, Failure> {
    let mut check = Check::default();
    match &options.file {
        Some(path) => {
            for (number, line) in lines(path)?.enumerate() {
                let line = line?;
                if number == 0 && ReceiptVerifier::is_entry(&line) {
                    return verify_receipt(context, path);
                }
                check.line(&line);
            }
        }
        None => {
            each(&context.client()?, &[], 0, |line| {
                check.line(&line);
                Ok(())
            })
            .await?;
        }
    }
    let Check { verifier, count, broken } = check;
    if let Some((at, why)) = broken {
        let after = verifier.span().map(|(_, last)| format!(", after record {last}")).unwrap_or_default();
        let failure = Failure::new("E0129", Exit::Invalid, format!("the audit is damaged at line {at}{after}: {why}"));
        return Err(failure.with_next("compare it with an older export: records before that line are verified"));
    }
    let (value, text) = match (verifier.span(), verifier.end()) {
        (Some((first, last)), Some(end)) => (
            json!({ "records": count, "first": first, "last": last, "controller": end.controller(), "hash": end.hash() }),
            format!(
                "verified {count} records of controller {}, {first} to {last}\nhash {}\n",
                end.controller(),
                end.hash()
            ),
        ),
        _ => (json!({ "records": 0 }), "no records\n".to_owned()),
    };
    context.show(&Shown { value, text, names: Vec::new() })?;
    Ok(Exit::Done)
}

#[derive(Default)]
struct Check {
    verifier: Verifier,
    count: u64,
    broken: Option<(u64, String)>,
}

impl Check {
    fn line(&mut self, line: &str) {
        self.count += 1;
        if self.broken.is_none()
            && let Err(why) = self.verifier.line(line)
        {
            self.broken = Some((self.count, why.to_string()));
        }
    }
}

/// The lines of a file, each with a bound.
fn lines(path: &Path) -> Result<impl Iterator<Item = Result<String, Failure>> + use<'_>, Failure> {
    let mut reader = BufReader::new(std::fs::File::open(path).map_err(|error| could_not("read", path, &error))?);
    Ok(std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', &mut line);
        match read {
            Ok(0) => None,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                Some(Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned()))
            }
            Err(error) => Some(Err(could_not("read", path, &error))),
        }
    }))
}

async fn export(context: &Context, options: &Export) -> Result<Exit, Failure> {
    let path = &options.file;
    let failed = |error: std::io::Error| could_not("write", path, &error);
    let client = context.client()?;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let (mut file, mut count, mut verifier) = (std::io::BufWriter::new(file), 0_u64, Verifier::default());
    let last = each(&client, &[], options.after.unwrap_or(0), |line| {
        // What is damaged is exported as it is.
        let _ = verifier.line(&line);
        count += 1;
        file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(failed)
    })
    .await?;
    file.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
    let value = json!({ "records": count, "last": last, "file": path.display().to_string() });
    let text = format!("{count} records, the last one {last}\n");
    context.show(&Shown { value, text, names: Vec::new() })?;
    context.next(&format!(
        "next: atlasctl audit verify {}   ·   atlasctl audit export NEXT --after {last}",
        path.display()
    ));
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn records_are_told_in_one_line() {
        let record = Record {
            at_ms: 1_764_100_000_000,
            principal: "ann".to_owned(),
            on_behalf_of: String::new(),
            namespace: "prod".to_owned(),
            door: "http".to_owned(),
            verb: "putObject".to_owned(),
            object: "secret/db".to_owned(),
            decision: Decision::Deny,
            code: "E2107".to_owned(),
            request_id: String::new(),
            count: 0,
        };
        expect![[r#"
            deny    ann  putObject secret/db in prod  E2107
        "#]]
        .assert_eq(told(&record).split_once("  ").expect("a time").1);
        let dropped = Record { decision: Decision::Dropped, count: 7, ..record };
        assert!(told(&dropped).ends_with("  7 denials were not recorded one by one\n"));
    }
}
