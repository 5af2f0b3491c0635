//! `atlasctl cluster transfer-leader`.

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl cluster transfer-leader`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// New leader, by name or number; defaults to the most up-to-date controller.
    #[arg(value_name = "CONTROLLER", value_parser = names::controller)]
    to: Option<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let body = json!({"to": options.to});
    let value = context.client()?.post(&["api", "cluster", "transfer-leader"], &[], &body).await?;
    let leader = value["leader"].as_str().ok_or_else(|| Failure::answer("a leader was expected"))?.to_owned();
    let text = format!("{leader} leads in term {}\n", value["term"]);
    context.show(&Shown { value, text, names: vec![format!("controller/{leader}")] })?;
    Ok(Exit::Done)
}
