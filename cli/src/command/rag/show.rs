//! `atlasctl rag show`: how a base reads.

use atlas_api::types::{Base, BaseVectors};
use serde_json::Value;

use super::{at, listed, readers};
use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

pub(super) async fn run(context: &Context, name: &str) -> Result<Exit, Failure> {
    print(context, context.client()?.get(&at(name), &[]).await.map_err(listed)?)
}

/// Shows a base as a controller has answered.
pub(super) fn print(context: &Context, value: Value) -> Result<Exit, Failure> {
    let base: Base = answers::read(&value)?;
    context.show(&Shown { text: text(&base), names: vec![format!("base/{}", base.name)], value })?;
    Ok(Exit::Done)
}

fn text(base: &Base) -> String {
    let Base { name, description, chunk_size, chunk_overlap, top_k, documents, bytes, segments, .. } = base;
    let Base { embedding, reranker, vectors, .. } = base;
    let (documents, segments) = (words::count(*documents, "document"), words::count(*segments, "segment"));
    let mut text = format!("base/{name}  {documents}, {} in {segments}\n", words::bytes(*bytes));
    if !description.is_empty() {
        text += &format!("{description}\n");
    }
    text += &format!("chunks of {chunk_size} bytes that overlap by {chunk_overlap} %; a search finds {top_k}\n");
    if let (Some(model), Some(vectors)) = (embedding, vectors) {
        text += &format!("vectors by {model}: {}\n", progress(vectors));
    }
    if let Some(model) = reranker {
        text += &format!("ranked by {model}\n");
    }
    text += &sources(base);
    text + &readers::text(&base.readers)
}

/// What the cluster fills a base from, and how that went.
fn sources(base: &Base) -> String {
    let mut text: String = base.sources.iter().map(|source| format!("from {source}\n")).collect();
    if !base.sources.is_empty() && base.refresh_minutes > 0 {
        text += &format!("read again every {}\n", words::count(base.refresh_minutes, "minute"));
    }
    // Those of a base without sources are of the sources that it had.
    if let Some(collected) = base.collected.as_ref().filter(|_| !base.sources.is_empty()) {
        text +=
            &format!("{} read from its sources by {}\n", words::count(collected.documents, "document"), collected.job);
        text += &collected.errors.iter().map(|error| format!("missing: {error}\n")).collect::<String>();
    }
    text
}

/// How far the vectors of a base are.
pub(super) fn progress(vectors: &BaseVectors) -> String {
    let BaseVectors { state, chunks, missing, error, .. } = vectors;
    let of = format!("{} of {}", chunks.saturating_sub(*missing), words::count(*chunks, "part"));
    match (state.as_str(), error) {
        ("ready", _) => format!("ready, {}", words::count(*chunks, "part")),
        (_, Some(error)) => format!("failed at {of}: {error}"),
        _ => format!("under way, {of}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_reads_like_a_note() {
        let base = Base {
            name: "handbook".to_owned(),
            description: "How we work.".to_owned(),
            chunk_size: 2_000,
            chunk_overlap: 5,
            top_k: 5,
            documents: 2,
            bytes: 2_048,
            segments: 1,
            ..Base::default()
        };
        expect_test::expect![[r#"
            base/handbook  2 documents, 2.0 KiB in 1 segment
            How we work.
            chunks of 2000 bytes that overlap by 5 %; a search finds 5
        "#]]
        .assert_eq(&text(&base));
        let vectors = BaseVectors { state: "building".to_owned(), chunks: 9, missing: 2, ..BaseVectors::default() };
        let (embedding, reranker) = (Some("small".to_owned()), Some("ranks".to_owned()));
        let base = Base { embedding, reranker, vectors: Some(vectors), ..base };
        expect_test::expect![[r#"
            base/handbook  2 documents, 2.0 KiB in 1 segment
            How we work.
            chunks of 2000 bytes that overlap by 5 %; a search finds 5
            vectors by small: under way, 7 of 9 parts
            ranked by ranks
        "#]]
        .assert_eq(&text(&base));
        let failed =
            BaseVectors { state: "failed".to_owned(), error: Some("no key".to_owned()), ..BaseVectors::default() };
        let ready = BaseVectors { state: "ready".to_owned(), chunks: 1, ..BaseVectors::default() };
        assert_eq!(
            (progress(&failed).as_str(), progress(&ready).as_str()),
            ("failed at 0 of 0 parts: no key", "ready, 1 part")
        );
    }
}
