//! The stream as server-sent events. Streams of all changes share what they send.

use std::convert::Infallible;

use atlas_service::Next;
use axum::body::Body;
use bytes::Bytes;
use futures::stream;

use super::{Feed, KEEP_ALIVE, Step, StreamPosition, sse_response, stopped};
use crate::http::answer::{Response, sse_passing, write_sse_frame};
use crate::http::frames;
use crate::http::portions::{Place, Portion};

/// A comment, which says that the stream is open.
const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// About the size of what a frame has besides its JSON.
const HEAD_BYTES: usize = 48;

pub(super) fn sse(feed: Feed) -> Response {
    let frames = stream::unfold(feed, |mut feed| async move {
        let bytes = feed.next_bytes().await?;
        Some((Ok::<_, Infallible>(bytes), feed))
    });
    sse_response(Body::from_stream(frames))
}

fn written(frames: &[(StreamPosition, Bytes)]) -> Bytes {
    let size = frames.iter().map(|(_, data)| data.len() + HEAD_BYTES).sum();
    let mut bytes = Vec::with_capacity(size);
    frames.iter().for_each(|(place, data)| write_sse_frame(&mut bytes, place, "job", data));
    bytes.into()
}

impl Feed {
    /// The next bytes; none at the end of the stream.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        if self.is_of_all && self.first.is_empty() {
            return self.next_portion().await;
        }
        Some(match self.next().await {
            Step::Frames(frames) => written(&frames),
            Step::Pieces(pieces) => {
                let pieces = pieces.iter().flat_map(|piece| sse_passing(piece.name, &piece.json));
                pieces.collect::<Vec<_>>().into()
            }
            Step::Silence => ALIVE,
            Step::Behind | Step::Over => return None,
        })
    }

    /// The next bytes of a stream of all changes, which another stream may have built.
    async fn next_portion(&mut self) -> Option<Bytes> {
        // Also events that are not shown do not put it off.
        let mut silence = self.env.clock.sleep(KEEP_ALIVE);
        loop {
            tokio::select! {
                biased;
                () = &mut silence => return Some(ALIVE),
                open = self.reader.wait() => open.then_some(())?,
                () = stopped(&mut self.stop) => return None,
            }
            let (after, namespace) = (self.reader.cursor(), self.reader.namespace().clone());
            let place = Place { after, view: self.view, namespace };
            self.erased = self.reader.erased();
            let frames = match self.frames.portions.get(&place, self.erased) {
                Some(portion) => {
                    self.reader.skip(portion.through);
                    portion.frames
                }
                None => self.build_portion(place).await?,
            };
            if !frames.is_empty() {
                return Some(frames);
            }
        }
    }

    async fn build_portion(&mut self, place: Place) -> Option<Bytes> {
        let changes = match self.reader.read().await {
            Ok(Next::Changes(changes)) => changes,
            Ok(Next::Behind | Next::Over) => return None,
            Err(error) => {
                tracing::warn!(%error, "an event stream was interrupted");
                return None;
            }
        };
        let through = self.reader.cursor();
        // Artifacts are large, and an erasure shall remove them at once.
        let are_inline = changes.iter().all(frames::is_inline);
        let changes = changes.into_iter().map(|change| (StreamPosition::behind(change.seq), change)).collect();
        let frames = written(&self.frames(changes, true).await.ok()?);
        if are_inline && self.first.is_empty() && through > place.after {
            self.frames.portions.keep(place, Portion { frames: frames.clone(), through }, self.erased);
        }
        Some(frames)
    }
}
