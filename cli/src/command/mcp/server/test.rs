//! `atlasctl mcp test`: the tools of a server, as a worker sees them.

use std::time::Duration;

use serde_json::Value;

use super::ask::Question;
use super::{KIND, ask};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Most characters of a description in a line.
const SHOWN_MAX: usize = 80;

/// Which server is asked.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The server's name.
    #[arg(value_parser = names::server)]
    pub(super) name: String,
    /// Longest wait for the answer.
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = words::parse_duration)]
    pub(super) timeout: Duration,
}

/// Options of `atlasctl mcp test`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TestOptions {
    #[command(flatten)]
    which: Options,
    /// Only a handshake, which must be answered within three seconds.
    #[arg(long)]
    probe: bool,
}

pub(crate) async fn run(context: &Context, options: &TestOptions) -> Result<Exit, Failure> {
    let name = &options.which.name;
    context.client()?.get(&["api", "objects", KIND, name], &[]).await?;
    let question = if options.probe { Question::Probe } else { Question::Tools };
    let value = ask::ask(&context.client()?, name, question, options.which.timeout, Some(context)).await?;
    let text = if options.probe { format!("{KIND} {name}   ok\n") } else { shown(&value) };
    context.show(&Shown { text, value, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

/// The tools, one a line; those that are held back say why. What nobody can use follows.
pub(super) fn shown(value: &Value) -> String {
    let tools = value["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let server = value["server"].as_str().unwrap_or_default();
    let held = tools.iter().filter(|tool| matches!(tool["state"].as_str(), Some("new" | "changed"))).count();
    let held_back = match held {
        0 => String::new(),
        _ => format!("   {held} held back; accept: atlasctl mcp accept-changes {server}"),
    };
    let mut text = format!("{KIND} {server}   ok   {} tools{held_back}\n", tools.len());
    for tool in tools {
        let member = |name: &str| tool[name].as_str().unwrap_or_default();
        let about: String = member("description").lines().next().unwrap_or_default().chars().take(SHOWN_MAX).collect();
        let held = if member("state") == "offered" { String::new() } else { format!(" ({})", member("state")) };
        text += format!("  {}{held}   {about}", member("name")).trim_end();
        text.push('\n');
    }
    for warning in value["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text += &format!("  warning: {warning}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_listed_with_their_state() {
        let tool = |name: &str, state: &str, description: &str| json!({"name": name, "state": state, "description": description});
        let value = json!({"server": "lab", "tools": [tool("add", "offered", "Adds.\nMore."), tool("rm", "changed", "")],
                "warnings": ["tool \"mv\" has no \"inputSchema\""]});
        expect![[r#"
            mcp-server lab   ok   2 tools   1 held back; accept: atlasctl mcp accept-changes lab
              add   Adds.
              rm (changed)
              warning: tool "mv" has no "inputSchema"
        "#]]
        .assert_eq(&shown(&value));
    }
}
