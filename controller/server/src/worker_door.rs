//! The worker door: one gRPC stream per worker, and transfers of packages and large payloads.
//!
//! The door translates. A report becomes a request, an applied grant becomes a frame; the state decides what happens to
//! jobs. The door has no state of its own: a stream begins with the node's whole lease set, and whenever the door may
//! have missed something it ends its streams, so that they start again.

mod admission;
mod assignment;
mod enrollment;
mod follow;
mod gathered;
mod hub;
mod mail;
mod models;
mod outbox;
mod park;
mod report;
mod rival;
mod session;
mod spawn;
mod tool;
mod transfer;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, Listener};
use atlas_raft::Leadership;
use atlas_service::Service;
use atlas_wire::limits::{CONTROLLER_FRAME_BYTES_MAX, WORKER_FRAME_BYTES_MAX};
use atlas_wire::proto::worker::v1::enrollment_service_server::EnrollmentServiceServer;
use atlas_wire::proto::worker::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use atlas_wire::proto::worker::v1::{
    FetchPackageRequest, FetchPackageResponse, FetchPayloadRequest, FetchPayloadResponse, SessionRequest,
    StorePayloadRequest, StorePayloadResponse,
};
use tokio::sync::{Semaphore, watch};
use tonic::{Request, Response, Status, Streaming};

use crate::listen::{self, Peer};
use crate::tls::Tls;
use crate::watch::Watch;
use enrollment::Sender;
use hub::Hub;
use outbox::Outgoing;
use rival::Rivals;
use transfer::Chunks;

/// Idle connections are checked at this interval, and closed if the worker does not answer.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most connected workers, with a margin for reconnects.
const CONNECTIONS_MAX: usize = 20_000;
/// The most open streams of one worker: its session and its transfers.
const STREAMS_PER_CONNECTION_MAX: u32 = 64;
/// How much a worker may send before it is read: one frame of the largest size.
const WINDOW_BYTES: u32 = WORKER_FRAME_BYTES_MAX as u32;
/// The time limit for sessions to end once the controller stops.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// The parts from which the door is made.
pub(crate) struct Parts {
    /// The service functions.
    pub(crate) service: Service,
    /// The machine.
    pub(crate) env: Env,
    /// How long a session lives after a renewal. Equals the value of the leader loop.
    pub(crate) session_ttl: Duration,
    /// The certificates; none if TLS is off.
    pub(crate) tls: Option<Tls>,
    /// Is told who is turned away.
    pub(crate) watch: Watch,
}

/// The address of a worker that this controller does not know.
const UNKNOWN: &str = "an unknown address";

/// The largest message of a node that joins.
const ENROLLMENT_BYTES_MAX: usize = 4_096;

/// Serves workers on `listener` until `stop` becomes true, then asks them to connect to another controller.
pub(crate) async fn serve(parts: Parts, listener: Box<dyn Listener>, mut stop: watch::Receiver<bool>) {
    let door = Door::new(parts);
    let following = door.env.spawn_vital("follow-leases", follow::run(door.clone()));
    let granting = door.env.spawn_vital("grant-models", models::grant(door.clone()));
    let service = WorkerServiceServer::new(Rpc(door.clone()))
        .max_decoding_message_size(WORKER_FRAME_BYTES_MAX)
        .max_encoding_message_size(CONTROLLER_FRAME_BYTES_MAX);
    let joining = door.tls.clone().map(|tls| {
        EnrollmentServiceServer::new(enrollment::Rpc::new(door.clone(), tls, door.env.clone()))
            .max_decoding_message_size(ENROLLMENT_BYTES_MAX)
    });
    let stopped = {
        let (door, mut stop) = (door.clone(), stop.clone());
        async move {
            // A dropped sender also stops the door.
            let _ = stop.wait_for(|stop| *stop).await;
            door.hub.shut_down();
        }
    };
    let serving = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .add_service(service)
        .add_optional_service(joining)
        .serve_with_incoming_shutdown(listen::connections(listener, CONNECTIONS_MAX, door.env.clone()), stopped);
    let overdue = async {
        let _ = stop.wait_for(|stop| *stop).await;
        door.env.clock.sleep(DRAIN_MAX).await;
    };
    tokio::select! {
        served = serving => if let Err(error) = served {
            tracing::error!(error = &error as &dyn std::error::Error, "the worker interface failed");
        },
        () = overdue => tracing::warn!("a worker's connection did not end in time"),
    }
    following.abort();
    granting.abort();
}

/// The data that the streams of all workers share.
struct Door {
    service: Service,
    env: Env,
    hub: Hub,
    tls: Option<Tls>,
    watch: Watch,
    rivals: Rivals,
    /// Limits the number of artifacts in memory.
    transfers: Arc<Semaphore>,
}

impl Door {
    fn new(parts: Parts) -> Arc<Self> {
        let Parts { service, env, session_ttl, tls, watch } = parts;
        let hub = Hub::new(&service, env.clone(), session_ttl);
        let transfers = Arc::new(Semaphore::new(transfer::AT_ONCE_MAX));
        Arc::new(Self { service, env, hub, tls, watch, rivals: Rivals::default(), transfers })
    }

    /// The address of the leader's worker door, if another member leads and the address is known.
    fn leader_address(&self) -> Option<String> {
        match &*self.service.handle().leadership().borrow() {
            Leadership::Follower { leader: Some(peer) } => {
                Some(peer.worker.clone()).filter(|address| !address.is_empty())
            }
            _ => None,
        }
    }
}

/// The gRPC service.
struct Rpc(Arc<Door>);

#[tonic::async_trait]
impl WorkerService for Rpc {
    type SessionStream = Outgoing;
    type FetchPackageStream = Chunks<FetchPackageResponse>;
    type FetchPayloadStream = Chunks<FetchPayloadResponse>;

    async fn session(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let sender = Sender::of(&self.0, &request, "openSession")?;
        let (outbox, outgoing) = outbox::outbox();
        let peer = request.extensions().get::<Peer>();
        let private = peer.is_some_and(Peer::is_private);
        let address: Arc<str> = peer.map_or_else(|| UNKNOWN.into(), |peer| peer.address().to_string().into());
        // The answer starts at once, because a worker may wait for it before it sends its hello.
        self.0.env.spawn(
            "worker-session",
            session::run(self.0.clone(), request.into_inner(), outbox, (private, sender, address)),
        );
        Ok(Response::new(outgoing))
    }

    async fn fetch_package(
        &self,
        request: Request<FetchPackageRequest>,
    ) -> Result<Response<Self::FetchPackageStream>, Status> {
        Sender::of(&self.0, &request, "fetchPackage")?;
        self.0.fetch(&request.into_inner().digest).await.map(Response::new)
    }

    async fn fetch_payload(
        &self,
        request: Request<FetchPayloadRequest>,
    ) -> Result<Response<Self::FetchPayloadStream>, Status> {
        Sender::of(&self.0, &request, "fetchPayload")?;
        self.0.fetch(&request.into_inner().digest).await.map(Response::new)
    }

    async fn store_payload(
        &self,
        request: Request<Streaming<StorePayloadRequest>>,
    ) -> Result<Response<StorePayloadResponse>, Status> {
        Sender::of(&self.0, &request, "storePayload")?;
        self.0.store(request.into_inner()).await.map(Response::new)
    }
}
