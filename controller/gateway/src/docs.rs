//! The tool `docs_search`: sections of the documentation, and pages of error codes.

use atlas_api::catalogue;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Map, Value, json};

use crate::arguments::{self, DocsSearch};
use crate::call::{Call, Refused};
use crate::view::done;

impl Call<'_> {
    pub(crate) async fn search_docs(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let DocsSearch { query, limit } = arguments::read(arguments)?;
        let query = arguments::within(&query)?.to_owned();
        // All words of all pages are compared.
        let found = self.server.env.spawn_blocking("docs-search", move || found(&query, limit)).join().await;
        Ok(done(Map::from_iter([("sections".to_owned(), found.map_err(|_| "the search failed".to_owned())?)])))
    }
}

/// The page of an error code in the query, then the sections that have its words.
fn found(query: &str, limit: Option<usize>) -> Value {
    let mut sections: Vec<Value> =
        query.split(|letter: char| !letter.is_ascii_alphanumeric()).filter_map(page).collect();
    let input = json!({ "input": { "query": query, "limit": limit.map(|limit| limit.max(1)) } });
    // A query that is a text is always answered.
    let mut document = atlas_bundled::search_docs(input.to_string().as_bytes()).unwrap_or_default();
    if let Some(Value::Array(found)) = document.get_mut("sections").map(Value::take) {
        sections.extend(found);
    }
    Value::Array(sections)
}

/// The page of an error code.
fn page(code: &str) -> Option<Value> {
    let code = code.to_ascii_uppercase();
    let text = catalogue::page(&code)?;
    let (title, text) = text.split_once('\n').unwrap_or((text, ""));
    Some(json!({ "page": format!("errors/{code}"), "title": title.trim_start_matches("# "), "text": text.trim() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_codes_are_found() {
        let pages = |query: &str| -> Vec<String> {
            let sections = found(query, Some(2));
            let pages = sections.as_array().into_iter().flatten().filter_map(|section| section["page"].as_str());
            pages.map(str::to_owned).collect()
        };
        assert_eq!(pages("what does error e1102 mean?").first().map(String::as_str), Some("errors/E1102"));
        let secrets = pages("rotate the key that seals secrets");
        assert!(secrets.contains(&"operating/secret-keys".to_owned()) && secrets.len() == 2, "{secrets:?}");
        assert_eq!(pages("the of"), Vec::<String>::new());
    }
}
