//! `atlasctl job logs`.

use serde_json::Value;

use crate::api::{self, LogLine};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Which job.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The job's id, or a unique beginning of it.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    id: String,
    /// Goes on until the job has ended.
    #[arg(short, long)]
    follow: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let path = ["api", "jobs", options.id.as_str(), "logs"];
    if options.follow {
        client
            .events(&path, &[], |frame| {
                let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
                let text = line(&api::read(&value)?);
                context.show(&Shown { value, text, names: Vec::new() })?;
                Ok(true)
            })
            .await?;
        return Ok(Exit::Done);
    }
    let value = client.get(&path, &[]).await?;
    let lines: Vec<LogLine> = api::read(&value)?;
    if lines.is_empty() {
        context.note(&format!("{} logged nothing", options.id));
    }
    context.show(&Shown { value, text: lines.iter().map(line).collect(), names: Vec::new() })?;
    Ok(Exit::Done)
}

/// `12:01:07.214  info  half way`
fn line(line: &LogLine) -> String {
    let kind = if line.level.is_empty() { &line.kind } else { &line.level };
    format!("{}  {kind:<5}  {}\n", words::time_of_day(line.at), line.text.trim_end())
}
