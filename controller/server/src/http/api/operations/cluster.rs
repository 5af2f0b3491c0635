//! The cluster.

use atlas_service::catalogue::{
    CLUSTER_FULL, LIMIT_REACHED, MALFORMED, MEMBER_BEHIND, MEMBERSHIP_REFUSED, NO_BACKUP, NO_TLS, NOT_CONFIGURED,
    UNKNOWN_MEMBER,
};

use super::super::{Body, Content, Operation};
use super::parts::{BODY, IDEMPOTENCY_KEY, LIMIT_OF_ALL, OFFSET, READ, WRITE, created, delete, get, ok, post};

pub(super) const OPERATIONS: &[Operation] = &[
    // A further path of Atlas for Python; nothing can be configured yet.
    get("securityPolicy", "/api/security/policy", "The security policy of the cluster.")
        .lenient()
        .answers(&[ok("the policy", &[Content::Json("Policy")])])
        .refuses(&[&[MALFORMED, NOT_CONFIGURED]]),
    get("cluster", "/api/cluster", "Leader, log positions, reachable voters and members of the cluster.")
        .answers(&[ok("the cluster as this controller sees it", &[Content::Json("Cluster")])])
        .refuses(&[&[MALFORMED]]),
    get("listMembers", "/api/cluster/members", "The members by number, with their state.")
        .takes(&[LIMIT_OF_ALL, OFFSET])
        .answers(&[ok("the members", &[Content::List("Member")])])
        .refuses(&[&[MALFORMED]]),
    delete(
        "removeMember",
        "/api/cluster/members/{member}",
        "Removes a member permanently; refused if no quorum would remain.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is removed", &[Content::Json("Removed")])])
    .refuses(&[WRITE, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    post("createJoinToken", "/api/cluster/join-tokens", "Creates a token with which a controller or a node can join.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("TokenRequest"))
        .answers(&[created("the token, shown this once", &[Content::Json("Token")])])
        .refuses(&[WRITE, BODY, &[LIMIT_REACHED, CLUSTER_FULL, NO_TLS]]),
    post("revokeJoinToken", "/api/cluster/join-tokens/revoke", "Revokes a join token.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("RevokeRequest"))
        .answers(&[ok("the token is revoked", &[Content::Json("Revoked")])])
        .refuses(&[WRITE, BODY]),
    post("transferLeader", "/api/cluster/transfer-leader", "Makes another member the leader.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("TransferRequest"))
        .answers(&[ok("the new leader", &[Content::Json("Transferred")])])
        .refuses(&[WRITE, BODY, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    get("snapshot", "/api/cluster/snapshot", "A backup of the cluster, streamed.")
        .answers(&[ok("a tar archive", &[Content::Other("application/x-tar")])])
        .refuses(&[READ, &[NO_BACKUP]]),
];
