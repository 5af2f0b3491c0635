//! `atlasctl mcp accept-changes`: pins the definitions of the tools of a server.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::test::{Options, shown};
use super::{KIND, ask};
use crate::command::object::revision;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let name = &options.name;
    let (value, tools) = accept(context, name, Some(options.timeout)).await?;
    let text = shown(&json!({"server": name, "tools": tools}));
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

/// Accepts the tools of a server as they are now. Returns its object, and the tools as they are offered from then on.
pub(super) async fn accept(
    context: &Context,
    name: &str,
    timeout: Option<Duration>,
) -> Result<(Value, Vec<Value>), Failure> {
    let client = context.client()?;
    let path = ["api", "objects", KIND, name];
    let object = client.get(&path, &[]).await?;
    let answer =
        ask::ask(&client, name, ask::Question::Tools, timeout.unwrap_or(Duration::from_secs(90)), Some(context))
            .await?;
    let mut tools = answer["tools"].as_array().cloned().unwrap_or_default();
    let pins: Map<String, Value> =
        tools.iter().filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool["pin"].clone()))).collect();
    let mut spec = object["spec"].clone();
    spec["pinned"] = true.into();
    spec["pins"] = Value::Object(pins);
    let body = json!({ "labels": object["metadata"]["labels"], "spec": spec });
    // Another person may have changed the definition since the server was asked.
    let changed = client.put_revision(&path, &[], &body, revision(&object)).await?;
    for tool in &mut tools {
        tool["state"] = "offered".into();
    }
    Ok((changed, tools))
}
