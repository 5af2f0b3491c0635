//! Searching a base by the words of a question, and by its vector if there is one.

use std::time::Duration;

use atlas_api::types::{DocumentHit, DocumentQuery, FoundDocuments, HitRank};
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::BaseSpec;
use atlas_retrieval::{Hit, Query, Rank};
use atlas_types::Object;
use serde_json::{Map, Value};

use crate::Bases;
use crate::catalogue::{Row, Unread, digest, unreadable};
use crate::loaded::{Loaded, SharedLoaded};
use crate::readers::Readable;
use crate::vectors::version;

/// Most bytes of a question.
const QUERY_BYTES_MAX: usize = 64 << 10;

/// Most chunks that are found.
const TOP_K_MAX: u64 = 100;

/// How long a search may lack the vectors that were made last, while more are made.
const LAG_MAX: Duration = Duration::from_secs(30);

/// A question as a vector.
#[derive(Debug, Clone, Copy)]
pub struct VectorQuestion<'a> {
    /// What is known of the model that made it.
    pub model: &'a str,
    pub numbers: &'a [f32],
}

/// The models of a base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseModels {
    /// Makes vectors; none if the base has no vectors.
    pub embedding: Option<String>,
    /// Ranks what was found.
    pub reranker: Option<String>,
    /// Chunks that a search finds if it does not say how many.
    pub top_k: u64,
    /// Most bytes of a text for which a vector is made.
    pub chunk_bytes: u64,
    /// Which documents and settings the base has.
    pub of: String,
}

impl Bases {
    /// The models that a search of a base asks.
    pub async fn models(&self, caller: &Caller, name: &str, consistency: Consistency) -> Result<BaseModels, Error> {
        let (_, spec) = self.find(caller, name, consistency).await?;
        let of = version(&spec);
        let has_vectors = spec.vectors.as_ref().is_some_and(|vectors| !vectors.segments.is_empty());
        let named = |name: String| Some(name).filter(|name| !name.is_empty());
        let embedding = named(spec.embedding).filter(|_| has_vectors);
        let reranker = named(spec.reranker);
        Ok(BaseModels { embedding, reranker, top_k: spec.top_k, chunk_bytes: spec.chunk_size, of })
    }

    /// The chunks that fit a question best. A search sees the base before a change or after it.
    pub async fn search(
        &self,
        caller: &Caller,
        name: &str,
        query: DocumentQuery,
        vector: Option<VectorQuestion<'_>>,
        consistency: Consistency,
    ) -> Result<FoundDocuments, Error> {
        if query.query.len() > QUERY_BYTES_MAX {
            return Err(Error::TooLarge { what: "the query", limit: QUERY_BYTES_MAX as u64 });
        }
        let (object, spec) = self.find(caller, name, consistency).await?;
        let top = query.top_k.unwrap_or(spec.top_k);
        if !(1..=TOP_K_MAX).contains(&top) {
            return Err(Error::Malformed(format!("'top_k' must be from 1 to {TOP_K_MAX}")));
        }
        let made_by = spec.vectors.as_ref().map(|vectors| vectors.model.as_str()).unwrap_or_default();
        let vector = match vector {
            Some(asked) if !made_by.is_empty() && asked.model != made_by => {
                return Err(differ(name, made_by, asked.model));
            }
            vector => vector.map(|asked| asked.numbers.to_vec()),
        };
        let loaded = self.loaded_lately(&object, &spec).await?;
        let name = object.key.name.to_string();
        let top = usize::try_from(top).unwrap_or(usize::MAX);
        let readable = Readable::new(&loaded.readers, caller);
        self.off(move || found(name, &loaded, (&query, vector, top), &readable)).await?
    }

    /// A base as it is searched. While its vectors are made, each few of them are a revision: for these it is not loaded anew each time.
    async fn loaded_lately(&self, object: &Object, spec: &BaseSpec) -> Result<SharedLoaded, Error> {
        let now = self.desk.env.clock.monotonic();
        let is_good = |loaded: &SharedLoaded| now < loaded.at + LAG_MAX && loaded.stands_for(spec);
        match self.cache.loaded(&object.key, object.uid).filter(is_good) {
            Some(loaded) => Ok(loaded),
            None => self.loaded(object, spec).await,
        }
    }

