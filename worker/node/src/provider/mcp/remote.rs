//! Agents of another cluster: of Atlas for Python or of Atlas, by `atlas.exec.run` of its MCP server (compatibility §19.6).

use std::time::Duration;

use atlas_mcp::{McpErrorKind, Target};
use serde_json::{Map, Value, json};

use super::{Fault, Servers};

/// The tool that runs an agent.
const RUN: &str = "atlas.exec.run";

/// Runs an agent of the other cluster. Its input and output are validated there, and by the contract here.
pub(super) async fn run(
    servers: &Servers,
    target: &Target,
    agent: &str,
    input: &Value,
    limit: Duration,
) -> Result<Value, Fault> {
    let failed = |why: &str| Fault::Failed(format!("Remote agent '{agent}' failed: {why}"));
    let arguments = Map::from_iter([("agent".to_owned(), json!(agent)), ("input".to_owned(), input.clone())]);
    let called = match servers.run(target, RUN, arguments, limit).await {
        Ok(called) => called,
        Err(error) if error.kind == McpErrorKind::Configuration => return Err(error.into()),
        Err(error) => return Err(failed(&format!("Remote call to '{RUN}' failed: {error}"))),
    };
    if called.is_error {
        return Err(failed(&called.complaint()));
    }
    output(&super::output(&called)).map_err(|why| failed(&why))
}

/// The output in the answer of the tool, or the error that it tells.
fn output(answer: &Value) -> Result<Value, String> {
    match (&answer["success"], &answer["data"]) {
        (Value::Bool(true), data) => Ok(if data.is_null() { json!({}) } else { data.clone() }),
        _ => Err(answer["error"].as_str().filter(|error| !error.is_empty()).unwrap_or("unknown error").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_output_or_an_error() {
        assert_eq!(output(&json!({"success": true, "data": {"x": 1}, "error": ""})), Ok(json!({"x": 1})));
        assert_eq!(output(&json!({"success": true, "data": null})), Ok(json!({})));
        assert_eq!(output(&json!({"success": false, "error": "boom"})), Err("boom".to_owned()));
        assert_eq!(output(&json!({"success": false, "error": ""})), Err("unknown error".to_owned()));
        assert_eq!(output(&json!({"error": "Missing 'agent' parameter"})), Err("Missing 'agent' parameter".to_owned()));
        assert_eq!(output(&json!({})), Err("unknown error".to_owned()));
    }
}
