//! Transfers of packages and payloads that are too large for a frame.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use atlas_service::ArtifactError;
use atlas_types::ErrorKind;
use atlas_wire::Error;
use atlas_wire::convert::{digest_in, digest_out};
use atlas_wire::limits::CHUNK_BYTES;
use atlas_wire::proto::worker::v1::{
    FetchPackageResponse, FetchPayloadResponse, StorePayloadRequest, StorePayloadResponse,
};
use bytes::{Bytes, BytesMut};
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use super::Door;

/// The most artifacts in memory at once. Further transfers wait.
pub(super) const AT_ONCE_MAX: usize = 16;
/// The time limit for one transfer, so that a stalled peer does not block others.
const LONGEST: Duration = Duration::from_secs(60);

impl Door {
    /// Sends an artifact in chunks.
    pub(super) async fn fetch<T>(&self, digest: &[u8]) -> Result<Chunks<T>, Status> {
        let digest = digest_in("digest", digest)?;
        let permit = self.transfers.clone().acquire_owned().await.map_err(|_| Status::unavailable("stopping"))?;
        let bytes = self.service.artifacts().read(digest).await.map_err(|error| refused(&error))?;
        let deadline = self.env.clock.sleep(LONGEST);
        Ok(Chunks { bytes, deadline, _permit: permit, message: PhantomData })
    }

    /// Receives a payload and answers once it is durable. The answer contains the digest of the received bytes.
    pub(super) async fn store(&self, chunks: Streaming<StorePayloadRequest>) -> Result<StorePayloadResponse, Status> {
        let _permit = self.transfers.acquire().await.map_err(|_| Status::unavailable("stopping"))?;
        let bytes = tokio::select! {
            bytes = self.receive(chunks) => bytes?,
            () = self.env.clock.sleep(LONGEST) => return Err(Status::deadline_exceeded("the transfer took too long")),
        };
        let size_bytes = bytes.len() as u64;
        let digest = self.service.artifacts().store(bytes).await.map_err(|error| refused(&error))?;
        self.service.metrics().artifact_bytes.inc_by(size_bytes);
        Ok(StorePayloadResponse { digest: digest_out(digest), size_bytes })
    }

    async fn receive(&self, mut chunks: Streaming<StorePayloadRequest>) -> Result<Bytes, Status> {
        let max = self.service.artifacts().bytes_max();
        let mut bytes = BytesMut::new();
        while let Some(StorePayloadRequest { chunk }) = chunks.message().await? {
            let total = (bytes.len() + chunk.len()) as u64;
            if total > max {
                return Err(refused(&ArtifactError::TooLarge { bytes: total, max }));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }
}

fn refused(error: &ArtifactError) -> Status {
    let kind = error.kind();
    let code = match kind {
        ErrorKind::Gone => "E3010",
        ErrorKind::TooLarge => "E3006",
        ErrorKind::Unavailable => "E4006",
        _ => "E9001",
    };
    if kind != ErrorKind::TooLarge {
        tracing::error!(error = error as &dyn std::error::Error, "a transfer failed");
    }
    Error { kind, code: code.to_owned(), message: error.to_string(), hint: String::new() }.into()
}

/// The chunks of an artifact, without copying it.
pub(crate) struct Chunks<T> {
    bytes: Bytes,
    deadline: Pin<Box<dyn Future<Output = ()> + Send>>,
    _permit: OwnedSemaphorePermit,
    message: PhantomData<fn() -> T>,
}

/// A message that contains a chunk.
pub(crate) trait Carries {
    /// The message for a chunk.
    fn chunk(chunk: Bytes) -> Self;
}

impl Carries for FetchPackageResponse {
    fn chunk(chunk: Bytes) -> Self {
        Self { chunk }
    }
}

impl Carries for FetchPayloadResponse {
    fn chunk(chunk: Bytes) -> Self {
        Self { chunk }
    }
}

impl<T: Carries> Stream for Chunks<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        if self.deadline.as_mut().poll(cx).is_ready() {
            self.bytes.clear();
            return Poll::Ready(Some(Err(Status::deadline_exceeded("the transfer took too long"))));
        }
        let size = self.bytes.len().min(CHUNK_BYTES);
        Poll::Ready(Some(Ok(T::chunk(self.bytes.split_to(size)))))
    }
}
