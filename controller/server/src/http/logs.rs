//! `/api/jobs/{id}/logs`: log lines of attempts, complete or as a stream, and what models answer meanwhile.

use atlas_service::{Caller, LogLine, LogOutput, LogReader, Piece};
use atlas_types::Attempt;
use axum::body::Body;
use futures::stream;
use http::StatusCode;
use tokio::sync::watch;

use super::HttpDoor;
use super::answer::{Answer, ready_json, sse_passing, write_sse_frame};
use super::events::sse_response;
use super::request::Request;

/// A JSON array of lines. With `Accept: text/event-stream`, a stream with one event per line until the job ends. With `deltas=true`, the
/// stream also contains pieces of models' answers as they form.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let with_pieces = request.query().flag("deltas")?;
    let id = door.service.job_id(caller, id).await?;
    if !request.accepts_sse() {
        return Ok(ready_json(StatusCode::OK, door.service.logs(caller, id).await?));
    }
    let seen = request.last_event().and_then(|text| place(&text));
    let source = (door.service.follow_logs(caller, id, seen, with_pieces).await?, door.stop.clone());
    Ok(sse_response(Body::from_stream(stream::unfold(source, next))))
}

/// The position of a reader from the id of its last event: the attempt and the line number.
fn place(id: &str) -> Option<(Attempt, u64)> {
    let (attempt, number) = id.split_once('.')?;
    Some((Attempt(attempt.parse().ok()?), number.parse().ok()?))
}

/// A reader of lines, and the signal that stops it early.
type Source = (LogReader, watch::Receiver<bool>);

async fn next((mut reader, mut stop): Source) -> Option<(std::io::Result<Vec<u8>>, Source)> {
    let told = tokio::select! {
        told = reader.next() => told?,
        // The stream ends with an error and not regularly, so that the client continues at another controller.
        () = async { drop(stop.wait_for(|stop| *stop).await) } => {
            return Some((Err(std::io::ErrorKind::ConnectionAborted.into()), (reader, stop)));
        }
    };
    let frames: Vec<u8> = match told {
        LogOutput::Lines(lines) => {
            let mut frames = Vec::new();
            for LogLine { attempt, number, json } in lines {
                write_sse_frame(&mut frames, format_args!("{}.{number}", attempt.0), "log", &json);
            }
            frames
        }
        LogOutput::Pieces(pieces) => {
            pieces.into_iter().flat_map(|Piece { name, json }| sse_passing(name, &json)).collect()
        }
    };
    Some((Ok(frames), (reader, stop)))
}
