//! How good searches are among the documents of Semanlink, which the package `cherche` carries: notes and abstracts with the tags that
//! a person gave them. A question is the name of a tag, and what has the tag is relevant.
//!
//! `ATLAS_BENCH_SEMANLINK` names the folder with its `docs.json` and `tags.json`, and `ATLAS_BENCH_PYTHON` a Python with the package
//! `wordllama`, whose static embeddings are the vectors. What is missing is said and left out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use atlas_retrieval::{Chunk, ChunkSize, Evaluation, Fusion, Index, Query, Vectors, chunks, evaluate};
use serde_json::Value;

use crate::figures::Row;

const PROGRAM: &str = include_str!("embed.py");
/// The exit code of that program if a package is missing.
const MISSING: i32 = 69;
const DIMENSION: usize = 256;

const CUT: ChunkSize = ChunkSize { size: 2_000, overlap: 100 };
/// Tags of fewer documents say little, and those of more are no subjects.
const TAGGED: std::ops::RangeInclusive<usize> = 3..=40;
/// Chunks of an answer: a document may have several, and a hundred documents are wanted.
const TOP: usize = 120;

/// What is wanted, in percent.
const NDCG: f64 = 47.0;
const RECALL: f64 = 68.0;

pub(super) fn run() -> Result<Vec<Row>> {
    let Some(folder) = std::env::var_os("ATLAS_BENCH_SEMANLINK") else {
        eprintln!("ATLAS_BENCH_SEMANLINK names no folder: the quality of searches is not measured");
        return Ok(Vec::new());
    };
    let judged = Judged::read(Path::new(&folder))?;
    let words = judged.evaluate(&Index::new(judged.chunks.clone()), None, Fusion::default(), true)?;
    let mut rows = vec![
        percent("semanlink_words_ndcg_at_10", words.ndcg_at_10).value_against("47 %", NDCG),
        percent("semanlink_words_recall_at_100", words.recall_at_100),
    ];
    let Some((vectors, asked)) = judged.vectors()? else { return Ok(rows) };
    let index = Index::with_vectors(judged.chunks.clone(), vectors)?;
    let asked = Some(asked.as_slice());
    let vector = judged.evaluate(&index, asked, Fusion::default(), false)?;
    let ranks = judged.evaluate(&index, asked, Fusion::RANKS, true)?;
    let hybrid = judged.evaluate(&index, asked, Fusion::default(), true)?;
    rows.extend([
        percent("semanlink_vector_ndcg_at_10", vector.ndcg_at_10),
        percent("semanlink_vector_recall_at_100", vector.recall_at_100),
        percent("semanlink_ranks_ndcg_at_10", ranks.ndcg_at_10).value_against("words", 100.0 * words.ndcg_at_10),
        percent("semanlink_ranks_recall_at_100", ranks.recall_at_100).value_against("68 %", RECALL),
        percent("semanlink_hybrid_ndcg_at_10", hybrid.ndcg_at_10).value_against("words", 100.0 * words.ndcg_at_10),
        percent("semanlink_hybrid_recall_at_100", hybrid.recall_at_100).value_against("68 %", RECALL),
    ]);
    Ok(rows)
}

fn percent(name: &str, share: f64) -> Row {
    Row::amount(name, 100.0 * share, "%")
}

/// Chunks of documents, and what is relevant to each question. The source of a chunk is the number of its document.
struct Judged {
    chunks: Vec<Chunk>,
    /// The names of tags.
    questions: Vec<String>,
    /// For each question, the documents that have its tag.
    judgements: BTreeMap<usize, BTreeMap<usize, u32>>,
}

