//! `/api/events` and `/api/jobs/{id}/events`: server-sent events and WebSockets over one stream (compatibility §16).

mod sse;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use atlas_service::{Caller, Change, Error, Follow, LogOutput, LogReader, Next, Piece, Reader, Service, View};
use atlas_types::EventSeq;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use tokio::sync::watch;

use self::sse::sse;
use super::answer::{Answer, Problem, Response, write_sse_frame};
use super::frames::{self, Frames};
use super::request::Request;
use super::{HttpDoor, socket};

/// The interval of keep-alives on an idle stream, below the usual idle timeouts of proxies.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The size limit of frames that are built at once.
const FRAMES_BYTES_MAX: usize = 1 << 20;

/// The content of one stream.
pub(crate) struct Feed {
    pub(crate) service: Service,
    pub(crate) reader: Reader,
    pub(crate) view: View,
    /// Whether the stream has all changes, as others do.
    is_of_all: bool,
    /// Whether the stream ends after the change that ends the job.
    pub(crate) until_end: bool,
    /// Changes that are sent before those of the reader.
    pub(crate) first: Vec<(StreamPosition, Change)>,
    /// The frames of the reader's changes.
    frames: Arc<Frames>,
    /// The last erasure before the events were read whose frames are built.
    erased: EventSeq,
    /// Pieces of models' answers, if they are wanted. Its lines are not sent.
    pub(crate) pieces: Option<LogReader>,
    pub(crate) env: atlas_env::Env,
    pub(crate) stop: watch::Receiver<bool>,
    over: bool,
}

/// The position of a frame in its stream. It is the frame's id, with which a client can resume after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamPosition {
    /// The number of the event. For the first frames of a job's stream, the number of the latest event in the state
    /// they come from.
    seq: EventSeq,
    /// While the first frames of a job's stream are being sent, the number of them sent so far. 0 after the last of
    /// them.
    begun: usize,
}

impl StreamPosition {
    fn behind(seq: EventSeq) -> Self {
        Self { seq, begun: 0 }
    }

