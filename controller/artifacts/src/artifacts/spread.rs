//! Copies an artifact to a majority of the voters.

use std::collections::BTreeSet;
use std::time::Duration;

use atlas_types::{Digest, MemberId};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::oneshot;

use super::{ArtifactError, Artifacts};
use crate::peers::PeerError;

/// The time limit for reaching a majority. Large artifacts get more time at the rate below, for slow networks.
const MAJORITY_MAX: Duration = Duration::from_secs(10);
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;
/// The pause before a member that failed is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

impl Artifacts {
    /// Copies an artifact from this directory to a majority of the voters. The other voters get it as well, without a
    /// wait.
    pub(super) async fn spread(&self, digest: Digest) -> Result<(), ArtifactError> {
        let own = self.inner.peers.group().own;
        if self.inner.peers.group().is_quorum(&BTreeSet::from([own])) {
            return Ok(());
        }
        let permit = self.inner.sends.clone().acquire_owned().await.map_err(|_| ArtifactError::Stopped)?;
        let (tell, told) = oneshot::channel();
        let artifacts = self.clone();
        // The copying runs in its own task, so that it continues when the caller stops waiting, and after a majority
        // has the artifact.
        drop(self.inner.env.spawn("artifact-spread", async move {
            artifacts.spread_to_all(digest, own, tell).await;
            drop(permit);
        }));
        told.await.unwrap_or(Err(ArtifactError::Stopped))
    }

    async fn spread_to_all(&self, digest: Digest, own: MemberId, tell: oneshot::Sender<Result<(), ArtifactError>>) {
        let peers = &self.inner.peers;
        let (mut tell, mut has, mut asked) = (Some(tell), BTreeSet::from([own]), BTreeSet::new());
        let mut calls = FuturesUnordered::new();
        let bytes = self.size(digest).await.ok().flatten().unwrap_or_default();
        let longest = MAJORITY_MAX + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
        let mut late = self.inner.env.clock.sleep(longest);
        loop {
            // The current group is used each time, because the voters may have changed and a majority of the old ones
            // is not enough.
            let group = peers.group();
            if group.is_quorum(&has)
                && let Some(tell) = tell.take()
            {
                // A caller that stopped waiting needs no answer, here and below.
                let _ = tell.send(Ok(()));
            }
            if tell.is_some() {
                let wanted = group.other_voters().filter(|member| !has.contains(member));
                for member in wanted.collect::<Vec<_>>() {
                    if asked.insert(member) {
                        calls.push(self.copy_to(member, digest));
                    }
                }
            } else if calls.is_empty() {
                return;
            }
            tokio::select! {
                biased;
                Some((member, copied)) = calls.next() => match copied {
                    Ok(()) => drop(has.insert(member)),
                    Err(error) => {
                        tracing::debug!(error = &error as &dyn std::error::Error, %digest, "could not copy an artifact");
                        asked.remove(&member);
                    }
                },
                () = &mut late => {
                    if let Some(tell) = tell.take() {
                        let _ = tell.send(Err(ArtifactError::TooFew { digest, stored: has.len() }));
                    }
                    return;
                }
            }
        }
    }

    /// Copies an artifact to a member that does not have it. A failure includes a pause, so that it is not repeated at
    /// once.
    async fn copy_to(&self, member: MemberId, digest: Digest) -> (MemberId, Result<(), PeerError>) {
        let copied = self.try_copy_to(member, digest).await;
        if copied.is_err() {
            self.inner.env.clock.sleep(RETRY_INTERVAL).await;
        }
        (member, copied)
    }

    async fn try_copy_to(&self, member: MemberId, digest: Digest) -> Result<(), PeerError> {
        let peers = &self.inner.peers;
        if peers.hold(member, vec![digest]).await? == [true] {
            return Ok(());
        }
        let here = |error: ArtifactError| PeerError::Away { member, reason: error.to_string() };
        let sender = self.open(digest).await.map_err(here)?;
        peers.put(member, digest, sender.size_bytes(), sender.into_outgoing()).await
    }
}
