//! What `rmcp` asks of a store of sessions: which are live, and what the client of one that rests said when it opened it.

use std::fmt::Write as _;
use std::future::ready;
use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionError,
};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager, SessionState, SessionStore, SessionStoreError,
};

use super::{Sessions, Stage};

type Transport = <LocalSessionManager as SessionManager>::Transport;
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

impl Sessions {
    /// Notes that the service of a session has ended that is being put to rest. False if it is not.
    fn has_rested(&self, id: &str) -> bool {
        let mut known = self.known();
        let Some(session) = known.all.get_mut(id).filter(|session| session.stage == Stage::Parting) else {
            return false;
        };
        session.stage = Stage::Resting;
        drop(known);
        self.changed.notify_waiters();
        true
    }

    /// How often a session came back.
    fn wakings(&self, id: &str) -> u32 {
        self.known().all.get(id).map_or(0, |session| session.wakings)
    }
}

/// Gives the events of a session that came back ids of their own, because `rmcp` counts them from 0 again.
fn with_waking(mut event: ServerSseMessage, wakings: u32) -> ServerSseMessage {
    if let Some(id) = event.event_id.as_mut().filter(|_| wakings > 0) {
        // Writing to a string does not fail.
        let _ = write!(id, "-{wakings}");
    }
    event
}

/// The id that `rmcp` gave an event. None for one of before the last waking.
fn without_waking(id: &str, wakings: u32) -> Option<&str> {
    if wakings > 0 { id.strip_suffix(&format!("-{wakings}")) } else { Some(id) }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = Transport;

    async fn create_session(&self) -> Result<(SessionId, Transport), Self::Error> {
        let (id, transport) = self.live.create_session().await?;
        self.opened(&id);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.live.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.live.has_session(id).await
    }

    /// Called for a client that ends its session, and when the service of a session has ended.
    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if self.has_rested(id) {
            return Ok(());
        }
        self.known().remove(id);
        self.live.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let wakings = self.wakings(id);
        let events = self.live.create_stream(id, message).await?;
        Ok(events.map(move |event| with_waking(event, wakings)))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.live.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let wakings = self.wakings(id);
        let events = self.live.create_standalone_stream(id).await?;
        Ok(events.map(move |event| with_waking(event, wakings)))
    }

    /// After the session rested, a stream of notifications begins anew: with all that were not fetched. Nothing follows in that of a call, as
    /// no session rests whose client did not get an answer.
    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let wakings = self.wakings(id);
        let events = match without_waking(&last_event_id, wakings) {
            Some(last) => self.live.resume(id, last.to_owned()).await?.left_stream(),
            None if last_event_id.contains('/') => return Err(SessionError::InvalidEventId.into()),
            None => self.live.create_standalone_stream(id).await?.right_stream(),
        };
        Ok(events.map(move |event| with_waking(event, wakings)))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Transport>, Self::Error> {
        let restored = self.live.restore_session(id.clone()).await?;
        if let Some(session) = self.known().all.get_mut(&id) {
            session.stage = Stage::Waking { begun: true };
            session.wakings += 1;
        }
        Ok(restored)
    }
}

impl SessionStore for Sessions {
    /// What the client of a session has said that is brought back.
    fn load<'s, 'i, 'a>(&'s self, id: &'i str) -> Answer<'a, Option<SessionState>>
    where
        's: 'a,
        'i: 'a,
        Self: 'a,
    {
        let known = self.known();
        let session = known.all.get(id).filter(|session| session.stage == Stage::Waking { begun: false });
        let said = session.and_then(|session| session.said.clone());
        Box::pin(ready(Ok(said)))
    }

    fn store<'s, 'i, 't, 'a>(&'s self, id: &'i str, said: &'t SessionState) -> Answer<'a, ()>
    where
        's: 'a,
        'i: 'a,
        't: 'a,
        Self: 'a,
    {
        if let Some(session) = self.known().all.get_mut(id) {
            session.said = Some(said.clone());
        }
        Box::pin(ready(Ok(())))
    }

    fn delete<'s, 'i, 'a>(&'s self, id: &'i str) -> Answer<'a, ()>
    where
        's: 'a,
        'i: 'a,
        Self: 'a,
    {
        self.known().remove(id);
        Box::pin(ready(Ok(())))
    }
}
