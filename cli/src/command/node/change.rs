//! `atlasctl node drain`, `cordon` and `uncordon`: whether a node takes new jobs.

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Which node.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The node's name.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
}

/// Does one of the three; `verb` is the last part of the path, `told` what it means from now on.
pub(crate) async fn run(context: &Context, options: &Options, verb: &str, told: &str) -> Result<Exit, Failure> {
    let name = &options.name;
    let value = context.client()?.post(&["api", "nodes", name, verb], &[], &json!({})).await?;
    context.note(&format!("{name} {told}"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}
