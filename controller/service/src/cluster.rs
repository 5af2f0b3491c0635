//! Join tokens, and numbers for controllers that join. Who belongs to the group is Raft's, and not changed here.

use std::time::Duration;

use atlas_types::{
    Command, CreateJoinToken, Digest, JoinKind, JoinMember, MemberId, Micros, Origin, Outcome, Request, RequestId,
    RevokeJoinToken,
};

use crate::{Caller, Error, Service};

impl Service {
    /// Makes a join token known by its hash. It holds for `ttl`, an hour at most, and lets one in.
    pub async fn create_join_token(
        &self,
        caller: &Caller,
        hash: Digest,
        kind: JoinKind,
        ttl: Duration,
    ) -> Result<(), Error> {
        let command = CreateJoinToken { hash, kind, ttl: Micros::from(ttl), uses: 1, salt: None };
        self.propose(caller.request(Command::CreateJoinToken(command))).await.map(|_| ())
    }

    /// The same for a token that is made of `salt` and of what the caller's request id stands for. Answers with the salt of the
    /// first such request, and how long its token still holds.
    pub async fn create_salted_join_token(
        &self,
        caller: &Caller,
        (hash, salt): (Digest, u128),
        kind: JoinKind,
        ttl: Duration,
    ) -> Result<(u128, Micros), Error> {
        let command = CreateJoinToken { hash, kind, ttl: Micros::from(ttl), uses: 1, salt: Some(salt) };
        // A repeat comes with another salt and so with another hash.
        let body = CreateJoinToken { hash: Digest([0; 32]), salt: None, ..command };
        let Request { origin, .. } = caller.request(Command::CreateJoinToken(body));
        match self.propose(Request { origin, command: Command::CreateJoinToken(command) }).await? {
            Outcome::TokenMade { salt, expires } => Ok((salt, expires.since(self.handle().applied().clock()))),
            // The request id was used for something else before.
            _ => Err(Error::RequestConflict),
        }
    }

    /// Takes a join token back. One that is unknown is not an error: it has no effect.
    pub async fn revoke_join_token(&self, caller: &Caller, hash: Digest) -> Result<(), Error> {
        self.propose(caller.request(Command::RevokeJoinToken(RevokeJoinToken { hash }))).await.map(|_| ())
    }

    /// Uses a token up and answers with the number of the controller that joins, higher than `above`. The same request again
    /// gets the same number.
    pub async fn join_member(
        &self,
        caller: &Caller,
        hash: Digest,
        above: MemberId,
        request_id: RequestId,
    ) -> Result<MemberId, Error> {
        let body_hash = u64::from_be_bytes(std::array::from_fn(|at| hash.0[at]));
        let origin = Origin { request_id: Some(request_id), body_hash, ..caller.origin() };
        let command = Command::JoinMember(JoinMember { hash, above });
        match self.propose(Request { origin, command }).await? {
            Outcome::MemberJoined { member } => Ok(member),
            // The request id was used for something else before.
            _ => Err(Error::RequestConflict),
        }
    }
}
