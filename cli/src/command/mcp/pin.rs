//! `atlasctl mcp pin` and `unpin`: agents that are tools of their own at `/mcp`.

use serde_json::json;

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// The kind of pins.
const KIND: &str = "pin";

/// Options of `atlasctl mcp pin`.
#[derive(Debug, clap::Args)]
pub(crate) struct Pin {
    /// The agent's name.
    #[arg(value_name = "NAME", value_parser = names::agent)]
    name: String,
    /// Only versions that meet this requirement, such as ^1.2.0.
    #[arg(long, value_name = "REQUIREMENT")]
    version: Option<String>,
}

/// Options of `atlasctl mcp unpin`.
#[derive(Debug, clap::Args)]
pub(crate) struct Unpin {
    /// The agent's name.
    #[arg(value_name = "NAME", value_parser = names::agent)]
    name: String,
}

pub(super) async fn pin(context: &Context, options: &Pin) -> Result<Exit, Failure> {
    let client = context.client()?;
    // A pin without its agent would offer nothing, and nobody would notice.
    client.get(&["api", "agents", &options.name], &[]).await?;
    let spec = options.version.as_ref().map_or_else(|| json!({}), |version| json!({ "version": version }));
    let path = ["api", "objects", KIND, &options.name];
    let value = client.put(&path, &[], &json!({ "spec": spec })).await?;
    let text = format!("{} is a tool at /mcp\n", options.name);
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{}", options.name)] })?;
    Ok(Exit::Done)
}

pub(super) async fn unpin(context: &Context, options: &Unpin) -> Result<Exit, Failure> {
    object::remove(context, KIND, &options.name).await
}
