//! What the documents of an agent say about a prompt.

use std::path::PathBuf;

use atlas_documents::{Matches, Search};
use atlas_graph_run::SearchSettings;
use atlas_loki_agent::Config;

use crate::provider::Shared;
use crate::provider::llm::fault::Fault;

/// The prompt of an agent that has no template of its own.
const TEMPLATE: &str = "Below are excerpts from documents, then a message. Answer the message from the excerpts. If they do not contain the answer, \
say so, and mark what you know from elsewhere. If the message is unclear, ask. Answer in the language of the message and without XML tags. If an excerpt \
cannot be read, say so. Name the documents that you used.\n\n<excerpts>\n__CONTEXT__\n</excerpts>\n\n<documents>\n__SOURCES__</documents>\n\n<message>\n__INPUT__\n</message>";

/// How the documents of an agent are searched.
pub(super) fn settings(config: &Config) -> SearchSettings {
    SearchSettings {
        documents: config.documents.clone(),
        top: config.rag_top_k,
        chunk_size: config.rag_chunk_size,
        chunk_overlap: config.rag_chunk_overlap,
        embedding_model: config.rag_embedding_model.clone(),
        reranker_model: config.rag_reranker_model.clone(),
        batch_size: None,
        timeout: None,
    }
}

/// The parts of the documents that fit a prompt best, by words alone.
pub(super) async fn found(
    shared: &Shared,
    folder: PathBuf,
    settings: SearchSettings,
    prompt: &str,
) -> Result<Matches, Fault> {
    if settings.documents.is_empty() {
        return Ok(Matches::default());
    }
    let query = prompt.to_owned();
    let searching = shared.env.spawn_blocking("search documents", move || {
        let SearchSettings { documents, top, chunk_size, chunk_overlap, .. } = settings;
        Search { documents: &documents, top, chunk_size, chunk_overlap }.run(&folder, &query)
    });
    let found = searching.join().await.map_err(|_| Fault::internal("the search of documents was interrupted"))?;
    found.map_err(|error| Fault::Definition(format!("documents: {}", atlas_env::chain(&error))))
}

/// The prompt with what was found, or as it is if nothing was.
pub(super) fn filled(template: Option<&str>, found: &Matches, prompt: &str) -> String {
    if found.sources.is_empty() {
        return prompt.to_owned();
    }
    let sources: String = found.sources.iter().map(|source| format!("- {source}\n")).collect();
    let values = [("__INPUT__", prompt), ("__CONTEXT__", found.context.as_str()), ("__SOURCES__", sources.as_str())];
    let (mut filled, mut rest) = (String::new(), template.unwrap_or(TEMPLATE));
    // What is filled in is not searched for placeholders.
    while let Some((place, (name, value))) =
        values.iter().filter_map(|value| Some((rest.find(value.0)?, value))).min_by_key(|(place, _)| *place)
    {
        let (before, after) = rest.split_at(place);
        filled.push_str(before);
        filled.push_str(value);
        rest = &after[name.len()..];
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: Option<&str>, found: &[&str], expected: &str) {
        let sources = found.iter().map(|source| (*source).to_owned()).collect();
        let found = Matches { context: "about __INPUT__".to_owned(), sources };
        assert_eq!(filled(template, &found, "why __CONTEXT__?"), expected);
    }

    #[test]
    fn a_template_is_filled_once() {
        let template = Some("Q: __INPUT__ C: __CONTEXT__ S: __SOURCES__ Q: __INPUT__");
        let expected = "Q: why __CONTEXT__? C: about __INPUT__ S: - a.md\n- b.md\n Q: why __CONTEXT__?";
        check(template, &["a.md", "b.md"], expected);
        check(Some("__CONTEXT__/__INPUT__"), &["a.md"], "about __INPUT__/why __CONTEXT__?");
        check(template, &[], "why __CONTEXT__?");
    }

    #[test]
    fn our_own_template_has_all_parts() {
        let found = Matches { context: "C".to_owned(), sources: vec!["S".to_owned()] };
        let text = filled(None, &found, "I");
        let end = "<excerpts>\nC\n</excerpts>\n\n<documents>\n- S\n</documents>\n\n<message>\nI\n</message>";
        assert!(text.ends_with(end), "{text}");
    }
}
