//! Listing documents, with their texts if they are wanted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use atlas_api::types::{BaseDocument, DocumentPage};
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::BaseSpec;

use crate::Bases;
use crate::catalogue::{Contents, Row, Unread, unreadable};
use crate::readers::Readable;

/// Most bytes of the texts of one page.
const TEXTS_BYTES_MAX: u64 = 8 << 20;

/// Which documents are wanted.
#[derive(Debug, Clone, Default)]
pub struct DocumentFilter {
    /// Those whose sources begin with it.
    pub source: String,
    /// Those whose sources are after it.
    pub after: Option<String>,
    /// At most so many; fewer if their texts are long.
    pub limit: usize,
    /// Whether their texts are wanted.
    pub text: bool,
}

impl Bases {
    /// A page of the documents of a base that the caller may read, by source.
    pub async fn documents(
        &self,
        caller: &Caller,
        name: &str,
        filter: &DocumentFilter,
        consistency: Consistency,
    ) -> Result<DocumentPage, Error> {
        let (_, spec) = self.find(caller, name, consistency).await?;
        let mut contents = self.contents(&spec).await?;
        let readable = Readable::new(&spec.readers, caller);
        let (page, next) = page(&contents, &spec, filter, &readable);
        let mut texts = HashMap::new();
        if filter.text {
            texts = self.texts(&spec, &mut contents, &page).await?;
        }
        let documents = page
            .into_iter()
            .map(|row| BaseDocument {
                id: row.id.to_string(),
                text: texts.remove(&row.id),
                source: row.source.to_string(),
                bytes: row.bytes,
                metadata: (*row.metadata).clone(),
            })
            .collect();
        Ok(DocumentPage { documents, next, unreadable: readable.told(&contents.unreadable) })
    }

    /// The texts of documents by id. What cannot be read any more is added to what the base cannot read.
    async fn texts(
        &self,
        spec: &BaseSpec,
        contents: &mut Contents,
        page: &[Row],
    ) -> Result<HashMap<Arc<str>, String>, Error> {
        let wanted: HashSet<&Arc<str>> = page.iter().map(|row| &row.id).collect();
        let mut texts = HashMap::new();
        for (digest, catalogue) in &contents.segments {
            if !catalogue.iter().any(|row| wanted.contains(&row.id)) {
                continue;
            }
            match self.segment(*digest).await {
                Ok(documents) => {
                    let found = catalogue.iter().zip(documents).filter(|(row, _)| wanted.contains(&row.id));
                    texts.extend(found.map(|(row, document)| (row.id.clone(), document.text)));
                }
                Err(Unread::Error(error)) => return Err(error),
                Err(Unread::Lost(reason)) => {
                    let digest = digest.hex();
                    let segment = spec.segments.iter().find(|segment| segment.digest == digest);
                    contents.unreadable.extend(segment.map(|segment| unreadable(segment, reason)));
                }
            }
        }
        Ok(texts)
    }
}

/// The documents of a page, and the source after which the next one begins.
fn page(
    contents: &Contents,
    spec: &BaseSpec,
    filter: &DocumentFilter,
    readable: &Readable,
) -> (Vec<Row>, Option<String>) {
    let after = filter.after.as_deref();
    let is_meant =
        |row: &&Row| row.source.starts_with(&filter.source) && after.is_none_or(|after| &*row.source > after);
    let sorted: BTreeMap<&Arc<str>, &Row> =
        contents.readable(spec, readable).filter(is_meant).map(|row| (&row.source, row)).collect();
    let (mut page, mut bytes): (Vec<Row>, u64) = (Vec::new(), 0);
    for row in sorted.into_values() {
        bytes += row.bytes;
        let is_long = filter.text && bytes > TEXTS_BYTES_MAX && !page.is_empty();
        if page.len() >= filter.limit.max(1) || is_long {
            let next = page.last().map(|row| row.source.to_string());
            return (page, next);
        }
        page.push(row.clone());
    }
    (page, None)
}
