//! The beginning of a stream of events, sent together: a call that ends at once is then one write, and its client is woken once. Otherwise
//! it would be woken for the event without a message, with which a stream begins, for the answer, and for the end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use atlas_env::Clock;
use bytes::{Bytes, BytesMut};
use http::header;
use http_body::Frame;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How long a stream without a message is held back.
const HOLD: Duration = Duration::from_millis(20);

/// How often other tasks run before a message is sent, so that an answer and the end of its stream go together.
const TURNS: usize = 4;

/// The bytes from which on nothing is held back.
const BYTES_MAX: usize = 64 * 1_024;

/// An answer whose stream begins with the events until the first message, and with what follows that without a pause.
pub(crate) async fn begun(response: http::Response<Body>, clock: &dyn Clock) -> http::Response<Body> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let (head, mut body) = response.into_parts();
    let first = Beginning::of(&mut body, clock).await;
    let body = BegunBody { first: first.bytes.freeze(), rest: (!first.is_all).then_some(body) };
    http::Response::from_parts(head, body.boxed_unsync())
}

/// Whether a frame, which is one event, has data and all of it is empty. Comments keep a connection open and have none.
pub(crate) fn is_without_message(frame: &Frame<Bytes>) -> bool {
    let lines = frame.data_ref().into_iter().flat_map(|bytes| bytes.split(|byte| *byte == b'\n'));
    let mut data = lines.filter_map(|line| line.strip_prefix(b"data:")).peekable();
    data.peek().is_some() && data.all(|data| data.trim_ascii().is_empty())
}

/// What a stream has at once.
#[derive(Default)]
struct Beginning {
    bytes: BytesMut,
    has_message: bool,
    /// Whether the stream has ended.
    is_all: bool,
}

impl Beginning {
    async fn of(body: &mut Body, clock: &dyn Clock) -> Self {
        let mut beginning = Self::default();
        let mut held = clock.sleep(HOLD);
        while beginning.waits() && !beginning.has_message {
            tokio::select! {
                biased;
                frame = body.frame() => beginning.add(frame),
                () = &mut held => return beginning,
            }
        }
        let mut turns = 0;
        while beginning.waits() && turns < TURNS {
            match futures::poll!(body.frame()) {
                Poll::Ready(frame) => beginning.add(frame),
                Poll::Pending => {
                    turns += 1;
                    tokio::task::yield_now().await;
                }
            }
        }
        beginning
    }

    fn waits(&self) -> bool {
        !self.is_all && self.bytes.len() < BYTES_MAX
    }

    fn add(&mut self, frame: Option<Result<Frame<Bytes>, Infallible>>) {
        let Some(Ok(frame)) = frame else {
            self.is_all = true;
            return;
        };
        self.has_message |= !is_without_message(&frame);
        self.bytes.extend_from_slice(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
    }
}

/// A stream with its beginning.
struct BegunBody {
    first: Bytes,
    /// None if nothing follows.
    rest: Option<Body>,
}

impl http_body::Body for BegunBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        self.rest.as_mut().map_or(Poll::Ready(None), |rest| Pin::new(rest).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.as_ref().is_none_or(http_body::Body::is_end_stream)
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use atlas_types::Timestamp;
    use futures::stream::{self, Stream, StreamExt as _};
    use http::HeaderValue;
    use http_body::Body as _;
    use http_body_util::StreamBody;

    use super::*;

    const PRIMING: &str = "data: \nid: 0\n\n";
    const ANSWER: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";

    /// A clock on which no time passes, or on which all waits are over.
    struct Still {
        is_over: bool,
    }

    impl Clock for Still {
        fn wall(&self) -> Timestamp {
            Timestamp(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            if self.is_over { Box::pin(ready(())) } else { Box::pin(std::future::pending()) }
        }
    }

    fn response(events: impl Stream<Item = &'static str> + Send + 'static) -> http::Response<Body> {
        let frames = events.map(|event| Ok::<_, Infallible>(Frame::data(Bytes::from_static(event.as_bytes()))));
        let mut response = http::Response::new(StreamBody::new(frames).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    /// The events, each after other tasks have run.
    fn one_by_one(events: &'static [&'static str]) -> impl Stream<Item = &'static str> + Send {
        stream::iter(events).then(|event| async move {
            tokio::task::yield_now().await;
            *event
        })
    }

    async fn first(response: &mut http::Response<Body>) -> String {
        let frame = response.body_mut().frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
        String::from_utf8_lossy(&frame.unwrap_or_default()).into_owned()
    }

    #[tokio::test]
    async fn an_answer_goes_together_with_the_beginning_and_the_end_of_its_stream() {
        let mut answer = begun(response(one_by_one(&[PRIMING, ANSWER])), &Still { is_over: false }).await;
        assert_eq!(first(&mut answer).await, format!("{PRIMING}{ANSWER}"));
        assert!(answer.body().is_end_stream());
    }

    #[tokio::test]
    async fn what_follows_a_message_with_a_pause_follows_it_here_as_well() {
        let events = one_by_one(&[PRIMING, ANSWER]).chain(stream::pending());
        let mut answer = begun(response(events), &Still { is_over: false }).await;
        assert_eq!(first(&mut answer).await, format!("{PRIMING}{ANSWER}"));
        assert!(!answer.body().is_end_stream());
        assert!(futures::poll!(answer.body_mut().frame()).is_pending());
    }

    #[tokio::test]
    async fn a_stream_without_a_message_is_not_held_for_long() {
        let (tell, told) = futures::channel::mpsc::unbounded();
        let mut answer = begun(response(stream::iter([PRIMING]).chain(told)), &Still { is_over: true }).await;
        assert_eq!(first(&mut answer).await, PRIMING);
        tell.unbounded_send(ANSWER).expect("somebody reads");
        drop(tell);
        assert_eq!(first(&mut answer).await, ANSWER);
        assert!(answer.body_mut().frame().await.is_none());
    }

    #[test]
    fn only_events_whose_data_is_empty_have_no_message() {
        let check = |text: &'static str, expected: bool| {
            assert_eq!(is_without_message(&Frame::data(Bytes::from_static(text.as_bytes()))), expected, "{text:?}");
        };
        check("data: \nid: 0\nretry: 3000\n\n", true);
        check("id: 0\ndata:\n\n", true);
        check("data: {}\nid: 1\n\n", false);
        check("data: \ndata: {}\n\n", false);
        check(":\n\n", false);
        check("id: 3\n\n", false);
    }
}
