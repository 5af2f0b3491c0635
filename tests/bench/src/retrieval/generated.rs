//! Searches among 100,000 chunks of made-up words with vectors of made-up numbers, on one thread.
//!
//! Words are as frequent as in texts: the word of rank n is n times as rare as the first one. Their numbers are the same in each run.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use atlas_retrieval::{Chunk, ChunkSize, Index, Query, Vectors, chunks};

use crate::figures::Row;
use crate::process::resident_mib_of;

const CHUNKS: usize = 100_000;
const DIMENSION: usize = 256;
const WORDS: u64 = 50_000;
/// Words of a document, which has about eleven chunks of [`CUT`].
const DOCUMENT_WORDS: usize = 1_600;
const CUT: ChunkSize = ChunkSize { size: 1_000, overlap: 50 };
const QUESTIONS: usize = 500;
const QUESTION_WORDS: usize = 5;
const TOP: usize = 10;

/// The limits of a search in microseconds, of the memory in MiB, and of chunks a second.
const P50_US: f64 = 20_000.0;
const P99_US: f64 = 60_000.0;
const MEMORY_MIB: f64 = 300.0;
const BUILD: f64 = 2_000.0;

pub(super) fn run(env: &Env) -> Result<Vec<Row>> {
    let before = resident_mib_of(std::process::id())?;
    let mut random = Random(1);
    let (mut parts, mut took) = (Vec::<Chunk>::new(), Duration::ZERO);
    while parts.len() < CHUNKS {
        let text = random.text(DOCUMENT_WORDS);
        let begun = env.clock.monotonic();
        parts.extend(chunks("notes.md", &text, CUT));
        took += env.clock.monotonic() - begun;
    }
    parts.truncate(CHUNKS);
    let mut vectors = Vectors::new(DIMENSION)?;
    for _ in 0..CHUNKS {
        let row = random.vector();
        let begun = env.clock.monotonic();
        vectors.push(&row)?;
        took += env.clock.monotonic() - begun;
    }
    let begun = env.clock.monotonic();
    let index = Index::with_vectors(parts, vectors)?;
    took += env.clock.monotonic() - begun;
    let memory = resident_mib_of(std::process::id())? - before;

    let words = searches(env, &mut random, &index, "retrieval_words", false, None)?;
    let hybrid = searches(env, &mut random, &index, "retrieval_hybrid", true, None)?;
    let p99 = hybrid.p99_us.context("a tail")? / 1000.0;
    let half = |chunk: u32| chunk.is_multiple_of(2);
    let rights = searches(env, &mut random, &index, "retrieval_hybrid_half_readable", true, Some(&half))?;
    let mut rows = vec![
        Row::amount("retrieval_build", CHUNKS as f64 / took.as_secs_f64(), "chunks/s").value_against("2000/s", BUILD),
        Row::amount("retrieval_memory", memory, "MiB").value_against("300 MiB", MEMORY_MIB),
        words,
        hybrid.median_against("20 ms", Some(P50_US)),
        Row::amount("retrieval_hybrid_p99", p99, "ms").value_against("60 ms", P99_US / 1000.0),
        rights.median_against("20 ms", Some(P50_US)),
    ];
    drop(index);
    rows.extend(opened(env, &mut random)?);
    Ok(rows)
}

/// One search after the other.
fn searches(
    env: &Env,
    random: &mut Random,
    index: &Index,
    name: &str,
    by_vector: bool,
    is_readable: Option<&dyn Fn(u32) -> bool>,
) -> Result<Row> {
    let (mut latencies, mut hits) = (Vec::with_capacity(QUESTIONS), 0);
    for _ in 0..QUESTIONS {
        let (text, vector) = (random.text(QUESTION_WORDS), random.vector());
        let vector = by_vector.then_some(vector.as_slice());
        let question = Query { vector, is_readable, ..Query::new(&text, TOP) };
        let begun = env.clock.monotonic();
        hits += black_box(index.search(&question)?).len();
        latencies.push(env.clock.monotonic() - begun);
    }
    ensure!(hits > QUESTIONS * TOP / 2, "only {hits} hits");
    let took = latencies.iter().sum();
    Ok(Row::rate(name, 1, latencies, took))
}

/// How long documents with a tenth as many chunks take to be cut and indexed, with their vectors, as a controller does it.
fn opened(env: &Env, random: &mut Random) -> Result<Vec<Row>> {
    let (mut documents, mut vectors, mut text_bytes) = (Vec::new(), Vectors::new(DIMENSION)?, 0);
    while vectors.len() < CHUNKS / 10 {
        let text = random.text(DOCUMENT_WORDS);
        for _ in chunks("notes.md", &text, CUT) {
            vectors.push(&random.vector())?;
        }
        text_bytes += text.len();
        documents.push(text);
    }
    let bytes = vectors.to_bytes();
    let begun = env.clock.monotonic();
    let parts = documents.iter().flat_map(|text| chunks("notes.md", text, CUT)).collect();
    let index = Index::with_vectors(parts, Vectors::from_bytes(DIMENSION, &bytes)?)?;
    let took = env.clock.monotonic() - begun;
    ensure!(index.len() == vectors.len(), "{} chunks were read", index.len());
    Ok(vec![
        Row::amount("retrieval_open", index.len() as f64 / took.as_secs_f64(), "chunks/s"),
        Row::amount("retrieval_stored", (text_bytes + bytes.len()) as f64 / index.len() as f64, "bytes/chunk"),
    ])
}

/// Numbers that look like random ones (splitmix64).
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Words in lines of twelve.
    fn text(&mut self, words: usize) -> String {
        let mut text = String::new();
        for place in 1..=words {
            let rank = (WORDS as f64).powf(self.share()) as u64;
            let end = if place % 96 == 0 {
                "\n\n"
            } else if place % 12 == 0 {
                "\n"
            } else {
                " "
            };
            let _ = write!(text, "{}{end}", word(rank));
        }
        text
    }

    /// Numbers around 0, most of them near it.
    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSION).map(|_| (self.share() + self.share() + self.share() - 1.5) as f32).collect()
    }
}

/// The word of a rank: frequent ones are short.
fn word(rank: u64) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "co", "du", "fe", "gi", "ka", "lo", "mu", "ne", "pi", "ra", "so", "tu", "ve", "wi", "zo"];
    let (mut word, mut left) = (String::new(), rank);
    while left > 0 || word.is_empty() {
        word.push_str(SYLLABLES[(left % 16) as usize]);
        left /= 16;
    }
    word
}
