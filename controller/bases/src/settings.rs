//! Bases themselves: making, showing, changing and deleting them.

use atlas_api::types;
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::BaseSpec;
use atlas_types::{Expect, Object};

use crate::Bases;
use crate::write::{TRIES, key, unknown};

impl Bases {
    /// The bases of a namespace by name.
    pub async fn bases(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<types::Base>, Error> {
        Ok(self.all(caller, consistency).await?.iter().map(|(object, spec)| shown(object, spec)).collect())
    }

    /// One base.
    pub async fn base(&self, caller: &Caller, name: &str, consistency: Consistency) -> Result<types::Base, Error> {
        let (object, spec) = self.find(caller, name, consistency).await?;
        Ok(shown(&object, &spec))
    }

    /// Makes a base. A repeat with the same settings finds the one that is there.
    pub async fn create(&self, caller: &Caller, draft: types::BaseDraft) -> Result<types::Base, Error> {
        let types::BaseDraft { name, description, chunk_size, chunk_overlap, top_k } = draft;
        let change = types::BaseChange { description, chunk_size, chunk_overlap, top_k };
        let spec = changed(BaseSpec::default(), &change);
        match self.put(caller, (&key(caller, &name)?, Default::default()), &spec, Expect::Absent).await {
            Ok(()) => {}
            Err(Error::ObjectChanged { revision }) => {
                let (_, found) = self.find(caller, &name, Consistency::Linearizable).await?;
                if changed(found.clone(), &change) != found {
                    return Err(Error::ObjectChanged { revision });
                }
            }
            Err(error) => return Err(error),
        }
        self.base(caller, &name, Consistency::Linearizable).await
    }

    /// Changes settings of a base. Documents are cut anew when the base is next loaded.
    pub async fn change(&self, caller: &Caller, name: &str, change: types::BaseChange) -> Result<types::Base, Error> {
        for _ in 0..TRIES {
            let (object, spec) = self.find(caller, name, Consistency::Linearizable).await?;
            let wanted = changed(spec.clone(), &change);
            if wanted == spec {
                return Ok(shown(&object, &spec));
            }
            let expect = Expect::Revision(object.revision);
            match self.put(caller, (&object.key, (*object.labels).clone()), &wanted, expect).await {
                Ok(()) => return self.base(caller, name, Consistency::Linearizable).await,
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Overloaded)
    }

    /// Deletes a base with its documents.
    pub async fn delete(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let Ok(key) = key(caller, name) else { return Err(unknown(name)) };
        self.cache.remove(&key);
        self.delete_object(caller, key).await
    }
}

fn changed(mut spec: BaseSpec, change: &types::BaseChange) -> BaseSpec {
    if let Some(description) = &change.description {
        spec.description.clone_from(description);
    }
    for (setting, wanted) in [
        (&mut spec.chunk_size, change.chunk_size),
        (&mut spec.chunk_overlap, change.chunk_overlap),
        (&mut spec.top_k, change.top_k),
    ] {
        *setting = wanted.unwrap_or(*setting);
    }
    spec
}

pub(crate) fn shown(object: &Object, spec: &BaseSpec) -> types::Base {
    types::Base {
        name: object.key.name.to_string(),
        description: spec.description.clone(),
        chunk_size: spec.chunk_size,
        chunk_overlap: spec.chunk_overlap,
        top_k: spec.top_k,
        documents: spec.documents(),
        bytes: spec.bytes(),
        segments: spec.segments.len() as u64,
        author: object.by.as_str().to_owned(),
        updated_at: object.updated.0.div_euclid(1_000_000),
    }
}
