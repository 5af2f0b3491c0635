//! A WebSocket client that collects frames.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use atlas_env::Env;
use serde_json::Value;
use tungstenite::{HandshakeError, Message, WebSocket};

use crate::result::Stop;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(20);

/// A socket and its received frames.
pub(crate) struct Socket {
    inner: WebSocket<TcpStream>,
    env: Env,
    /// The frames received so far, as JSON.
    pub(crate) frames: Vec<Value>,
    /// None while the socket is open; otherwise the server's close code, if it sent one.
    pub(crate) closed: Option<Option<u16>>,
}

/// The server's answer to the handshake.
pub(crate) enum Opened {
    /// The server accepted the handshake.
    Socket(Box<Socket>),
    /// The server refused with this status.
    Refused(u16),
}

impl Socket {
    /// Opens a socket.
    pub(crate) fn open(address: &str, path: &str) -> Result<Opened, Stop> {
        let failed = |error: &dyn std::error::Error| Stop::system(&format!("open a WebSocket at {path}"), error);
        let stream = TcpStream::connect(address).map_err(|error| failed(&error))?;
        match tungstenite::client(format!("ws://{address}{path}"), stream) {
            Ok((inner, _)) => {
                inner.get_ref().set_read_timeout(Some(LOOK)).map_err(|error| failed(&error))?;
                let socket = Self { inner, env: Env::system(), frames: Vec::new(), closed: None };
                Ok(Opened::Socket(Box::new(socket)))
            }
            Err(HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Ok(Opened::Refused(answer.status().as_u16()))
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// Collects frames until `enough` is true, the server closes the socket, or the time is up.
    pub(crate) fn collect(&mut self, within: Duration, enough: impl Fn(&[Value]) -> bool) -> Result<(), Stop> {
        let deadline = self.env.clock.monotonic() + within;
        while self.closed.is_none() && !enough(&self.frames) && self.env.clock.monotonic() < deadline {
            self.read()?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Stop> {
        match self.inner.read() {
            Ok(Message::Text(text)) => {
                let frame = serde_json::from_str(&text).map_err(|error| Stop::system("read a frame", error))?;
                self.frames.push(frame);
            }
            Ok(Message::Close(frame)) => self.closed = Some(frame.map(|frame| frame.code.into())),
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // The connection ended without a closing frame.
            Err(_) => self.closed = Some(None),
        }
        Ok(())
    }
}
