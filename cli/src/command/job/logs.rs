//! `atlasctl job logs`.

use atlas_api::types::Line;
use serde_json::Value;

use super::pieces::{Piece, Printed, follow as follow_pieces};
use crate::answers;
use crate::client::Client;
use crate::command::{chain_run, graph};
use crate::context::Context;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Log levels, most verbose first.
const LEVELS: [&str; 4] = ["debug", "info", "warning", "error"];

/// Options of `atlasctl job logs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of a job or of a run of a chain, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
    /// Stream new lines until the job has ended; for scripts with -o jsonl, because json and yaml come at the end.
    #[arg(short, long)]
    follow: bool,
    /// With --follow: also print models' answers as they form, to stderr.
    #[arg(long, requires = "follow")]
    deltas: bool,
    #[command(flatten)]
    which: Which,
}

/// Options that select lines.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Which {
    /// Only lines of this level and above.
    #[arg(long, value_parser = LEVELS)]
    level: Option<String>,
    /// Only lines newer than this.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    since: Option<std::time::Duration>,
}

impl Which {
    /// Whether a line matches the options.
    pub(crate) fn admits(&self, line: &Line, now: f64) -> bool {
        let rank = |level: &str| {
            let level = if level.starts_with("warn") { "warning" } else { level };
            LEVELS.iter().position(|known| known.eq_ignore_ascii_case(level))
        };
        let loud = match &self.level {
            None => true,
            // A line without a level, or with an unknown one, counts as `info`.
            Some(least) => rank(&line.level).unwrap_or(1) >= rank(least).unwrap_or(0),
        };
        loud && self.since.is_none_or(|since| line.at >= now - since.as_secs_f64())
    }
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    if options.deltas && chain_run::is_one(&options.id) {
        let failure = Failure::usage("--deltas follows one job, and this is a run of a chain");
        return Err(failure.with_next(format!("its jobs: atlasctl job tree {}", options.id)));
    }
    if !options.deltas {
        return of_job(context, &options.id, options.follow, &options.which).await;
    }
    let (client, now) = (context.client()?, context.look.now);
    let mut printed = Printed::default();
    let each = |event: &str, data: &str| {
        let value: Value = serde_json::from_str(data).map_err(Failure::answer)?;
        if matches!(event, "delta" | "gap" | "reset") {
            context.passing(&printed.hear(event, &answers::read::<Piece>(&value)?));
            return Ok(());
        }
        let said: Line = answers::read(&value)?;
        if !options.which.admits(&said, now) {
            return Ok(());
        }
        context.passing(printed.end_line());
        context.show(&Shown { value, text: line(&said), names: Vec::new() })
    };
    let followed = context.as_one(false, follow_pieces(&client, &options.id, each)).await;
    context.passing(printed.end_line());
    followed.map(|()| Exit::Done)
}

/// Prints the log lines of one job, or of the jobs of a run of a chain.
pub(crate) async fn of_job(context: &Context, id: &str, goes_on: bool, which: &Which) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::logs(context, id, chain_run::Wanted { follow: goes_on, which }).await;
    }
    let client = context.client()?;
    let now = context.look.now;
    if goes_on {
        let each = |said: &Line, value: Value| match which.admits(said, now) {
            true => context.show(&Shown { value, text: line(said), names: Vec::new() }),
            false => Ok(()),
        };
        context.as_one(false, follow(&client, id, each)).await?;
        return Ok(Exit::Done);
    }
    let (mut kept, mut text) = (Vec::new(), String::new());
    for (said, value) in ending::logs_so_far(&client, id).await? {
        if which.admits(&said, now) {
            text += &line(&said);
            kept.push(value);
        }
    }
    if kept.is_empty() {
        context.note(&format!("{id} logged nothing"));
    }
    context.show(&Shown { value: Value::Array(kept), text, names: Vec::new() })?;
    Ok(Exit::Done)
}

/// Calls `each` with every line as it arrives, until the job has ended.
pub(crate) async fn follow(
    client: &Client,
    id: &str,
    mut each: impl FnMut(&Line, Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    client
        .events(&["api", "jobs", id, "logs"], &[], |frame| {
            let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
            each(&answers::read(&value)?, value)?;
            Ok(true)
        })
        .await
}

/// `12:01:07.214  info  half way`
pub(crate) fn line(line: &Line) -> String {
    if let Some(event) = graph::event_line(line) {
        return event;
    }
    let kind = if line.level.is_empty() { &line.kind } else { &line.level };
    format!("{}  {kind:<5}  {}\n", words::time_of_day(line.at), line.text.trim_end())
}