    /// The first frames of a job's stream share one event number, so all but the last also contain their count.
    fn of_all(so_far: Vec<Change>) -> impl Iterator<Item = (Self, Change)> {
        let count = so_far.len();
        so_far.into_iter().zip(1..).map(move |(change, number)| {
            let begun = if number < count { number } else { 0 };
            (Self { seq: change.seq, begun }, change)
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (seq, begun) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        Some(Self { seq: EventSeq(seq.parse().ok()?), begun: begun.parse().ok()? })
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq: EventSeq(seq), begun } = self;
        if *begun == 0 { write!(f, "{seq}") } else { write!(f, "{seq}.{begun}") }
    }
}

/// The next output of a stream.
pub(crate) enum Step {
    /// Frames with their positions and JSON.
    Frames(Vec<(StreamPosition, Bytes)>),
    /// Pieces of models' answers, which have no position.
    Pieces(Vec<Piece>),
    /// No event for a while.
    Silence,
    /// The reader is too slow.
    Behind,
    Over,
}

/// `GET /api/events`.
pub(crate) async fn all(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let view = request.view();
    let after = seen(request).map(|place| place.seq);
    if is_upgrade(request) {
        let reader = door.service.follow(caller, Follow { live_only: true, ..Follow::default() }).await?;
        return upgrade(door, request, Feed::new(door, reader, view)).await;
    }
    if !request.accepts_sse() {
        return Err(neither());
    }
    let reader = door.service.follow(caller, Follow { after, ..Follow::default() }).await?;
    Ok(sse(Feed { is_of_all: true, ..Feed::new(door, reader, view) }))
}

/// `GET /api/jobs/{id}/events`.
pub(crate) async fn job(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let view = request.view();
    let upgraded = is_upgrade(request);
    if !upgraded && !request.accepts_sse() {
        return Err(neither());
    }
    let id = door.service.job_id(caller, id).await?;
    let stream = door.service.follow_job(caller, id, upgraded).await?;
    let ended = stream.so_far.last().is_some_and(|change| change.job.status.is_terminal());
    let now = stream.reader.cursor();
    let mut feed = Feed { until_end: true, ..Feed::new(door, stream.reader, view) };
    if request.query().get("deltas").as_deref() == Some("true") && !ended {
        feed.pieces = Some(door.service.follow_logs(caller, id, None, true).await?);
    }
    let so_far = StreamPosition::of_all(stream.so_far);
    if upgraded {
        // Without the past changes, WebSocket clients of Atlas for Python would never learn that the job has already
        // ended.
        feed.first = so_far.collect();
        return upgrade(door, request, feed).await;
    }
    match seen(request) {
        // The stream was interrupted within the first frames. The rest of them is sent, in the current state.
        Some(StreamPosition { begun, .. }) if begun > 0 => feed.first = so_far.skip(begun).collect(),
        // A job that has ended gets no events after the current one.
        Some(StreamPosition { seq, .. }) => {
            let through = ended.then_some(now);
            let follow = Follow { job: Some(id), after: Some(seq), through, live_only: false };
            feed.reader = door.service.follow(caller, follow).await?;
        }
        None => feed.first = so_far.collect(),
    }
    if request.query().get("follow").as_deref() == Some("false") {
        let mut body = Vec::new();
        while !feed.first.is_empty() {
            feed.told_first().await?.iter().for_each(|(place, data)| write_sse_frame(&mut body, place, "job", data));
        }
        return Ok(sse_response(Body::from(body)));
    }
    Ok(sse(feed))
}

fn neither() -> Problem {
    Problem::malformed("this is an event stream: upgrade to a WebSocket, or ask with 'Accept: text/event-stream'")
}

/// The position at which a returning client continues.
fn seen(request: &Request) -> Option<StreamPosition> {
    StreamPosition::parse(&request.last_event()?)
}

fn is_upgrade(request: &Request) -> bool {
    request.header("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

async fn upgrade(door: &HttpDoor, request: &mut Request, feed: Feed) -> Answer {
    match WebSocketUpgrade::from_request_parts(&mut request.parts, &()).await {
        Ok(upgrade) => {
            let env = door.env.clone();
            let upgrade = upgrade.max_message_size(64 << 10).max_frame_size(64 << 10).write_buffer_size(0);
            Ok(upgrade.on_upgrade(move |socket| async move {
                env.spawn("event-socket", socket::run(socket, feed)).join().await.ok();
            }))
        }
        Err(_) => Err(Problem::malformed("the WebSocket handshake is malformed")),
    }
}

impl Feed {
    fn new(door: &HttpDoor, reader: Reader, view: View) -> Self {
        Self {
            service: door.service.clone(),
            reader,
            view,
            is_of_all: false,
            until_end: false,
            first: Vec::new(),
            frames: door.frames.clone(),
            erased: EventSeq::default(),
            pieces: None,
            env: door.env.clone(),
            stop: door.stop.clone(),
            over: false,
        }
    }

    /// Counts a reader that could not take a frame in time.
    pub(crate) fn count_drop(&self) {
        self.service.metrics().subscriber_drops.inc();
    }

    /// The frames that are sent before those of the reader.
    async fn told_first(&mut self) -> Result<Vec<(StreamPosition, Bytes)>, Error> {
        let first = std::mem::take(&mut self.first);
        self.frames(first, false).await
    }

    /// The next output.
    pub(crate) async fn next(&mut self) -> Step {
        if !self.first.is_empty() {
            let ended = self.first.iter().any(|(_, change)| change.job.status.is_terminal());
            let told = self.told_first().await;
            return self.step(told, ended);
        }
        if self.over {
            return Step::Over;
        }
        self.erased = self.reader.erased();
        let next = tokio::select! {
            biased;
            next = self.reader.next() => next,
            () = stopped(&mut self.stop) => return Step::Over,
            pieces = next_pieces(&mut self.pieces) => return Step::Pieces(pieces),
            () = self.env.clock.sleep(KEEP_ALIVE) => return Step::Silence,
        };
        match next {
            Ok(Next::Changes(changes)) => {
                let ended = changes.iter().any(|change| change.job.status.is_terminal());
                let changes = changes.into_iter().map(|change| (StreamPosition::behind(change.seq), change)).collect();
                let frames = self.frames(changes, true).await;
                self.step(frames, ended)
            }
            Ok(Next::Behind) => Step::Behind,
            Ok(Next::Over) => Step::Over,
            Err(error) => {
                tracing::warn!(%error, "an event stream was interrupted");
                Step::Behind
            }
        }
    }

    fn step(&mut self, frames: Result<Vec<(StreamPosition, Bytes)>, Error>, ended: bool) -> Step {
        match frames {
            Ok(frames) => {
                // The stream ends only after all its frames were built.
                self.over = ended && self.until_end && self.first.is_empty();
                Step::Frames(frames)
            }
            Err(_) => Step::Over,
        }
    }

    /// The frames of changes. If they become too large, only the first ones are built and the others follow later. Those of events are
    /// shared with other streams.
    async fn frames(
        &mut self,
        changes: Vec<(StreamPosition, Change)>,
        are_events: bool,
    ) -> Result<Vec<(StreamPosition, Bytes)>, Error> {
        let mut frames = Vec::with_capacity(changes.len());
        let mut bytes = 0;
        let mut changes = changes.into_iter();
        while bytes < FRAMES_BYTES_MAX {
            let Some((place, change)) = changes.next() else { break };
            if self.view == View::Plain && !change.is_transition() {
                continue;
            }
            let data = match are_events {
                true => self.frames.of(&self.service, &change, (self.view, self.erased)).await?,
                false => frames::build(&self.service, &change, self.view).await?,
            };
            bytes += data.len();
            frames.push((place, data));
        }
        self.first = changes.collect();
        Ok(frames)
    }
}

/// The next pieces; never, if none are wanted. The reader keeps its place if the wait is given up.
async fn next_pieces(reader: &mut Option<LogReader>) -> Vec<Piece> {
    while let Some(following) = reader {
        match following.next().await {
            Some(LogOutput::Pieces(pieces)) => return pieces,
            Some(LogOutput::Lines(_)) => {}
            None => *reader = None,
        }
    }
    std::future::pending().await
}

/// Completes when the controller stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // It also stops without having said so.
    drop(stop.wait_for(|stop| *stop).await);
}

/// An answer whose body is a stream of server-sent events.
pub(crate) fn sse_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[test]
fn a_place_is_read_as_it_is_told() {
    for text in ["7", "7.1"] {
        assert_eq!(StreamPosition::parse(text).map(|place| place.to_string()).as_deref(), Some(text));
    }
    for text in ["", "x", "7.", ".1", "-7", "7.1.1"] {
        assert_eq!(StreamPosition::parse(text), None, "{text}");
    }
}
