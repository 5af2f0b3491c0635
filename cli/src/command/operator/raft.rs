//! `atlasctl operator raft`: the log of a stopped controller, and recovery when a majority is permanently lost.

use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_offline::log::{Line, Page, Range};
use atlas_offline::{MemberAbout, Plan, RecoveryError, Tail};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};
use crate::words;

/// Verbs of `atlasctl operator raft`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Prints entries of its log: index, term, commands and sizes, without payloads.
    Log(LogOptions),
    /// Makes it the only member of a new cluster. Use only if the majority is permanently lost: data that only the others had is lost.
    Recover(RecoverOptions),
}

/// Options of `atlasctl operator raft log`.
#[derive(Debug, clap::Args)]
pub(crate) struct LogOptions {
    /// Data directory of the stopped controller.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// First index to print; defaults to the last entries.
    #[arg(long, value_name = "INDEX", value_parser = words::parse_number)]
    from: Option<u64>,
    /// Maximum number of entries to print.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// Options of `atlasctl operator raft recover`.
#[derive(Debug, clap::Args)]
pub(crate) struct RecoverOptions {
    /// Data directory of the stopped controller.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Cluster id, to confirm. Without it, only prints what would happen.
    #[arg(long, value_name = "CLUSTER_ID")]
    confirm: Option<String>,
    /// Drop a damaged end of the log, with acknowledged data in it. Use only for a single controller without a backup.
    #[arg(long)]
    drop_damaged_tail: bool,
}

pub(crate) fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Log(options) => log(context, options),
        Verb::Recover(options) => recover(context, options),
    }
}

fn log(context: &Context, options: &LogOptions) -> Result<Exit, Failure> {
    let range = options.from.map_or(Range::Tail, Range::From);
    let page = atlas_offline::log::read(&options.data_dir, range, options.limit.into());
    let page = page.map_err(|error| unreadable(&options.data_dir, &atlas_env::chain(&error)))?;
    context.note(&head(&page.about));
    let names = page.lines.iter().map(|line| format!("entry/{}", line.index)).collect();
    let value = Value::Array(page.lines.iter().map(entry).collect());
    context.show(&Shown { value, text: table(&page), names })?;
    if let Some(next) = page.next {
        let (dir, limit) = (words::shell(&options.data_dir.display().to_string()), options.limit);
        context.next(&format!("next: atlasctl operator raft log --data-dir {dir} --from {next} --limit {limit}"));
    }
    Ok(Exit::Done)
}

fn entry(line: &Line) -> Value {
    json!({
        "index": line.index, "term": line.term, "kind": line.kind, "seq": line.seq, "at": line.at.map(|at| at as f64 / 1e6),
        "bytes": line.bytes, "says": line.says,
    })
}

fn table(page: &Page) -> String {
    let mut table = Table::new(&["INDEX", "TERM", "KIND", "SEQ", "BYTES", "SAYS"]);
    for line in &page.lines {
        let seq = line.seq.map(|seq| seq.to_string()).unwrap_or_default();
        let (index, term) = (line.index.to_string(), line.term.to_string());
        table.row([index, term, line.kind.to_owned(), seq, line.bytes.to_string(), line.says.join(", ")]);
    }
    if page.lines.is_empty() { String::new() } else { table.text() }
}

/// A summary of a member's files in three lines.
fn head(about: &MemberAbout) -> String {
    let index = |id: Option<u64>| id.map_or_else(|| "none".to_owned(), |index| index.to_string());
    let snapshot = about.snapshot.map_or_else(
        || "none".to_owned(),
        |snapshot| format!("up to {}, {}", index(snapshot.last.map(|id| id.index)), words::bytes(snapshot.bytes)),
    );
    let vote = about.vote.map_or_else(|| "none".to_owned(), |vote| format!("c{} in term {}", vote.node, vote.term));
    let voters: Vec<String> = about.voters.iter().map(|member| format!("c{}", member.0)).collect();
    format!(
        "cluster {:032x}   voters {}   vote {vote}\n\
         log from {} to {}, known to be committed up to {}{}   snapshot {snapshot}",
        about.cluster_id,
        voters.join(" "),
        about.purged.map_or(0, |id| id.index + 1),
        index(about.last.map(|id| id.index)),
        index(about.committed.map(|id| id.index)),
        match about {
            MemberAbout { cut_short: true, .. } => ", without a damaged end that was acknowledged",
            MemberAbout { torn: true, .. } => ", without a torn tail that was never acknowledged",
            _ => "",
        },
    )
}

