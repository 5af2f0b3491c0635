//! `atlasctl peer add`.

use std::time::Duration;

use atlas_mcp_spec::{Remote, ServerSpec, Transport};
use serde_json::json;

use super::{LABEL, agents};
use crate::client::Client;
use crate::command::mcp::server::{self, KIND, ask};
use crate::command::secret;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl peer add`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The name of the peer here, and the address of its MCP server.
    #[arg(value_name = "NAME=URL")]
    spec: String,
    /// Where its token comes from: secret://NAME, or ${VARIABLE} of the worker's environment; never the token itself.
    #[arg(long, value_name = "REFERENCE")]
    token: Option<String>,
    /// The older transport with an event stream.
    #[arg(long)]
    sse: bool,
    /// Allow http:// to another machine.
    #[arg(long)]
    plain_http: bool,
    /// Longest time of a call of one of its tools.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = words::parse_seconds)]
    timeout: Duration,
    /// Replace a peer of the same name, and renew what is known of its agents.
    #[arg(long)]
    replace: bool,
}

/// What the peer is asked for may take this long.
const WAIT: Duration = Duration::from_secs(90);

/// Adds a peer, with what it has now. Returns the names of its tools, and what happened to its agents.
async fn add(
    client: &Client,
    name: &str,
    spec: &ServerSpec,
    replace: bool,
    context: Option<&Context>,
) -> Result<(Vec<String>, agents::Found), Failure> {
    let mut spec = serde_json::to_value(spec).map_err(|error| Failure::usage(format!("the definition: {error}")))?;
    let labels = json!({ LABEL: "true" });
    server::add::put(client, name, &spec, &labels, replace).await?;
    let answer = ask::ask(client, name, ask::Question::Tools, WAIT, context).await?;
    let tools = answer["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools: Vec<String> = tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    // Its tools are known here by these names, as its agents are, until they are renewed.
    spec["tools"] = json!(tools);
    server::add::put(client, name, &spec, &labels, true).await?;
    let has = |wanted: &str| tools.iter().any(|tool| tool == wanted);
    let mut found = agents::Found::default();
    if has("atlas.registry.list") && has("atlas.exec.run") {
        found = agents::register(client, name, WAIT, context).await?;
    }
    Ok((tools, found))
}

/// What [`add_peer`] added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedPeer {
    /// The number of its tools.
    pub tools: usize,
    /// Its agents, as they are called here.
    pub agents: Vec<String>,
    /// Sentences about the agents that could not be registered.
    pub left_out: Vec<String>,
}

/// Adds another cluster, or renews what is known of it. A token becomes a secret with the name of the peer.
pub async fn add_peer(client: &Client, name: &str, url: &str, token: Option<&str>) -> Result<AddedPeer, Failure> {
    let mut spec = ServerSpec::http(url.to_owned());
    // Atlas for Python calls any address.
    spec.plain_http = true;
    if let Some(token) = token {
        let secret = format!("peer-{name}");
        spec.headers.insert("Authorization".to_owned(), format!("Bearer {{{{{secret}}}}}"));
        secret::store(client, &secret, token, false).await?;
    }
    spec.check().map_err(|error| Failure::usage(format!("the definition is refused: {error}")))?;
    let (tools, found) = add(client, name, &spec, true, None).await?;
    Ok(AddedPeer { tools: tools.len(), agents: found.registered, left_out: found.left_out })
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (name, spec) = options.spec()?;
    let (tools, found) = add(&context.client()?, &name, &spec, options.replace, Some(context)).await?;
    for why in &found.left_out {
        context.note(why);
    }
    let mut text = format!("peer {name}   added   {} tools   {} agents\n", tools.len(), found.registered.len());
    for agent in &found.registered {
        text += &format!("  {agent}\n");
    }
    let names: Vec<String> = tools.iter().map(|tool| format!("{name}.{tool}")).collect();
    let value = json!({ "peer": name, "tools": names, "agents": found.registered, "left_out": found.left_out });
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

impl Options {
    fn spec(&self) -> Result<(String, ServerSpec), Failure> {
        let remote = Remote::parse(&self.spec).map_err(Failure::usage)?;
        if remote.token.is_some() {
            // The shell's history and everybody who may read objects would have it.
            let failure = Failure::usage("a token does not belong on the command line");
            return Err(
                failure.with_next("atlasctl secret set NAME   then: atlasctl peer add NAME=URL --token secret://NAME")
            );
        }
        let mut spec = ServerSpec::http(remote.url);
        if self.sse {
            spec.transport = Transport::Sse;
        }
        if let Some(token) = &self.token {
            let template = match atlas_model::Reference::read(token) {
                Some(atlas_model::Reference::Secret(name)) => format!("Bearer {{{{{name}}}}}"),
                Some(atlas_model::Reference::Variable(name)) => format!("Bearer ${{{name}}}"),
                None => return Err(Failure::usage("--token is not a reference: secret://NAME or ${VARIABLE}")),
            };
            spec.headers.insert("Authorization".to_owned(), template);
        }
        spec.plain_http = self.plain_http;
        spec.timeout_seconds = u32::try_from(self.timeout.as_secs()).unwrap_or(u32::MAX);
        spec.check().map_err(|error| Failure::usage(format!("the definition is refused: {error}")))?;
        Ok((remote.name, spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(spec: &str, token: Option<&str>) -> Options {
        let token = token.map(str::to_owned);
        Options {
            spec: spec.to_owned(),
            token,
            sse: false,
            plain_http: false,
            timeout: Duration::from_secs(30),
            replace: false,
        }
    }

    #[test]
    fn tokens_are_references() {
        let (name, spec) = options("lab=http://127.0.0.1:8400/mcp", Some("secret://lab")).spec().expect("a peer");
        assert_eq!((name.as_str(), spec.headers["Authorization"].as_str()), ("lab", "Bearer {{lab}}"));
        let (_, spec) = options("lab=http://h/mcp", Some("${LAB}")).spec().expect("a peer");
        assert_eq!(spec.headers["Authorization"], "Bearer ${LAB}");
        assert!(options("lab=http://h/mcp", Some("sekret")).spec().is_err());
        assert!(options("lab=http://h/mcp@sekret", None).spec().is_err());
        assert!(options("lab", None).spec().is_err());
    }
}
