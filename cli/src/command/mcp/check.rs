//! `atlasctl mcp check`: asks the gateway in each version of the protocol, as clients of that version do.

use http::Method;
use serde_json::{Value, json};

use super::envelope::Session;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

const STATELESS: &str = "2026-07-28";
const WITH_SESSIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];
const TASKS: &str = "io.modelcontextprotocol/tasks";

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut rows = vec![stateless(&client).await];
    for version in WITH_SESSIONS {
        rows.push(in_session(&client, version).await);
    }
    let mut text = String::new();
    let (mut values, mut well) = (Vec::new(), true);
    for (version, row) in [STATELESS].into_iter().chain(WITH_SESSIONS).zip(rows) {
        // A gateway that cannot be reached has one cause, whatever the version.
        if let Err(failure) = &row
            && failure.exit == Exit::Unreachable
            && failure.code.as_deref() == Some("E4002")
        {
            return row.map(|_| Exit::Done);
        }
        well &= row.is_ok();
        let said = row.unwrap_or_else(|failure| format!("failed: {}", failure.message));
        text.push_str(&format!("{version}   {said}\n"));
        values.push(json!({ "version": version, "result": said }));
    }
    context.show(&Shown { value: Value::Array(values), text, names: Vec::new() })?;
    Ok(if well { Exit::Done } else { Exit::Short })
}

async fn stateless(client: &Client) -> Result<String, Failure> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": about(),
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let ask = |method: &'static str| {
        let headers = vec![("mcp-protocol-version", STATELESS.to_owned()), ("mcp-method", method.to_owned())];
        ask(client, headers, method, json!({ "_meta": meta }))
    };
    let (found, _) = ask("server/discover").await?;
    let tools = tools(&ask("tools/list").await?.0)?;
    let tasks = if found["capabilities"]["extensions"].get(TASKS).is_some() { " · tasks extension ok" } else { "" };
    Ok(format!("server/discover ok · tools/list {tools}{tasks}"))
}

async fn in_session(client: &Client, version: &str) -> Result<String, Failure> {
    let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": about() });
    let (agreed, session) = ask(client, Vec::new(), "initialize", hello).await?;
    if agreed["protocolVersion"] != version {
        return Err(Failure::answer(format!("the gateway speaks {} instead", agreed["protocolVersion"])));
    }
    let id = session.ok_or_else(|| Failure::answer("no session was opened"))?;
    let headers = Session { id, version: version.to_owned() }.headers();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    client.mcp(Method::POST, &headers, Some(initialized)).await?;
    let tools = ask(client, headers.clone(), "tools/list", json!({})).await.and_then(|(result, _)| tools(&result));
    client.mcp(Method::DELETE, &headers, None).await?;
    Ok(format!("initialize ok · tools/list {}", tools?))
}

fn about() -> Value {
    json!({ "name": "atlasctl", "version": env!("CARGO_PKG_VERSION") })
}

fn tools(result: &Value) -> Result<usize, Failure> {
    let tools = result["tools"].as_array().ok_or_else(|| Failure::answer("tools/list has no tools"))?;
    Ok(tools.len())
}

/// Sends a request; its result, and the session that it opened.
async fn ask(
    client: &Client,
    headers: Vec<(&'static str, String)>,
    method: &str,
    params: Value,
) -> Result<(Value, Option<String>), Failure> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut answer = client.mcp(Method::POST, &headers, Some(request.to_string())).await?;
    let (session, status) = (answer.session.clone(), answer.status);
    while let Some(text) = answer.next().await? {
        let mut message: Value = serde_json::from_str(&text).map_err(|_| {
            Failure::answer(format!("{method}: {status}: {}", text.chars().take(200).collect::<String>()))
        })?;
        if let Some(error) = message.get("error") {
            return Err(Failure::answer(format!("{method}: {}", error["message"].as_str().unwrap_or("an error"))));
        }
        if message["id"] == json!(1) {
            return Ok((message["result"].take(), session));
        }
    }
    Err(Failure::answer(format!("{method}: no result ({status})")))
}
