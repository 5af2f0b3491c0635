//! Nodes that join and renew their certificates, and whether a connection may act for a node.

use std::sync::Arc;

use atlas_api::catalogue::NOT_ENROLLED;
use atlas_env::Env;
use atlas_service::{Error, GroupMember, Service, is_denial};
use atlas_tls::{NodeKey, NodeToken, Subject};
use atlas_types::NodeId;
use atlas_wire::proto::worker::v1 as wire;
use atlas_wire::proto::worker::v1::enrollment_service_server::EnrollmentService;
use tonic::{Request, Response, Status};

use super::Door;
use crate::identity;
use crate::listen::Peer;
use crate::peer_door::status_of;
use crate::tls::Tls;
use crate::watch::named;

/// The largest token.
const TOKEN_BYTES_MAX: usize = 1_024;
/// The operation that renews a certificate, in records.
const RENEW: &str = "renewCertificate";

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(super) enum Sender {
    /// TLS is off: a worker says which node it is.
    Anybody,
    /// A node, by its certificate and the hash of its key.
    Node(String, [u8; 32]),
}

impl Sender {
    /// The sender of a request. Refuses a connection that may not act for any node.
    pub(super) fn of<T>(door: &Door, request: &Request<T>, verb: &'static str) -> Result<Self, Status> {
        if door.tls.is_none() {
            return Ok(Self::Anybody);
        }
        let proof = request.extensions().get::<Peer>().and_then(Peer::proof);
        let subject = proof.and_then(|proof| Subject::of(&proof.name));
        let sender = match (proof, &subject) {
            (None, _) => Err(Status::unauthenticated("this cluster needs the certificate of a node")),
            (Some(proof), Some(Subject::Node(node))) => Ok(Self::Node(node.clone(), proof.key)),
            _ => Err(Status::permission_denied("the certificate is not that of a node")),
        };
        let sender = sender.and_then(|sender| sender.check(&door.service).map(|()| sender));
        sender.inspect_err(|_| {
            let claimed = subject.as_ref().map(named).unwrap_or_default();
            door.watch.turned_away(subject.as_ref(), claimed, verb, Some(NOT_ENROLLED));
        })
    }

    /// Refuses a node whose certificate was revoked or replaced.
    pub(super) fn check(&self, service: &Service) -> Result<(), Status> {
        match self {
            Self::Node(node, key) if !service.is_enrolled(node, key) => {
                Err(status_of(&Error::NotEnrolled(node.clone())))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to act for another node.
    pub(super) fn acts_for(&self, door: &Door, node: &NodeId) -> Result<(), Status> {
        match self {
            Self::Node(own, _) if own != node.as_str() => {
                self.turned_away(door, format!("node/{node}"), "openSession");
                Err(status_of(&Error::NotEnrolled(node.to_string())))
            }
            _ => Ok(()),
        }
    }

    /// Records that it was turned away, and what it claimed.
    pub(super) fn turned_away(&self, door: &Door, claimed: String, verb: &'static str) {
        let proven = match self {
            Self::Anybody => None,
            Self::Node(node, _) => Some(Subject::Node(node.clone())),
        };
        door.watch.turned_away(proven.as_ref(), claimed, verb, Some(NOT_ENROLLED));
    }
}

/// The service. Only served if TLS is on.
pub(super) struct Rpc {
    door: Arc<Door>,
    tls: Tls,
    env: Env,
}

impl Rpc {
    pub(super) fn new(door: Arc<Door>, tls: Tls, env: Env) -> Self {
        Self { door, tls, env }
    }

    /// The answer to a token that is refused.
    fn refused(&self, node: &str, error: &Error) -> Status {
        if is_denial(error) {
            let claimed = if node.is_empty() { String::new() } else { format!("node/{node}") };
            self.door.watch.turned_away(None, claimed, "enrollNode", Some(error.entry()));
        }
        status_of(error)
    }

    fn issue(&self, node: &str, key: &NodeKey) -> Result<wire::NodeCertificate, Status> {
        let internal = || Status::internal("this controller cannot issue certificates");
        let authority = self.tls.authority().ok_or_else(internal)?;
        let now = self.env.clock.wall().0 / 1_000_000;
        let certificate = authority.issue_to_node(node, key, now, self.tls.life).map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, node, "could not issue a certificate");
            internal()
        })?;
        tracing::info!(node, "issued a certificate");
        let valid_for_seconds = self.tls.life.as_secs();
        Ok(wire::NodeCertificate { certificate, authorities: authority.pem(), valid_for_seconds })
    }
}

#[tonic::async_trait]
impl EnrollmentService for Rpc {
    async fn enroll(&self, request: Request<wire::EnrollRequest>) -> Result<Response<wire::EnrollResponse>, Status> {
        let request = request.into_inner();
        let key = key(&request.public_key)?;
        let token = Some(&request.token).filter(|token| token.len() <= TOKEN_BYTES_MAX);
        let token = token.and_then(|token| NodeToken::read(token).ok());
        let token = token.ok_or_else(|| self.refused("", &Error::NodeTokenRefused))?;
        let (caller, hash, key_hash) = (identity::worker(), token.hash(), hex(key.hash()));
        let enrolled = if self.tls.is_of_group(&token) {
            let member = GroupMember { node: &token.node, token: &hash, key: &key_hash, life: self.tls.life };
            self.door.service.enroll_member(&caller, member).await
        } else {
            self.door.service.enroll_node(&caller, &token.node, &hash, &key_hash).await
        };
        enrolled.map_err(|error| self.refused(&token.node, &error))?;
        let certificate = Some(self.issue(&token.node, &key)?);
        Ok(Response::new(wire::EnrollResponse { certificate }))
    }

    async fn renew(&self, request: Request<wire::RenewRequest>) -> Result<Response<wire::RenewResponse>, Status> {
        let Sender::Node(node, known) = Sender::of(&self.door, &request, RENEW)? else {
            return Err(Status::unauthenticated("this cluster needs the certificate of a node"));
        };
        let key = key(&request.into_inner().public_key)?;
        if key.hash() != known {
            Sender::Node(node.clone(), known).turned_away(&self.door, format!("node/{node}"), RENEW);
            return Err(Status::permission_denied("a renewed certificate has the key of the one before"));
        }
        Ok(Response::new(wire::RenewResponse { certificate: Some(self.issue(&node, &key)?) }))
    }
}

fn key(bytes: &[u8]) -> Result<NodeKey, Status> {
    NodeKey::read(bytes).ok_or_else(|| Status::invalid_argument("the key is not a point of P-256"))
}

fn hex(bytes: [u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
