//! The certificate of this node: it joins with a token, of its own or of its group, and renews its certificate while it runs
//! ([ADR 41](../../../docs/adr/0041-tls.md), [ADR 61](../../../docs/adr/0061-join-tokens-of-groups.md)).

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_tls::{CertificateDer, Credentials, Enrolled, GroupToken, Issued, NodeToken, Subject, TlsError, TlsNet};
use atlas_types::NodeId;
use atlas_wire::proto::worker::v1::enrollment_service_client::EnrollmentServiceClient;
use atlas_wire::proto::worker::v1::{EnrollRequest, NodeCertificate, RenewRequest};
use futures::future::BoxFuture;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tracing::{debug, info, warn};

use crate::Options;
use crate::link::dial;
use crate::options::{Group, Scheme};

/// How long controllers may take to answer a node that joins. They may all be starting or electing.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long they may take to answer a node that has a valid certificate, and could go on without an answer.
const PATIENCE_VALID: Duration = Duration::from_secs(20);
/// The pause before the controllers are asked again.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries to renew a certificate.
const RENEW_PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long one controller may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// The longest validity that a controller may name: ten years.
const LIFE_MAX: u64 = 10 * 366 * 24 * 3_600;

/// Why a node has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Its files cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token is for another node.
    #[error("the token is for node \"{token}\", and this is node \"{own}\": set --node, or make a token for this node")]
    OtherNode { token: String, own: NodeId },
    /// The certificate is for another node.
    #[error("the certificate in \"{}\" is not that of node \"{own}\"", dir.display())]
    OtherCertificate { dir: PathBuf, own: NodeId },
    /// The node was offline for too long.
    #[error(
        "the certificate of this node has expired: make a token with \"atlasctl node token {own}\", and start atlas-worker with --token-file"
    )]
    Expired { own: NodeId },
    /// There is nothing to join with.
    #[error("to join, this node needs a token: --token-file, or --group-token-file and --authority-file")]
    NoToken,
    /// The cluster refused.
    #[error("the cluster refused this node: {0}")]
    Refused(String),
    /// No controller answered.
    #[error("no controller answered at {addresses}: {reason}")]
    Unreachable { addresses: String, reason: String },
    /// The address of a controller says something else about TLS than the files of this node.
    #[error("{0}")]
    Scheme(&'static str),
    /// The answer cannot be used.
    #[error("the controller's answer has no certificate")]
    Malformed,
}

/// A node with a certificate.
pub(crate) struct Node {
    files: Enrolled,
    credentials: Credentials,
    controllers: Vec<String>,
    /// The machine, with connections that lead to controllers of the cluster alone.
    pub(crate) env: Env,
}

impl Node {
    /// The certificate of this node. None if it has none and no token: then the cluster has no TLS.
    pub(crate) async fn open(options: &Options, env: &Env) -> Result<Option<Self>, JoinError> {
        Self::opened(options, env, false).await
    }

    /// The same. With `asks`, a node of a group asks also if it has a valid certificate: the cluster may not know it any more.
    async fn opened(options: &Options, env: &Env, asks: bool) -> Result<Option<Self>, JoinError> {
        let dir = options.tls_dir.clone().unwrap_or_else(|| options.data_dir.join("tls"));
        let files = Enrolled::in_dir(&dir);
        let secured = options.group.is_some() || options.token_file.is_some() || files.exists();
        check_scheme(options.scheme, secured)?;
        match Admission::read(options, &files)? {
            // A worker starts again with the token with which it joined.
            Some(admission) if admission.is_due(&files, env) => {
                enroll(&files, &admission, options, env, PATIENCE).await?;
                info!("joined the cluster");
            }
            Some(admission) if asks && admission.authorities.is_some() => {
                match enroll(&files, &admission, options, env, PATIENCE_VALID).await {
                    Err(error @ JoinError::Unreachable { .. }) => {
                        warn!(%error, "the certificate of this node is valid, but no controller said that the cluster knows it");
                    }
                    answered => answered?,
                }
            }
            None if !files.exists() => return Ok(None),
            _ => {}
        }
        let credentials = Credentials::of_node(&files, env.clock.clone())?;
        let own = options.node.clone();
        if credentials.subject() != Some(Subject::Node(own.to_string())) {
            return Err(JoinError::OtherCertificate { dir, own });
        }
        if credentials.ends_in().is_zero() {
            return Err(JoinError::Expired { own });
        }
        let net = Arc::new(TlsNet::new(env.net.clone(), &credentials)?);
        let controllers = options.controllers.clone();
        Ok(Some(Self { files, credentials, controllers, env: Env { net, ..env.clone() } }))
    }

