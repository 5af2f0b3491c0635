//! Reading and writing the object of a base.

use std::sync::Arc;

use atlas_desk::{Caller, Consistency, Error, requests};
use atlas_objects::{BaseSpec, canonical};
use atlas_types::{
    Command, DeleteObject, Expect, Object, ObjectKey, ObjectKind, ObjectName, PutObject, SPEC_BYTES_MAX,
};
use bytes::Bytes;

use crate::Bases;

const KIND: &str = "base";

/// How often a change is tried while others change the same base.
pub(crate) const TRIES: usize = 32;

impl Bases {
    /// The object of a base and its document.
    pub(crate) async fn find(
        &self,
        caller: &Caller,
        name: &str,
        consistency: Consistency,
    ) -> Result<(Arc<Object>, BaseSpec), Error> {
        // A text that is no name names no base.
        let Ok(key) = key(caller, name) else { return Err(unknown(name)) };
        let state = self.desk.state(consistency).await?;
        let object = state.object(&key).ok_or_else(|| unknown(name))?;
        Ok((object.clone(), read(object)?))
    }

    /// The objects of all bases by name.
    pub(crate) async fn all(
        &self,
        caller: &Caller,
        consistency: Consistency,
    ) -> Result<Vec<(Arc<Object>, BaseSpec)>, Error> {
        let state = self.desk.state(consistency).await?;
        let objects = state.objects(&caller.namespace, &ObjectKind::new(KIND)?, None);
        objects.map(|object| Ok((object.clone(), read(object)?))).collect()
    }

    /// Writes the document of a base.
    pub(crate) async fn put(
        &self,
        caller: &Caller,
        (key, labels): (&ObjectKey, std::collections::BTreeMap<String, String>),
        spec: &BaseSpec,
        expect: Expect,
    ) -> Result<(), Error> {
        let value = serde_json::to_value(spec).map_err(|error| Error::internal("write a base", &error))?;
        let spec = canonical(&value).map_err(|error| Error::internal("write a base", &error))?;
        let refused = |why: String| Error::ObjectRefused {
            what: format!("the base \"{}\" is refused: {why}", key.name),
            violations: Vec::new(),
        };
        if spec.len() > SPEC_BYTES_MAX {
            return Err(refused(format!("it has {} bytes, more than {SPEC_BYTES_MAX}", spec.len())));
        }
        if let Some(kind) = atlas_objects::kind(&key.kind) {
            atlas_objects::check(kind, key, &spec).map_err(|refusal| refused(refusal.to_string()))?;
        }
        let (kind, name) = (key.kind.clone(), key.name.clone());
        let command = Command::PutObject(PutObject { kind, name, labels, spec: spec.into(), spec_version: 1, expect });
        self.desk.propose(requests::of(&anew(caller), command)).await.map(drop)
    }

    pub(crate) async fn delete_object(&self, caller: &Caller, key: ObjectKey) -> Result<(), Error> {
        let name = key.name.to_string();
        let command = Command::DeleteObject(DeleteObject { kind: key.kind, name: key.name, expect: Expect::Any });
        match self.desk.propose(requests::of(&anew(caller), command)).await {
            Err(Error::UnknownObject(_)) => Err(unknown(&name)),
            answer => answer.map(drop),
        }
    }

    /// Stores a segment on a majority of the controllers. The answer is its digest.
    pub(crate) async fn store(&self, bytes: Vec<u8>) -> Result<atlas_types::Digest, Error> {
        let failed = |error| Error::storing("the documents", error);
        self.desk.check_room().map_err(failed)?;
        let size = bytes.len() as u64;
        let digest = self.desk.artifacts.store(Bytes::from(bytes)).await.map_err(failed)?;
        self.desk.metrics.artifact_bytes.inc_by(size);
        Ok(digest)
    }
}

pub(crate) fn key(caller: &Caller, name: &str) -> Result<ObjectKey, Error> {
    let (kind, name) = (ObjectKind::new(KIND)?, ObjectName::new(name)?);
    Ok(ObjectKey { namespace: caller.namespace.clone(), kind, name })
}

/// How many bytes a text takes in the object of a base.
pub(crate) fn written_bytes(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |written| written.len() + 1)
}

pub(crate) fn unknown(name: &str) -> Error {
    Error::UnknownObject(format!("no such base: \"{}\"", name.chars().take(255).collect::<String>()))
}

fn read(object: &Object) -> Result<BaseSpec, Error> {
    let mut spec = BaseSpec::read(&object.spec).map_err(|error| Error::internal("read a base", &error))?;
    spec.drop_other_vectors();
    Ok(spec)
}

/// A repeat is known by what it says: one request may write an object several times.
fn anew(caller: &Caller) -> Caller {
    caller.clone().with_request_id(None)
}

#[cfg(test)]
mod tests {
    use atlas_objects::{
        BASE_WRITTEN_BYTES_MAX, BaseCollection, BaseSegment, BaseVectors, REMOVED_MAX, SEGMENTS_MAX,
        VECTOR_SEGMENTS_MAX, VectorSegment,
    };

    use super::*;
    use crate::collect::ERRORS_BYTES_MAX;
    use crate::vectors::ERROR_BYTES_MAX;
    use crate::{BASE_BYTES_MAX, DOCUMENTS_MAX};

    /// What the cluster writes never finds an object that is full.
    #[test]
    fn an_object_has_room_for_all_that_the_cluster_writes() {
        let digest = || "ab".repeat(32);
        let segment = || BaseSegment { digest: digest(), documents: DOCUMENTS_MAX, bytes: BASE_BYTES_MAX };
        let vector_segment = || VectorSegment { digest: digest(), rows: 9_999_999, bytes: 1 << 30 };
        let spec = BaseSpec {
            vectors: Some(BaseVectors {
                embedding: "x".repeat(ObjectName::LEN_MAX),
                anew_at: u64::MAX,
                model: "x".repeat(300),
                dimension: 8_192,
                of: "ab".repeat(16),
                chunks: 9_999_999,
                missing: 9_999_999,
                error: "x".repeat(ERROR_BYTES_MAX),
                segments: (0..VECTOR_SEGMENTS_MAX).map(|_| vector_segment()).collect(),
            }),
            collected: Some(BaseCollection {
                at: i64::MAX,
                job: "x".repeat(40),
                documents: DOCUMENTS_MAX,
                errors: vec!["x".repeat(ERRORS_BYTES_MAX)],
                of: "ab".repeat(16),
                failures: u64::MAX,
            }),
            segments: (0..SEGMENTS_MAX).map(|_| segment()).collect(),
            removed: vec!["ab".repeat(16); REMOVED_MAX],
            ..BaseSpec::default()
        };
        let bytes = canonical(&serde_json::to_value(&spec).expect("JSON")).expect("JSON").len();
        assert!(bytes + BASE_WRITTEN_BYTES_MAX <= SPEC_BYTES_MAX, "{bytes} bytes");
    }
}
