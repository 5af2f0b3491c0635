//! Searches of documents: by words, and by the vectors of a model where one is named, sorted by another model if there is one.
//!
//! Chunks are embedded in batches. The vectors of chunks that did not change are those that the worker keeps; the host records each batch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use atlas_documents::{Chunk, Matches, Search, VectorCache, VectorKey};
use atlas_env::Env;
use atlas_model::{Answer, CallError, CallErrorKind, ModelTask, Request};

/// Chunks of one call, if the search does not say.
const BATCH_DEFAULT: u64 = 100;
/// How often texts without a vector are planned, at most: each time an attempt goes on at a worker with less.
const PLANS_MAX: usize = 64;
/// A search with a reranker finds so many times the chunks of its result.
const CANDIDATES: usize = 2;

/// What is searched, and how. Empty settings are those of [`Search`].
#[derive(Debug, Clone, Default)]
pub struct SearchSettings {
    /// Files, folders and patterns.
    pub documents: Vec<String>,
    pub top: Option<u64>,
    pub chunk_size: Option<u64>,
    pub chunk_overlap: Option<u64>,
    /// The model that makes vectors. None searches by words alone.
    pub embedding_model: Option<String>,
    /// The model that sorts what is found.
    pub reranker_model: Option<String>,
    /// Most chunks of one call of the embedding model.
    pub batch_size: Option<u64>,
    /// Longest time of a search once its documents are embedded.
    pub timeout: Option<Duration>,
}

/// What is known of an embedding model before it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedder {
    /// All that decides which vectors it gives.
    pub id: String,
    /// Most tokens of one call.
    pub tokens_max: Option<u64>,
    /// Most texts of one call.
    pub texts_max: usize,
}

/// The models of a search, and what the machine keeps for it.
#[async_trait]
pub trait SearchModels: Send {
    /// What is known of an embedding model.
    fn embedder(&self, model: &str) -> Result<Embedder, CallError>;

    /// Calls a model, or returns the recorded answer.
    async fn call(&mut self, model: &str, request: Request) -> Result<Answer, CallError>;

    /// Where vectors are kept between runs.
    fn vectors(&self) -> Option<Arc<VectorCache>> {
        None
    }

    /// Which texts are embedded: those that are missing here, or were at an earlier attempt whose calls are recorded in their order. What is
    /// missing after that is planned again.
    async fn plan(&mut self, missing: Vec<String>) -> Result<Vec<String>, CallError> {
        Ok(missing)
    }
}

impl SearchSettings {
    fn search(&self) -> Search<'_> {
        let Self { documents, top, chunk_size, chunk_overlap, .. } = self;
        Search { documents, top: *top, chunk_size: *chunk_size, chunk_overlap: *chunk_overlap }
    }

    fn batch(&self, embedder: &Embedder) -> usize {
        batch(self.batch_size, self.search().size().size, embedder)
    }
}

/// The texts of one call: at least one, and no more than the setting, the provider and the tokens of the model allow if a text has no more
/// bytes than this.
fn batch(most: Option<u64>, text_bytes: usize, embedder: &Embedder) -> usize {
    let asked = most.unwrap_or(BATCH_DEFAULT).min(embedder.texts_max as u64);
    let fits = embedder.tokens_max.map_or(asked, |tokens| asked.min(tokens / text_bytes.max(1) as u64));
    usize::try_from(fits.max(1)).unwrap_or(1)
}

/// Searches the documents in the folder of an agent. An error says why nothing was found out.
pub async fn search(
    env: &Env,
    folder: &Path,
    settings: &SearchSettings,
    query: &str,
    models: &mut dyn SearchModels,
) -> Result<Matches, String> {
    let (read, folder) = (settings.clone(), folder.to_owned());
    let chunks =
        blocking(env, move || read.search().chunks(&folder).map_err(|error| atlas_env::chain(&error))).await??;
    let Some(asked) = settings.search().asked(query).filter(|_| !chunks.is_empty()) else {
        return Ok(Matches::default());
    };
    let vectors = match &settings.embedding_model {
        Some(model) => {
            let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            Some(embedded(env, model, &texts, &|embedder: &Embedder| settings.batch(embedder), models).await?)
        }
        None => None,
    };
    let found = found(env, settings, (chunks, vectors), (query, asked), models);
    let Some(limit) = settings.timeout else { return found.await };
    tokio::select! {
        biased;
        found = found => found,
        () = env.clock.sleep(limit) => Err(format!("the search timed out after {} s", limit.as_secs())),
    }
}

