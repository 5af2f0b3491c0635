//! The link: one stream to the leader, which is reopened with jitter and backoff whenever it ends.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_wire::limits::{CONTROLLER_FRAME_BYTES_MAX, WORKER_FRAME_BYTES_MAX};
use atlas_wire::proto::worker::v1::SessionRequest;
use atlas_wire::proto::worker::v1::worker_service_client::WorkerServiceClient;
use atlas_wire::session::{ToLeader, ToWorker};
use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, mpsc, watch};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tracing::{debug, info, warn};

use crate::backoff::Backoff;
use crate::controllers::Controllers;

/// A client of the controller that the link is connected to.
pub(crate) type Client = WorkerServiceClient<Channel>;

/// The most frames that wait to be sent. With more, the other end does not read.
const FRAMES_WAITING_MAX: usize = 4_096;

/// The most waiting frames with which further stream events are sent.
const FRAMES_QUEUED_LEISURELY: usize = 16;

/// The pause between two lines of the log that say that the cluster refuses this node.
const DENIED_PAUSE: Duration = Duration::from_secs(60);
/// The code of that refusal.
const NOT_ENROLLED: &str = "E2108";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// An event that the link reports to the pump.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// A stream is open. The hello must be sent first.
    Connected(Stream),
    /// The leader sent a frame.
    Said(Box<ToWorker>),
    /// The stream ended.
    Disconnected,
}

/// The pump's end of an open stream. Dropping it closes the stream.
#[derive(Debug)]
pub(crate) struct Stream {
    frames: mpsc::Sender<SessionRequest>,
    close: Arc<Notify>,
}

impl Stream {
    /// True while few frames wait. Otherwise, data that is not urgent stays with its sender and is sent in larger
    /// frames.
    pub(crate) fn has_room(&self) -> bool {
        FRAMES_WAITING_MAX - self.frames.capacity() < FRAMES_QUEUED_LEISURELY
    }

    /// Sends a frame. False if the stream is stuck or closed.
    pub(crate) fn send(&self, frame: ToLeader) -> bool {
        self.frames.try_send(frame.into()).is_ok()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.close.notify_one();
    }
}

/// Keeps the stream open.
pub(crate) struct Link {
    pub(crate) env: Env,
    pub(crate) controllers: Vec<String>,
    pub(crate) events: mpsc::Sender<LinkEvent>,
    /// The client for transfers of packages and payloads.
    pub(crate) client: watch::Sender<Option<Client>>,
}

/// Why a stream ended.
enum End {
    /// The controller does not lead and named the leader.
    Redirected(String),
    /// It ended after a welcome.
    Lost,
    /// The pump left a leader that had welcomed it.
    Left,
    /// It ended before a welcome.
    Refused,
    /// The cluster does not know the certificate of this node: what it said. Only a person or a restart helps.
    Denied(String),
    /// The pump has ended.
    Over,
}

impl Link {
    /// Runs until the pump has ended.
    pub(crate) async fn run(self) {
        let mut known = Controllers::new(self.controllers.clone());
        let mut backoff = Backoff::default();
        let mut denials = Denials::default();
        while let Some((address, begins_round)) = known.take() {
            let patience = backoff.begin(begins_round);
            match self.attend(&address, patience, &mut known).await {
                End::Over => return,
                End::Redirected(leader) => {
                    debug!(%address, %leader, "another controller leads");
                    known.prefer(leader);
                    backoff.redirected();
                }
                End::Lost => {
                    info!(%address, "session ended, reconnecting");
                    known.prefer(address);
                    backoff.lost();
                }
                End::Left => {
                    info!(%address, "session closed, looking for another leader");
                    backoff.left(known.len());
                }
                End::Refused => {
                    debug!(%address, "no session");
                    backoff.refused();
                }
                End::Denied(reason) => {
                    if denials.is_next(self.env.clock.monotonic()) {
                        let code = NOT_ENROLLED;
                        warn!(%address, code, reason, "the cluster refuses the certificate of this node; it has to join again");
                    }
                    backoff.refused();
                }
            }
            self.env.clock.sleep(backoff.pause(self.env.entropy.u64())).await;
            if self.events.is_closed() {
                return;
            }
        }
    }

