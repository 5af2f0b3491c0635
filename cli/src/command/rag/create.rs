//! `atlasctl rag create`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::add::{self, Add};
use super::readers::ReaderOptions;
use super::show::print;
use super::{BASES, at, refresh};
use crate::command::object::is_conflict;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Options of `atlasctl rag create`.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    #[command(flatten)]
    documents: Add,
    /// What the documents are about.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Most bytes of a chunk, 64 to 65536; 2000 if it is left out.
    #[arg(long, value_name = "BYTES")]
    chunk_size: Option<u64>,
    /// How much of the chunk before a chunk repeats, 0 to 50 percent of its size; 5 if it is left out.
    #[arg(long, value_name = "PERCENT")]
    chunk_overlap: Option<u64>,
    /// Parts that a search finds if it does not say how many, 1 to 100; 5 if it is left out.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=100))]
    top_k: Option<u64>,
    /// The model that makes vectors of the parts, of the type embedding; found by words alone without one. '' for none.
    #[arg(long, value_name = "MODEL")]
    embedding: Option<String>,
    /// The model that ranks what was found, of the type reranker; '' for none.
    #[arg(long, value_name = "MODEL")]
    reranker: Option<String>,
    /// What the cluster fills the base from: https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml,
    /// git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN] or LOADER:RESOURCE; can be repeated. '' for none.
    #[arg(long = "from", value_name = "SOURCE")]
    sources: Vec<String>,
    /// How often the sources are read again, at least 5 minutes; only when it is asked for without it.
    #[arg(long, value_name = "MINUTES")]
    refresh: Option<u64>,
    #[command(flatten)]
    readers: ReaderOptions,
    /// Change the settings of a base that is there.
    #[arg(long)]
    replace: bool,
}

pub(super) async fn run(context: &Context, options: &Create) -> Result<Exit, Failure> {
    let Create {
        documents, description, chunk_size, chunk_overlap, top_k, embedding, reranker, readers, replace, ..
    } = options;
    let named = named(&options.sources)?;
    let readers = readers.rules()?;
    let mut settings = Map::new();
    for (name, value) in [
        ("description", description.as_ref().map(|text| json!(text))),
        ("chunk_size", chunk_size.map(|size| json!(size))),
        ("chunk_overlap", chunk_overlap.map(|percent| json!(percent))),
        ("top_k", top_k.map(|count| json!(count))),
        ("embedding", embedding.as_ref().map(|model| json!(model))),
        ("reranker", reranker.as_ref().map(|model| json!(model))),
        ("readers", readers.map(|rules| json!(rules))),
        ("sources", (!options.sources.is_empty()).then(|| json!(named))),
        ("refresh_minutes", options.refresh.map(|minutes| json!(minutes))),
    ] {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    }
    // Before the base is made: one without a document is seldom what somebody wants who names some.
    add::look(documents)?;
    let client = context.client()?;
    let mut draft = settings.clone();
    draft.insert("name".to_owned(), documents.name.as_str().into());
    let value = match client.post(&BASES, &[], &Value::Object(draft)).await {
        Err(failure) if is_conflict(&failure) && *replace => {
            client.put(&at(&documents.name), &[], &Value::Object(settings)).await?
        }
        Err(failure) if is_conflict(&failure) => {
            let message = format!("the base \"{}\" exists already, with other settings", documents.name);
            return Err(Failure { message, ..failure }.with_next("change them: add --replace"));
        }
        answer => answer?,
    };
    if documents.names_documents() {
        let read = collected(context, options, &named).await?;
        return Ok(worse(read, add::run(context, documents).await?));
    }
    // Shown as it is at the end, after the sources were read and the vectors made.
    let made = async {
        let read = collected(context, options, &named).await?;
        Ok(worse(read, documents.wait(context).await?))
    }
    .await;
    let is_waited_for = documents.waits() && (!named.is_empty() || !value["embedding"].is_null());
    print(context, if is_waited_for { client.get(&at(&documents.name), &[]).await? } else { value })?;
    made
}

/// The sources that the command names, each once.
fn named(sources: &[String]) -> Result<Vec<&String>, Failure> {
    let mut seen = BTreeSet::new();
    let named: Vec<&String> = sources.iter().filter(|source| !source.is_empty()).collect();
    let is_pattern = |source: &&&String| {
        let is_page = source.starts_with("http://") || source.starts_with("https://");
        is_page && source.strip_suffix("/**").unwrap_or(source).contains('*')
    };
    if let Some(source) = named.iter().find(is_pattern) {
        let above = source.split('*').next().unwrap_or_default();
        let above = above.rsplit_once('/').map_or(above, |(above, _)| above);
        let failure = Failure::usage(format!("--from {source}: the address of a page has no *"));
        return Err(
            failure.with_next(format!("all pages below a path: --from '{above}/**'   a * in an address is %2A"))
        );
    }
    match named.iter().find(|source| !seen.insert(source.as_str())) {
        Some(twice) => Err(Failure::usage(format!("--from {twice} is given twice"))),
        None => Ok(named),
    }
}

/// Lets the cluster read the sources that the command names.
async fn collected(context: &Context, options: &Create, named: &[&String]) -> Result<Exit, Failure> {
    let Create { documents, .. } = options;
    if named.is_empty() { Ok(Exit::Done) } else { refresh::sources(context, &documents.name, documents.waits()).await }
}

fn worse(first: Exit, second: Exit) -> Exit {
    if second == Exit::Done { first } else { second }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_source_is_named_once() {
        let of = |sources: &[&str]| {
            let sources: Vec<String> = sources.iter().map(|source| (*source).to_owned()).collect();
            named(&sources).map(|named| named.len()).map_err(|failure| failure.to_string())
        };
        assert_eq!((of(&[]), of(&["", ""]), of(&["a", "b"])), (Ok(0), Ok(0), Ok(2)));
        assert!(of(&["a", "b", "a"]).expect_err("twice").contains("--from a is given twice"));
    }

    #[test]
    fn addresses_of_pages_are_no_patterns() {
        let of = |source: &str| named(&[source.to_owned()]).map(|_| ()).map_err(|failure| failure.to_string());
        for fine in
            ["https://a.org/b/**", "https://a.org/b", "git:https://a.org/b:docs/*.md", "sitemap:https://a.org/s.xml"]
        {
            assert_eq!(of(fine), Ok(()));
        }
        for wrong in ["https://a.org/b/*", "https://a.org/b/*.html", "http://a.org/b/**/c"] {
            let why = of(wrong).expect_err("a pattern");
            assert!(why.contains("a.org/b/**'"), "{why}");
        }
    }
}