fn recover(context: &Context, options: &RecoverOptions) -> Result<Exit, Failure> {
    let dir = &options.data_dir;
    let tail = if options.drop_damaged_tail { Tail::DropDamaged } else { Tail::Whole };
    let plan = Plan::with(dir, tail, &Env::system()).map_err(|error| refused(dir, &error))?;
    let about = plan.about().clone();
    context.note(&head(&about));
    context.note(&told(&plan));
    let Some(typed) = &options.confirm else {
        let failure = Failure::new("E0113", Exit::Usage, "nothing was changed: this needs a confirmation");
        let (dir, id) = (dir.display(), about.cluster_id);
        let drop = if options.drop_damaged_tail { " --drop-damaged-tail" } else { "" };
        let command = format!("atlasctl operator raft recover --data-dir {dir}{drop} --confirm {id:032x}");
        return Err(failure.with_next(command));
    };
    let confirmed = plan.confirm(typed).map_err(|error| refused(dir, &error))?;
    let recovered = confirmed.carry_out(&Env::system()).map_err(|error| refused(dir, &error))?;
    let (old, new) = (format!("{:032x}", recovered.old_cluster_id), format!("{:032x}", recovered.cluster_id));
    let text = format!(
        "{} is alone in cluster {new} (was {old})\n  before     {}\n",
        recovered.name,
        recovered.kept.display()
    );
    let value = json!({"cluster_id": new, "old_cluster_id": old, "name": recovered.name, "kept": recovered.kept});
    context.show(&Shown { value, text, names: vec![format!("cluster/{new}")] })?;
    context.note("delete the data of every other member of the old cluster before it joins this one");
    context.next(&format!("next: atlas-controller --data-dir {}", words::shell(&dir.display().to_string())));
    Ok(Exit::Done)
}

/// The effects of a recovery.
fn told(plan: &Plan) -> String {
    let about = plan.about();
    let others: Vec<String> =
        about.voters.iter().filter(|member| **member != plan.own().member).map(|m| format!("c{}", m.0)).collect();
    let others =
        if others.is_empty() { "it is the only voter".to_owned() } else { format!("removed: {}", others.join(" ")) };
    format!(
        "{} would continue alone, as a new cluster; {others}\n\
         kept: {} up to entry {} of its log; {} may be uncommitted\n\
         lost: data that only the others had, including acknowledged data{}",
        plan.own().name,
        words::count(plan.state().to_image().jobs.len() as u64, "job"),
        about.last.map_or(0, |id| id.index),
        plan.unconfirmed(),
        if about.cut_short { "; and the damaged end of its log, which was acknowledged" } else { "" },
    )
}

fn unreadable(dir: &Path, text: &str) -> Failure {
    Failure::new("E0112", Exit::Short, format!("\"{}\": {text}", dir.display()))
        .with_next("what it means: atlasctl explain-error E0112")
}

fn refused(dir: &Path, error: &RecoveryError) -> Failure {
    match error {
        RecoveryError::NotConfirmed { .. } => {
            let failure = Failure::new("E0113", Exit::Usage, format!("nothing was changed: {error}"));
            failure.with_next("the id is in the first line above")
        }
        error => unreadable(dir, &atlas_env::chain(error)),
    }
}

#[cfg(test)]
mod tests {
    use atlas_offline::log::Line;
    use expect_test::expect;

    use super::*;

    #[test]
    fn entries_are_told_in_a_table() {
        let line = |index, kind, seq, says: &[&str]| Line {
            index,
            term: 1,
            kind,
            seq,
            at: seq.map(|seq| seq as i64),
            bytes: 100,
            says: says.iter().map(|word| (*word).to_owned()).collect(),
        };
        let about = MemberAbout {
            cluster_id: 7,
            vote: None,
            committed: None,
            purged: None,
            last: None,
            torn: false,
            cut_short: false,
            snapshot: None,
            voters: Vec::new(),
            members: Vec::new(),
        };
        let lines = vec![
            line(0, "membership", None, &["voters c1"]),
            line(1, "blank", None, &[]),
            line(2, "commands", Some(0), &["submit_job ×2", "grant_lease"]),
        ];
        expect![[r#"
            INDEX  TERM  KIND        SEQ  BYTES  SAYS
            0      1     membership  -    100    voters c1
            1      1     blank       -    100    -
            2      1     commands    0    100    submit_job ×2, grant_lease
        "#]]
        .assert_eq(&table(&Page { about, lines, next: None }));
    }
}
