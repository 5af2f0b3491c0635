//! `atlasctl rag search` and `explain`.

use atlas_api::types::{DocumentHit, FoundDocuments, HitRank, UnreadableSegment};
use serde_json::json;

use super::{BASES, listed, metadata, read_metadata};
use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl rag search`.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// The base's name.
    #[arg(value_name = "NAME", value_parser = names::base)]
    name: String,
    /// The question.
    #[arg(value_name = "QUESTION", required = true)]
    question: Vec<String>,
    /// Most parts, 1 to 100; as the base says if it is left out.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=100))]
    top_k: Option<u64>,
    /// Only documents whose sources begin with it.
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only documents with this metadata; can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// By words alone: no model is asked.
    #[arg(long)]
    words: bool,
}

pub(super) async fn run(context: &Context, options: &Search, explain: bool) -> Result<Exit, Failure> {
    let Search { name, question, top_k, source, metadata, words } = options;
    let mut body = json!({
        "query": question.join(" "),
        "source": source.as_deref().unwrap_or_default(),
        "metadata": read_metadata(metadata)?,
        "explain": explain,
        "words_only": words,
    });
    if let Some(top_k) = top_k {
        body["top_k"] = (*top_k).into();
    }
    let value = context.client()?.post(&[BASES[0], BASES[1], name, "search"], &[], &body).await.map_err(listed)?;
    let found: FoundDocuments = answers::read(&value)?;
    let names = found.hits.iter().map(|hit| hit.source.clone()).collect();
    let text = if explain { explained(&found) } else { shown(&found) };
    context.show(&Shown { text, value, names })?;
    if found.hits.is_empty() {
        let documents = words::count(found.documents, "document");
        context.note(&format!("nothing in {documents} fits the question"));
    }
    Ok(warn_of(context, name, &found.unreadable))
}

/// Says what an answer lacks.
pub(super) fn warn_of(context: &Context, name: &str, unreadable: &[UnreadableSegment]) -> Exit {
    for UnreadableSegment { segment, documents, reason } in unreadable {
        // Who may not read all of a base is not told how much is lost.
        let documents = match documents {
            0 => "documents".to_owned(),
            documents => words::count(*documents, "document"),
        };
        let digits: String = segment.chars().take(12).collect();
        context.note(&format!(
            "{}the answer is not whole: segment {digits} of base/{name} with {documents} cannot be read: {reason}",
            words::WARNING
        ));
    }
    if unreadable.is_empty() { Exit::Done } else { Exit::Short }
}

fn shown(found: &FoundDocuments) -> String {
    let one = |hit: &DocumentHit| format!("{}\n{}\n", head(hit), indented(&hit.text));
    found.hits.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn head(hit: &DocumentHit) -> String {
    let DocumentHit { source, chunk, chunks, metadata: members, .. } = hit;
    let members = if members.is_empty() { String::new() } else { format!("  {}", metadata(members)) };
    format!("{source}  part {chunk} of {chunks}{members}")
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { String::new() } else { format!("  {line}") };
    text.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Ranks and scores, and what was searched.
fn explained(found: &FoundDocuments) -> String {
    let (documents, chunks) = (words::count(found.documents, "document"), words::count(found.chunks, "part"));
    let has = |rank: fn(&DocumentHit) -> &Option<HitRank>| found.hits.iter().any(|hit| rank(hit).is_some());
    let mut how = "by words".to_owned();
    if has(|hit| &hit.by_vector) {
        how += " and vectors";
    }
    if found.without_vector > 0 {
        how += &format!(" ({} without a vector)", found.without_vector);
    }
    if has(|hit| &hit.by_model) {
        how += ", ranked by a model";
    }
    let mut text = format!("searched {documents} in {chunks} {how}\n");
    for (place, hit) in found.hits.iter().enumerate() {
        let mut ranks = String::new();
        for (by, rank) in [("words", &hit.by_words), ("vector", &hit.by_vector), ("model", &hit.by_model)] {
            if let Some(HitRank { place, score }) = rank {
                ranks += &format!("  by {by} {place} ({score:.3})");
            }
        }
        text += &format!("{}. {:.3}{ranks}  {}\n", place + 1, hit.score, head(hit));
        let line = hit.text.trim().lines().next().unwrap_or_default();
        text += &format!("   {}\n", line.chars().take(100).collect::<String>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_read_like_notes() {
        let hit = DocumentHit {
            source: "handbook/leave.md".to_owned(),
            text: "# Leave\n\nThirty days.\n".to_owned(),
            score: 1.5,
            chunk: 1,
            chunks: 2,
            metadata: serde_json::from_str(r#"{"team":"people"}"#).expect("JSON"),
            by_words: Some(HitRank { place: 1, score: 1.5 }),
            ..DocumentHit::default()
        };
        let found = FoundDocuments { hits: vec![hit], documents: 3, chunks: 4, ..FoundDocuments::default() };
        expect_test::expect![[r#"
            handbook/leave.md  part 1 of 2  team=people
              # Leave

              Thirty days.
        "#]]
        .assert_eq(&shown(&found));
        expect_test::expect![[r#"
            searched 3 documents in 4 parts by words
            1. 1.500  by words 1 (1.500)  handbook/leave.md  part 1 of 2  team=people
               # Leave
        "#]]
        .assert_eq(&explained(&found));
        let mut found = FoundDocuments { without_vector: 1, ..found };
        found.hits[0].by_vector = Some(HitRank { place: 2, score: 0.5 });
        found.hits[0].by_model = Some(HitRank { place: 1, score: 0.9 });
        expect_test::expect![[r#"
            searched 3 documents in 4 parts by words and vectors (1 without a vector), ranked by a model
            1. 1.500  by words 1 (1.500)  by vector 2 (0.500)  by model 1 (0.900)  handbook/leave.md  part 1 of 2  team=people
               # Leave
        "#]]
        .assert_eq(&explained(&found));
    }
}