impl Judged {
    fn read(folder: &Path) -> Result<Self> {
        let documents: Vec<Value> = read(&folder.join("docs.json"))?;
        let names: Value = read(&folder.join("tags.json"))?;
        let text = |document: &Value, member: &str| document[member].as_str().unwrap_or_default().trim().to_owned();
        let mut tagged = BTreeMap::<&str, BTreeSet<usize>>::new();
        let (mut chunked, mut number) = (Vec::new(), 0);
        for document in &documents {
            let [title, comment, summary] = ["title", "comment", "arxiv_summary"].map(|member| text(document, member));
            let has_text = ["comment", "arxiv_summary"].iter().any(|member| document[member].as_str() != Some(""));
            if document["title"].as_str() == Some("") || !has_text {
                continue;
            }
            let whole = [title, comment, summary].join("\n\n");
            chunked.extend(chunks(&number.to_string(), &whole, CUT));
            let tags = document["tag"].as_array().into_iter().flatten().filter_map(Value::as_str);
            tags.for_each(|tag| _ = tagged.entry(tag).or_default().insert(number));
            number += 1;
        }
        let asked: Vec<_> = tagged.into_iter().filter(|(_, documents)| TAGGED.contains(&documents.len())).collect();
        let name = |tag: &str| names[tag]["prefLabel"][0].as_str().unwrap_or_default().to_owned();
        let questions: Vec<String> = asked.iter().map(|(tag, _)| name(tag)).collect();
        let relevant = |(_, documents): (&str, BTreeSet<usize>)| documents.into_iter().map(|document| (document, 1));
        let judgements: BTreeMap<_, BTreeMap<_, _>> =
            asked.into_iter().map(|tag| relevant(tag).collect()).enumerate().collect();
        let count: usize = judgements.values().map(BTreeMap::len).sum();
        let found = (number, questions.len(), count);
        ensure!(found == (2239, 617, 3720), "other documents, questions and judgements than known: {found:?}");
        Ok(Self { chunks: chunked, questions, judgements })
    }

    /// Asks all questions.
    fn evaluate(
        &self,
        index: &Index,
        vectors: Option<&[Vec<f32>]>,
        fusion: Fusion,
        by_words: bool,
    ) -> Result<Evaluation> {
        let mut answers = BTreeMap::new();
        for (number, text) in self.questions.iter().enumerate() {
            let vector = vectors.and_then(|vectors| vectors.get(number)).map(Vec::as_slice);
            let text = if by_words { text } else { "" };
            let hits = index.search(&Query { vector, fusion, ..Query::new(text, TOP) })?;
            let documents = hits.iter().filter_map(|hit| index.chunk(hit.chunk)?.source.parse().ok());
            answers.insert(number, documents.collect::<Vec<usize>>());
        }
        Ok(evaluate(&answers, &self.judgements))
    }

    /// The vectors of the chunks and of the questions; none without the package that makes them.
    fn vectors(&self) -> Result<Option<(Vectors, Vec<Vec<f32>>)>> {
        let Some(python) = std::env::var_os("ATLAS_BENCH_PYTHON") else {
            eprintln!("ATLAS_BENCH_PYTHON names no Python: searches by vectors are not evaluated");
            return Ok(None);
        };
        let mut command = Command::new(&python);
        command.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().with_context(|| format!("could not start {}", python.display()))?;
        let texts =
            self.chunks.iter().map(|chunk| chunk.text.as_str()).chain(self.questions.iter().map(String::as_str));
        let texts = serde_json::to_vec(&texts.collect::<Vec<_>>())?;
        // The program reads all before it writes.
        let written = program.stdin.take().context("piped")?.write_all(&texts);
        let output = program.wait_with_output()?;
        if output.status.code() == Some(MISSING) {
            eprintln!("the package wordllama is missing: searches by vectors are not evaluated");
            return Ok(None);
        }
        ensure!(output.status.success(), "the program that makes vectors ended: {}", output.status);
        written.context("the program that makes vectors reads no texts")?;
        let (numbers, _) = output.stdout.as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
        let (rows, asked) =
            numbers.split_at_checked(self.chunks.len() * DIMENSION).context("a vector for each chunk")?;
        let asked: Vec<Vec<f32>> = asked.chunks_exact(DIMENSION).map(<[f32]>::to_vec).collect();
        ensure!(asked.len() == self.questions.len(), "{} vectors of questions", asked.len());
        Ok(Some((Vectors::from_rows(DIMENSION, rows.chunks_exact(DIMENSION))?, asked)))
    }
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T> {
    let bytes = std::fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is no JSON of Semanlink", file.display()))
}
