//! `atlasctl job retry`.

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Which job.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The job's id, or a unique beginning of it.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    id: String,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let value = context.client()?.post(&["api", "jobs", &options.id, "retry"], &[], &json!({})).await?;
    let id = value["id"].as_str().ok_or_else(|| Failure::answer("a retry is answered with an id"))?.to_owned();
    context.next(&format!("next: atlasctl job wait {id}"));
    context.show(&Shown { value, text: format!("{id}\n"), names: vec![format!("job/{id}")] })?;
    Ok(Exit::Done)
}
