//! The link: one stream to the leader, which is reopened with jitter and backoff whenever it ends.

use std::collections::BTreeMap;
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

/// The pause between two lines of the log about one trouble with a controller.
const TOLD_PAUSE: Duration = Duration::from_secs(60);
/// The codes of refusals that only a person can end: the cluster does not know the certificate, or another worker has the name.
const DENIALS: [&str; 2] = ["E2108", "E5004"];
/// The most kinds of trouble whose lines are remembered.
const TROUBLES_MAX: usize = 64;

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
    /// It ended before a welcome, for this reason.
    Refused(String),
    /// The cluster refused this node: the code and what it said. Only a person or a restart helps.
    Denied(&'static str, String),
    /// The pump has ended.
    Over,
}

impl Link {
    /// Runs until the pump has ended.
    pub(crate) async fn run(self) {
        let mut known = Controllers::new(self.controllers.clone());
        let mut backoff = Backoff::default();
        let mut troubles = Troubles::default();
        while let Some((address, begins_round)) = known.take() {
            let patience = backoff.begin(begins_round);
            let mut trouble = None;
            match self.attend(&address, patience, &mut known).await {
                End::Over => return,
                End::Redirected(leader) => {
                    debug!(%address, %leader, "another controller leads");
                    known.prefer(leader);
                    backoff.redirected();
                }
                End::Lost => {
                    info!(%address, "session ended, reconnecting");
                    troubles = Troubles::default();
                    known.prefer(address.clone());
                    backoff.lost();
                }
                End::Left => {
                    info!(%address, "session closed, looking for another leader");
                    troubles = Troubles::default();
                    backoff.left(known.len());
                }
                End::Refused(reason) => {
                    trouble = Some(("", reason));
                    backoff.refused();
                }
                End::Denied(code, reason) => {
                    trouble = Some((code, reason));
                    backoff.refused();
                }
            }
            let pause = backoff.pause(self.env.entropy.u64());
            if let Some((code, reason)) = trouble {
                tell(&mut troubles, self.env.clock.monotonic(), (&address, code, reason), pause);
            }
            self.env.clock.sleep(pause).await;
            if self.events.is_closed() {
                return;
            }
        }
    }

    async fn attend(&self, address: &str, patience: Duration, known: &mut Controllers) -> End {
        let channel = match dial(&self.env, address).await {
            Ok(channel) => channel,
            Err(error) => return End::Refused(format!("could not connect: {}", reason_of(&error))),
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
        let left = || if welcomed { End::Left } else { End::Refused("it did not answer in time".to_owned()) };
        let end = end.unwrap_or_else(left);
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
            () = &mut silent => return End::Refused("it did not answer in time".to_owned()),
        };
        let mut incoming = match opened {
            Ok(response) => response.into_inner(),
            Err(status) => {
                return refusal(&status);
            }
        };
        loop {
            let frame = tokio::select! {
                frame = incoming.next() => frame,
                () = &mut silent, if !*welcomed => return End::Refused("it did not answer in time".to_owned()),
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                Some(Err(status)) => {
                    debug!(%status, "the session's stream failed");
                    // A session that was open has ended; the next one is refused.
                    if *welcomed {
                        break;
                    }
                    return refusal(&status);
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
                ToWorker::NotLeader { leader_address: None } => return End::Refused(NO_LEADER.to_owned()),
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
        if *welcomed { End::Lost } else { End::Refused("it ended the session before it answered".to_owned()) }
    }
}

/// What a controller says that knows of no leader. It is common for a moment, and told only if it stays so.
const NO_LEADER: &str = "it knows no leader";

/// Why a controller opened no session.
fn refusal(status: &Status) -> End {
    let error = atlas_wire::Error::from(status);
    match DENIALS.into_iter().find(|code| *code == error.code) {
        Some(code) => End::Denied(code, error.message),
        None => End::Refused(error.message),
    }
}

/// The innermost reason: the outer ones say no more than that the transport failed.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Writes to the log why there is no session, and when the next controller is tried.
fn tell(troubles: &mut Troubles, now: Duration, (address, code, reason): (&str, &str, String), pause: Duration) {
    let patient = reason == NO_LEADER;
    if !troubles.is_next(now, format!("{address} {code} {reason}"), patient) {
        return debug!(%address, code, reason, next_try = ?pause, "no session");
    }
    match code {
        "E2108" => {
            warn!(%address, code, reason, "the cluster refuses the certificate of this node; it has to join again");
        }
        "E5004" => {
            warn!(%address, code, reason, "the cluster refuses this node; it is tried again until the other worker stops")
        }
        _ => {
            warn!(%address, reason, next_try = ?pause, "no session with this controller; it is tried again with longer pauses, of at most 2 s")
        }
    }
}

/// When the log told last of each trouble since the last session.
#[derive(Debug, Default)]
struct Troubles(BTreeMap<String, Told>);

#[derive(Debug, Clone, Copy)]
struct Told {
    first: Duration,
    last: Option<Duration>,
}

impl Troubles {
    /// A trouble that the log may tell of later is told if it lasts for so long.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Whether the log may tell of a trouble at `now`, by a monotonic clock: at once or only if it lasts, and then once in a while.
    fn is_next(&mut self, now: Duration, what: String, patient: bool) -> bool {
        if self.0.len() >= TROUBLES_MAX && !self.0.contains_key(&what) {
            self.0.clear();
        }
        let told = self.0.entry(what).or_insert(Told { first: now, last: None });
        let is_next = match told.last {
            Some(last) => now.saturating_sub(last) >= TOLD_PAUSE,
            None => !patient || now.saturating_sub(told.first) >= Self::PATIENCE,
        };
        if is_next {
            told.last = Some(now);
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
    fn a_refusal_that_needs_a_person_has_a_code() {
        let said = |code: &str| {
            let message = "node \"n1\" may not connect".to_owned();
            let (kind, code, hint) = (ErrorKind::Denied, code.to_owned(), String::new());
            match refusal(&atlas_wire::Error { kind, code, message, hint }.into()) {
                End::Denied(code, reason) => format!("{code}: {reason}"),
                End::Refused(reason) => reason,
                _ => "-".to_owned(),
            }
        };
        assert_eq!(said("E2108"), "E2108: node \"n1\" may not connect");
        assert_eq!(said("E5004"), "E5004: node \"n1\" may not connect");
        assert_eq!(said("E2102"), "node \"n1\" may not connect");
    }

    #[test]
    fn a_trouble_is_told_at_once_or_when_it_lasts_and_then_once_per_minute() {
        let mut troubles = Troubles::default();
        let mut told = |what: &str, patient| {
            let seconds =
                (0..200).filter(|&second| troubles.is_next(Duration::from_secs(second), what.to_owned(), patient));
            seconds.collect::<Vec<u64>>()
        };
        assert_eq!(told("a: refused", false), [0, 60, 120, 180]);
        assert_eq!(told("a: no leader", true), [5, 65, 125, 185]);
        let many: Vec<_> = (0..1_000).map(|index| told(&index.to_string(), false).len()).collect();
        assert!(many.iter().all(|&count| count == 4), "what is remembered is bounded");
    }
}
