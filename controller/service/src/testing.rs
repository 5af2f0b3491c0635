//! Members in one process, over a transport that tests can cut.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_artifacts::{Arriving, Group, Outgoing, PeerAnswer, PeerError, Peers, Query, QueryResult};
use atlas_env::Env;
use atlas_history::{Gap, Part};
use atlas_types::{Digest, ErrorKind, EventSeq, JobId, MemberId, SecretText};
use futures::StreamExt;

use crate::BearerRefused;
use crate::{ArtifactError, ArtifactOptions, Artifacts, Service};

pub(crate) fn set(members: &[u64]) -> BTreeSet<MemberId> {
    members.iter().copied().map(MemberId).collect()
}

/// The network with all its members.
pub(crate) struct Net {
    dir: tempfile::TempDir,
    members: Mutex<BTreeMap<MemberId, Artifacts>>,
    services: Mutex<BTreeMap<MemberId, Service>>,
    voters: Mutex<Vec<BTreeSet<MemberId>>>,
    cut: Mutex<BTreeSet<MemberId>>,
    gets: AtomicUsize,
    /// For each member, how often it asked a member that was cut off for a part of its history.
    vain: Mutex<BTreeMap<MemberId, usize>>,
    /// True if histories give no parts, although they answer queries.
    mute: AtomicBool,
}

/// One member's connection to the others.
pub(crate) struct Way {
    net: Arc<Net>,
    own: MemberId,
}

impl Net {
    /// Members 1 to `count`, all of them voters.
    pub(crate) fn new(count: u64) -> Arc<Self> {
        Self::holding(count, Duration::from_secs(60))
    }

    /// Members with this hold time for artifacts.
    pub(crate) fn holding(count: u64, hold: Duration) -> Arc<Self> {
        let all: Vec<u64> = (1..=count).collect();
        let net = Arc::new(Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            members: Mutex::default(),
            services: Mutex::default(),
            voters: Mutex::new(vec![set(&all)]),
            cut: Mutex::default(),
            gets: AtomicUsize::new(0),
            vain: Mutex::default(),
            mute: AtomicBool::new(false),
        });
        for own in set(&all) {
            let options = ArtifactOptions { root: net.root(own), bytes_max: 1 << 20, hold };
            let artifacts = Artifacts::new(options, net.way(own), Env::system());
            net.members.lock().expect("not poisoned").insert(own, artifacts);
        }
        net
    }

    pub(crate) fn way(self: &Arc<Self>, own: MemberId) -> Arc<dyn Peers> {
        Arc::new(Way { net: self.clone(), own })
    }

    pub(crate) fn artifacts(&self, member: u64) -> Artifacts {
        self.members.lock().expect("not poisoned")[&MemberId(member)].clone()
    }

    pub(crate) fn serve(&self, member: u64, service: Service) {
        self.services.lock().expect("not poisoned").insert(MemberId(member), service);
    }

    pub(crate) fn vote(&self, voters: Vec<BTreeSet<MemberId>>) {
        *self.voters.lock().expect("not poisoned") = voters;
    }

    /// Cuts off these members and reconnects the others.
    pub(crate) fn cut(&self, members: &[u64]) {
        *self.cut.lock().expect("not poisoned") = set(members);
    }

    /// Sets whether histories give parts. They always answer queries.
    pub(crate) fn give_parts(&self, give: bool) {
        self.mute.store(!give, Ordering::Relaxed);
    }

    /// How many times an artifact was requested.
    pub(crate) fn gets(&self) -> usize {
        self.gets.load(Ordering::Relaxed)
    }

    /// How often a member has asked in vain for a part of a history.
    pub(crate) fn asked_in_vain(&self, member: u64) -> usize {
        self.vain.lock().expect("not poisoned").get(&MemberId(member)).copied().unwrap_or_default()
    }

    /// The members that have an artifact which they consider intact.
    pub(crate) async fn having(&self, digest: Digest) -> BTreeSet<MemberId> {
        let members = self.members.lock().expect("not poisoned").clone();
        let mut having = BTreeSet::new();
        for (member, artifacts) in members {
            if artifacts.lacking(vec![digest]).await.expect("looked").is_empty() {
                having.insert(member);
            }
        }
        having
    }

    /// The path of a member's copy of an artifact.
    pub(crate) fn path(&self, member: u64, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        self.root(MemberId(member)).join(&hex[..2]).join(&hex[2..])
    }

    fn root(&self, member: MemberId) -> PathBuf {
        self.dir.path().join(format!("artifacts-{member}"))
    }
}

