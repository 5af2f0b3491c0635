//! The peer door: services between controllers, on a separate port and server, so that no client or worker delays Raft.
//!
//! Raft itself is served by `atlas_raft`; this module adds the services that need the service functions. Connections
//! are served on Raft's thread, so that messages between members wake no other thread. Other calls are answered on the
//! runtime of the other doors ([`elsewhere`]), so that they do not delay Raft.

pub(crate) mod credentials;
mod elsewhere;
mod lines;
mod member;
mod sender;
pub(crate) mod store;

use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, Listener, Task};
use atlas_raft::Handle;
use atlas_service::{Error, Service};
use atlas_tls::Clients;
use atlas_wire::proto::peer::v1::member_service_server::MemberServiceServer;
use tokio::sync::watch;
use tonic::Status;
use tonic::service::interceptor::InterceptedService;

use self::elsewhere::Doors;
use crate::cluster::Cluster;
use crate::listen;
use crate::tls::{self, Tls};
use crate::watch::Watch;

/// Idle connections are checked at this interval, and closed if the peer does not answer.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most connections at once: a few for each member, and for controllers that join.
const CONNECTIONS_MAX: usize = 256;
/// How much a peer may send before it is read: a few entries, or parts of snapshots and artifacts.
const WINDOW_BYTES: u32 = 4 << 20;
/// The time limit for open calls once the controller stops.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The parts from which the door is made.
pub(crate) struct Parts {
    /// The handle of this member.
    pub(crate) handle: Handle,
    /// The service functions.
    pub(crate) service: Service,
    /// Answers questions about the cluster.
    pub(crate) cluster: Cluster,
    /// The machine.
    pub(crate) env: Env,
    /// The certificates; none if TLS is off.
    pub(crate) tls: Option<Tls>,
    /// Is told who is turned away.
    pub(crate) watch: Watch,
}

/// Starts to serve peers on `listener`, until `stop` becomes true or the member ends. Called on the runtime of the
/// doors.
pub(crate) fn start(parts: Parts, listener: Box<dyn Listener>, stop: watch::Receiver<bool>) -> Task<()> {
    let doors = Doors::here(&parts.env);
    parts.handle.clone().spawn_beside("peer-door", serve(parts, listener, doors, stop))
}

async fn serve(parts: Parts, listener: Box<dyn Listener>, doors: Doors, mut stop: watch::Receiver<bool>) {
    let Parts { handle, service, cluster, env, tls, watch } = parts;
    let listener = match tls::wrap(tls.as_ref(), listener, Clients::Controllers, &watch, &env) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the peer interface has no TLS");
            return;
        }
    };
    let members = sender::Members { tls: tls.is_some(), watch, cluster_id: handle.cluster_id() };
    let noting = members.clone();
    let raft = handle.peer_door().watched(Arc::new(move |refusal| noting.refused(refusal)));
    let mut stopped = stop.clone();
    let serving = tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(KEEP_ALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .add_service(InterceptedService::new(raft.into_service(), members.clone()))
        .add_service(doors.answer(MemberServiceServer::new(member::Rpc::new(cluster, handle, members.clone()))))
        .add_service(InterceptedService::new(
            doors.answer(lines::service(service.clone(), members.clone())),
            members.clone(),
        ))
        .add_service(InterceptedService::new(
            doors.answer(credentials::service(service.clone(), members.clone())),
            members.clone(),
        ))
        .add_service(InterceptedService::new(
            doors.answer(store::service(service, members.clone(), env.clone())),
            members,
        ))
        .serve_with_incoming_shutdown(listen::connections(listener, CONNECTIONS_MAX, env.clone()), async move {
            // A dropped sender also stops the door.
            let _ = stopped.wait_for(|stop| *stop).await;
        });
    let overdue = async {
        let _ = stop.wait_for(|stop| *stop).await;
        env.clock.sleep(DRAIN_MAX).await;
    };
    tokio::select! {
        biased;
        served = serving => if let Err(error) = served {
            tracing::error!(error = &error as &dyn std::error::Error, "the peer interface failed");
        },
        // A peer's append stream ends only with its leadership, so the door does not wait for it any longer.
        () = overdue => {}
    }
}

/// Converts an error of the service functions for a peer.
pub(crate) fn status_of(error: &Error) -> Status {
    let code = error.entry().code.to_owned();
    atlas_wire::Error { kind: error.kind(), code, message: error.to_string(), hint: error.hint() }.into()
}
