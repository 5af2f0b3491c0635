//! OBJECT-1: each object is under its own key, its spec is one that its kind accepts, what it names exists, and no
//! two objects have one uid.

use std::collections::BTreeSet;

use atlas_types::{SPEC_BYTES_MAX, STATUS_BYTES_MAX};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let mut uids = BTreeSet::new();
    for (namespace, kinds) in state.objects.iter() {
        ensure(!kinds.is_empty(), || format!("an empty map is kept for the namespace {namespace}"))?;
        for (kind, objects) in kinds.iter() {
            ensure(!objects.is_empty(), || format!("an empty map is kept for the kind {kind}"))?;
            for (name, object) in objects.iter() {
                let key = &object.key;
                let is_own = key.namespace == *namespace && key.kind == *kind && key.name == *name;
                ensure(is_own, || format!("{kind} {name} is kept wrongly"))?;
                ensure(uids.insert(object.uid), || format!("{kind} {name} has the uid of another object"))?;
                let in_order = object.uid.0 > 0 && object.uid <= object.revision && object.revision <= state.event_seq;
                ensure(in_order, || format!("{kind} {name} is from the future"))?;
                let fits = object.spec.len() <= SPEC_BYTES_MAX && object.status.len() <= STATUS_BYTES_MAX;
                ensure(fits, || format!("{kind} {name} is too large"))?;
                let known = atlas_objects::kind(kind).ok_or_else(|| format!("{kind} is no kind"))?;
                atlas_objects::check(known, key, &object.spec)
                    .and_then(|()| atlas_objects::check_references(known, state, key, &object.spec))
                    .map_err(|refusal| format!("{kind} {name}: {refusal}"))?;
            }
        }
    }
    Ok(())
}
