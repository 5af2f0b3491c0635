//! A cluster that starts from an older state is a new generation: it must accept nothing from the old cluster.

use atlas_types::{FencingToken, MemberId, StateImage};

/// The number of fencing tokens that a new generation skips.
///
/// The old cluster may have granted leases after the state was saved, and their workers may still run. At 10,000 grants
/// a second it would take three years to use this many tokens. 8,000 generations fit below 2^53, so that JSON
/// represents the number exactly.
pub const TOKENS_SKIPPED: u64 = 1 << 40;

/// The state of the next generation under a new cluster id, with `own` as its only member.
///
/// Jobs, leases, agents, nodes, objects and remembered requests are kept. A lease ends by an entry as usual: its worker reports
/// with the lease's token, or its node's session does not return. Join tokens and confirmations of the old cluster's
/// members are removed.
#[must_use]
pub fn next(mut image: StateImage, cluster_id: u128, own: MemberId) -> StateImage {
    image.cluster_id = cluster_id;
    image.grant_seq = FencingToken(image.grant_seq.0.saturating_add(TOKENS_SKIPPED));
    image.member_last = own.max(image.member_last);
    image.join_tokens.clear();
    image.sinks.clear();
    image
}
