//! `atlasctl agent rollback`.

use atlas_api::types::{Agent, RolledBack};
use serde_json::json;

use crate::answers;
use crate::command::agent::one_version;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl agent rollback`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The agent, optionally with @VERSION; the latest version by default.
    #[arg(value_parser = names::agent)]
    name: String,
    /// The revision to go back to, as listed by agent revisions; the one before the package of now by default.
    #[arg(long, value_name = "REVISION")]
    to: Option<u32>,
}

/// Registers an earlier package of a version again. Running and waiting jobs keep the package they were submitted with.
pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (name, requirement) = one_version(&options.name, None)?;
    let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
    let agent: Agent = answers::read(&client.get(&["api", "agents", name], &query).await?)?;
    let path = ["api", "agents", name, "versions", &agent.version, "rollback"];
    let value = client.post(&path, &[], &json!({"revision": options.to})).await?;
    let back: RolledBack = answers::read(&value)?;
    let digest = back.digest.get(..15).unwrap_or(&back.digest);
    context.note(&format!(
        "{name} {} has the package of revision {} again, {digest}, as revision {}; running and waiting jobs keep theirs",
        back.version, back.from, back.revision
    ));
    context.show(&Shown { value, text: String::new(), names: vec![format!("agent/{name}@{}", back.version)] })?;
    Ok(Exit::Done)
}
