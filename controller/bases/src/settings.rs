//! Bases themselves: making, showing, changing and deleting them.

use atlas_api::types;
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::{BaseSpec, ReadRule, Refusal};
use atlas_types::{Expect, Object, ObjectKey, ObjectKind, ObjectName};

use crate::Bases;
use crate::vectors::version;
use crate::write::{TRIES, key, unknown};

impl Bases {
    /// The bases of a namespace by name.
    pub async fn bases(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<types::Base>, Error> {
        let mut bases = Vec::new();
        for (object, spec) in self.all(caller, consistency).await? {
            bases.push(self.shown_to(caller, &object, &spec).await?);
        }
        Ok(bases)
    }

    /// One base.
    pub async fn base(&self, caller: &Caller, name: &str, consistency: Consistency) -> Result<types::Base, Error> {
        let (object, spec) = self.find(caller, name, consistency).await?;
        self.shown_to(caller, &object, &spec).await
    }

    /// Makes a base. A repeat with the same settings finds the one that is there.
    pub async fn create(&self, caller: &Caller, draft: types::BaseDraft) -> Result<types::Base, Error> {
        let types::BaseDraft { name, description, chunk_size, chunk_overlap, top_k, .. } = draft;
        let types::BaseDraft { embedding, reranker, sources, refresh_minutes, readers, .. } = draft;
        let change = types::BaseChange {
            description,
            chunk_size,
            chunk_overlap,
            top_k,
            embedding,
            reranker,
            sources,
            refresh_minutes,
            readers,
        };
        let spec = changed(BaseSpec::default(), &change);
        check_written(&name, &spec)?;
        self.check_models(caller, &name, (&BaseSpec::default(), &spec)).await?;
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
            check_written(name, &wanted)?;
            self.check_models(caller, name, (&spec, &wanted)).await?;
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

    /// Refuses models that a base is to have and that are not there. Those that it has may be gone: its other settings can be changed.
    async fn check_models(
        &self,
        caller: &Caller,
        name: &str,
        (before, wanted): (&BaseSpec, &BaseSpec),
    ) -> Result<(), Error> {
        let state = self.desk.state(Consistency::Linearizable).await?;
        for (setting, before, model) in
            [("embedding", &before.embedding, &wanted.embedding), ("reranker", &before.reranker, &wanted.reranker)]
        {
            // What is no name is refused when it is written.
            let Some(model) = ObjectName::new(model).ok().filter(|_| model != before) else { continue };
            let key = ObjectKey { namespace: caller.namespace.clone(), kind: ObjectKind::new("model")?, name: model };
            if state.object(&key).is_none() {
                let what = format!(
                    "the base \"{name}\" is refused: `spec.{setting}` names the model \"{}\", which does not exist; add it: atlasctl model add {}",
                    key.name, key.name
                );
                return Err(Error::ObjectRefused { what, violations: Vec::new() });
            }
        }
        Ok(())
    }
}

fn changed(mut spec: BaseSpec, change: &types::BaseChange) -> BaseSpec {
    let embedding = spec.embedding.clone();
    for (setting, wanted) in [
        (&mut spec.description, &change.description),
        (&mut spec.embedding, &change.embedding),
        (&mut spec.reranker, &change.reranker),
    ] {
        if let Some(wanted) = wanted {
            setting.clone_from(wanted);
        }
    }
    if let Some(sources) = &change.sources {
        spec.sources.clone_from(sources);
    }
    if let Some(readers) = &change.readers {
        spec.readers = readers.iter().map(rule).collect();
    }
    if spec.embedding != embedding {
        // The vectors of one model mean nothing to another.
        spec.vectors = spec.vectors.map(|vectors| vectors.emptied()).filter(|vectors| *vectors != Default::default());
    }
    for (setting, wanted) in [
        (&mut spec.chunk_size, change.chunk_size),
        (&mut spec.chunk_overlap, change.chunk_overlap),
        (&mut spec.top_k, change.top_k),
        (&mut spec.refresh_minutes, change.refresh_minutes),
    ] {
        *setting = wanted.unwrap_or(*setting);
    }
    spec
}

fn check_written(name: &str, spec: &BaseSpec) -> Result<(), Error> {
    let refused = |refusal: Refusal| Error::ObjectRefused {
        what: format!("the base \"{name}\" is refused: {refusal}"),
        violations: Vec::new(),
    };
    spec.check_written().map_err(refused)
}

fn rule(readers: &types::DocumentReaders) -> ReadRule {
    let types::DocumentReaders { principals, source, metadata } = readers.clone();
    ReadRule { principals, source, metadata }
}

fn shown_rule(rule: &ReadRule) -> types::DocumentReaders {
    let ReadRule { principals, source, metadata } = rule.clone();
    types::DocumentReaders { principals, source, metadata }
}

/// The vectors of a base that has a model for them. They are ready if they are those of what the base is now.
fn shown_vectors(spec: &BaseSpec) -> Option<types::BaseVectors> {
    if spec.embedding.is_empty() {
        return None;
    }
    let vectors = spec.vectors.clone().unwrap_or_default();
    let is_current = vectors.of == version(spec);
    let state = match (is_current, vectors.missing, vectors.error.is_empty()) {
        (_, _, false) => "failed",
        (true, 0, true) => "ready",
        _ => "building",
    };
    Some(types::BaseVectors {
        state: state.to_owned(),
        chunks: vectors.chunks,
        missing: vectors.missing,
        dimension: vectors.dimension,
        error: Some(vectors.error).filter(|error| !error.is_empty()),
    })
}

pub(crate) fn shown(object: &Object, spec: &BaseSpec) -> types::Base {
    types::Base {
        name: object.key.name.to_string(),
        description: spec.description.clone(),
        chunk_size: spec.chunk_size,
        chunk_overlap: spec.chunk_overlap,
        top_k: spec.top_k,
        embedding: Some(spec.embedding.clone()).filter(|name| !name.is_empty()),
        reranker: Some(spec.reranker.clone()).filter(|name| !name.is_empty()),
        sources: spec.sources.clone(),
        refresh_minutes: spec.refresh_minutes,
        readers: spec.readers.iter().map(shown_rule).collect(),
        vectors: shown_vectors(spec),
        collected: spec.collected.clone().map(|collected| types::BaseCollection {
            at: collected.at,
            job: collected.job,
            documents: collected.documents,
            errors: collected.errors,
        }),
        documents: spec.documents(),
        bytes: spec.bytes(),
        segments: spec.segments.len() as u64,
        author: object.by.as_str().to_owned(),
        updated_at: object.updated.0.div_euclid(1_000_000),
    }
}