/// Runs a part of a search on a thread for that.
async fn blocking<T: Send + 'static>(env: &Env, work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    env.spawn_blocking("search", work).join().await.map_err(|_| "the search was interrupted".to_owned())
}

fn failed(what: &str, model: &str) -> impl Fn(CallError) -> String {
    let name = format!("the {what} \"{model}\"");
    move |error| format!("{name}: {error}")
}

/// The vector of each text, in their order. An error says why there are none.
pub async fn embed(
    env: &Env,
    model: &str,
    texts: &[&str],
    models: &mut dyn SearchModels,
) -> Result<Vec<Vec<f32>>, String> {
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or_default();
    embedded(env, model, texts, &|embedder: &Embedder| batch(None, longest, embedder), models).await
}

/// The vector of each text: those that are kept, and those of the calls for all others.
async fn embedded(
    env: &Env,
    model: &str,
    texts: &[&str],
    batch: &(dyn Fn(&Embedder) -> usize + Sync),
    models: &mut dyn SearchModels,
) -> Result<Vec<Vec<f32>>, String> {
    let failed = failed("embedding model", model);
    let embedder = models.embedder(model).map_err(&failed)?;
    let cache = models.vectors();
    let keys: Vec<VectorKey> = texts.iter().map(|text| VectorKey::of(&embedder.id, text)).collect();
    let mut known = match &cache {
        Some(cache) => {
            let (cache, keys) = (Arc::clone(cache), keys.clone());
            blocking(env, move || kept(&cache, &keys)).await?
        }
        None => BTreeMap::new(),
    };
    // Equal texts are embedded once.
    let texts: BTreeMap<String, (VectorKey, &str)> =
        keys.iter().zip(texts).map(|(key, text)| (key.to_hex(), (*key, *text))).collect();
    let is_missing = |known: &BTreeMap<VectorKey, Vec<f32>>, name: &&String| {
        texts.get(*name).is_some_and(|(key, _)| !known.contains_key(key))
    };
    // An earlier attempt may have planned on a worker that had kept vectors of other texts than this one.
    for _ in 0..PLANS_MAX {
        let missing = texts.keys().filter(|name| is_missing(&known, name)).cloned().collect();
        let planned = models.plan(missing).await.map_err(&failed)?;
        let planned: Vec<(VectorKey, &str)> = planned.iter().filter_map(|name| texts.get(name).copied()).collect();
        for batch in planned.chunks(batch(&embedder)) {
            let request = Request::embed(ModelTask::EmbedDocuments, batch.iter().map(|(_, text)| (*text).to_owned()));
            let answer = models.call(model, request).await.map_err(&failed)?;
            let vectors = answer.vectors(batch.len()).map_err(|error| failed(unusable(&error)))?;
            let made: Vec<(VectorKey, Vec<f32>)> = batch.iter().map(|(key, _)| *key).zip(vectors).collect();
            known.extend(made.iter().cloned());
            if let Some(cache) = &cache {
                let cache = Arc::clone(cache);
                // A vector that cannot be kept is asked for again by the next run.
                blocking(env, move || made.iter().for_each(|(key, vector)| drop(cache.put(*key, vector)))).await?;
            }
        }
        if !texts.keys().any(|name| is_missing(&known, &name)) {
            break;
        }
    }
    let vectors: Vec<Vec<f32>> = keys.iter().filter_map(|key| known.get(key).cloned()).collect();
    if vectors.len() != keys.len() {
        return Err(failed(CallError::new(CallErrorKind::Answer, "some texts have no vector")));
    }
    let lengths = || known.values().map(Vec::len);
    match (lengths().min(), lengths().max()) {
        (Some(least), Some(most)) if least != most => Err(changed(env, model, (least, most), (cache, keys)).await),
        _ => Ok(vectors),
    }
}

