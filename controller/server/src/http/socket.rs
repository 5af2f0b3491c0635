//! One WebSocket: frames out, nothing in (compatibility §16).

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use std::time::Duration;

use atlas_service::Piece;

use super::events::{Feed, Step};

/// A client that takes longer for one frame is too slow.
const SEND_MAX: Duration = Duration::from_secs(10);

/// Sends frames until the stream or the client ends. Messages of the client are read and ignored, so that its pings are
/// answered.
pub(crate) async fn run(mut socket: WebSocket, mut feed: Feed) {
    loop {
        let step = tokio::select! {
            step = feed.next() => step,
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_))) => return answered(&mut socket).await,
                Some(Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
        };
        let sent = match step {
            Step::Frames(frames) => {
                let mut sent = true;
                for (_, data) in frames {
                    // Frames are ASCII by construction.
                    let text = Utf8Bytes::try_from(data).unwrap_or_default();
                    sent = sent && send(&mut socket, Message::Text(text)).await;
                }
                sent
            }
            Step::Pieces(pieces) => {
                let mut sent = true;
                for piece in pieces {
                    sent = sent && send(&mut socket, Message::Text(passing(&piece).into())).await;
                }
                sent
            }
            Step::Silence => send(&mut socket, Message::Ping(Vec::new().into())).await,
            Step::Behind => {
                close(&mut socket, close_code::AGAIN, "too slow").await;
                return;
            }
            Step::Over => {
                close(&mut socket, close_code::NORMAL, "").await;
                return;
            }
        };
        if !sent {
            feed.count_drop();
            close(&mut socket, close_code::AGAIN, "too slow").await;
            return;
        }
    }
}

/// A piece as a frame, told from changes by its member `event`: `{"event": "delta", "attempt": 1, …}`.
fn passing(piece: &Piece) -> String {
    let members = piece.json.get(1..).unwrap_or_default();
    format!("{{\"event\":\"{}\",{}", piece.name, String::from_utf8_lossy(members))
}

async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(tokio::time::timeout(SEND_MAX, socket.send(message)).await, Ok(Ok(())))
}

async fn close(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    if !send(socket, Message::Close(Some(frame))).await {
        return;
    }
    answered(socket).await;
}

/// Reads until the connection has closed cleanly. While reading, our answer to a client's close frame is sent and the
/// client's own answer arrives. The wait has a time limit.
async fn answered(socket: &mut WebSocket) {
    let ended = async { while let Some(Ok(_)) = socket.recv().await {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), ended).await;
}
