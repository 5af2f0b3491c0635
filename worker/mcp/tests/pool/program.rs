//! Servers that are programs.

use atlas_mcp::{McpErrorKind, ServerSpec};
use serde_json::json;

use crate::support::{LIMIT, arguments, pool, target};

/// A server in a few lines of Python. `MODE` says what it does wrong.
const PROGRAM: &str = r#"
import json, os, sys
mode = os.environ.get("MODE", "")
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
described = "One."
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
             "serverInfo": {"name": "program", "version": os.environ.get("KEY", "")}}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": [{"name": "one", "description": described, "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        if mode == "refuses":
            sys.stdout.write("starting up...\n[1, 2]\n{\"hello\": 1}\n\n")
            sys.stdout.write('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"out of paper"}}\n')
            sys.stdout.flush()
            continue
        if mode == "dies":
            sys.exit(3)
        if mode == "floods":
            sys.stdout.write("x" * (9 << 20))
            sys.stdout.write("\n")
        while mode == "talks":
            sys.stdout.write('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n' * 1000)
        described = "Two."
        say({"method": "notifications/tools/list_changed"})
        say({"id": id, "result": {"content": [{"type": "text", "text": os.environ.get("KEY", "")}]}})
"#;

fn spec(mode: &str) -> ServerSpec {
    let mut spec = ServerSpec::stdio("python3", vec!["-c".to_owned(), PROGRAM.to_owned()]);
    spec.env = [("MODE".to_owned(), mode.to_owned()), ("KEY".to_owned(), "{{KEY}}".to_owned())].into();
    spec
}

#[tokio::test]
async fn a_program_gets_its_secrets_and_tells_when_its_tools_change() {
    let (pool, target) = (pool(), target(&spec(""), None));
    let described = async || pool.tools(&target).await.expect("tools")[0].description.clone();
    assert_eq!(described().await, "One.");
    let called = pool.call(&target, "one", arguments(&json!({})), LIMIT).await.expect("a result");
    assert_eq!(called.value(), json!("own"));
    assert_eq!(described().await, "Two.");
}

#[tokio::test]
async fn a_program_that_dies_in_a_call_is_started_again_for_the_next() {
    let (pool, target) = (pool(), target(&spec("dies"), None));
    let lost = pool.call(&target, "one", arguments(&json!({})), LIMIT).await.expect_err("lost");
    assert_eq!(lost.kind, McpErrorKind::Lost, "{lost}");
    assert_eq!(pool.tools(&target).await.expect("it runs again").len(), 1);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_dropped() {
    let (pool, target) = (pool(), target(&spec("floods"), None));
    let called = pool.call(&target, "one", arguments(&json!({})), LIMIT).await.expect("the next line is read");
    assert_eq!(called.text(), "own");
}

#[tokio::test]
async fn a_program_that_talks_without_end_is_ended() {
    let (pool, target) = (pool(), target(&spec("talks"), None));
    let lost = pool.call(&target, "one", arguments(&json!({})), LIMIT).await.expect_err("no answer");
    let text = "the MCP server strict sent more than 10000 messages in 10 s";
    assert_eq!((lost.kind, lost.text.as_str()), (McpErrorKind::Lost, text));
    assert_eq!(pool.tools(&target).await.expect("it runs again").len(), 1);
}

#[tokio::test]
async fn a_program_that_does_not_start_says_why() {
    let (pool, target) = (pool(), target(&ServerSpec::stdio("/nowhere/at-all", Vec::new()), None));
    let error = pool.tools(&target).await.expect_err("no program");
    assert!(error.text.starts_with("the MCP server strict does not start: No such file"), "{error}");
    let silent = crate::support::target(&ServerSpec::stdio("true", Vec::new()), None);
    let error = pool.tools(&silent).await.expect_err("it ends");
    assert!(error.text.ends_with("it said: no more"), "{error}");
}

#[tokio::test]
async fn an_error_without_an_id_is_that_of_the_only_call() {
    let (pool, target) = (pool(), target(&spec("refuses"), None));
    let error = pool.call(&target, "one", arguments(&json!({})), LIMIT).await.expect_err("an error");
    assert_eq!(error.text, "the MCP server strict refused the request: out of paper");
}