/// Removes the kept vectors of a model that has changed, and returns what a person has to know of it.
async fn changed(
    env: &Env,
    model: &str,
    (least, most): (usize, usize),
    (cache, keys): (Option<Arc<VectorCache>>, Vec<VectorKey>),
) -> String {
    if let Some(cache) = cache {
        // If that is interrupted, the next run meets the same vectors, and tries again.
        let _ = blocking(env, move || keys.iter().for_each(|key| cache.remove(*key))).await;
    }
    format!(
        "the embedding model \"{model}\" gave vectors of {least} and of {most} dimensions, so it has changed; the kept \
         vectors of these documents are removed here, and the next run embeds all of them"
    )
}

fn unusable(error: &atlas_model::NumbersError) -> CallError {
    CallError::new(CallErrorKind::Answer, error.to_string())
}

fn kept(cache: &VectorCache, keys: &[VectorKey]) -> BTreeMap<VectorKey, Vec<f32>> {
    keys.iter().filter_map(|key| Some((*key, cache.get(*key)?))).collect()
}

/// Searches in chunks, and sorts what was found.
async fn found(
    env: &Env,
    settings: &SearchSettings,
    (chunks, vectors): (Vec<Chunk>, Option<Vec<Vec<f32>>>),
    (query, asked): (&str, String),
    models: &mut dyn SearchModels,
) -> Result<Matches, String> {
    let top = settings.search().top();
    let wanted = if settings.reranker_model.is_some() { top.saturating_mul(CANDIDATES) } else { top };
    let vector = match (&settings.embedding_model, &vectors) {
        (Some(model), Some(rows)) => {
            let vector = embed_question(model, &asked, models).await?;
            let lengths = (rows.first().map_or(0, Vec::len), vector.len());
            if lengths.0 != lengths.1 {
                let id = models.embedder(model).map_err(failed("embedding model", model))?.id;
                let keys = chunks.iter().map(|chunk| VectorKey::of(&id, &chunk.text)).collect();
                return Err(changed(env, model, lengths, (models.vectors(), keys)).await);
            }
            Some(vector)
        }
        _ => None,
    };
    let words = query.to_owned();
    let hits = blocking(env, move || {
        let hits = atlas_documents::hits(chunks, vectors, (&words, vector.as_deref()), wanted);
        hits.map_err(|error| atlas_env::chain(&error))
    });
    let hits = hits.await??;
    let hits = match &settings.reranker_model {
        Some(model) if !hits.is_empty() => ranked(model, &asked, hits, models).await?,
        _ => hits,
    };
    Ok(Matches::of(hits.iter().take(top)))
}

/// The vector of a question. An error says why there is none.
pub async fn embed_question(model: &str, asked: &str, models: &mut dyn SearchModels) -> Result<Vec<f32>, String> {
    let failed = failed("embedding model", model);
    let request = Request::embed(ModelTask::EmbedQuery, [asked.to_owned()]);
    let answer = models.call(model, request).await.map_err(&failed)?;
    let vectors = answer.vectors(1).map_err(|error| failed(unusable(&error)))?;
    vectors.into_iter().next().ok_or_else(|| failed(CallError::new(CallErrorKind::Answer, "there is no vector")))
}

/// Chunks in the order of a reranker.
async fn ranked(
    model: &str,
    asked: &str,
    hits: Vec<Chunk>,
    models: &mut dyn SearchModels,
) -> Result<Vec<Chunk>, String> {
    let texts: Vec<&str> = hits.iter().map(|hit| hit.text.as_str()).collect();
    let scores = rank(model, asked, &texts, models).await?;
    let mut scored: Vec<(f32, Chunk)> = scores.into_iter().zip(hits).collect();
    // Equal scores keep the order of the search.
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Ok(scored.into_iter().map(|(_, hit)| hit).collect())
}

/// How well each text answers a question, in their order; more is better. An error says why nobody knows.
pub async fn rank(model: &str, asked: &str, texts: &[&str], models: &mut dyn SearchModels) -> Result<Vec<f32>, String> {
    let failed = failed("reranker", model);
    let request = Request::rank(asked, texts.iter().map(|text| (*text).to_owned()));
    let answer = models.call(model, request).await.map_err(&failed)?;
    answer.scores(texts.len()).map_err(|error| failed(unusable(&error)))
}

#[cfg(test)]
mod tests;
