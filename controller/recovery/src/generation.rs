//! A cluster that starts from an older state is a new generation: nothing of the old cluster may be accepted by it.

use atlas_types::{FencingToken, MemberId, StateImage};

/// How many fencing tokens a new generation leaves out.
///
/// The cluster that the state was taken from may have granted leases since, and their workers may still run. At 10,000 grants a
/// second it would take three years to come this far; and 8,000 generations fit below 2^53, so that JSON keeps the number exact.
pub const TOKENS_SKIPPED: u64 = 1 << 40;

/// The state of the next generation under a new cluster id, with `own` as its only member.
///
/// Jobs, leases, agents, nodes and remembered requests stay. A lease ends as ever, by an entry: its worker reports under its own
/// token, or its node's session does not come back. Join tokens and what members of the old cluster confirmed are forgotten.
#[must_use]
pub fn next(mut image: StateImage, cluster_id: u128, own: MemberId) -> StateImage {
    image.cluster_id = cluster_id;
    image.grant_seq = FencingToken(image.grant_seq.0.saturating_add(TOKENS_SKIPPED));
    image.member_last = own.max(image.member_last);
    image.join_tokens.clear();
    image.sinks.clear();
    image
}
