//! Streams of events: opened, read frame by frame, and resumed when they break.

use std::collections::VecDeque;
use std::time::Duration;

use atlas_http::sse::ServerEvent;
use http::Method;
use http::header::{ACCEPT, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::Client;
use crate::failure::Failure;
use crate::sse::Reader;

/// How many times in a row a broken stream is resumed without a new event in between, with a pause before each attempt.
const RESUMES_MAX: u32 = 20;
const RESUME_PAUSE: Duration = Duration::from_millis(250);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// An open stream of events.
pub(crate) struct Events<'a> {
    client: &'a Client,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    pieces: Incoming,
    reader: Reader,
    frames: VecDeque<ServerEvent>,
    /// The id of the last event that was handed out.
    last: String,
    resumes: u32,
    broken: bool,
}

impl Client {
    /// Opens a stream of events; the stream contains every event after this function returns.
    pub(crate) async fn open<'a>(
        &'a self,
        path: &'a [&'a str],
        query: &'a [(&'a str, &'a str)],
    ) -> Result<Events<'a>, Failure> {
        let pieces = self.pieces(path, query, "").await?;
        let (reader, frames, last) = (Reader::default(), VecDeque::new(), String::new());
        Ok(Events { client: self, path, query, pieces, reader, frames, last, resumes: 0, broken: false })
    }

    async fn pieces(&self, path: &[&str], query: &[(&str, &str)], last: &str) -> Result<Incoming, Failure> {
        let mut request = self.request(Method::GET, path)?.query(query);
        if !last.is_empty() {
            request = request.header_of(LAST_EVENT_ID, last)?;
        }
        let accept = HeaderValue::from_static("text/event-stream, application/problem+json");
        Ok(self.send(request.header(ACCEPT, accept)).await?.into_body())
    }
}

impl Events<'_> {
    /// Whether the stream would repeat events if it were opened again. A log begins with its first line, so it repeats nothing
    /// as long as no line has come; pieces of answers have no ids and are not sent again.
    fn would_repeat(&self) -> bool {
        self.last.is_empty() && self.path.last() != Some(&"logs")
    }

    /// The next event; none at the end of the stream. Cancel safe: dropping the future loses no event.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerEvent>, Failure> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                if !frame.id.is_empty() {
                    frame.id.clone_into(&mut self.last);
                    self.resumes = 0;
                }
                return Ok(Some(frame));
            }
            if self.broken {
                self.client.env.clock.sleep(RESUME_PAUSE).await;
                self.pieces = self.client.pieces(self.path, self.query, &self.last).await?;
                (self.reader, self.broken) = (Reader::default(), false);
            }
            match self.pieces.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.frames.extend(self.reader.push(&piece)?);
                    }
                }
                // Resuming a stream without ids would repeat its events.
                Some(Err(error)) if self.would_repeat() || self.resumes >= RESUMES_MAX => {
                    return Err(self.client.unreachable(&error));
                }
                Some(Err(_)) => (self.resumes, self.broken) = (self.resumes + 1, true),
                None => return Ok(None),
            }
        }
    }
}