    /// Renews the certificate whenever two thirds of its life are over.
    pub(crate) async fn renew(self) {
        loop {
            let due = self.credentials.due_in();
            if !due.is_zero() {
                self.env.clock.sleep(due.min(RENEW_PAUSE_MAX)).await;
                continue;
            }
            match self.renew_once().await {
                Ok(()) => info!(valid_for = ?self.credentials.ends_in(), "renewed the certificate of this node"),
                Err(error) => {
                    let ends_in = self.credentials.ends_in();
                    warn!(%error, ?ends_in, "could not renew the certificate of this node, trying again");
                    self.env.clock.sleep((ends_in / 10).clamp(PAUSE, RENEW_PAUSE_MAX)).await;
                }
            }
        }
    }

    async fn renew_once(&self) -> Result<(), JoinError> {
        let public_key = self.files.key()?;
        let mut reason = String::new();
        for address in &self.controllers {
            let request = RenewRequest { public_key: public_key.bytes().to_vec().into() };
            let asked = async {
                let answer = client(&self.env, address).await?.renew(request).await?;
                answer.into_inner().certificate.ok_or_else(|| Status::internal("no certificate"))
            };
            match in_time(&self.env, asked).await {
                Ok(certificate) => {
                    store(&self.files, &certificate, &self.env)?;
                    self.credentials.reload(&self.files)?;
                    return Ok(());
                }
                Err(status) => reason = status.message().to_owned(),
            }
        }
        Err(JoinError::Unreachable { addresses: self.controllers.join(", "), reason })
    }
}

/// What the addresses of controllers say about TLS must be what this node does.
fn check_scheme(scheme: Option<Scheme>, secured: bool) -> Result<(), JoinError> {
    match scheme {
        Some(Scheme::Https) if !secured => Err(JoinError::Scheme(
            "the address of a controller says https, but this node has neither a certificate nor a token to get one: set --token-file, or write http:// if the cluster has no TLS",
        )),
        Some(Scheme::Http) if secured => Err(JoinError::Scheme(
            "the address of a controller says http, but this node has a certificate or a token to get one: write https://",
        )),
        _ => Ok(()),
    }
}

/// The right to join: the token of this node, and how the node recognises the cluster before it sends it.
struct Admission {
    token: NodeToken,
    /// The certificates in a file, for a node of a group; none for the authority that the token names.
    authorities: Option<Vec<CertificateDer<'static>>>,
}

impl Admission {
    /// The one in the files of the options. A node that has joined does not need them any more.
    fn read(options: &Options, files: &Enrolled) -> Result<Option<Self>, JoinError> {
        if let Some(group) = &options.group {
            return Self::of_group(group, &options.node).map(Some);
        }
        let Some(path) = &options.token_file else { return Ok(None) };
        match atlas_tls::private_text(path) {
            Ok(text) => Ok(Some(Self { token: NodeToken::read(&text)?, authorities: None })),
            Err(error) if error.kind() == ErrorKind::NotFound && files.exists() => Ok(None),
            Err(source) => Err(TlsError::File { path: path.clone(), source }.into()),
        }
    }

    fn of_group(group: &Group, node: &NodeId) -> Result<Self, JoinError> {
        let authorities = atlas_tls::authorities(&group.authority_file)?;
        let token = GroupToken::in_file(&group.token_file)?.of_node(node.as_str());
        Ok(Self { token, authorities: Some(authorities) })
    }

