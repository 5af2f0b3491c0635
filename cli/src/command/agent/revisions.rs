//! `atlasctl agent revisions`.

use atlas_api::types::AgentRevision;
use serde_json::Value;

use crate::command::agent::one_version;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{self, Column, List, column, members, wide};
use crate::words;

/// Options of `atlasctl agent revisions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The agent, optionally with @VERSION; the latest version by default.
    #[arg(value_parser = names::agent)]
    name: String,
    #[command(flatten)]
    list: output::ListOptions,
}

const COLUMNS: [Column<AgentRevision>; 6] = [
    column("REVISION", "revision", |revision, _| revision.revision.to_string()),
    column("PACKAGE", "digest", |revision, _| revision.digest.get(..15).unwrap_or(&revision.digest).to_owned()),
    column("AGE", "registered_at", |revision, look| look.when(revision.registered_at)),
    column("BY", "registered_by", |revision, _| revision.registered_by.clone().unwrap_or_default()),
    column("COPY OF", "copy_of", |revision, _| revision.copy_of.map(|number| number.to_string()).unwrap_or_default()),
    wide("SIZE", "package_bytes", |revision, _| words::bytes(revision.package_bytes)),
];

/// Lists the package of now first.
pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (name, requirement) = one_version(&options.name, None)?;
    let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
    let mut agent = context.client()?.get(&["api", "agents", name], &query).await?;
    let list = List {
        columns: &COLUMNS,
        members: members::AGENT_REVISION,
        name: |revision: &AgentRevision| revision.revision.to_string(),
    };
    let revisions = match agent["revisions"].take() {
        Value::Null => Value::Array(Vec::new()),
        revisions => revisions,
    };
    context.list(revisions, &options.list, &list)?;
    Ok(Exit::Done)
}
