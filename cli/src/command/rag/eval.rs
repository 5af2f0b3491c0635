//! `atlasctl rag eval`: how good the answers of a base are, by what people judged.

mod questions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use atlas_api::types::{Base, FoundDocuments};
use atlas_retrieval::{Evaluation, evaluate};
use serde_json::{Value, json};

use self::questions::{Judged, read};
use super::search::warn_of;
use super::{BASES, at, listed, pages};
use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Parts that each question asks for: as many as a search finds at most.
const TOP_K: u64 = 100;

/// After how many questions it is said how far it is.
const TOLD_EACH: usize = 200;

/// How many sources are named that the base does not have.
const NAMED: usize = 5;

/// Options of `atlasctl rag eval`.
#[derive(Debug, clap::Args)]
pub(crate) struct Eval {
    /// The base's name.
    #[arg(value_name = "NAME", value_parser = names::base)]
    name: String,
    /// A file of JSON lines with `question` and `sources`: a list, or gains by source such as {"a.md": 2}; - reads stdin.
    #[arg(value_name = "FILE")]
    questions: PathBuf,
}

/// A way to search, and the members of the query that ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Setting {
    name: &'static str,
    words_only: bool,
    unranked: bool,
}

/// The ways to search a base, from the simplest one.
fn settings(base: &Base) -> Vec<Setting> {
    let words = Setting { name: "words", words_only: true, unranked: true };
    let mut settings = vec![words];
    if base.embedding.is_some() {
        settings.push(Setting { name: "words and vectors", words_only: false, unranked: true });
    }
    if base.reranker.is_some() {
        settings.push(Setting { name: "ranked by the model", words_only: false, unranked: false });
    }
    settings
}

pub(super) async fn run(context: &Context, options: &Eval) -> Result<Exit, Failure> {
    let Eval { name, questions } = options;
    let judged = read(questions)?;
    let client = context.client()?;
    let base: Base = answers::read(&client.get(&at(name), &[]).await.map_err(listed)?)?;
    let mut exit = warn_of_absent(context, name, &judged).await?;
    let judgements: BTreeMap<usize, BTreeMap<String, u32>> =
        judged.iter().enumerate().map(|(at, judged)| (at, judged.gains.clone())).collect();
    let mut rows = Vec::new();
    for setting in settings(&base) {
        let Setting { words_only, unranked, .. } = setting;
        let mut given = BTreeMap::new();
        for (at, Judged { question, .. }) in judged.iter().enumerate() {
            let body = json!({"query": question, "top_k": TOP_K, "words_only": words_only, "unranked": unranked});
            let value = client.post(&[BASES[0], BASES[1], name, "search"], &[], &body).await.map_err(listed)?;
            let FoundDocuments { hits, unreadable, .. } = answers::read(&value)?;
            if exit == Exit::Done {
                exit = warn_of(context, name, &unreadable);
            }
            given.insert(at, hits.into_iter().map(|hit| hit.source).collect());
            if (at + 1) % TOLD_EACH == 0 {
                context.note(&format!("{}: {} of {} questions", setting.name, at + 1, judged.len()));
            }
        }
        rows.push((setting.name, evaluate(&given, &judgements)));
    }
    let value =
        json!({"base": name, "questions": judged.len(), "settings": rows.iter().map(shown).collect::<Vec<_>>()});
    context.show(&Shown { text: text(name, judged.len(), &rows), value, names: vec![format!("base/{name}")] })?;
    Ok(exit)
}

/// Says which judged sources the base does not have: no search finds them.
async fn warn_of_absent(context: &Context, name: &str, judged: &[Judged]) -> Result<Exit, Failure> {
    let mut absent: BTreeSet<&str> = judged
        .iter()
        .flat_map(|judged| &judged.gains)
        .filter(|(_, gain)| **gain > 0)
        .map(|(source, _)| source.as_str())
        .collect();
    let wanted = absent.len();
    let exit = pages(context, name, "", false, |page| {
        for document in &page {
            absent.remove(document.source.as_str());
        }
        Ok(())
    })
    .await?;
    if absent.is_empty() {
        return Ok(exit);
    }
    let named: Vec<&str> = absent.iter().copied().take(NAMED).collect();
    let more = if absent.len() > NAMED { ", …" } else { "" };
    context.note(&format!(
        "{}{} of {} that the file names are not in base/{name}, or you may not read them: {}{more}",
        words::WARNING,
        absent.len(),
        words::count(wanted as u64, "source"),
        named.join(", "),
    ));
    Ok(Exit::Short)
}

fn shown((setting, evaluation): &(&str, Evaluation)) -> Value {
    let Evaluation { ndcg_at_10, recall_at_10, recall_at_100, reciprocal_rank, .. } = evaluation;
    json!({
        "setting": setting,
        "ndcg_at_10": ndcg_at_10,
        "recall_at_10": recall_at_10,
        "recall_at_100": recall_at_100,
        "mrr": reciprocal_rank,
    })
}

fn text(name: &str, questions: usize, rows: &[(&str, Evaluation)]) -> String {
    let mut text = format!("base/{name}  {}\n\n", words::count(questions as u64, "question"));
    text += &format!("{:<20}  {:>7}  {:>9}  {:>10}  {:>5}\n", "", "nDCG@10", "recall@10", "recall@100", "MRR");
    for (setting, evaluation) in rows {
        let Evaluation { ndcg_at_10, recall_at_10, recall_at_100, reciprocal_rank, .. } = evaluation;
        text += &format!(
            "{setting:<20}  {ndcg_at_10:>7.3}  {recall_at_10:>9.3}  {recall_at_100:>10.3}  {reciprocal_rank:>5.3}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_that_the_base_has() {
        let of = |embedding: Option<&str>, reranker: Option<&str>| {
            let named = |name: Option<&str>| name.map(str::to_owned);
            let base = Base { embedding: named(embedding), reranker: named(reranker), ..Base::default() };
            settings(&base).iter().map(|setting| setting.name).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(of(None, None), "words");
        assert_eq!(of(Some("m"), None), "words, words and vectors");
        assert_eq!(of(None, Some("r")), "words, ranked by the model");
        assert_eq!(of(Some("m"), Some("r")), "words, words and vectors, ranked by the model");
    }

    #[test]
    fn figures_are_side_by_side() {
        let words = Evaluation {
            questions: 2,
            ndcg_at_10: 0.5,
            recall_at_10: 0.25,
            recall_at_100: 1.0,
            reciprocal_rank: 1.0 / 3.0,
        };
        expect_test::expect![[r#"
            base/handbook  2 questions

                                  nDCG@10  recall@10  recall@100    MRR
            words                   0.500      0.250       1.000  0.333
            words and vectors       0.000      0.000       0.000  0.000
        "#]]
        .assert_eq(&text("handbook", 2, &[("words", words), ("words and vectors", Evaluation::default())]));
    }
}
