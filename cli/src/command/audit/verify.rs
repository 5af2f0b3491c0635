//! `atlasctl audit verify` and `export`: the chain of each controller, from the cluster or in a file.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use atlas_audit::{LINE_BYTES_MAX, ReceiptVerifier, Verifier};
use serde::Deserialize;
use serde_json::{Value, json};

use super::read::{Asked, Read, tell_missing};
use super::receipt;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words::could_not;

/// Options of `atlasctl audit verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// A file of exported records, or a receipt; without one, the records of the cluster.
    file: Option<PathBuf>,
    /// Only the records of this controller, by name or number.
    #[arg(long, value_name = "CONTROLLER", conflicts_with = "file")]
    member: Option<String>,
}

/// Options of `atlasctl audit export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// A new file.
    file: PathBuf,
    /// Continues where the export that printed this cursor ended.
    #[arg(long)]
    cursor: Option<String>,
    /// Only the records of this controller, by name or number.
    #[arg(long, value_name = "CONTROLLER")]
    member: Option<String>,
}

pub(super) async fn verify(context: &Context, options: &Verify) -> Result<Exit, Failure> {
    let (mut check, mut missing) = (Check::default(), Vec::new());
    match &options.file {
        Some(path) => {
            for (number, line) in lines(path)?.enumerate() {
                let line = line?;
                if number == 0 && ReceiptVerifier::is_entry(&line) {
                    return receipt::verify(context, path);
                }
                check.line(None, &line);
            }
        }
        None => {
            let client = context.client()?;
            // One after the other, because pages of one controller are shorter work than pages of all.
            let asked = Asked::all(options.member.clone(), "end");
            let controllers = asked.page(&client).await?;
            for controller in controllers.answered {
                let asked = Asked::all(Some(controller.clone()), "");
                let read = asked.each(&client, |record| {
                    check.line(Some(&controller), &record.line);
                    Ok(())
                });
                missing.extend(read.await?.missing);
            }
            missing.extend(controllers.missing);
        }
    }
    if let Some((at, text)) = &check.broken {
        tell_missing(context, &missing);
        let failure = Failure::new("E0129", Exit::Invalid, format!("the audit is damaged at line {at}{text}"));
        return Err(failure.with_next("compare it with an older export: records before that line are verified"));
    }
    let chains: Vec<Value> = check.chains.values().filter_map(Chain::value).collect();
    let mut text: String = check.chains.values().map(Chain::told).collect();
    if text.is_empty() {
        text = "no records\n".to_owned();
    }
    let value = json!({ "chains": chains, "missing": missing.iter().map(|(member, _)| member).collect::<Vec<_>>() });
    context.show(&Shown { value, text, names: Vec::new() })?;
    Ok(tell_missing(context, &missing))
}

/// The chains of controllers, as far as they were verified.
#[derive(Default)]
struct Check {
    /// By controller.
    chains: BTreeMap<String, Chain>,
    count: u64,
    /// The number of the first line that is wrong, and what is wrong with it.
    broken: Option<(u64, String)>,
}

#[derive(Default)]
struct Chain {
    verifier: Verifier,
    count: u64,
    /// The controller that had it; none for a file.
    member: Option<String>,
}

/// What of a line says whose it is.
#[derive(Deserialize)]
struct Whose {
    controller: String,
}

impl Check {
    /// Checks a line, which a controller had, or a file.
    fn line(&mut self, member: Option<&str>, line: &str) {
        self.count += 1;
        // A controller has its own chain and no other; in a file each line says whose it is.
        let whose = member
            .map(str::to_owned)
            .or_else(|| serde_json::from_str(line).ok().map(|Whose { controller }| controller));
        let chain = self.chains.entry(whose.unwrap_or_default()).or_default();
        chain.count += 1;
        chain.member = member.map(str::to_owned);
        if self.broken.is_some() {
            return;
        }
        if let Err(why) = chain.verifier.line(line) {
            let of = member.map(|member| format!(" of {member}")).unwrap_or_default();
            let after = chain.verifier.span().map(|(_, last)| format!(", after record {last}")).unwrap_or_default();
            let at = if member.is_some() { chain.count } else { self.count };
            self.broken = Some((at, format!("{of}{after}: {why}")));
        }
    }
}

impl Chain {
    fn value(&self) -> Option<Value> {
        let ((first, last), end) = self.verifier.span().zip(self.verifier.end())?;
        let (controller, hash) = (end.controller(), end.hash());
        Some(json!({
            "controller": controller, "member": self.member, "records": self.count, "first": first, "last": last, "hash": hash,
        }))
    }

    fn told(&self) -> String {
        let Some(((first, last), end)) = self.verifier.span().zip(self.verifier.end()) else { return String::new() };
        let named = self.member.as_ref().map(|member| format!(" ({member})")).unwrap_or_default();
        let (controller, hash) = (end.controller(), end.hash());
        format!("verified {} records of controller {controller}{named}, {first} to {last}\nhash {hash}\n", self.count)
    }
}

/// The lines of a file, each with a bound.
pub(super) fn lines(path: &Path) -> Result<impl Iterator<Item = Result<String, Failure>> + use<'_>, Failure> {
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

pub(super) async fn export(context: &Context, options: &Export) -> Result<Exit, Failure> {
    let path = &options.file;
    let failed = |error: std::io::Error| could_not("write", path, &error);
    let client = context.client()?;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let (mut file, mut count) = (std::io::BufWriter::new(file), 0_u64);
    let asked = Asked::all(options.member.clone(), options.cursor.as_deref().unwrap_or_default());
    let read = asked.each(&client, |record| {
        count += 1;
        // What is damaged is exported as it is.
        file.write_all(record.line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(failed)
    });
    let Read { cursor, missing, .. } = read.await?;
    file.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
    let away: Vec<&String> = missing.iter().map(|(member, _)| member).collect();
    let value = json!({ "records": count, "cursor": cursor, "missing": away, "file": path.display().to_string() });
    let text = format!("{count} records, up to {cursor}\n");
    context.show(&Shown { value, text, names: Vec::new() })?;
    context.next(&format!(
        "next: atlasctl audit verify {}   ·   atlasctl audit export NEXT --cursor {cursor}",
        path.display()
    ));
    Ok(tell_missing(context, &missing))
}
