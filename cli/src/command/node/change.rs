//! `atlasctl node drain`, `cordon`, `uncordon` and `remove`: whether a node takes new jobs.

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
    pub(super) name: String,
}

/// Does one of the first three; `verb` is the last part of the path, `told` what it means from now on.
pub(crate) async fn change(context: &Context, name: &str, verb: &str, told: &str) -> Result<Exit, Failure> {
    let value = context.client()?.post(&["api", "nodes", name, verb], &[], &json!({})).await?;
    context.note(&format!("{name} {told}"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}

/// Forgets a node.
pub(crate) async fn remove(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&["api", "nodes", name]).await?;
    context.note(&format!("{name} is forgotten; it comes back if its worker does"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}
