//! `GET /api/cluster/events`: server-sent events of every kind, from now on or after the last one that a client has
//! seen.

use std::convert::Infallible;

use atlas_env::Env;
use atlas_service::{Caller, EventFilter, EventKind, Follow, Next, Reader, Service};
use atlas_types::{EventRecord, EventSeq};
use axum::body::Body;
use futures::stream;
use tokio::sync::watch;

use super::HttpDoor;
use super::answer::{Answer, Problem, write_sse_frame};
use super::events::{KEEP_ALIVE, sse_response};
use super::query::Query;
use super::request::Request;

/// One client's stream.
struct Feed {
    service: Service,
    reader: Reader,
    filter: EventFilter,
    env: Env,
    stop: watch::Receiver<bool>,
}

pub(crate) async fn all(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    if !request.accepts_sse() {
        return Err(Problem::malformed("this is an event stream: ask with 'Accept: text/event-stream'"));
    }
    let after = match request.last_event() {
        Some(text) => Some(text.trim().parse().map(EventSeq).map_err(|_| {
            Problem::malformed("the last event seen ('after' or 'Last-Event-ID') must be a whole number")
        })?),
        None => None,
    };
    let filter = filter(&request.query())?;
    let reader = door.service.follow(caller, Follow { after, ..Follow::default() }).await?;
    let feed = Feed { service: door.service.clone(), reader, filter, env: door.env.clone(), stop: door.stop.clone() };
    let frames = stream::unfold(feed, |mut feed| async move {
        let bytes = feed.next().await?;
        Some((Ok::<_, Infallible>(bytes), feed))
    });
    Ok(sse_response(Body::from_stream(frames)))
}

/// The filter that `kind` and `name` describe.
fn filter(query: &Query<'_>) -> Result<EventFilter, Problem> {
    let kinds = query.filled("kind").unwrap_or_default();
    let kinds = kinds.split(',').map(str::trim).filter(|word| !word.is_empty());
    let kinds = kinds.map(|word| {
        EventKind::of_word(word).ok_or_else(|| {
            let known = EventKind::ALL.map(EventKind::as_str);
            let word: String = word.chars().take(64).collect();
            let nearest = atlas_contract::nearest(&word, known).map_or_else(
                || format!("known here: {}", known.join(", ")),
                |nearest| format!("did you mean \"{nearest}\"?"),
            );
            Problem::malformed(format!("unknown kind of events \"{}\"; {nearest}", word.escape_debug()))
        })
    });
    Ok(EventFilter { kinds: kinds.collect::<Result<_, _>>()?, name: query.filled("name") })
}

impl Feed {
    /// The next data to send. None ends the stream.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let next = tokio::select! {
            biased;
            next = self.reader.next_events(&self.filter) => next,
            () = async { drop(self.stop.wait_for(|stop| *stop).await) } => return None,
            () = self.env.clock.sleep(KEEP_ALIVE) => return Some(b": alive\n\n".to_vec()),
        };
        match next {
            Ok(Next::Changes(events)) => self.frames(&events).await,
            Ok(Next::Behind | Next::Over) => None,
            Err(error) => {
                tracing::warn!(%error, "an event stream was interrupted");
                None
            }
        }
    }

    async fn frames(&self, events: &[EventRecord]) -> Option<Vec<u8>> {
        let mut frames = Vec::new();
        for event in events {
            let mut data = Vec::with_capacity(512);
            self.service.write_event(&mut data, event).await.ok()?;
            write_sse_frame(&mut frames, event.seq.0, EventKind::of(&event.event).as_str(), &data);
        }
        Some(frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_words_with_commas_between() {
        let read = |text: &str| filter(&Query::new(Some(text)));
        let both = read("kind=node,agent&name=w1").expect("a filter");
        assert_eq!((both.kinds, both.name.as_deref()), (vec![EventKind::Node, EventKind::Agent], Some("w1")));
        assert!(read("").expect("a filter").kinds.is_empty());
        let Err(Problem::Service(error)) = read("kind=nodes") else { panic!("nodes is no kind") };
        assert_eq!(error.to_string(), "unknown kind of events \"nodes\"; did you mean \"node\"?");
    }
}
