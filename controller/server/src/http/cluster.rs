//! `/api/cluster`: the controllers of this cluster.

use std::time::Duration;

use atlas_api::types::{self, Removal, Revocation, Transfer};
use atlas_service::{Caller, Error};
use atlas_tls::NodeToken;
use atlas_types::JoinKind;
use http::StatusCode;
use serde::Deserialize;

use super::HttpDoor;
use super::answer::{self, Answer, Problem};
use super::request::Request;
use crate::cluster::Token;

/// The default lifetime of a token.
const TOKEN_TTL: Duration = Duration::from_secs(600);
/// The longest lifetime of a token.
const TOKEN_TTL_MAX: Duration = Duration::from_secs(3_600);

/// The longest lifetime of a token of a node, which is for one name.
const NODE_TOKEN_TTL_MAX: Duration = Duration::from_secs(24 * 3_600);

/// `GET /api/cluster`.
pub(crate) fn status(door: &HttpDoor) -> Answer {
    Ok(answer::body(StatusCode::OK, &door.cluster.status()))
}

/// `GET /api/cluster/members`, ordered by number.
pub(crate) fn members(door: &HttpDoor, request: &Request) -> Answer {
    let (offset, limit) = request.query().page()?;
    let members: Vec<types::Member> = door.cluster.members().into_iter().skip(offset).take(limit).collect();
    Ok(answer::body(StatusCode::OK, &members))
}

/// `DELETE /api/cluster/members/{number or name}`.
pub(crate) async fn remove(door: &HttpDoor, name: &str) -> Answer {
    door.cluster.remove(door.cluster.find(name)?).await?;
    Ok(answer::body(StatusCode::OK, &Removal { removed: true }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    kind: Option<String>,
    node: Option<String>,
    expires_s: Option<u64>,
}

/// `POST /api/cluster/join-tokens`.
pub(crate) async fn create_token(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let body: TokenBody = request.read_json(door).await?;
    let ttl = body.expires_s.map_or(TOKEN_TTL, Duration::from_secs);
    let (kind, max) = match (body.kind.as_deref(), &body.node) {
        (None | Some("controller"), None) => (JoinKind::Controller, TOKEN_TTL_MAX),
        (Some("worker"), Some(_)) => (JoinKind::Worker, NODE_TOKEN_TTL_MAX),
        (Some("worker"), None) => return Err(Problem::malformed("'node' is missing: a token admits one node")),
        (None | Some("controller"), Some(_)) => return Err(Problem::malformed("'node' needs the kind \"worker\"")),
        (Some(_), _) => return Err(Problem::malformed("'kind' must be \"controller\" or \"worker\"")),
    };
    if ttl.is_zero() || ttl > max {
        return Err(Problem::malformed(format!("'expires_s' must be from 1 to {}", max.as_secs())));
    }
    let (token, holds) = match &body.node {
        None => {
            let (token, holds) = door.cluster.create_token(caller, kind, ttl).await?;
            (token.show(), holds)
        }
        Some(node) => {
            let authority = door.authority.ok_or(Error::NoTls)?;
            let random = std::array::from_fn(|_| door.env.entropy.u64());
            let token = NodeToken::new(authority, random, node);
            door.service.create_node_token(caller, node, &token.hash(), ttl).await?;
            (token.text(), ttl)
        }
    };
    let micros = i64::try_from(holds.as_micros()).unwrap_or(i64::MAX);
    let expires_at = door.env.clock.wall().0.saturating_add(micros) as f64 / 1e6;
    let kind = kind.as_str().to_owned();
    Ok(answer::body(StatusCode::CREATED, &types::Token { token, kind, expires_s: ttl.as_secs(), expires_at }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokeBody {
    token: String,
}

/// `POST /api/cluster/join-tokens/revoke`. The token is in the body, because paths appear in logs.
pub(crate) async fn revoke_token(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let body: RevokeBody = request.read_json(door).await?;
    let token: Token = body.token.parse().map_err(|error| Problem::malformed(format!("'token': {error}")))?;
    door.cluster.revoke_token(caller, &token).await?;
    Ok(answer::body(StatusCode::OK, &Revocation { revoked: true }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferBody {
    to: Option<String>,
}

/// `POST /api/cluster/transfer-leader`: to a member by number or name, by default to the one with the most of the log.
pub(crate) async fn transfer_leader(door: &HttpDoor, request: &mut Request) -> Answer {
    let body: TransferBody = request.read_json(door).await?;
    let to = body.to.as_deref().map(|name| door.cluster.find(name)).transpose()?;
    let (leader, term) = door.cluster.hand_over(to).await?;
    Ok(answer::body(StatusCode::OK, &Transfer { leader: door.cluster.label(leader), term }))
}
