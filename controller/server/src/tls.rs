//! TLS of this controller: its certificate, what it trusts, and who is at the other end of a connection
//! ([ADR 41](../../../docs/adr/0041-tls.md)).

use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, Listener};
use atlas_raft::Handle;
use atlas_tls::{Authority, Clients, Credentials, GroupToken, Names, NodeToken, TlsError, TlsNet, listener};
use atlas_types::{MemberId, Timestamp};

use crate::watch::Watch;
use crate::{Options, StartError};

/// The interval of the reports about the certificate.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// The certificates of a controller.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    credentials: Credentials,
    /// How long certificates of nodes are valid.
    pub(crate) life: Duration,
    /// The join token of a group of nodes; none if there is no such group.
    group: Option<GroupToken>,
}

impl Tls {
    /// The certificates of a controller that listens at `addresses`; none if TLS is off.
    pub(crate) fn open(options: &Options, env: &Env) -> Result<Option<Self>, StartError> {
        let Some(dir) = &options.tls_dir else { return Ok(None) };
        let authority = Arc::new(Authority::read(dir)?);
        let names = Names { hosts: hosts(options), life: options.tls_life };
        let credentials = Credentials::of_controller(authority, names, env.clock.clone())?;
        let group = options.tls_group_token_file.as_deref().map(GroupToken::in_file).transpose()?;
        Ok(Some(Self { credentials, life: options.tls_life, group }))
    }

    /// The machine, with connections that lead to controllers of the cluster alone.
    pub(crate) fn dialing(&self, env: &Env) -> Result<Env, StartError> {
        let net = TlsNet::new(env.net.clone(), &self.credentials)?;
        Ok(Env { net: Arc::new(net), ..env.clone() })
    }

    /// From now on this controller shows that it is a member.
    pub(crate) fn become_member(&self, member: MemberId) -> Result<(), StartError> {
        Ok(self.credentials.become_member(member.0)?)
    }

    /// Reports now and then how long the certificate is valid, as long as this controller runs.
    pub(crate) async fn report(self, handle: Handle, env: Env) {
        loop {
            let after = |time: Duration| {
                let wall = env.clock.wall().0;
                Timestamp(wall.saturating_add(i64::try_from(time.as_micros()).unwrap_or(i64::MAX)))
            };
            handle.note_certificate(after(self.credentials.due_in()), after(self.credentials.ends_in()));
            env.clock.sleep(REPORT_EVERY).await;
        }
    }

    /// Whether a node's token was made from the token of the group.
    pub(crate) fn is_of_group(&self, token: &NodeToken) -> bool {
        self.group.as_ref().is_some_and(|group| group.made(token))
    }

    /// The authority of the cluster.
    pub(crate) fn authority(&self) -> Option<&Arc<Authority>> {
        self.credentials.authority()
    }
}

/// Encrypts what a listener accepts, if TLS is on. Must be called in the runtime that serves the connections.
pub(crate) fn wrap(
    tls: Option<&Tls>,
    inner: Box<dyn Listener>,
    clients: Clients,
    watch: &Watch,
    env: &Env,
) -> Result<Box<dyn Listener>, TlsError> {
    match tls {
        Some(tls) => listener(inner, &tls.credentials, clients, &watch.of_handshakes(), env),
        None => Ok(inner),
    }
}

/// The names that clients of the HTTP interface may use for this controller.
fn hosts(options: &Options) -> Vec<String> {
    let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let listening = [options.http.ip(), options.grpc.ip()].into_iter().filter(|ip| !ip.is_unspecified());
    let mut hosts: Vec<String> = loopback.into_iter().chain(listening.map(|ip| ip.to_string())).collect();
    hosts.extend(options.advertise.iter().cloned().chain(options.tls_names.iter().cloned()));
    hosts.sort();
    hosts.dedup();
    hosts
}
