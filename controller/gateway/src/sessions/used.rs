//! A request in a session, from its head to the last byte of its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

use super::Sessions;

/// How long `rmcp` may take to forget a waking.
const FORGET: Duration = Duration::from_millis(5);

/// A request that is being answered. Dropping it before its end means that the client may have lost the answer.
pub(crate) struct InUse {
    sessions: Arc<Sessions>,
    id: Box<str>,
    /// Whether the session rested before the request, and is not back yet.
    pub(crate) rested: bool,
    whole: bool,
}

impl InUse {
    pub(super) fn new(sessions: &Arc<Sessions>, id: &str, rested: bool) -> Self {
        Self { sessions: Arc::clone(sessions), id: id.into(), rested, whole: false }
    }

    /// The session has its service.
    pub(crate) fn woke(&mut self) {
        if std::mem::take(&mut self.rested) {
            self.sessions.woke(&self.id, true);
        }
    }

    /// Whether nothing began to bring the session back: for a moment, `rmcp` takes the request for one of the waking before, which has ended or
    /// was given up. Waits for that moment to pass.
    pub(crate) async fn still_rests(&self) -> bool {
        let rests = self.rested && self.sessions.is_to_wake(&self.id);
        if rests {
            self.sessions.env.clock.sleep(FORGET).await;
        }
        rests
    }

    /// The client has the whole answer, or needs no more of it.
    pub(crate) fn end(mut self) {
        self.whole = true;
    }

    /// A body whose end is that of the request. A stream of notifications (`endless`) loses nothing when its client leaves it.
    pub(crate) fn until_end(mut self, body: UnsyncBoxBody<Bytes, Infallible>, endless: bool) -> UsedBody {
        self.whole = endless;
        let mut body = UsedBody { body, used: Some(self) };
        body.look();
        body
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if self.rested {
            self.sessions.woke(&self.id, false);
        }
        self.sessions.left(&self.id, self.whole);
    }
}

/// The body of an answer in a session.
pub(crate) struct UsedBody {
    body: UnsyncBoxBody<Bytes, Infallible>,
    used: Option<InUse>,
}

impl UsedBody {
    /// Ends the request if nothing follows. Servers do not ask for more then.
    fn look(&mut self) {
        if self.body.is_end_stream() {
            self.used.take().into_iter().for_each(InUse::end);
        }
    }
}

impl Body for UsedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match frame {
            Poll::Ready(None) => self.used.take().into_iter().for_each(InUse::end),
            Poll::Ready(Some(_)) => self.look(),
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
