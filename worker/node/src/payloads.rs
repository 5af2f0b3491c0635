//! Payloads that are too large for a frame: fetched from the controller and stored there.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{Digest, INLINE_BYTES_MAX, Payload, PayloadBody};
use atlas_wire::convert::{digest_in, digest_out};
use atlas_wire::limits::CHUNK_BYTES;
use atlas_wire::proto::worker::v1::{FetchPackageRequest, FetchPayloadRequest, StorePayloadRequest};
use bytes::Bytes;
use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Status};

use crate::link::Client;

/// Why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    #[error("no controller could be reached")]
    Unreachable,
    /// The controller does not have the bytes, or not completely.
    #[error("the controller answered: {0}")]
    Gone(String),
    /// The controller refused, and would refuse again.
    #[error("the controller answered: {0}")]
    Refused(String),
    /// The connection broke, or the controller was busy or stopping. The transfer may be repeated.
    #[error("the transfer broke: {0}")]
    Broken(String),
    #[error("the controller sent more than {0} bytes")]
    TooLarge(u64),
    #[error("the controller sent bytes that do not match {0}")]
    WrongBytes(Digest),
    #[error("the transfer took too long")]
    TooSlow,
}

impl TransferError {
    /// True if the transfer may succeed on another node.
    pub(crate) fn is_nodes_own(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Broken(_) | Self::TooSlow)
    }
}

/// Transfers bytes over the current connection.
#[derive(Clone)]
pub(crate) struct Transfers {
    pub(crate) env: Env,
    pub(crate) client: watch::Receiver<Option<Client>>,
}

impl Transfers {
    /// The time limit for one transfer, including reconnects.
    const LONGEST: Duration = Duration::from_secs(60);

    /// The pause between two tries.
    const PAUSE: Duration = Duration::from_millis(100);

    /// A package's bytes, verified.
    pub(crate) async fn package(&self, digest: Digest, bytes_max: u64) -> Result<Vec<u8>, TransferError> {
        self.persist(|| async move {
            let request = FetchPackageRequest { digest: digest_out(digest) };
            let chunks = self.client().await?.fetch_package(request).await.map_err(refused)?.into_inner();
            verified(digest, bytes_max, chunks.map(|chunk| chunk.map(|chunk| chunk.chunk))).await
        })
        .await
    }

    /// A payload's bytes.
    pub(crate) async fn load(&self, payload: &Payload) -> Result<Arc<[u8]>, TransferError> {
        let (digest, size_bytes) = match &payload.body {
            PayloadBody::Inline(bytes) => return Ok(Arc::clone(bytes)),
            PayloadBody::Artifact { digest, size_bytes } => (*digest, *size_bytes),
        };
        self.persist(|| async move {
            let request = FetchPayloadRequest { digest: digest_out(digest) };
            let chunks = self.client().await?.fetch_payload(request).await.map_err(refused)?.into_inner();
            let bytes = verified(digest, size_bytes, chunks.map(|chunk| chunk.map(|chunk| chunk.chunk))).await?;
            Ok(bytes.into())
        })
        .await
    }

    /// Stores bytes so that a report can refer to them.
    pub(crate) async fn store(&self, bytes: Vec<u8>) -> Result<Payload, TransferError> {
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok(Payload::inline(&bytes));
        }
        self.store_artifact(bytes).await
    }

    /// Like [`Self::store`], but small bytes become an artifact as well.
    pub(crate) async fn store_artifact(&self, bytes: Vec<u8>) -> Result<Payload, TransferError> {
        let bytes = Bytes::from(bytes);
        let sent = atlas_package::digest_of(&bytes);
        let at = (0..bytes.len()).step_by(CHUNK_BYTES);
        let chunks: Vec<_> = at.map(|from| bytes.slice(from..bytes.len().min(from + CHUNK_BYTES))).collect();
        self.persist(|| {
            let requests = tokio_stream::iter(chunks.clone()).map(|chunk| StorePayloadRequest { chunk });
            async move {
                let stored = self.client().await?.store_payload(requests).await.map_err(refused)?.into_inner();
                let digest = digest_in("digest", &stored.digest);
                let digest = digest.map_err(|error| TransferError::Refused(error.to_string()))?;
                is_whole(sent, digest)?;
                Ok(Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes: stored.size_bytes } })
            }
        })
        .await
    }

    async fn client(&self) -> Result<Client, TransferError> {
        let mut client = self.client.clone();
        let connected = client.wait_for(Option::is_some).await.map_err(|_| TransferError::Unreachable)?;
        connected.clone().ok_or(TransferError::Unreachable)
    }

    /// Retries over the current connection until the transfer's timeout.
    async fn persist<T, F>(&self, transfer: impl Fn() -> F) -> Result<T, TransferError>
    where
        F: Future<Output = Result<T, TransferError>>,
    {
        let trying = async {
            loop {
                match transfer().await {
                    Err(TransferError::Broken(_)) => self.env.clock.sleep(Self::PAUSE).await,
                    end => return end,
                }
            }
        };
        tokio::select! {
            end = trying => end,
            () = self.env.clock.sleep(Self::LONGEST) => Err(TransferError::TooSlow),
        }
    }
}

async fn verified(
    digest: Digest,
    bytes_max: u64,
    mut chunks: impl Stream<Item = Result<Bytes, Status>> + Unpin,
) -> Result<Vec<u8>, TransferError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        bytes.extend_from_slice(&chunk.map_err(refused)?);
        if bytes.len() as u64 > bytes_max {
            return Err(TransferError::TooLarge(bytes_max));
        }
    }
    if atlas_package::digest_of(&bytes) != digest {
        return Err(TransferError::WrongBytes(digest));
    }
    Ok(bytes)
}

/// Compares the digests, because a stream that the connection cut off looks complete to its reader.
fn is_whole(sent: Digest, stored: Digest) -> Result<(), TransferError> {
    if stored == sent {
        return Ok(());
    }
    Err(TransferError::Broken(format!("the controller stored {stored} instead of {sent}")))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn refused(status: Status) -> TransferError {
    let text = status.message().to_owned();
    match status.code() {
        Code::Unavailable
        | Code::Unknown
        | Code::Internal
        | Code::Cancelled
        | Code::Aborted
        | Code::DeadlineExceeded
        | Code::ResourceExhausted => TransferError::Broken(text),
        Code::NotFound | Code::FailedPrecondition => TransferError::Gone(text),
        _ => TransferError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_was_cut_short_is_sent_again() {
        let (sent, cut) = (atlas_package::digest_of(b"abc"), atlas_package::digest_of(b"ab"));
        assert!(is_whole(sent, sent).is_ok());
        assert!(matches!(is_whole(sent, cut), Err(TransferError::Broken(_))));
    }
}
