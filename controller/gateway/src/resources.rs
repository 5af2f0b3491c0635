//! Resources: outputs of jobs that are too large for a result, pages of the documentation, and document bases.

use atlas_api::catalogue;
use atlas_service::{Caller, Consistency, Service, View};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use crate::bases::{self, Address};
use crate::view::error_text;

/// The media type of pages.
const MARKDOWN: &str = "text/markdown";
/// Most characters of an address that an error repeats.
const URI_MAX: usize = 200;

/// The pages: the last part of the address, the title, the text.
const PAGES: [(&str, &str, &str); 6] = [
    ("concepts", "Concepts", include_str!("../../../docs/concepts/README.md")),
    ("contract", "The contract of an agent", include_str!("../../../docs/agents/contract.md")),
    ("conversations", "Messages and conversations", include_str!("../../../docs/concepts/conversations.md")),
    ("llm", "Agents with a model", include_str!("../../../docs/agents/llm.md")),
    ("mcp", "Agents for assistants", include_str!("../../../docs/concepts/mcp.md")),
    ("models", "Models", include_str!("../../../docs/concepts/models.md")),
];

/// What is always there: the pages of the documentation.
pub(crate) fn pages() -> Vec<Resource> {
    let page = |(name, title, _): &(&str, &str, &str)| {
        Resource::new(format!("atlas://docs/{name}"), *name).with_title(*title).with_mime_type(MARKDOWN)
    };
    PAGES.iter().map(page).collect()
}

/// The templates of outputs, of the pages of errors, and of documents.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let output = ResourceTemplate::new("atlas://jobs/{job_id}/output", "job output")
        .with_description("The whole output of a job, as JSON.")
        .with_mime_type("application/json");
    let error = ResourceTemplate::new("atlas://errors/{code}", "error")
        .with_description("Cause of an error code, such as E1102, and what to try.")
        .with_mime_type(MARKDOWN);
    vec![output, error, bases::template()]
}

/// The text of a page.
fn page(uri: &str) -> Option<&'static str> {
    if let Some(code) = uri.strip_prefix("atlas://errors/") {
        return catalogue::page(code);
    }
    let name = uri.strip_prefix("atlas://docs/")?;
    PAGES.iter().find(|(known, ..)| *known == name).map(|(.., text)| *text)
}

/// Reads a resource.
pub(crate) async fn read(service: &Service, caller: &Caller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    if let Some(text) = page(uri) {
        return Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(MARKDOWN)]));
    }
    let asked: String = uri.chars().take(URI_MAX).collect();
    let unknown = |text: String| ErrorData::resource_not_found(text, Some(json!({ "uri": asked })));
    if let Some(address) = Address::read(uri) {
        let (text, media_type) = bases::read(service, caller, &address).await.map_err(unknown)?;
        return Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(media_type)]));
    }
    let job = uri.strip_prefix("atlas://jobs/").and_then(|rest| rest.strip_suffix("/output"));
    let job = job.ok_or_else(|| unknown(format!("no resource {asked}")))?;
    let id = service.job_id(caller, job).await.map_err(|error| unknown(error_text(&error)))?;
    let shown = service.job(caller, id, View::Plain, Consistency::Linearizable).await;
    let shown = shown.map_err(|error| unknown(error_text(&error)))?;
    let mut text = Vec::new();
    shown.write(&mut text, View::Plain);
    let output =
        serde_json::from_slice::<Value>(&text).ok().and_then(|mut job| job.get_mut("output_data").map(Value::take));
    match output.filter(|output| !output.is_null()) {
        Some(output) => {
            let contents = ResourceContents::text(output.to_string(), uri).with_mime_type("application/json");
            Ok(ReadResourceResult::new(vec![contents]))
        }
        None => Err(unknown(format!("{id} has no output; its status is {}", shown.job().status.as_str()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_their_addresses() {
        for resource in pages() {
            assert!(page(&resource.uri).is_some_and(|text| text.starts_with("# ")), "{}", resource.uri);
        }
        assert!(page("atlas://errors/E1102").is_some());
        for unknown in ["atlas://docs/", "atlas://docs/../x", "atlas://errors/E0", "file:///etc/passwd"] {
            assert_eq!(page(unknown), None, "{unknown}");
        }
    }
}
