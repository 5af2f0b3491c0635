//! Clients of streams: server-sent events, which are resumed at another controller after a break, and WebSockets.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use atlas_env::{Env, Task};
use serde_json::Value;
use tungstenite::{Message, WebSocket};

use crate::patience::LONG;

/// Pause before a broken stream is resumed.
const PAUSE: Duration = Duration::from_millis(50);

/// One event with its id and data.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// All events that a client of server-sent events received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) frames: Vec<Frame>,
    /// Number of breaks before the stream was complete.
    pub(crate) breaks: usize,
}

/// Follows a stream from its beginning at the first controller; after a break, it resumes after the last id at the next
/// controller. It ends when the stream is `whole`; a stream that ends earlier counts as broken.
pub(crate) fn follow(controllers: Vec<SocketAddr>, path: String, whole: Whole) -> Task<Received> {
    Env::system().spawn("stream", async move {
        let clock = Env::system().clock;
        // Without pooling, no connection to a killed controller is reused.
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
        let deadline = clock.monotonic() + 2 * LONG;
        let mut told = Received::default();
        for controller in controllers.iter().cycle() {
            let request = http.get(format!("http://{controller}{path}")).header("Accept", "text/event-stream");
            let request = match told.frames.last() {
                Some(last) => request.header("Last-Event-ID", &last.id),
                None => request,
            };
            if read(request, &mut told.frames, whole).await {
                return told;
            }
            told.breaks += 1;
            assert!(clock.monotonic() < deadline, "{path} is not whole after {:?}: {told:?}", 2 * LONG);
            clock.sleep(PAUSE).await;
        }
        told
    })
}

/// Reads a stream until it is complete (true) or breaks (false).
async fn read(request: reqwest::RequestBuilder, frames: &mut Vec<Frame>, whole: Whole) -> bool {
    let Some(mut answer) = request.send().await.ok().filter(|answer| answer.status().is_success()) else {
        return false;
    };
    let mut text = String::new();
    loop {
        // A stream that is silent for longer than its keep-alive interval is broken.
        match tokio::time::timeout(LONG, answer.chunk()).await {
            Ok(Ok(Some(piece))) => text.push_str(&String::from_utf8_lossy(&piece)),
            Ok(Ok(None)) => return matches!(whole, Whole::AtItsEnd(whole) if whole(frames)),
            Ok(Err(_)) | Err(_) => return false,
        }
        while let Some((frame, rest)) = text.split_once("\n\n").map(|(frame, rest)| (frame.to_owned(), rest.to_owned()))
        {
            frames.extend(frame_of(&frame));
            text = rest;
        }
        if matches!(whole, Whole::Ends(count) if frames.iter().filter(|frame| is_end(&frame.data)).count() >= count) {
            return true;
        }
    }
}

/// When a stream is complete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whole {
    /// When the stream ends in order and its frames fulfil this condition.
    AtItsEnd(fn(&[Frame]) -> bool),
    /// As soon as this many jobs have ended; such a stream never ends by itself.
    Ends(usize),
}

/// Whether the event reports a completed job.
pub(crate) fn is_end(data: &Value) -> bool {
    data["new_status"] == "completed"
}

/// Parses a frame; none for a comment.
fn frame_of(text: &str) -> Option<Frame> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let data = serde_json::from_str(field("data:")?).expect("JSON");
    Some(Frame { id: field("id:").expect("every event has one").to_owned(), data })
}

/// Opens a WebSocket; it receives all events after this function returns.
pub(crate) fn open(controller: SocketAddr, path: &str) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(controller).expect("connects");
    stream.set_read_timeout(Some(LONG)).expect("settable");
    let (socket, _) = tungstenite::client(format!("ws://{controller}{path}"), stream).expect("upgraded");
    socket
}

/// Reads the messages of a WebSocket until the server closes it in order or `enough` is true.
pub(crate) fn hear(
    mut socket: WebSocket<TcpStream>,
    enough: impl Fn(&[Value]) -> bool + Send + 'static,
) -> Task<Vec<Value>> {
    let mut told = Vec::new();
    let read = move || loop {
        match socket.read() {
            Ok(Message::Text(text)) => told.push(serde_json::from_str(&text).expect("JSON")),
            Ok(Message::Close(frame)) => {
                assert_eq!(frame.map(|frame| u16::from(frame.code)), Some(1000), "after {told:?}");
                return told;
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("the socket broke: {error}, after {told:?}"),
        }
        if enough(&told) {
            return told;
        }
    };
    Env::system().spawn_blocking("socket", read)
}
