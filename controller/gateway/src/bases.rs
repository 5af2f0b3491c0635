//! Document bases: a resource for each, one for each document, and the tool `search_documents`. A client finds what its caller may read.

use atlas_api::percent_decoded;
use atlas_api::types::{Base, DocumentHit, DocumentQuery, FoundDocuments};
use atlas_service::{Caller, Consistency, DocumentFilter, Service};
use rmcp::model::{CallToolResult, JsonObject, Resource, ResourceTemplate};
use serde_json::{Map, json};

use crate::arguments::{self, SearchDocuments};
use crate::call::{Call, Refused};
use crate::tools::ToolName;
use crate::view::{done, error_text};

/// What the addresses of bases begin with.
const SCHEME: &str = "atlas://bases/";

/// Most documents that the text of a base names.
const NAMED_MAX: usize = 1_000;

/// Most bytes of the texts in one result. The best part is always there.
const TEXTS_BYTES_MAX: usize = 256 << 10;

const MARKDOWN: &str = "text/markdown";

/// A base, or a document of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    base: String,
    /// The source of the document.
    source: Option<String>,
}

impl Address {
    /// Reads an address; none if it is not one of a base.
    pub(crate) fn read(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (base, source) = rest.split_once('/').map_or((rest, None), |(base, source)| (base, Some(source)));
        let decoded = |text: &str| percent_decoded(text).map(|text| text.into_owned());
        let source = match source.filter(|source| !source.is_empty()) {
            Some(source) => Some(decoded(source)?),
            None => None,
        };
        Some(Self { base: decoded(base)?, source })
    }

    fn write(&self) -> String {
        let source = self.source.as_ref().map(|source| format!("/{}", encoded(source)));
        format!("{SCHEME}{}{}", encoded(&self.base), source.unwrap_or_default())
    }
}

/// A text as a part of an address: `/` stays.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// The bases of the caller's namespace as resources; none for a caller that may not read them.
pub(crate) async fn resources(service: &Service, caller: &Caller) -> Vec<Resource> {
    if caller.may(atlas_api::Bases::ListBases.id()).is_err() {
        return Vec::new();
    }
    // The pages of the documentation are listed also while a controller cannot tell.
    let bases = service.bases().bases(caller, Consistency::Stale).await.unwrap_or_default();
    let resource = |base: Base| {
        let uri = Address { base: base.name.clone(), source: None }.write();
        let resource = Resource::new(uri, base.name).with_mime_type(MARKDOWN);
        if base.description.is_empty() { resource } else { resource.with_description(base.description) }
    };
    bases.into_iter().map(resource).collect()
}

/// The template of documents.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{SCHEME}{{base}}/{{+source}}"), "document")
        .with_description("A document of a document base, by its source.")
}

/// The text at an address, and its media type. The error is a sentence.
pub(crate) async fn read(
    service: &Service,
    caller: &Caller,
    address: &Address,
) -> Result<(String, &'static str), String> {
    let Address { base: name, source } = address;
    let failed = |error| error_text(&error);
    let filter = DocumentFilter {
        source: source.clone().unwrap_or_default(),
        limit: if source.is_some() { 1 } else { NAMED_MAX },
        text: source.is_some(),
        ..DocumentFilter::default()
    };
    let page = service.bases().documents(caller, name, &filter, Consistency::Linearizable).await.map_err(failed)?;
    let Some(source) = source else {
        let base = service.bases().base(caller, name, Consistency::Linearizable).await.map_err(failed)?;
        let sources: Vec<String> = page.documents.into_iter().map(|document| document.source).collect();
        return Ok((shown(&base, &sources, page.next.is_some()), MARKDOWN));
    };
    // Of all sources that begin with it, the source itself is the first one.
    let document = page.documents.into_iter().next().filter(|document| document.source == *source);
    match (document.and_then(|document| document.text), page.unreadable.first()) {
        (Some(text), _) => Ok((text, media_type(source))),
        (None, Some(lost)) => Err(format!("documents of the base \"{name}\" cannot be read: {}", lost.reason)),
        (None, None) => Err(format!("the base \"{name}\" has no document with this source")),
    }
}

fn media_type(source: &str) -> &'static str {
    match source.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md" | "markdown" | "html" | "htm") => MARKDOWN,
        _ => "text/plain",
    }
}

fn shown(base: &Base, sources: &[String], has_more: bool) -> String {
    let Base { name, description, documents, bytes, .. } = base;
    let mut text = format!("# {name}\n\n");
    if !description.is_empty() {
        text += &format!("{description}\n\n");
    }
    text += &format!(
        "Documents: {documents}, {bytes} bytes. The tool {} searches them.\n",
        ToolName::SearchDocuments.as_str()
    );
    if !sources.is_empty() {
        text.push('\n');
    }
    sources.iter().for_each(|source| text += &format!("- {source}\n"));
    if has_more {
        text += "- …\n";
    }
    text
}