    async fn attend(&self, address: &str, patience: Duration, known: &mut Controllers) -> End {
        let channel = match dial(&self.env, address).await {
            Ok(channel) => channel,
            Err(error) => {
                debug!(%address, %error, "could not connect");
                return End::Refused;
            }
        };
        let client = WorkerServiceClient::new(channel)
            .max_decoding_message_size(CONTROLLER_FRAME_BYTES_MAX)
            .max_encoding_message_size(WORKER_FRAME_BYTES_MAX);
        self.client.send_replace(Some(client.clone()));
        let (frames, outgoing) = mpsc::channel(FRAMES_WAITING_MAX);
        let close = Arc::new(Notify::new());
        let stream = Stream { frames, close: Arc::clone(&close) };
        if self.events.send(LinkEvent::Connected(stream)).await.is_err() {
            return End::Over;
        }
        let mut welcomed = false;
        let end = tokio::select! {
            end = self.converse(client, outgoing, patience, known, &mut welcomed) => Some(end),
            () = close.notified() => None,
        };
        let end = end.unwrap_or(if welcomed { End::Left } else { End::Refused });
        match self.events.send(LinkEvent::Disconnected).await {
            Ok(()) => end,
            Err(_) => End::Over,
        }
    }

    async fn converse(
        &self,
        mut client: Client,
        outgoing: mpsc::Receiver<SessionRequest>,
        patience: Duration,
        known: &mut Controllers,
        welcomed: &mut bool,
    ) -> End {
        let mut silent = self.env.clock.sleep(patience);
        let opened = tokio::select! {
            opened = client.session(ReceiverStream::new(outgoing)) => opened,
            () = &mut silent => return End::Refused,
        };
        let mut incoming = match opened {
            Ok(response) => response.into_inner(),
            Err(status) => {
                debug!(%status, "the controller refused the session");
                return denial(&status).map_or(End::Refused, End::Denied);
            }
        };
        loop {
            let frame = tokio::select! {
                frame = incoming.next() => frame,
                () = &mut silent, if !*welcomed => return End::Refused,
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                Some(Err(status)) => {
                    debug!(%status, "the session's stream failed");
                    // A session that was open has ended; the next one is refused.
                    match denial(&status).filter(|_| !*welcomed) {
                        Some(reason) => return End::Denied(reason),
                        None => break,
                    }
                }
                None => break,
            };
            let said = match ToWorker::try_from(frame) {
                Ok(said) => said,
                Err(error) => {
                    warn!(%error, "the controller sent a malformed frame");
                    break;
                }
            };
            match said {
                ToWorker::NotLeader { leader_address: Some(leader) } => return End::Redirected(leader),
                ToWorker::NotLeader { leader_address: None } => return End::Refused,
                ToWorker::Shutdown => break,
                other => {
                    if let ToWorker::Welcome(welcome) = &other {
                        *welcomed = true;
                        known.tell(welcome.controllers.clone());
                    }
                    if self.events.send(LinkEvent::Said(Box::new(other))).await.is_err() {
                        return End::Over;
                    }
                }
            }
        }
        if *welcomed { End::Lost } else { End::Refused }
    }
}

/// What the controller said, if it refused the certificate of this node.
fn denial(status: &Status) -> Option<String> {
    let error = atlas_wire::Error::from(status);
    (error.code == NOT_ENROLLED).then_some(error.message)
}

/// When the log said last that the cluster refuses this node.
#[derive(Debug, Default)]
struct Denials(Option<Duration>);

impl Denials {
    /// Whether it may say so again at `now`, by a monotonic clock.
    fn is_next(&mut self, now: Duration) -> bool {
        let is_next = self.0.is_none_or(|last| now.saturating_sub(last) >= DENIED_PAUSE);
        if is_next {
            self.0 = Some(now);
        }
        is_next
    }
}

/// A connection to the worker door at `address`.
pub(crate) async fn dial(env: &Env, address: &str) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true);
    let net = Arc::clone(&env.net);
    let connector = tower::service_fn(move |uri: http::Uri| {
        let net = Arc::clone(&net);
        async move {
            let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
            net.connect(authority).await.map(TokioIo::new)
        }
    });
    endpoint.connect_with_connector(connector).await
}

#[cfg(test)]
mod tests {
    use atlas_types::ErrorKind;

    use super::*;

    #[test]
    fn a_refused_certificate_is_told_once_per_minute() {
        let said = |code: &str| {
            let message = "node \"n1\" may not connect with this certificate".to_owned();
            let (kind, code, hint) = (ErrorKind::Denied, code.to_owned(), String::new());
            denial(&atlas_wire::Error { kind, code, message, hint }.into())
        };
        assert_eq!(said("E2108").as_deref(), Some("node \"n1\" may not connect with this certificate"));
        assert_eq!(said("E2102"), None);
        assert_eq!(denial(&Status::unavailable("E2108")), None);
        let mut denials = Denials::default();
        let told: Vec<u64> = (0..200).filter(|&second| denials.is_next(Duration::from_secs(second))).collect();
        assert_eq!(told, [0, 60, 120, 180]);
    }
}