    /// A base as it is.
    pub(crate) async fn loaded(&self, object: &Object, spec: &BaseSpec) -> Result<SharedLoaded, Error> {
        let cell = self.cache.cell(&object.key, (object.uid, object.revision));
        let load = || async {
            // Several revisions at a time would take the memory of several bases.
            let _turn = self.loads.take(&object.key).await;
            self.load(spec.clone()).await
        };
        let loaded = cell.get_or_try_init(load).await?.clone();
        if loaded.unreadable.is_empty() && loaded.lost_vectors.is_empty() {
            self.cache.make_room();
        } else {
            // The next search finds out whether it can be read then.
            self.cache.forget(&object.key, &cell);
        }
        Ok(loaded)
    }

    /// Reads a base.
    pub(crate) async fn load(&self, spec: BaseSpec) -> Result<SharedLoaded, Error> {
        let (mut segments, mut lost) = (Vec::new(), Vec::new());
        for segment in &spec.segments {
            match self.segment(digest(segment)?).await {
                Ok(documents) => segments.push(documents),
                Err(Unread::Lost(reason)) => lost.push(unreadable(segment, reason)),
                Err(Unread::Error(error)) => return Err(error),
            }
        }
        let table = self.table(&spec).await?;
        let at = self.desk.env.clock.monotonic();
        self.off(move || SharedLoaded::new(Loaded { at, ..Loaded::new(&spec, segments, &table, lost) })).await
    }
}

fn differ(name: &str, made_by: &str, model: &str) -> Error {
    Error::VectorsDiffer(format!(
        "the vectors of the base \"{name}\" are those of {made_by}, and its model is {model} now; make them anew: atlasctl rag rebuild \
         {name} --vectors"
    ))
}

pub(crate) fn found(
    base: String,
    loaded: &Loaded,
    (query, vector, top): (&DocumentQuery, Option<Vec<f32>>, usize),
    readable: &Readable,
) -> Result<FoundDocuments, Error> {
    let searched: Vec<bool> = loaded.rows.iter().map(|row| is_meant(row, query) && readable.may_read(row)).collect();
    let is_readable = |chunk: u32| {
        let place = loaded.row(chunk).map(|(place, _)| place);
        place.and_then(|place| searched.get(place)).copied().unwrap_or(false)
    };
    // Before the first vectors are made there is nothing to compare one with.
    let vector = vector.as_deref().filter(|_| loaded.index.dimension().is_some());
    let question = Query { vector, is_readable: Some(&is_readable), ..Query::new(&query.query, top) };
    let hits = loaded.index.search(&question).map_err(|error| Error::Malformed(error.to_string()))?;
    let is_without = |chunk: &u32| loaded.key(*chunk).is_some_and(|key| !loaded.has_vector.contains(key));
    let searched_chunks = || (0..).take(loaded.owners.len()).filter(|chunk| is_readable(*chunk));
    Ok(FoundDocuments {
        base,
        hits: hits.iter().filter_map(|hit| shown(loaded, hit, query.explain)).collect(),
        chunks: searched_chunks().count() as u64,
        without_vector: if query.words_only { 0 } else { searched_chunks().filter(is_without).count() as u64 },
        documents: searched.iter().filter(|is_searched| **is_searched).count() as u64,
        unreadable: readable.told(&loaded.unreadable),
    })
}

fn is_meant(row: &Row, query: &DocumentQuery) -> bool {
    let has = |wanted: &Map<String, Value>| wanted.iter().all(|(name, value)| row.metadata.get(name) == Some(value));
    row.source.starts_with(&query.source) && has(&query.metadata)
}

fn shown(loaded: &Loaded, hit: &Hit, explain: bool) -> Option<DocumentHit> {
    let (place, row) = loaded.row(hit.chunk)?;
    let chunks = loaded.chunks_of(place);
    let rank = |rank: Rank| HitRank { place: rank.place.into(), score: rank.score };
    Some(DocumentHit {
        source: row.source.to_string(),
        text: loaded.index.chunk(hit.chunk)?.text.clone(),
        score: hit.score,
        document: row.id.to_string(),
        chunk: (hit.chunk as usize).saturating_sub(chunks.start) as u64 + 1,
        chunks: chunks.len() as u64,
        metadata: (*row.metadata).clone(),
        by_words: hit.by_words.filter(|_| explain).map(rank),
        by_vector: hit.by_vector.filter(|_| explain).map(rank),
        by_model: None,
    })
}
