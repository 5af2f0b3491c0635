//! `/api/jobs/{id}/logs`: what an attempt said, whole or as it comes.

use std::convert::Infallible;

use atlas_service::{Caller, LogReader};
use axum::body::Body;
use futures::stream;
use http::StatusCode;
use tokio::sync::watch;

use super::HttpDoor;
use super::answer::{Answer, ready_json, sse_frame};
use super::events::sse_response;
use super::request::Request;

/// A JSON array, or with `Accept: text/event-stream` one line an event until the job ends.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let id = door.service.job_id(caller, id).await?;
    if !request.accepts_sse() {
        return Ok(ready_json(StatusCode::OK, door.service.logs(caller, id).await?));
    }
    match door.service.follow_logs(caller, id).await? {
        Some(reader) => {
            let source = (reader, door.stop.clone());
            Ok(sse_response(Body::from_stream(stream::unfold(source, next))))
        }
        None => {
            let lines: Vec<Box<serde_json::value::RawValue>> =
                serde_json::from_slice(&door.service.logs(caller, id).await?).unwrap_or_default();
            let frames: Vec<u8> = lines.iter().flat_map(|line| sse_frame(None, "log", line.get().as_bytes())).collect();
            Ok(sse_response(Body::from(frames)))
        }
    }
}

/// A reader of lines, and what ends it early.
type Source = (LogReader, watch::Receiver<bool>);

async fn next((mut reader, mut stop): Source) -> Option<(Result<Vec<u8>, Infallible>, Source)> {
    let lines = tokio::select! {
        lines = reader.next() => lines?,
        () = async { drop(stop.wait_for(|stop| *stop).await) } => return None,
    };
    let mut frames = Vec::new();
    for line in lines {
        let mut data = Vec::with_capacity(128);
        line.write(&mut data);
        frames.extend_from_slice(&sse_frame(Some(line.event.number), "log", &data));
    }
    Some((Ok(frames), (reader, stop)))
}
