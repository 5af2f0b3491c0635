//! What the documents of an agent say about a prompt.

use std::path::PathBuf;

use atlas_documents::Search;

use crate::provider::Shared;
use crate::provider::llm::fault::Fault;

const BEFORE: &str = "Below are excerpts from documents, then a message. Answer the message from the excerpts. If they do not contain the answer, \
say so, and mark what you know from elsewhere. If the message is unclear, ask. Answer in the language of the message and without XML tags. If an excerpt \
cannot be read, say so. Name the documents that you used.";

/// The prompt with the best parts of the documents, or as it is if no part has a word of it.
pub(super) async fn augmented(
    shared: &Shared,
    folder: PathBuf,
    documents: Vec<String>,
    prompt: &str,
) -> Result<String, Fault> {
    if documents.is_empty() {
        return Ok(prompt.to_owned());
    }
    let query = prompt.to_owned();
    let searching = shared.env.spawn_blocking("search documents", move || {
        Search { documents: &documents, ..Search::default() }.run(&folder, &query)
    });
    let found = searching.join().await.map_err(|_| Fault::internal("the search of documents was interrupted"))?;
    let found = found.map_err(|error| Fault::Definition(format!("documents: {}", atlas_env::chain(&error))))?;
    Ok(match found.sources.is_empty() {
        true => prompt.to_owned(),
        false => template(&found.context, &found.sources, prompt),
    })
}

fn template(context: &str, sources: &[String], prompt: &str) -> String {
    let sources: String = sources.iter().map(|source| format!("- {source}\n")).collect();
    format!(
        "{BEFORE}\n\n<excerpts>\n{context}\n</excerpts>\n\n<documents>\n{sources}</documents>\n\n<message>\n{prompt}\n</message>"
    )
}
