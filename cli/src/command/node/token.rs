//! `atlasctl node token` and `atlasctl node revoke`: which nodes may connect, where the cluster has TLS.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// The kind of the objects with the nodes that may connect.
const KIND: &str = "enrollment";

/// Options of `atlasctl node token`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The node that may join with the token.
    #[arg(value_name = "NAME", value_parser = names::node)]
    name: String,
    /// Lifetime of the token, at most a day.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::parse_seconds)]
    expires: Duration,
    /// Write the token to a new file that only you can read, instead of printing it.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(super) async fn create(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let name = &options.name;
    let body = json!({ "kind": "worker", "node": name, "expires_s": options.expires.as_secs() });
    let mut value = context.client()?.post(&["api", "cluster", "join-tokens"], &[], &body).await?;
    let token = value["token"].as_str().ok_or_else(|| Failure::answer("a token was expected"))?.to_owned();
    let mut text = format!("{token}\n");
    if let Some(path) = &options.to {
        atlas_tls::write_private(path, &text).map_err(|error| Failure::usage(atlas_env::chain(&error)))?;
        // The token must not appear in logs; the output contains only the path of the file.
        value["token"] = json!(null);
        text = format!("{}\n", path.display());
    }
    let within = words::milliseconds(options.expires.as_secs_f64() * 1e3);
    context.note(&format!("admits the node {name} once within {within}"));
    context.show(&Shown { value, text, names: Vec::new() })?;
    let file = options.to.as_deref().map_or_else(|| "FILE".into(), |path| words::shell(&path.to_string_lossy()));
    let node = words::shell(name);
    context.next(&format!(
        "next, on the new machine: atlas-worker --node {node} --controller HOST:7401 --token-file {file}"
    ));
    Ok(Exit::Done)
}

/// Refuses the certificate of a node from now on.
pub(super) async fn revoke(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&["api", "objects", KIND, name]).await?;
    context.note(&format!("{name} may not connect any more; its leases end with its session"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    context.next(&format!("next: atlasctl node remove {}", words::shell(name)));
    Ok(Exit::Done)
}
