//! BUCKET-1: token buckets are bounded in number, and one of a key's value names the agent whose key that is.

use atlas_types::Bucket;

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let count = state.buckets.len();
    ensure(count <= Bucket::COUNT_MAX, || format!("there are {count} buckets, {} may be", Bucket::COUNT_MAX))?;
    for key in state.buckets.keys() {
        ensure(key.agent.is_some() || key.value.is_none(), || format!("the bucket of {key:?} names no agent"))?;
    }
    Ok(())
}
