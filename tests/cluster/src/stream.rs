//! Clients of streams: server-sent events, resumed at another controller when one breaks, and WebSockets.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use atlas_env::{Env, Task};
use serde_json::Value;
use tungstenite::{Message, WebSocket};

use crate::patience::LONG;

/// A pause before a broken stream is taken up again.
const PAUSE: Duration = Duration::from_millis(50);

/// One event: its id and what it tells.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// All that a client of server-sent events was told.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) frames: Vec<Frame>,
    /// How often the stream broke before it was whole.
    pub(crate) breaks: usize,
}

/// Follows a stream from its beginning: at the first of these controllers, and at the next one whenever it breaks, from the last id
/// on. It is over when it is `whole`; one that ends before broke.
pub(crate) fn follow(controllers: Vec<SocketAddr>, path: String, whole: Whole) -> Task<Received> {
    Env::system().spawn("stream", async move {
        let clock = Env::system().clock;
        // A connection to a controller that was killed must not be used again.
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

/// Reads a stream until it is whole, or breaks; which of both.
async fn read(request: reqwest::RequestBuilder, frames: &mut Vec<Frame>, whole: Whole) -> bool {
    let Some(mut answer) = request.send().await.ok().filter(|answer| answer.status().is_success()) else {
        return false;
    };
    let mut text = String::new();
    loop {
        // A stream that is silent for longer than its keep-alive is dead.
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

/// When a stream is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whole {
    /// When it ends in order, if it has told this.
    AtItsEnd(fn(&[Frame]) -> bool),
    /// As soon as it has told the end of so many jobs; it never ends.
    Ends(usize),
}

/// Whether this tells that a job has completed.
pub(crate) fn is_end(data: &Value) -> bool {
    data["new_status"] == "completed"
}

/// None for a comment.
fn frame_of(text: &str) -> Option<Frame> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let data = serde_json::from_str(field("data:")?).expect("JSON");
    Some(Frame { id: field("id:").expect("every event has one").to_owned(), data })
}

/// Opens a WebSocket; from then on nothing that happens is missed.
pub(crate) fn open(controller: SocketAddr, path: &str) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(controller).expect("connects");
    stream.set_read_timeout(Some(LONG)).expect("settable");
    let (socket, _) = tungstenite::client(format!("ws://{controller}{path}"), stream).expect("upgraded");
    socket
}

/// Reads what a WebSocket tells until the server closes it in order, or `enough` was told.
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
