//! LEASE-2: tokens are unique, none is beyond `grant_seq`, and nodes hold no others than those of jobs.

use std::collections::BTreeSet;

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let mut tokens = BTreeSet::new();
    for lease in state.jobs.iter().filter_map(|job| job.lease.as_ref()) {
        ensure(tokens.insert(lease.token), || format!("token {} is live twice", lease.token))?;
        ensure(lease.token.0 > 0 && lease.token <= state.grant_seq, || {
            format!("token {} was never given out; the last is {}", lease.token, state.grant_seq)
        })?;
    }
    let held: usize = state.nodes.values().map(|node| node.leases.len()).sum();
    ensure(held == tokens.len(), || format!("nodes hold {held} leases, jobs {}", tokens.len()))
}
