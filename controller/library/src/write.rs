//! Writing objects of the library.

use atlas_desk::{Caller, Desk, Error, requests};
use atlas_objects::canonical;
use atlas_types::{
    Command, DeleteObject, Expect, JOB_LABEL, ObjectKey, ObjectKind, ObjectName, PutObject, SPEC_BYTES_MAX,
};
use serde::Serialize;

use crate::WritingJob;

/// Writes the document of an object. `what` is said if it is too large.
pub(crate) async fn put<S: Serialize>(
    desk: &Desk,
    caller: &Caller,
    key: &ObjectKey,
    spec: &S,
    expect: Expect,
    what: &str,
    job: Option<&WritingJob>,
) -> Result<(), Error> {
    let value = serde_json::to_value(spec).map_err(|error| Error::internal("write what is shared", &error))?;
    let spec = canonical(&value).map_err(|error| Error::Malformed(format!("{what} is refused: {error}")))?;
    if spec.len() > SPEC_BYTES_MAX {
        let bytes = spec.len();
        return Err(Error::Malformed(format!(
            "{what} has {bytes} bytes as JSON, more than {SPEC_BYTES_MAX}; write it in parts"
        )));
    }
    let (kind, name) = (key.kind.clone(), key.name.clone());
    // By it the erasure of the job finds the object.
    let labels = job.map(|job| (JOB_LABEL.to_owned(), job.job.to_string())).into_iter().collect();
    let command = Command::PutObject(PutObject { kind, name, labels, spec: spec.into(), spec_version: 1, expect });
    desk.propose(requests::of(&anew(caller), command)).await.map(drop)
}

/// Deletes objects, in one change. It does not matter whether they are still there.
pub(crate) async fn delete_all<'k>(
    desk: &Desk,
    caller: &Caller,
    keys: impl Iterator<Item = &'k ObjectKey>,
) -> Result<(), Error> {
    let caller = anew(caller);
    let command = |key: &ObjectKey| {
        let (kind, name) = (key.kind.clone(), key.name.clone());
        requests::of(&caller, Command::DeleteObject(DeleteObject { kind, name, expect: Expect::Any }))
    };
    let requests: Vec<_> = keys.map(command).collect();
    if requests.is_empty() {
        return Ok(());
    }
    for answer in desk.propose_all(requests).await? {
        match answer.map_err(Error::from) {
            Ok(_) | Err(Error::UnknownObject(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Deletes an object if it is there. True if it was.
pub(crate) async fn delete(desk: &Desk, caller: &Caller, key: ObjectKey) -> Result<bool, Error> {
    let ObjectKey { kind, name, .. } = key;
    let command = Command::DeleteObject(DeleteObject { kind, name, expect: Expect::Any });
    match desk.propose(requests::of(&anew(caller), command)).await {
        Ok(_) => Ok(true),
        Err(Error::UnknownObject(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn key(caller: &Caller, kind: &str, name: &str) -> Result<ObjectKey, Error> {
    let (kind, name) = (ObjectKind::new(kind)?, ObjectName::new(name)?);
    Ok(ObjectKey { namespace: caller.namespace.clone(), kind, name })
}

/// A repeat is known by the name of the object: one request may write several.
fn anew(caller: &Caller) -> Caller {
    caller.clone().with_request_id(None)
}
