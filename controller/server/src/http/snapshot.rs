//! `/api/cluster/snapshot`: a backup, streamed.

use axum::body::Body;
use futures::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};

use super::HttpDoor;
use super::answer::{Answer, Response};

/// `GET /api/cluster/snapshot`.
pub(crate) async fn get(door: &HttpDoor) -> Answer {
    let pieces = door.backups.begin(door.service.clone()).await?;
    let pieces = stream::unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"atlas.tar\""));
    Ok(response)
}
