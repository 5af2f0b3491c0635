//! Bodies of answers, as far as anyone wants to read them.

use std::time::Duration;

use atlas_env::Clock;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};

use crate::limited;

/// Why a body is not whole.
#[derive(Debug, thiserror::Error)]
pub enum BodyError<E> {
    /// It is longer than its reader wants.
    #[error("length limit exceeded")]
    TooLarge,
    /// It broke off.
    #[error(transparent)]
    Broken(E),
}

/// The whole body, of at most so many bytes. Only what is needed to see that it is longer is read.
pub async fn whole<B>(body: &mut B, bytes_max: usize) -> Result<Vec<u8>, BodyError<B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        if data.len() > bytes_max - bytes.len() {
            return Err(BodyError::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// The beginning of a body, as far as it arrives. With a limit, its pieces follow each other within that time.
pub async fn beginning<B>(body: &mut B, bytes_max: usize, limit: Option<(&dyn Clock, Duration)>) -> Vec<u8>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut bytes = Vec::new();
    while bytes.len() < bytes_max {
        let frame = match limit {
            Some((clock, limit)) => limited(clock, limit, body.frame()).await.flatten(),
            None => body.frame().await,
        };
        let Some(Ok(frame)) = frame else { break };
        if let Ok(data) = frame.into_data() {
            let room = bytes_max - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn long_bodies_are_cut_or_refused() {
        let body = || Full::new(Bytes::from_static(b"0123456789"));
        assert_eq!(beginning(&mut body(), 4, None).await, b"0123");
        assert_eq!(beginning(&mut body(), 40, None).await, b"0123456789");
        assert_eq!(whole(&mut body(), 10).await.expect("it fits"), b"0123456789");
        assert!(matches!(whole(&mut body(), 9).await, Err(BodyError::TooLarge)));
    }
}
