//! Join tokens, and numbers for joining controllers. The group's membership belongs to Raft and is not changed here.

use std::time::Duration;

use atlas_desk::{Caller, Desk, Error, requests};
use atlas_types::{
    Command, CreateJoinToken, Digest, JoinKind, JoinMember, MemberId, Micros, Origin, Outcome, Request, RequestId,
    RevokeJoinToken,
};

/// Creates a join token, of which only the hash is known here. It is valid for `ttl`, at most an hour, and for one
/// use.
pub async fn create_join_token(
    desk: &Desk,
    caller: &Caller,
    hash: Digest,
    kind: JoinKind,
    ttl: Duration,
) -> Result<(), Error> {
    let command = CreateJoinToken { hash, kind, ttl: Micros::from(ttl), uses: 1, salt: None };
    desk.propose(requests::of(caller, Command::CreateJoinToken(command))).await.map(|_| ())
}

/// Like [`create_join_token`], for a token derived from `salt` and the caller's idempotency key. Returns the
/// salt of the first such request and the remaining validity of its token.
pub async fn create_salted_join_token(
    desk: &Desk,
    caller: &Caller,
    (hash, salt): (Digest, u128),
    kind: JoinKind,
    ttl: Duration,
) -> Result<(u128, Micros), Error> {
    let command = CreateJoinToken { hash, kind, ttl: Micros::from(ttl), uses: 1, salt: Some(salt) };
    // A repeat has another salt and therefore another hash, so both are left out of the compared body.
    let body = CreateJoinToken { hash: Digest([0; 32]), salt: None, ..command };
    let Request { origin, .. } = requests::of(caller, Command::CreateJoinToken(body));
    match desk.propose(Request { origin, command: Command::CreateJoinToken(command) }).await? {
        Outcome::TokenMade { salt, expires } => Ok((salt, expires.since(desk.handle.applied().clock()))),
        // The request id was used before for another command.
        _ => Err(Error::RequestConflict),
    }
}

/// Revokes a join token. Revoking an unknown token is not an error.
pub async fn revoke_join_token(desk: &Desk, caller: &Caller, hash: Digest) -> Result<(), Error> {
    desk.propose(requests::of(caller, Command::RevokeJoinToken(RevokeJoinToken { hash }))).await.map(|_| ())
}

/// Uses up a token and returns a number above `above` for the joining controller. A repeat of the request gets the
/// same number.
pub async fn join_member(
    desk: &Desk,
    caller: &Caller,
    hash: Digest,
    above: MemberId,
    request_id: RequestId,
) -> Result<MemberId, Error> {
    let body_hash = u64::from_be_bytes(std::array::from_fn(|at| hash.0[at]));
    let origin = Origin { request_id: Some(request_id), body_hash, ..requests::origin(caller) };
    let command = Command::JoinMember(JoinMember { hash, above });
    match desk.propose(Request { origin, command }).await? {
        Outcome::MemberJoined { member } => Ok(member),
        // The request id was used before for another command.
        _ => Err(Error::RequestConflict),
    }
}
