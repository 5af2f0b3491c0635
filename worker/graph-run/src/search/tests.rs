use std::fs;
use std::sync::Arc;

use atlas_model::Usage;
use expect_test::{Expect, expect};

use super::*;

/// Models of two dimensions: how often a text has the letter `a`, and how often `b`. The reranker likes long texts.
struct Letters {
    calls: Vec<String>,
    cache: Option<Arc<VectorCache>>,
    dimensions: usize,
    texts_max: usize,
    /// The answer to each call of the reranker, in place of its own.
    broken: bool,
    /// What earlier attempts planned, the first one last.
    planned: Vec<Vec<String>>,
}

fn letters() -> Letters {
    Letters { calls: Vec::new(), cache: None, dimensions: 2, texts_max: 2, broken: false, planned: Vec::new() }
}

#[async_trait]
impl SearchModels for Letters {
    fn embedder(&self, model: &str) -> Result<Embedder, CallError> {
        match model {
            "letters" => Ok(Embedder { id: "letters".to_owned(), tokens_max: None, texts_max: self.texts_max }),
            other => Err(CallError::new(CallErrorKind::UnknownModel, format!("there is no model {other}"))),
        }
    }

    async fn call(&mut self, model: &str, request: Request) -> Result<Answer, CallError> {
        let texts = request.texts();
        self.calls.push(format!("{:?} {}", request.task, texts.join("|")));
        let usage = Usage::default();
        let answer = match request.task {
            ModelTask::Rank if self.broken => return Err(CallError::new(CallErrorKind::Provider, "down")),
            ModelTask::Rank => {
                let scores: Vec<f32> = texts.iter().map(|text| text.len() as f32).collect();
                Answer::of_scores(model, &scores, texts.len(), usage)
            }
            _ => {
                let count = |text: &str, letter| text.matches(letter).count() as f32 + 0.01;
                let vector = |text: &&str| {
                    let mut vector = vec![count(text, 'a'), count(text, 'b')];
                    vector.resize(self.dimensions, 0.5);
                    vector
                };
                let vectors: Vec<Vec<f32>> = texts.iter().map(vector).collect();
                Answer::of_vectors(model, &vectors, texts.len(), usage)
            }
        };
        Ok(answer.expect("usable"))
    }

    fn vectors(&self) -> Option<Arc<VectorCache>> {
        self.cache.clone()
    }

