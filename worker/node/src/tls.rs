//! The certificate of this node: it joins with a token, and renews its certificate while it runs
//! ([ADR 41](../../../docs/adr/0041-tls.md)).

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_tls::{Credentials, Enrolled, Issued, NodeToken, Subject, TlsError, TlsNet};
use atlas_types::{NodeId, SecretText};
use atlas_wire::proto::worker::v1::enrollment_service_client::EnrollmentServiceClient;
use atlas_wire::proto::worker::v1::{EnrollRequest, NodeCertificate, RenewRequest};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tracing::{debug, info, warn};

use crate::Options;
use crate::link::dial;

/// How long controllers may take to answer a node that joins. They may all be starting or electing.
const PATIENCE: Duration = Duration::from_secs(120);
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
    /// The cluster refused.
    #[error("the cluster refused this node: {0}")]
    Refused(String),
    /// No controller answered.
    #[error("no controller answered at {addresses}: {reason}")]
    Unreachable { addresses: String, reason: String },
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
        let dir = options.tls_dir.clone().unwrap_or_else(|| options.data_dir.join("tls"));
        let files = Enrolled::in_dir(&dir);
        match token(options, &files)? {
            // A worker starts again with the token with which it joined.
            Some(token) if !files.is_by(token.expose()) => {
                enroll(&files, token.expose(), options, env).await?;
                info!("joined the cluster");
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

/// The token in the file of the options. A node that has joined does not need the file any more.
fn token(options: &Options, files: &Enrolled) -> Result<Option<SecretText>, JoinError> {
    let Some(path) = &options.token_file else { return Ok(None) };
    match atlas_tls::private_text(path) {
        Ok(text) => Ok(Some(SecretText::new(text))),
        Err(error) if error.kind() == ErrorKind::NotFound && files.exists() => Ok(None),
        Err(source) => Err(TlsError::File { path: path.clone(), source }.into()),
    }
}

/// Exchanges the token for a certificate. The controllers are asked in turn until one answers for the cluster.
async fn enroll(files: &Enrolled, token: &str, options: &Options, env: &Env) -> Result<(), JoinError> {
    let read = NodeToken::read(token)?;
    if read.node != options.node.as_str() {
        return Err(JoinError::OtherNode { token: read.node, own: options.node.clone() });
    }
    let key = files.begin(token)?;
    // The token is sent only to who shows the authority in it.
    let env = Env { net: Arc::new(TlsNet::pinned(env.net.clone(), read.authority)?), ..env.clone() };
    let deadline = env.clock.monotonic() + PATIENCE;
    loop {
        let mut reason = String::new();
        for address in &options.controllers {
            let request = EnrollRequest { token: token.trim().to_owned(), public_key: key.bytes().to_vec().into() };
            let asked = async { client(&env, address).await?.enroll(request).await.map(tonic::Response::into_inner) };
            match in_time(&env, asked).await {
                Ok(answer) => return store(files, &answer.certificate.ok_or(JoinError::Malformed)?, &env),
                Err(status) if matches!(status.code(), Code::PermissionDenied | Code::InvalidArgument) => {
                    return Err(JoinError::Refused(status.message().to_owned()));
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