impl Way {
    fn reach(&self, member: MemberId) -> Result<Artifacts, PeerError> {
        let cut = self.net.cut.lock().expect("not poisoned");
        if cut.contains(&member) || cut.contains(&self.own) {
            return Err(PeerError::Away { member, reason: "cut".to_owned() });
        }
        Ok(self.net.members.lock().expect("not poisoned")[&member].clone())
    }

    fn service(&self, member: MemberId) -> Result<Service, PeerError> {
        self.reach(member)?;
        let found = self.net.services.lock().expect("not poisoned").get(&member).cloned();
        found.ok_or(PeerError::Away { member, reason: "it is not up".to_owned() })
    }
}

fn refused(member: MemberId) -> impl Fn(ArtifactError) -> PeerError {
    move |error| PeerError::Refused { member, kind: error.kind(), reason: error.to_string() }
}

fn behind(member: MemberId) -> impl Fn(crate::Error) -> PeerError {
    move |error| PeerError::Refused { member, kind: ErrorKind::Unavailable, reason: error.to_string() }
}

impl Peers for Way {
    fn group(&self) -> Group {
        let mut others: BTreeSet<_> = self.net.members.lock().expect("not poisoned").keys().copied().collect();
        others.remove(&self.own);
        Group { own: self.own, others, voters: self.net.voters.lock().expect("not poisoned").clone(), leader: None }
    }

    fn hold(&self, member: MemberId, digests: Vec<Digest>) -> PeerAnswer<'_, Vec<bool>> {
        Box::pin(async move { self.reach(member)?.hold(digests).await.map_err(refused(member)) })
    }

    fn hold_bearer(&self, member: MemberId, job: JobId, bearer: SecretText) -> PeerAnswer<'_, ()> {
        let full = move |error: BearerRefused| PeerError::Refused {
            member,
            kind: ErrorKind::Unavailable,
            reason: error.to_string(),
        };
        Box::pin(async move { self.service(member)?.hold_bearer(job, bearer).map_err(full) })
    }

    fn forget_bearer(&self, member: MemberId, job: JobId) -> PeerAnswer<'_, ()> {
        Box::pin(async move {
            self.service(member)?.forget_bearer(job);
            Ok(())
        })
    }

    fn put(&self, member: MemberId, digest: Digest, size_bytes: u64, mut bytes: Outgoing) -> PeerAnswer<'_, ()> {
        Box::pin(async move {
            let mut receiver = self.reach(member)?.receive(digest).await.map_err(refused(member))?;
            let mut received = 0;
            while let Some(chunk) = bytes.next().await {
                received += chunk.len() as u64;
                receiver.write(chunk).await.map_err(refused(member))?;
            }
            assert_eq!(received, size_bytes);
            receiver.finish().await.map_err(refused(member))
        })
    }

    fn get(&self, member: MemberId, digest: Digest) -> PeerAnswer<'_, Arriving> {
        Box::pin(async move {
            let sender = self.reach(member)?.open(digest).await.map_err(refused(member))?;
            self.net.gets.fetch_add(1, Ordering::Relaxed);
            let chunks = futures::stream::unfold(Some(sender), move |sender| async move {
                let mut sender = sender?;
                match sender.next().await {
                    Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(sender))),
                    Err(error) => Some((Err(refused(member)(error)), None)),
                }
            });
            Ok(Box::pin(chunks) as Arriving)
        })
    }

    fn history(&self, member: MemberId, gap: Gap) -> PeerAnswer<'_, Part> {
        Box::pin(async move {
            if self.net.mute.load(Ordering::Relaxed) {
                return Err(PeerError::Away { member, reason: "mute".to_owned() });
            }
            let service = self.service(member).inspect_err(|_| {
                *self.net.vain.lock().expect("not poisoned").entry(self.own).or_default() += 1;
            });
            service?.history_part(gap).await.map_err(behind(member))
        })
    }

    fn query(&self, member: MemberId, through: EventSeq, query: Query) -> PeerAnswer<'_, QueryResult> {
        Box::pin(async move { self.service(member)?.history_query(through, query).await.map_err(behind(member)) })
    }
}
