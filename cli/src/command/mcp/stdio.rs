//! `atlasctl mcp stdio`: a bridge for clients that start a program and speak to it over its standard input and output.
//!
//! Each line is sent to the gateway as it is. The bridge knows sessions only so far as to carry their id, and to open a new one when
//! the controller that had it is gone: jobs do not hang on sessions.

use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::envelope::{Envelope, Session, failure};
use crate::client::{Client, McpAnswer};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Largest message of the client.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// The pause before the stream of the server's messages is opened again.
const LISTEN_PAUSE: Duration = Duration::from_secs(2);
/// How long calls under way may take after the client closed its end.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// How many lines may wait to be sent.
const LINES_AHEAD: usize = 16;

/// Serves until the client closes standard input.
pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    bridge(context.client()?, &|note| context.note(note)).await?;
    Ok(Exit::Done)
}

/// Passes messages between standard input and output and the MCP server at `/mcp` of an address, until standard input is closed. `note`
/// gets what a person should read.
pub async fn bridge(client: Client, note: &(dyn Fn(&str) + Sync)) -> Result<(), Failure> {
    let bridge = Arc::new(Bridge { client, opened: Mutex::default(), renewing: tokio::sync::Mutex::default() });
    let mut lines = lines()?;
    let mut calls = JoinSet::new();
    let mut listening = JoinSet::new();
    while let Some(line) = lines.recv().await {
        let envelope = match line.and_then(|line| Envelope::read(&line).map(|envelope| (envelope, line))) {
            Ok(envelope) => envelope,
            Err(refusal) => {
                print(&refusal)?;
                continue;
            }
        };
        let (envelope, line) = envelope;
        while calls.try_join_next().is_some() {}
        // The order of requests does not matter, except that a session is opened before anything is sent in it.
        if envelope.id.is_none() || envelope.is_initialize() {
            if let Err(error) = bridge.forward(&envelope, &line).await {
                note(&format!("{}: {}", envelope.method, error.message));
            }
        } else {
            let (bridge, envelope) = (bridge.clone(), envelope.clone());
            calls.spawn(async move { bridge.forward(&envelope, &line).await });
        }
        if envelope.method == "notifications/initialized" && listening.is_empty() {
            let bridge = bridge.clone();
            listening.spawn(async move { bridge.listen().await });
        }
    }
    let ended = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_MAX, ended).await;
    if let Some(session) = bridge.session() {
        let _ = bridge.client.mcp(Method::DELETE, &session.headers(), None).await;
    }
    Ok(())
}

/// The lines of standard input, without empty ones, or the refusal of one that is too long. A thread of its own reads them: standard
/// input may be a file or a terminal, which cannot be polled.
fn lines() -> Result<mpsc::Receiver<Result<String, Value>>, Failure> {
    let (send, lines) = mpsc::channel(LINES_AHEAD);
    let begun = Env::system().thread("stdin", move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if !matches!(read, Ok(bytes) if bytes > 0) {
                return;
            }
            let cut = line.len() as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n');
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            let line = match cut {
                true => Err(failure(&Value::Null, -32600, &format!("a message is longer than {LINE_BYTES_MAX} bytes"))),
                false if text.is_empty() => continue,
                false => Ok(text),
            };
            if send.blocking_send(line).is_err() || cut {
                return;
            }
        }
    });
    begun.map_err(|error| Failure::usage(format!("no thread for standard input: {error}")))?;
    Ok(lines)
}

struct Bridge {
    client: Client,
    opened: Mutex<Option<Opened>>,
    /// Held while a lost session is opened again, so that it happens once.
    renewing: tokio::sync::Mutex<()>,
}

/// A session and the message that opened it.
#[derive(Clone)]
struct Opened {
    session: Session,
    initialize: String,
}

impl Bridge {
    fn opened(&self) -> Option<Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn session(&self) -> Option<Session> {
        self.opened().map(|opened| opened.session)
    }

