//! Searching a base by the words of a question.

use atlas_api::types::{DocumentHit, DocumentQuery, FoundDocuments, HitRank};
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::BaseSpec;
use atlas_retrieval::{Hit, Query, Rank};
use serde_json::{Map, Value};

use crate::Bases;
use crate::catalogue::{Row, Unread, digest, unreadable};
use crate::loaded::{Loaded, SharedLoaded};

/// Most bytes of a question.
const QUERY_BYTES_MAX: usize = 64 << 10;

/// Most chunks that are found.
const TOP_K_MAX: u64 = 100;

impl Bases {
    /// The chunks that fit a question best. A search sees the base before a change or after it.
    pub async fn search(
        &self,
        caller: &Caller,
        name: &str,
        query: DocumentQuery,
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
        let cell = self.cache.cell(&object.key, (object.uid, object.revision));
        let loaded = cell.get_or_try_init(|| self.load(spec)).await?.clone();
        if loaded.unreadable.is_empty() {
            self.cache.make_room();
        } else {
            // The next search finds out whether it can be read then.
            self.cache.forget(&object.key, &cell);
        }
        let name = object.key.name.to_string();
        let top = usize::try_from(top).unwrap_or(usize::MAX);
        self.off(move || found(name, &loaded, &query, top)).await?
    }

    async fn load(&self, spec: BaseSpec) -> Result<SharedLoaded, Error> {
        let (mut segments, mut lost) = (Vec::new(), Vec::new());
        for segment in &spec.segments {
            match self.segment(digest(segment)?).await {
                Ok(documents) => segments.push(documents),
                Err(Unread::Lost(reason)) => lost.push(unreadable(segment, reason)),
                Err(Unread::Error(error)) => return Err(error),
            }
        }
        self.off(move || SharedLoaded::new(Loaded::new(&spec, segments, lost))).await
    }
}

fn found(base: String, loaded: &Loaded, query: &DocumentQuery, top: usize) -> Result<FoundDocuments, Error> {
    let searched: Vec<bool> = loaded.rows.iter().map(|row| is_meant(row, query)).collect();
    let is_readable = |chunk: u32| {
        let place = loaded.row(chunk).map(|(place, _)| place);
        place.and_then(|place| searched.get(place)).copied().unwrap_or(false)
    };
    let question = Query { is_readable: Some(&is_readable), ..Query::new(&query.query, top) };
    let hits = loaded.index.search(&question).map_err(|error| Error::internal("search a base", &error))?;
    Ok(FoundDocuments {
        base,
        hits: hits.iter().filter_map(|hit| shown(loaded, hit, query.explain)).collect(),
        chunks: (0..).take(loaded.owners.len()).filter(|chunk| is_readable(*chunk)).count() as u64,
        documents: searched.iter().filter(|is_searched| **is_searched).count() as u64,
        unreadable: loaded.unreadable.clone(),
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
    })
}
