//! `atlasctl mcp add`, `list`, `show`, `test`, `accept-changes` and `remove`: the MCP servers whose tools agents use.

pub(super) mod accept;
pub(crate) mod add;
pub(crate) mod ask;
pub(super) mod test;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::Value;

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, column, members};

/// The word of MCP servers in the API.
pub(crate) const KIND: &str = "mcp-server";

/// Options of `atlasctl mcp list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListOfServers {
    #[command(flatten)]
    list: ListOptions,
}

/// Names of MCP servers.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The server's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::server)]
    names: Vec<String>,
}

/// A server as a list shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Server {
    metadata: ObjectMetadata,
    spec: Value,
}

impl Server {
    fn text(&self, member: &str) -> &str {
        self.spec[member].as_str().unwrap_or_default()
    }

    /// Its address, or its program with the arguments.
    fn place(&self) -> String {
        let arguments = self.spec["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let words = [self.text("url"), self.text("command")].into_iter().chain(arguments);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn tools(&self) -> String {
        let pins = self.spec["pins"].as_object().map_or(0, serde_json::Map::len);
        match (self.spec["pinned"].as_bool(), &self.spec["tools"]) {
            (Some(true), _) => format!("{pins} accepted"),
            (_, Value::Array(allowed)) => format!("{} allowed", allowed.len()),
            _ => "all".to_owned(),
        }
    }
}

const COLUMNS: [Column<Server>; 5] = [
    column("NAME", "metadata", |server, _| server.metadata.name.clone()),
    column("NAMESPACE", "metadata", |server, _| server.metadata.namespace.clone()),
    column("TRANSPORT", "spec", |server, _| server.text("transport").to_owned()),
    column("ADDRESS", "spec", |server, _| server.place()),
    column("TOOLS", "spec", |server, _| server.tools()),
];

pub(super) async fn list(context: &Context, options: &ListOfServers) -> Result<Exit, Failure> {
    let objects = object::all(&context.client()?, KIND).await?;
    let name = |server: &Server| format!("{KIND}/{}", server.metadata.name);
    context.list(Value::Array(objects), &options.list, &List { columns: &COLUMNS, members: members::OBJECT, name })?;
    Ok(Exit::Done)
}

pub(super) async fn show(context: &Context, options: &Names) -> Result<Exit, Failure> {
    names::each(context, &options.names, async |name| object::show(context, KIND, name).await).await
}

pub(super) async fn remove(context: &Context, options: &Names) -> Result<Exit, Failure> {
    names::each(context, &options.names, async |name| object::remove(context, KIND, name).await).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_shown_with_its_place_and_its_tools() {
        let server = |spec: Value| Server { spec, ..Server::default() };
        let program = server(json!({"transport": "stdio", "command": "uvx", "args": ["fetch", "-v"], "tools": ["a"]}));
        assert_eq!((program.place().as_str(), program.tools().as_str()), ("uvx fetch -v", "1 allowed"));
        let pinned = server(json!({"url": "https://a.b", "pinned": true, "pins": {"x": "", "y": ""}}));
        assert_eq!((pinned.place().as_str(), pinned.tools().as_str()), ("https://a.b", "2 accepted"));
        assert_eq!(server(json!({})).tools(), "all");
    }
}
