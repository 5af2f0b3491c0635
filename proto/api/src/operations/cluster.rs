//! The cluster.

use atlas_access::Right;

use super::operation::{Body, Content, Operation};
use super::parts::{
    BODY, IDEMPOTENCY_KEY, LIMIT_OF_ALL, OFFSET, READ, WRITE, created, delete, get, in_cluster, ok, post,
};
use crate::catalogue::{
    CLUSTER_FULL, LIMIT_REACHED, MALFORMED, MEMBER_BEHIND, MEMBERSHIP_REFUSED, NO_BACKUP, NO_TLS, NOT_CONFIGURED,
    UNKNOWN_MEMBER,
};
use crate::types::{
    ClusterView, Member, Policy, Removal, Revocation, RevokeRequest, Token, TokenRequest, Transfer, TransferRequest,
};

operation_ids! {
    /// The cluster.
    Cluster {
        SecurityPolicy = "securityPolicy",
        Cluster = "cluster",
        ListMembers = "listMembers",
        RemoveMember = "removeMember",
        CreateJoinToken = "createJoinToken",
        RevokeJoinToken = "revokeJoinToken",
        TransferLeader = "transferLeader",
        Snapshot = "snapshot",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    // A further path of Atlas for Python; nothing can be configured yet.
    get(
        Cluster::SecurityPolicy.id(),
        in_cluster(Right::Public),
        "/api/security/policy",
        "The security policy of the cluster.",
    )
    .compatible()
    .answers(&[ok("the policy", &[Content::json::<Policy>()])])
    .refuses(&[&[MALFORMED, NOT_CONFIGURED]]),
    get(
        Cluster::Cluster.id(),
        in_cluster(Right::ClusterRead),
        "/api/cluster",
        "Leader, log positions, reachable voters and members of the cluster.",
    )
    .answers(&[ok("the cluster as this controller sees it", &[Content::json::<ClusterView>()])])
    .refuses(&[&[MALFORMED]]),
    get(
        Cluster::ListMembers.id(),
        in_cluster(Right::ClusterRead),
        "/api/cluster/members",
        "The members by number, with their state.",
    )
    .takes(&[LIMIT_OF_ALL, OFFSET])
    .answers(&[ok("the members", &[Content::list::<Member>()])])
    .refuses(&[&[MALFORMED]]),
    delete(
        Cluster::RemoveMember.id(),
        in_cluster(Right::ClusterOperate),
        "/api/cluster/members/{member}",
        "Removes a member permanently; refused if no quorum would remain.",
    )
    .beside_the_log()
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is removed", &[Content::json::<Removal>()])])
    .refuses(&[WRITE, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    post(
        Cluster::CreateJoinToken.id(),
        in_cluster(Right::ClusterOperate),
        "/api/cluster/join-tokens",
        "Creates a token with which a controller or a node can join.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::maybe_json::<TokenRequest>())
    .answers(&[created("the token, shown this once", &[Content::json::<Token>()])])
    .refuses(&[WRITE, BODY, &[LIMIT_REACHED, CLUSTER_FULL, NO_TLS]]),
    post(
        Cluster::RevokeJoinToken.id(),
        in_cluster(Right::ClusterOperate),
        "/api/cluster/join-tokens/revoke",
        "Revokes a join token.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<RevokeRequest>())
    .answers(&[ok("the token is revoked", &[Content::json::<Revocation>()])])
    .refuses(&[WRITE, BODY]),
    post(
        Cluster::TransferLeader.id(),
        in_cluster(Right::ClusterOperate),
        "/api/cluster/transfer-leader",
        "Makes another member the leader.",
    )
    .beside_the_log()
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::maybe_json::<TransferRequest>())
    .answers(&[ok("the new leader", &[Content::json::<Transfer>()])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    get(
        Cluster::Snapshot.id(),
        in_cluster(Right::ClusterOperate),
        "/api/cluster/snapshot",
        "A backup of the cluster, streamed.",
    )
    .beside_the_log()
    .answers(&[ok("a tar archive", &[Content::Other("application/x-tar")])])
    .refuses(&[READ, &[NO_BACKUP]]),
];