    /// Sends a message and prints what comes back. The failure of a request is an answer to the client.
    async fn forward(&self, envelope: &Envelope, line: &str) -> Result<(), Failure> {
        let sent = self.send(envelope, line).await;
        let answered = match sent {
            Ok(answer) => self.pass_on(envelope, line, answer).await,
            Err(error) => Err(error),
        };
        match (answered, &envelope.id) {
            (Ok(()), _) => Ok(()),
            (Err(error), Some(id)) => print(&failure(id, -32000, &error.message)),
            (Err(error), None) => Err(error),
        }
    }

    async fn send(&self, envelope: &Envelope, line: &str) -> Result<McpAnswer, Failure> {
        let session = self.session();
        let answer = self.post(envelope, session.as_ref(), line).await?;
        match session {
            // The session is unknown, so nothing was done: its controller stopped, or it was idle for too long.
            Some(lost) if answer.status == StatusCode::NOT_FOUND && !envelope.is_stateless() => {
                let session = self.renew(&lost).await?;
                self.post(envelope, Some(&session), line).await
            }
            _ => Ok(answer),
        }
    }

    async fn post(&self, envelope: &Envelope, session: Option<&Session>, line: &str) -> Result<McpAnswer, Failure> {
        self.client.mcp(Method::POST, &envelope.headers(session), Some(line.to_owned())).await
    }

    /// Opens a session again instead of a lost one, with the same message as the client did.
    async fn renew(&self, lost: &Session) -> Result<Session, Failure> {
        let _one = self.renewing.lock().await;
        let Some(opened) = self.opened() else { return Ok(lost.clone()) };
        if opened.session != *lost {
            return Ok(opened.session);
        }
        let mut answer = self.client.mcp(Method::POST, &[], Some(opened.initialize.clone())).await?;
        let Some(id) = answer.session.clone() else {
            return Err(Failure::answer(format!("no session was opened: {}", answer.status)));
        };
        while answer.next().await?.is_some() {}
        let session = Session { id, ..opened.session };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        self.client.mcp(Method::POST, &session.headers(), Some(initialized)).await?;
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Opened { session: session.clone(), initialize: opened.initialize });
        Ok(session)
    }

    /// Prints the messages of an answer.
    async fn pass_on(&self, envelope: &Envelope, line: &str, mut answer: McpAnswer) -> Result<(), Failure> {
        let mut answered = false;
        let status = answer.status;
        while let Some(text) = answer.next().await? {
            let Ok(message) = serde_json::from_str::<Value>(&text) else {
                let text: String = text.chars().take(200).collect();
                return Err(Failure::usage(format!("the gateway answered with {status}: {text}")));
            };
            if envelope.is_initialize()
                && let Some(id) = answer.session.take()
            {
                let version = message["result"]["protocolVersion"].as_str().unwrap_or_default().to_owned();
                let opened = Opened { session: Session { id, version }, initialize: line.to_owned() };
                *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            }
            answered |= message.get("id") == envelope.id.as_ref();
            print(&message)?;
        }
        match answered || envelope.id.is_none() {
            true => Ok(()),
            false => Err(Failure::answer(format!("the answer ended without a result ({status})"))),
        }
    }

    /// Prints the messages that the server sends by itself, as long as there is a session.
    async fn listen(&self) {
        let clock = Env::system().clock;
        while let Some(session) = self.session() {
            match self.client.mcp(Method::GET, &session.headers(), None).await {
                Ok(mut answer) if answer.status.is_success() => {
                    while let Ok(Some(text)) = answer.next().await {
                        if let Ok(message) = serde_json::from_str(&text)
                            && print(&message).is_err()
                        {
                            return;
                        }
                    }
                }
                // A lost session is opened again by the next request.
                Ok(_) | Err(_) => {}
            }
            clock.sleep(LISTEN_PAUSE).await;
        }
    }
}

/// One message on a line.
fn print(message: &Value) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{message}").and_then(|()| out.flush());
    written.map_err(|error| Failure::usage(format!("standard output is closed: {error}")))
}
