//! Catalogues: what each segment of a base holds, without the texts. A segment never changes, so a catalogue stays right for as long as it is
//! kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_api::types::UnreadableSegment;
use atlas_artifacts::ArtifactError;
use atlas_desk::Error;
use atlas_objects::{BaseSegment, BaseSpec};
use atlas_types::{Digest, ErrorKind};
use serde_json::{Map, Value};

use crate::document::Document;
use crate::{Bases, segment};

/// Most bytes of the catalogues that are kept.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// What a row takes besides its texts, in bytes: about the size of its parts.
const ROW_BYTES: usize = 160;

/// A document without its text.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: Arc<str>,
    pub(crate) source: Arc<str>,
    pub(crate) metadata: Arc<Map<String, Value>>,
    /// Bytes of its text.
    pub(crate) bytes: u64,
}

/// The documents of a segment, in its order.
pub(crate) type Catalogue = Arc<Vec<Row>>;

/// The catalogues of segments that were read.
#[derive(Debug, Default)]
pub(crate) struct Catalogues(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_digest: HashMap<Digest, Catalogue>,
    bytes: usize,
}

/// The documents of a base, as far as its segments can be read.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Its segments that can be read, in order.
    pub(crate) segments: Vec<(Digest, Catalogue)>,
    pub(crate) unreadable: Vec<UnreadableSegment>,
}

/// Why a segment has no documents.
pub(crate) enum Unread {
    /// No controller has an intact copy.
    Lost(String),
    /// It may be read later.
    Error(Error),
}

impl Row {
    pub(crate) fn of(document: &Document) -> Self {
        Self {
            id: document.id().into(),
            source: document.source.clone(),
            metadata: Arc::new(document.metadata.clone()),
            bytes: document.text.len() as u64,
        }
    }

    fn size(&self) -> usize {
        let metadata =
            if self.metadata.is_empty() { 0 } else { Value::Object((*self.metadata).clone()).to_string().len() };
        ROW_BYTES + self.source.len() + 3 * metadata
    }
}

impl Catalogues {
    fn get(&self, digest: Digest) -> Option<Catalogue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_digest.get(&digest).cloned()
    }

    /// Forgets all, so that segments are read again.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Kept::default();
    }

    /// Keeps a catalogue. If there are too many, the others go: they are read again.
    pub(crate) fn keep(&self, digest: Digest, catalogue: &Catalogue) {
        let bytes: usize = catalogue.iter().map(Row::size).sum();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + bytes > KEPT_BYTES_MAX {
            *kept = Kept::default();
        }
        if kept.by_digest.insert(digest, catalogue.clone()).is_none() {
            kept.bytes += bytes;
        }
    }
}

impl Contents {
    /// The documents of the base: those of its segments that are not removed.
    pub(crate) fn live<'a>(&'a self, spec: &'a BaseSpec) -> impl Iterator<Item = &'a Row> {
        let removed: std::collections::HashSet<&str> = spec.removed.iter().map(String::as_str).collect();
        let rows = self.segments.iter().flat_map(|(_, catalogue)| catalogue.iter());
        rows.filter(move |row| !removed.contains(&*row.id))
    }

    /// Refuses a change of a base that cannot be read as a whole: it could have any document.
    pub(crate) fn check(&self, name: &str) -> Result<(), Error> {
        let Some(UnreadableSegment { segment, documents, reason }) = self.unreadable.first() else { return Ok(()) };
        Err(Error::SegmentUnreadable(format!(
            "segment {segment} of the base \"{name}\" with {documents} documents cannot be read: {reason}; restore it from a backup, or \
             leave its documents out: atlasctl rag rebuild {name} --drop-unreadable"
        )))
    }
}

impl Bases {
    /// What the segments of a base hold.
    pub(crate) async fn contents(&self, spec: &BaseSpec) -> Result<Contents, Error> {
        let mut contents = Contents::default();
        for segment in &spec.segments {
            let digest = digest(segment)?;
            match self.catalogue(digest).await {
                Ok(catalogue) => contents.segments.push((digest, catalogue)),
                Err(Unread::Lost(reason)) => contents.unreadable.push(unreadable(segment, reason)),
                Err(Unread::Error(error)) => return Err(error),
            }
        }
        Ok(contents)
    }

    async fn catalogue(&self, digest: Digest) -> Result<Catalogue, Unread> {
        if let Some(kept) = self.catalogues.get(digest) {
            return Ok(kept);
        }
        let documents = self.segment(digest).await?;
        let catalogue = self.off(move || Arc::new(documents.iter().map(Row::of).collect::<Vec<_>>())).await;
        let catalogue = catalogue.map_err(Unread::Error)?;
        self.catalogues.keep(digest, &catalogue);
        Ok(catalogue)
    }

    /// The documents of a segment.
    pub(crate) async fn segment(&self, digest: Digest) -> Result<Vec<Document>, Unread> {
        let bytes = self.desk.artifacts.read(digest).await.map_err(unread)?;
        let decoded = self.off(move || segment::decode(&bytes)).await.map_err(Unread::Error)?;
        decoded.map_err(|error| {
            tracing::error!(%digest, error = &error as &dyn std::error::Error, "could not read a segment of a document base");
            Unread::Lost(error.to_string())
        })
    }

    /// Does what takes a while on a thread that may be blocked.
    pub(crate) async fn off<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        self.desk.env.spawn_blocking("document-base", work).join().await.map_err(|_| Error::Internal)
    }
}

pub(crate) fn digest(segment: &BaseSegment) -> Result<Digest, Error> {
    segment.digest.parse().map_err(|_| Error::Internal)
}

pub(crate) fn unreadable(segment: &BaseSegment, reason: String) -> UnreadableSegment {
    UnreadableSegment { segment: segment.digest.clone(), documents: segment.documents, reason }
}

pub(crate) fn unread(error: ArtifactError) -> Unread {
    tracing::error!(error = &error as &dyn std::error::Error, "could not read an artifact of a document base");
    match error.kind() {
        ErrorKind::Gone => Unread::Lost(error.to_string()),
        _ => Unread::Error(Error::Artifact(error)),
    }
}
