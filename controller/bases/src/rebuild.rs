//! Writing all segments anew: without removed documents, and without those that cannot be read if that is wanted.

use atlas_api::types::{BaseRebuild, RebuiltBase};
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::BaseVectors;
use atlas_types::Expect;

use crate::Bases;
use crate::write::{TRIES, key, unknown};

impl Bases {
    /// Writes the documents of a base to as few segments as they need, and its vectors. Segments that cannot be read are refused, or left out.
    pub async fn rebuild(&self, caller: &Caller, name: &str, wanted: &BaseRebuild) -> Result<RebuiltBase, Error> {
        let Ok(key) = key(caller, name) else { return Err(unknown(name)) };
        let _turn = self.turns.take(&key).await;
        for _ in 0..TRIES {
            let (object, mut spec) = self.find(caller, name, Consistency::Linearizable).await?;
            // A segment whose catalogue is known may have been damaged since.
            self.catalogues.clear();
            let contents = self.contents(&spec).await?;
            if !wanted.drop_unreadable {
                contents.check(name)?;
            }
            let lost = contents.unreadable.iter().map(|segment| segment.documents).sum();
            let mut segments = std::mem::take(&mut spec.segments);
            segments.retain(|segment| !contents.unreadable.iter().any(|lost| lost.segment == segment.digest));
            self.rewrite_all(&mut spec, &segments).await?;
            // What is left of them was in the segments that cannot be read.
            spec.removed.clear();
            if wanted.vectors && !spec.embedding.is_empty() {
                // What models have answered before does not count: they may be others by now.
                spec.vectors = Some(BaseVectors { anew_at: object.revision.0, ..BaseVectors::default() });
            } else if let Some(mut vectors) = spec.vectors.take() {
                let live = self.load(spec.clone()).await?;
                self.compact_vectors(&mut vectors, &live).await?;
                spec.vectors = Some(vectors);
            }
            let (documents, segments) = (spec.documents(), spec.segments.len() as u64);
            let expect = Expect::Revision(object.revision);
            match self.put(caller, (&object.key, (*object.labels).clone()), &spec, expect).await {
                Ok(()) => return Ok(RebuiltBase { documents, segments, lost }),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Overloaded)
    }
}
