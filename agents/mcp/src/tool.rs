//! A tool of a server, and the three tools through which a model finds and calls the tools of a large server.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Most bytes of the name of a tool.
const NAME_BYTES_MAX: usize = 256;

/// Most hits of a search, and how many there are if the model does not say.
const HITS_MAX: usize = 20;
const HITS_DEFAULT: usize = 8;

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoteTool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub input_schema: Value,
}

impl RemoteTool {
    /// The definition as the model reads it, for hashes and comparisons.
    pub fn definition(&self) -> Value {
        json!({ "name": self.name, "description": self.description, "inputSchema": self.input_schema })
    }
}

/// Whether a tool may have this name: printable, and short enough.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control)
}

/// A tool through which a model uses the tools of a server without reading all of their schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meta {
    /// Finds tools.
    Search,
    /// Shows the schema of one.
    Describe,
    /// Calls one.
    Invoke,
}

impl Meta {
    /// All of them, in the order in which they are used.
    pub const ALL: [Self; 3] = [Self::Search, Self::Describe, Self::Invoke];

    /// The name of the tool for a server.
    pub fn name(self, server: &str) -> String {
        format!("mcp_{}_{server}", self.as_str())
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Describe => "describe",
            Self::Invoke => "invoke",
        }
    }

    /// What it does: a text for the model.
    pub fn description(self, server: &str) -> String {
        match self {
            Self::Search => {
                format!("Finds tools of the MCP server {server} by words; answers with their names and descriptions.")
            }
            Self::Describe => format!("Shows the arguments of one tool of the MCP server {server}, as a JSON Schema."),
            Self::Invoke => {
                let describe = Self::Describe.name(server);
                format!("Calls one tool of the MCP server {server}. Read its arguments with {describe} first.")
            }
        }
    }

    /// The JSON Schema of its arguments.
    pub fn schema(self) -> Value {
        let tool = json!({ "type": "string", "description": "The name of the tool." });
        match self {
            Self::Search => json!({
                "type": "object", "required": ["query"],
                "properties": {
                    "query": { "type": "string", "description": "What the tool should do." },
                    "top_k": {
                        "type": "integer", "minimum": 1, "maximum": HITS_MAX, "default": HITS_DEFAULT,
                        "description": "Most tools to list."
                    }
                }
            }),
            Self::Describe => json!({ "type": "object", "required": ["tool"], "properties": { "tool": tool } }),
            Self::Invoke => json!({
                "type": "object", "required": ["tool"],
                "properties": {
                    "tool": tool,
                    "arguments": { "type": "object", "description": "The arguments of the tool." }
                }
            }),
        }
    }

    /// The answer to [`Self::Search`] and [`Self::Describe`], which need no call of the server. The error is a text for the model.
    pub fn answer(self, server: &str, tools: &[RemoteTool], arguments: &Value) -> Result<Value, String> {
        if self == Self::Search {
            let query = text(arguments, "query")?;
            let asked = arguments["top_k"].as_u64().map_or(HITS_DEFAULT, |count| count.try_into().unwrap_or(HITS_MAX));
            let hits = crate::search(server, tools, query, asked.clamp(1, HITS_MAX));
            let hit =
                |tool: &&RemoteTool| json!({ "name": tool.name, "server": server, "description": tool.description });
            return Ok(Value::Array(hits.iter().map(hit).collect()));
        }
        let tool = wanted(server, tools, text(arguments, "tool")?)?;
        Ok(json!({
            "type": "object", "required": ["tool", "arguments"],
            "properties": {
                "tool": { "type": "string", "enum": [tool.name], "description": tool.description },
                "arguments": tool.input_schema
            }
        }))
    }

    /// The tool and the arguments of a call of [`Self::Invoke`]. The error is a text for the model.
    pub fn invoked<'a>(
        server: &str,
        tools: &'a [RemoteTool],
        arguments: &Value,
    ) -> Result<(&'a RemoteTool, Value), String> {
        let tool = wanted(server, tools, text(arguments, "tool")?)?;
        match &arguments["arguments"] {
            Value::Null => Ok((tool, json!({}))),
            given @ Value::Object(_) => Ok((tool, given.clone())),
            _ => Err("Invalid 'arguments': not an object".to_owned()),
        }
    }
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    match &arguments[name] {
        Value::String(text) if !text.trim().is_empty() => Ok(text),
        Value::Null | Value::String(_) => Err(format!("Missing '{name}' argument")),
        _ => Err(format!("Invalid '{name}': not a string")),
    }
}

fn wanted<'a>(server: &str, tools: &'a [RemoteTool], name: &str) -> Result<&'a RemoteTool, String> {
    let found = tools.iter().find(|tool| tool.name == name);
    found.ok_or_else(|| {
        let search = Meta::Search.name(server);
        format!("the MCP server {server} has no tool '{name}'; find one with {search}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<RemoteTool> {
        let tool = |name: &str, description: &str| RemoteTool {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({"type": "object", "properties": {"id": {"type": "integer"}}}),
        };
        vec![tool("read_issue", "Reads an issue."), tool("close_issue", "Closes an issue.")]
    }

    #[test]
    fn names_are_those_of_the_server() {
        let names: Vec<String> = Meta::ALL.into_iter().map(|meta| meta.name("github")).collect();
        assert_eq!(names, ["mcp_search_github", "mcp_describe_github", "mcp_invoke_github"]);
        assert!(Meta::Invoke.description("github").contains("mcp_describe_github"));
    }

    #[test]
    fn a_search_lists_tools_and_a_description_wraps_the_schema() {
        let found = Meta::Search.answer("github", &tools(), &json!({"query": "close", "top_k": 1})).expect("found");
        assert_eq!(found, json!([{"name": "close_issue", "server": "github", "description": "Closes an issue."}]));
        let shown = Meta::Describe.answer("github", &tools(), &json!({"tool": "read_issue"})).expect("known");
        assert_eq!(shown["properties"]["arguments"]["properties"]["id"]["type"], "integer");
    }

    #[test]
    fn what_a_model_gets_wrong_is_told() {
        let told = |meta: Meta, arguments: Value| meta.answer("s", &tools(), &arguments).expect_err("refused");
        assert_eq!(told(Meta::Search, json!({})), "Missing 'query' argument");
        assert_eq!(told(Meta::Describe, json!({"tool": 1})), "Invalid 'tool': not a string");
        assert_eq!(
            told(Meta::Describe, json!({"tool": "x"})),
            "the MCP server s has no tool 'x'; find one with mcp_search_s"
        );
        let invoked =
            |arguments: Value| Meta::invoked("s", &tools(), &arguments).map(|(tool, given)| (tool.name.clone(), given));
        assert_eq!(invoked(json!({"tool": "read_issue"})), Ok(("read_issue".to_owned(), json!({}))));
        assert_eq!(
            invoked(json!({"tool": "read_issue", "arguments": []})),
            Err("Invalid 'arguments': not an object".to_owned())
        );
    }
}
