//! `atlasctl step --search`: the parts of documents that fit a question, for a durable script.

use serde_json::{Map, Value, json};

use super::{End, json_line};

/// The tool of the platform that searches.
const TOOL: &str = "atlas.documents.search";

/// The name of the call in records.
const NAME: &str = "search_documents";

/// Options of a search.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct SearchOptions {
    /// Prints the parts of documents of this document base that fit the question; the contract names it in requires.documents.
    #[arg(long, value_name = "BASE", requires = "query")]
    search: Option<String>,
    /// The question.
    #[arg(long, value_name = "TEXT", requires = "search")]
    query: Option<String>,
    /// Most parts, 1 to 100; as the base says if it is left out.
    #[arg(long, value_name = "COUNT", requires = "search")]
    top_k: Option<u64>,
    /// Only documents whose sources begin with it.
    #[arg(long, value_name = "SOURCE", requires = "search")]
    source: Option<String>,
    /// Only documents with this metadata; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", requires = "search", value_parser = pair)]
    metadata: Vec<(String, Value)>,
}

/// Reads `KEY=VALUE`. A value is JSON if it reads like it, otherwise a text.
fn pair(word: &str) -> Result<(String, Value), String> {
    let (name, value) = word.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("it is not KEY=VALUE")?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

impl SearchOptions {
    pub(super) fn is_asked(&self) -> bool {
        self.search.is_some()
    }

    /// The call; none if the options ask for something else.
    pub(super) fn call(&self) -> Option<Value> {
        let Self { search, query, top_k, source, metadata } = self;
        let mut input = json!({"base": search.as_ref()?, "query": query});
        if let Some(top_k) = top_k {
            input["top_k"] = json!(top_k);
        }
        if let Some(source) = source {
            input["source"] = json!(source);
        }
        if !metadata.is_empty() {
            input["metadata"] = Value::Object(metadata.iter().cloned().collect::<Map<_, _>>());
        }
        Some(json!({"kind": "tool", "name": NAME, "tool": TOOL, "input": input, "args": input}))
    }
}

/// How a search ends: with parts of documents, as JSON or as text for people and models.
pub(super) fn end(value: &Value, as_json: bool) -> End {
    if let Some(why) = [&value["error"], &value["refused"]].into_iter().find(|why| !why.is_null()) {
        let error = why.as_str().map_or_else(|| why.to_string(), str::to_owned);
        return End::Failed { error, code: 1, printed: Vec::new() };
    }
    let hits = &value["data"]["hits"];
    if as_json {
        return End::Printed(json_line(hits));
    }
    let part = |hit: &Value| {
        let member = |name: &str| hit[name].as_str().unwrap_or_default();
        format!("{}\n{}\n", member("source"), indented(member("text")))
    };
    let parts: Vec<String> = hits.as_array().into_iter().flatten().map(part).collect();
    End::Printed(parts.join("\n").into_bytes())
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { String::new() } else { format!("  {line}") };
    text.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}
