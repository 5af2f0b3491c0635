//! The peer door: services between controllers, on a separate port and server, so that no client or worker delays Raft.
//!
//! Raft itself is served by `atlas_raft`; this module adds the services that need the service functions. Connections
//! are served on Raft's thread, so that a message between members need not wake it; other calls are answered on the
//! runtime of the other doors ([`elsewhere`]), and so do not delay it.

mod elsewhere;
mod lines;
mod member;
pub(crate) mod store;

use std::time::Duration;

use atlas_env::{Env, Listener, Task};
use atlas_raft::Handle;
use atlas_service::{Error, Service};
use atlas_wire::proto::peer::v1::member_service_server::MemberServiceServer;
use tokio::sync::watch;
use tonic::Status;

use self::elsewhere::Doors;
use crate::cluster::Cluster;
use crate::listen;

/// A connection that says nothing is asked whether it still lives, and closed if it does not answer.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most connections at once: a few of each member, and of controllers that want to join.
const CONNECTIONS_MAX: usize = 256;
/// What a peer may send before it is read: a few entries, or parts of snapshots and artifacts.
const WINDOW_BYTES: u32 = 4 << 20;
/// How long calls may take to end once the controller stops.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// What a door is made of.
pub(crate) struct Parts {
    /// This member.
    pub(crate) handle: Handle,
    /// The functions behind the door.
    pub(crate) service: Service,
    /// What is asked about the cluster.
    pub(crate) cluster: Cluster,
    /// The machine.
    pub(crate) env: Env,
}

/// Begins to serve peers on `listener`, until `stop` turns true or the member ends. Called on the runtime of the doors.
pub(crate) fn start(parts: Parts, listener: Box<dyn Listener>, stop: watch::Receiver<bool>) -> Task<()> {
    let doors = Doors::here(&parts.env);
    parts.handle.clone().spawn_beside("peer-door", serve(parts, listener, doors, stop))
}

async fn serve(parts: Parts, listener: Box<dyn Listener>, doors: Doors, mut stop: watch::Receiver<bool>) {
    let Parts { handle, service, cluster, env } = parts;
    let mut stopped = stop.clone();
    let serving = tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(KEEP_ALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .add_service(handle.peer_door().into_service())
        .add_service(doors.answer(MemberServiceServer::new(member::Rpc::new(cluster, handle))))
        .add_service(doors.answer(lines::service(service.clone())))
        .add_service(doors.answer(store::service(service, env.clone())))
        .serve_with_incoming_shutdown(listen::connections(listener, CONNECTIONS_MAX, env.clone()), async move {
            // A sender that is gone stops as well.
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
        // A peer's append stream lives as long as its leadership.
        () = overdue => {}
    }
}

/// An error of the service functions as a peer sees it.
pub(crate) fn status_of(error: &Error) -> Status {
    let code = error.entry().code.to_owned();
    atlas_wire::Error { kind: error.kind(), code, message: error.to_string(), hint: error.hint() }.into()
}
