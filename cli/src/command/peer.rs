//! `atlasctl peer`: other clusters whose tools and agents are used here. A peer is an MCP server with a label, and its agents are agents of
//! ours that call it.

mod add;
mod agents;

pub use self::add::{AddedPeer, add_peer};

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::command::mcp::server::KIND;
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members};

/// The label of peers and, with the name of the peer, of their agents.
const LABEL: &str = "atlas.peer";

/// Verbs of `atlasctl peer`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Adds another cluster, or renews what is known of its agents.
    Add(add::Options),
    /// Lists other clusters.
    List(ListOfPeers),
    /// Removes another cluster, and retires its agents here.
    Remove(Names),
}

/// Options of `atlasctl peer list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListOfPeers {
    #[command(flatten)]
    list: ListOptions,
}

/// Names of peers.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The peer's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::server)]
    names: Vec<String>,
}

/// A peer as a list shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Peer {
    metadata: ObjectMetadata,
    spec: Value,
}

const COLUMNS: [Column<Peer>; 4] = [
    column("NAME", "metadata", |peer, _| peer.metadata.name.clone()),
    column("NAMESPACE", "metadata", |peer, _| peer.metadata.namespace.clone()),
    column("TRANSPORT", "spec", |peer, _| peer.spec["transport"].as_str().unwrap_or_default().to_owned()),
    column("ADDRESS", "spec", |peer, _| peer.spec["url"].as_str().unwrap_or_default().to_owned()),
];

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Add(options) => add::run(context, options).await,
        Verb::List(options) => list(context, options).await,
        Verb::Remove(options) => names::each(context, &options.names, async |name| remove(context, name).await).await,
    }
}

fn is_peer(object: &Value) -> bool {
    object["metadata"]["labels"].get(LABEL).is_some()
}

async fn list(context: &Context, options: &ListOfPeers) -> Result<Exit, Failure> {
    let mut objects = object::all(&context.client()?, KIND).await?;
    objects.retain(is_peer);
    let name = |peer: &Peer| format!("{KIND}/{}", peer.metadata.name);
    context.list(Value::Array(objects), &options.list, &List { columns: &COLUMNS, members: members::OBJECT, name })?;
    Ok(Exit::Done)
}

/// Retires the agents first: without the server they could only fail.
async fn remove(context: &Context, name: &str) -> Result<Exit, Failure> {
    let client = context.client()?;
    let path = ["api", "objects", KIND, name];
    if !is_peer(&client.get(&path, &[]).await?) {
        let failure = Failure::usage(format!("\"{name}\" is an MCP server and not a peer"));
        return Err(failure.with_next(format!("atlasctl mcp remove {name}")));
    }
    let retired = agents::retire(&client, name).await?;
    client.delete(&path).await?;
    let text = format!("peer {name}   removed   {retired} agents retired\n");
    let value = json!({ "peer": name, "agents_retired": retired });
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}