impl Call<'_> {
    pub(crate) async fn search_documents(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let SearchDocuments { base, query, top_k, source, metadata } = arguments::read(arguments)?;
        let query = DocumentQuery { query, top_k, source, metadata, ..DocumentQuery::default() };
        let service = &self.server.service;
        let found = match service.search_documents(&self.caller, &base, query, Consistency::Linearizable).await {
            Ok(found) => found,
            Err(error) => return Err(self.refusal(ToolName::SearchDocuments, &error).await),
        };
        Ok(done(members(found)))
    }
}

/// What a model gets of an answer.
fn members(found: FoundDocuments) -> Map<String, serde_json::Value> {
    let (count, mut bytes) = (found.hits.len(), 0);
    let fits = |(place, hit): &(usize, DocumentHit)| {
        bytes += hit.text.len();
        *place == 0 || bytes <= TEXTS_BYTES_MAX
    };
    let hits = found.hits.into_iter().enumerate().take_while(fits).map(|(_, hit)| {
        let DocumentHit { source, text, score, chunk, chunks, metadata, .. } = hit;
        let uri = Address { base: found.base.clone(), source: Some(source.clone()) }.write();
        json!({"source": source, "uri": uri, "text": text, "score": score, "part": chunk, "parts": chunks, "metadata": metadata})
    });
    let hits: Vec<_> = hits.collect();
    let left_out = count - hits.len();
    let mut members = Map::from_iter([("hits".to_owned(), json!(hits))]);
    if left_out > 0 {
        members.insert("left_out".to_owned(), json!(left_out));
    }
    if !found.unreadable.is_empty() {
        let reasons: Vec<&String> = found.unreadable.iter().map(|lost| &lost.reason).collect();
        members.insert("not_searched".to_owned(), json!(reasons));
    }
    members
}

#[cfg(test)]
mod tests {
    use atlas_api::types::UnreadableSegment;
    use expect_test::expect;

    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for (base, source, uri) in [
            ("handbook", None, "atlas://bases/handbook"),
            ("handbook", Some("a/b c.md"), "atlas://bases/handbook/a/b%20c.md"),
            ("a.b", Some("https://example.org/?x=é%"), "atlas://bases/a.b/https%3A//example.org/%3Fx%3D%C3%A9%25"),
        ] {
            let address = Address { base: base.to_owned(), source: source.map(str::to_owned) };
            assert_eq!(address.write(), uri);
            assert_eq!(Address::read(uri), Some(address));
        }
        assert_eq!(Address::read("atlas://bases/handbook/").map(|address| address.source), Some(None));
        for other in ["atlas://base/x", "atlas://bases/%ff", "atlas://bases/x/%ff", "file:///bases/x"] {
            assert_eq!(Address::read(other), None, "{other}");
        }
    }

    #[test]
    fn a_base_reads_like_a_page() {
        let base = Base { name: "handbook".to_owned(), documents: 2, bytes: 9, ..Base::default() };
        let sources = ["a.md".to_owned(), "b.md".to_owned()];
        expect![[r#"
            # handbook

            How we work.

            Documents: 2, 9 bytes. The tool search_documents searches them.

            - a.md
            - b.md
            - …
        "#]]
        .assert_eq(&shown(&Base { description: "How we work.".to_owned(), ..base.clone() }, &sources, true));
        assert_eq!(
            shown(&base, &[], false),
            "# handbook\n\nDocuments: 2, 9 bytes. The tool search_documents searches them.\n"
        );
    }

    #[test]
    fn an_answer_has_a_bound_and_says_what_it_lacks() {
        let hit =
            |bytes: usize| DocumentHit { source: "a".to_owned(), text: "x".repeat(bytes), ..DocumentHit::default() };
        let lost = UnreadableSegment { reason: "damaged".to_owned(), ..UnreadableSegment::default() };
        let found = |hits: Vec<DocumentHit>| FoundDocuments {
            hits,
            unreadable: vec![lost.clone()],
            ..FoundDocuments::default()
        };
        let large = members(found(vec![hit(TEXTS_BYTES_MAX + 1), hit(1), hit(1)]));
        let hits = large["hits"].as_array().map_or(0, Vec::len);
        assert_eq!((hits, &large["left_out"], &large["not_searched"]), (1, &json!(2), &json!(["damaged"])));
        let small = members(found(vec![hit(1), hit(1)]));
        assert!(small["hits"].as_array().is_some_and(|hits| hits.len() == 2) && !small.contains_key("left_out"));
    }
}
