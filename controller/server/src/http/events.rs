//! `/api/events` and `/api/jobs/{id}/events`: server-sent events and WebSockets over one stream (compatibility §16).

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use atlas_service::{Caller, Change, Error, Follow, Next, Reader, Service, View, write_frame};
use atlas_types::EventSeq;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use tokio::sync::watch;

use super::answer::{Answer, Problem, Response, sse_frame};
use super::request::Request;
use super::{HttpDoor, socket};

/// How often a silent stream shows that it lives: below the usual idle limits of proxies.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Frames made at once.
const FRAMES_BYTES_MAX: usize = 1 << 20;

/// What one stream shows.
pub(crate) struct Feed {
    pub(crate) service: Service,
    pub(crate) reader: Reader,
    pub(crate) view: View,
    /// End after the change that ends the job.
    pub(crate) until_end: bool,
    /// Changes that go before what the reader gives.
    pub(crate) first: Vec<(StreamPosition, Change)>,
    pub(crate) env: atlas_env::Env,
    pub(crate) stop: watch::Receiver<bool>,
    over: bool,
}

/// Where a frame is in its stream: its id, with which a client goes on after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamPosition {
    /// The number of the event; of what begins a job's stream that of the state which tells it.
    seq: EventSeq,
    /// How many of the frames that begin a job's stream were sent if there are more of them; else 0.
    begun: usize,
}

impl StreamPosition {
    fn behind(seq: EventSeq) -> Self {
        Self { seq, begun: 0 }
    }

    /// What begins a job's stream shares one number, so all but the last say how many there were.
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

/// What a stream sends next.
pub(crate) enum Step {
    /// Frames: place and JSON.
    Frames(Vec<(StreamPosition, Vec<u8>)>),
    /// Nothing happened for a while.
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
    Ok(sse(Feed::new(door, reader, view)))
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
    let so_far = StreamPosition::of_all(stream.so_far);
    if upgraded {
        // Clients of Atlas for Python come to know nothing of a job that ended before they came: what they wait for is among this.
        feed.first = so_far.collect();
        return upgrade(door, request, feed).await;
    }
    match seen(request) {
        // The beginning was broken off: the rest of it, as it is by now.
        Some(StreamPosition { begun, .. }) if begun > 0 => feed.first = so_far.skip(begun).collect(),
        // Of a job that has ended there is no more than what has happened by now, if anything.
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
            body.extend(feed.told_first().await?.iter().flat_map(|(place, data)| event_frame(*place, data)));
        }
        return Ok(sse_response(Body::from(body)));
    }
    Ok(sse(feed))
}

fn neither() -> Problem {
    Problem::malformed("this is an event stream: upgrade to a WebSocket, or ask with 'Accept: text/event-stream'")
}

/// Where a client was that comes back.
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
            until_end: false,
            first: Vec::new(),
            env: door.env.clone(),
            stop: door.stop.clone(),
            over: false,
        }
    }

    /// The reader could not take a frame in time.
    pub(crate) fn count_drop(&self) {
        self.service.metrics().subscriber_drops.inc();
    }

    /// The frames that go before what the reader gives.
    async fn told_first(&mut self) -> Result<Vec<(StreamPosition, Vec<u8>)>, Error> {
        let first = std::mem::take(&mut self.first);
        self.frames(first).await
    }

    /// What to send next.
    pub(crate) async fn next(&mut self) -> Step {
        if !self.first.is_empty() {
            let ended = self.first.iter().any(|(_, change)| change.job.status.is_terminal());
            let told = self.told_first().await;
            return self.step(told, ended);
        }
        if self.over {
            return Step::Over;
        }
        let next = tokio::select! {
            biased;
            next = self.reader.next() => next,
            () = async { drop(self.stop.wait_for(|stop| *stop).await) } => return Step::Over,
            () = self.env.clock.sleep(KEEP_ALIVE) => return Step::Silence,
        };
        match next {
            Ok(Next::Changes(changes)) => {
                let ended = changes.iter().any(|change| change.job.status.is_terminal());
                let changes = changes.into_iter().map(|change| (StreamPosition::behind(change.seq), change)).collect();
                let frames = self.frames(changes).await;
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

    fn step(&mut self, frames: Result<Vec<(StreamPosition, Vec<u8>)>, Error>, ended: bool) -> Step {
        match frames {
            Ok(frames) => {
                // Not before the last of its frames was made.
                self.over = ended && self.until_end && self.first.is_empty();
                Step::Frames(frames)
            }
            Err(_) => Step::Over,
        }
    }

    /// The frames of changes; when they grow large, of the first of them, and the others come next.
    async fn frames(
        &mut self,
        changes: Vec<(StreamPosition, Change)>,
    ) -> Result<Vec<(StreamPosition, Vec<u8>)>, Error> {
        let mut frames = Vec::with_capacity(changes.len());
        let mut bytes = 0;
        let mut changes = changes.into_iter();
        while bytes < FRAMES_BYTES_MAX {
            let Some((place, change)) = changes.next() else { break };
            if self.view == View::Plain && !change.is_transition() {
                continue;
            }
            let shown = self.service.show_change(&change).await?;
            let mut data = Vec::with_capacity(1024);
            write_frame(&mut data, &shown, change.old_status, change.at, Some(change.change), self.view);
            bytes += data.len();
            frames.push((place, data));
        }
        self.first = changes.collect();
        Ok(frames)
    }
}

fn event_frame(place: StreamPosition, data: &[u8]) -> Vec<u8> {
    sse_frame(place, "job", data)
}

fn sse(feed: Feed) -> Response {
    let frames = stream::unfold(feed, |mut feed| async move {
        let bytes = match feed.next().await {
            Step::Frames(frames) => frames.iter().flat_map(|(place, data)| event_frame(*place, data)).collect(),
            Step::Silence => b": alive\n\n".to_vec(),
            Step::Behind | Step::Over => return None,
        };
        Some((Ok::<_, Infallible>(bytes), feed))
    });
    sse_response(Body::from_stream(frames))
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