    /// Whether the node has not joined with it yet. Unlike the token of a node, that of a group can be used again when the
    /// certificate has expired.
    fn is_due(&self, files: &Enrolled, env: &Env) -> bool {
        let expired = || {
            let credentials = Credentials::of_node(files, env.clock.clone());
            credentials.is_ok_and(|credentials| credentials.ends_in().is_zero())
        };
        !files.is_by(&self.token.text()) || (self.authorities.is_some() && expired())
    }

    /// A network whose connections lead to controllers of the cluster alone.
    fn net(&self, env: &Env) -> Result<TlsNet, TlsError> {
        match &self.authorities {
            Some(authorities) => TlsNet::trusting(env.net.clone(), authorities),
            None => TlsNet::pinned(env.net.clone(), self.token.authority),
        }
    }
}

/// Joins the cluster, unless this node has joined before: it then has a certificate in the directory of the options. A node of a
/// group joins again under its key, which changes nothing if the cluster knows it.
pub fn join<'a>(options: &'a Options, env: &'a Env) -> BoxFuture<'a, Result<(), JoinError>> {
    Box::pin(async move { Node::opened(options, env, true).await?.ok_or(JoinError::NoToken).map(|_| ()) })
}

/// Exchanges the token for a certificate. The controllers are asked in turn until one answers for the cluster.
async fn enroll(
    files: &Enrolled,
    admission: &Admission,
    options: &Options,
    env: &Env,
    patience: Duration,
) -> Result<(), JoinError> {
    let token = &admission.token;
    if token.node != options.node.as_str() {
        return Err(JoinError::OtherNode { token: token.node.clone(), own: options.node.clone() });
    }
    let text = token.text();
    let key = files.begin(&text)?;
    // The token is sent only to who shows the authority.
    let env = Env { net: Arc::new(admission.net(env)?), ..env.clone() };
    let deadline = env.clock.monotonic() + patience;
    loop {
        let mut reason = String::new();
        for address in &options.controllers {
            let request = EnrollRequest { token: text.clone(), public_key: key.bytes().to_vec().into() };
            let asked = async { client(&env, address).await?.enroll(request).await.map(tonic::Response::into_inner) };
            match in_time(&env, asked).await {
                Ok(answer) => return store(files, &answer.certificate.ok_or(JoinError::Malformed)?, &env),
                Err(status) if matches!(status.code(), Code::PermissionDenied | Code::InvalidArgument) => {
                    let atlas_wire::Error { message, hint, .. } = (&status).into();
                    return Err(JoinError::Refused(if hint.is_empty() {
                        message
                    } else {
                        format!("{message}: {hint}")
                    }));
                }
                Err(status) => reason = status.message().to_owned(),
            }
            debug!(%address, %reason, "could not join");
        }
        if env.clock.monotonic() > deadline {
            return Err(JoinError::Unreachable { addresses: options.controllers.join(", "), reason });
        }
        env.clock.sleep(PAUSE).await;
    }
}

async fn client(env: &Env, address: &str) -> Result<EnrollmentServiceClient<Channel>, Status> {
    let channel = dial(env, address).await;
    let channel = channel.map_err(|error| Status::unavailable(atlas_env::chain(&error)))?;
    Ok(EnrollmentServiceClient::new(channel))
}

async fn in_time<T>(env: &Env, asked: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::select! {
        biased;
        answer = asked => answer,
        () = env.clock.sleep(ANSWER_MAX) => Err(Status::deadline_exceeded("no answer came in time")),
    }
}

fn store(files: &Enrolled, certificate: &NodeCertificate, env: &Env) -> Result<(), JoinError> {
    let NodeCertificate { certificate, authorities, valid_for_seconds } = certificate;
    let life = Duration::from_secs((*valid_for_seconds).min(LIFE_MAX));
    let now = env.clock.wall().0 / 1_000_000;
    Ok(files.store(&Issued { certificate, trusted: authorities, life }, now)?)
}

#[cfg(test)]
mod tests;