    async fn plan(&mut self, missing: Vec<String>) -> Result<Vec<String>, CallError> {
        Ok(self.planned.pop().unwrap_or(missing))
    }
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn settings(embeds: bool, ranks: bool) -> SearchSettings {
    SearchSettings {
        documents: vec!["*.txt".to_owned()],
        top: Some(1),
        embedding_model: embeds.then(|| "letters".to_owned()),
        reranker_model: ranks.then(|| "long".to_owned()),
        timeout: Some(Duration::from_secs(60)),
        ..SearchSettings::default()
    }
}

/// Searches, and shows the sources or the error and the calls.
async fn check(
    folder: &tempfile::TempDir,
    settings: &SearchSettings,
    query: &str,
    models: &mut Letters,
    expected: &Expect,
) {
    models.calls.clear();
    let found = search(&Env::system(), folder.path(), settings, query, models).await;
    let found = found.map_or_else(|why| why, |found| found.sources.join(", "));
    let found = if found.is_empty() { "nothing" } else { &found };
    expected.assert_eq(&format!("{found}\n{}", models.calls.join("\n")));
}

const FILES: [(&str, &str); 3] = [("one.txt", "aaaa fish"), ("two.txt", "bbbb fish"), ("three.txt", "x fish swim now")];

#[tokio::test]
async fn vectors_find_what_no_word_of_the_query_names() {
    let folder = folder(&FILES);
    check(
        &folder,
        &settings(false, false),
        "bbb",
        &mut letters(),
        &expect![[r#"
        nothing
    "#]],
    )
    .await;
    check(
        &folder,
        &settings(true, false),
        "bbb",
        &mut letters(),
        &expect![[r#"
        two.txt
        EmbedDocuments bbbb fish|aaaa fish
        EmbedDocuments x fish swim now
        EmbedQuery bbb"#]],
    )
    .await;
}

#[tokio::test]
async fn a_reranker_decides_the_order() {
    let folder = folder(&FILES);
    check(
        &folder,
        &settings(false, true),
        "fish",
        &mut letters(),
        &expect![[r#"
        one.txt
        Rank aaaa fish|bbbb fish"#]],
    )
    .await;
    let mut models = Letters { broken: true, ..letters() };
    check(
        &folder,
        &settings(false, true),
        "fish",
        &mut models,
        &expect![[r#"
        the reranker "long": down
        Rank aaaa fish|bbbb fish"#]],
    )
    .await;
}

#[tokio::test]
async fn only_chunks_that_changed_are_embedded_again() {
    let folder = folder(&FILES);
    let kept = tempfile::tempdir().expect("a folder");
    let cache = Arc::new(VectorCache::new(kept.path().to_owned(), 1 << 20));
    let mut models = Letters { cache: Some(cache), ..letters() };
    check(
        &folder,
        &settings(true, false),
        "aa",
        &mut models,
        &expect![[r#"
        one.txt
        EmbedDocuments bbbb fish|aaaa fish
        EmbedDocuments x fish swim now
        EmbedQuery aa"#]],
    )
    .await;
    check(
        &folder,
        &settings(true, false),
        "aa",
        &mut models,
        &expect![[r#"
        one.txt
        EmbedQuery aa"#]],
    )
    .await;
    fs::write(folder.path().join("two.txt"), "aaaa bird").expect("a file");
    check(
        &folder,
        &settings(true, false),
        "aa",
        &mut models,
        &expect![[r#"
        one.txt
        EmbedDocuments aaaa bird
        EmbedQuery aa"#]],
    )
    .await;
    // A question with a vector of another length is refused as well, and all is made again.
    models.dimensions = 4;
    check(&folder, &settings(true, false), "aa", &mut models, &expect![[r#"
        the embedding model "letters" gave vectors of 2 and of 4 dimensions, so it has changed; the kept vectors of these documents are removed here, and the next run embeds all of them
        EmbedQuery aa"#]]).await;
    models.dimensions = 2;
    models.calls.clear();
    let again = search(&Env::system(), folder.path(), &settings(true, false), "aa", &mut models).await;
    assert_eq!((again.expect("found").sources, models.calls.len()), (vec!["one.txt".to_owned()], 3));
    // The model gives other vectors now: nothing is mixed, and the next run makes all again.
    models.dimensions = 3;
    fs::write(folder.path().join("two.txt"), "aaaa cat").expect("a file");
    check(&folder, &settings(true, false), "aa", &mut models, &expect![[r#"
        the embedding model "letters" gave vectors of 2 and of 3 dimensions, so it has changed; the kept vectors of these documents are removed here, and the next run embeds all of them
        EmbedDocuments aaaa cat"#]]).await;
    check(
        &folder,
        &settings(true, false),
        "aa",
        &mut models,
        &expect![[r#"
        one.txt
        EmbedDocuments aaaa fish|x fish swim now
        EmbedDocuments aaaa cat
        EmbedQuery aa"#]],
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_searched_calls_no_model() {
    let folder = folder(&FILES);
    check(
        &folder,
        &settings(true, true),
        " \n",
        &mut letters(),
        &expect![[r#"
        nothing
    "#]],
    )
    .await;
    let missing = SearchSettings { documents: vec!["none.txt".to_owned()], ..settings(true, true) };
    check(
        &folder,
        &missing,
        "fish",
        &mut letters(),
        &expect![[r#"
        there is no document "none.txt" in the agent's folder
    "#]],
    )
    .await;
    let unknown = SearchSettings { embedding_model: Some("other".to_owned()), ..settings(true, true) };
    check(
        &folder,
        &unknown,
        "fish",
        &mut letters(),
        &expect![[r#"
        the embedding model "other": there is no model other
    "#]],
    )
    .await;
}

#[tokio::test]
async fn texts_get_vectors_and_scores_in_their_order() {
    let (env, mut models) = (Env::system(), letters());
    let rows = embed(&env, "letters", &["ab", "b", "ab"], &mut models).await.expect("vectors");
    assert_eq!(rows, [[1.01, 1.01], [0.01, 1.01], [1.01, 1.01]]);
    assert_eq!(models.calls.len(), 1, "equal texts are embedded once");
    let row = embed_question("letters", "a", &mut models).await.expect("a vector");
    assert_eq!(row, [1.01, 0.01]);
    let scores = rank("long", "a", &["xx", "x", "xxx"], &mut models).await.expect("scores");
    assert_eq!(scores, [2.0, 1.0, 3.0]);
    assert!(embed(&env, "letters", &[], &mut models).await.expect("none").is_empty());
    assert_eq!(models.calls.len(), 3);
}

#[tokio::test]
async fn what_other_workers_had_kept_is_embedded_as_well() {
    let name = |text: &str| VectorKey::of("letters", text).to_hex();
    // The first attempt missed `a`, the second one also `b`; this worker has kept nothing.
    let mut models = Letters { planned: vec![vec![name("b")], vec![name("a")]], ..letters() };
    let rows = embed(&Env::system(), "letters", &["a", "b", "c"], &mut models).await.expect("vectors");
    assert_eq!(rows.len(), 3);
    assert_eq!(models.calls, ["EmbedDocuments a", "EmbedDocuments b", "EmbedDocuments c"]);
}

#[test]
fn batches_are_as_large_as_all_limits_allow() {
    let batch = |batch_size, chunk_size, tokens_max, texts_max| {
        let settings = SearchSettings { batch_size, chunk_size, ..SearchSettings::default() };
        settings.batch(&Embedder { id: String::new(), tokens_max, texts_max })
    };
    assert_eq!(batch(None, None, None, 1_000), 100);
    assert_eq!(batch(Some(500), None, None, 96), 96);
    assert_eq!(batch(None, Some(500), Some(8_000), 1_000), 16);
    assert_eq!(batch(None, Some(5_000), Some(4_000), 1_000), 1);
    assert_eq!(batch(Some(0), None, Some(0), 0), 1);
}
