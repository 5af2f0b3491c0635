//! Keeps the Lease by which one operator works and the others wait.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_env::Env;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::lease::{self, DEADLINE, DURATION, RENEWAL, Seen, Step};
use crate::words::said;

/// The name of the lease.
const NAME: &str = "atlas-operator";

/// The annotation of the lease that says for which cluster its holder works.
const SERVER: &str = "atlas.dev/server";

/// An operator of another cluster works in this namespace.
#[derive(Debug, thiserror::Error)]
#[error(
    "the operator of {0} works in this namespace, and resources of one namespace are about one cluster: install this release in another namespace"
)]
pub(crate) struct OtherCluster(String);

/// An operator that wants to work.
pub(crate) struct Election {
    leases: Api<Lease>,
    me: String,
    server: String,
    env: Env,
    seen: Option<Seen>,
    /// The cluster of the operator that holds the lease, if it is another one.
    other: Option<String>,
}

impl Election {
    pub(crate) fn new(client: Client, namespace: &str, (me, server): (&str, &str), env: Env) -> Self {
        let leases = Api::namespaced(client, namespace);
        Self { leases, me: me.to_owned(), server: server.to_owned(), env, seen: None, other: None }
    }

    /// Returns once this operator holds the lease.
    pub(crate) async fn win(&mut self) -> Result<(), OtherCluster> {
        let mut waits = false;
        loop {
            match self.attempt().await {
                Ok(true) => return Ok(()),
                Ok(false) if self.other.is_some() => {
                    return Err(OtherCluster(self.other.take().unwrap_or_default()));
                }
                Ok(false) if !waits => {
                    let holder = self.seen.as_ref().map(|seen| seen.holder.clone()).unwrap_or_default();
                    tracing::info!(holder, "another operator works, waiting");
                    waits = true;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!("the lease was not taken: {}", said(&error)),
            }
            self.env.clock.sleep(RENEWAL).await;
        }
    }

    /// Renews the lease; returns once it is lost, or could not be renewed in time.
    pub(crate) async fn hold(&mut self) {
        let mut renewed = self.env.clock.monotonic();
        loop {
            self.env.clock.sleep(RENEWAL).await;
            let left = DEADLINE.saturating_sub(self.env.clock.monotonic().saturating_sub(renewed));
            if left.is_zero() {
                return;
            }
            let clock = self.env.clock.clone();
            let begun = clock.monotonic();
            tokio::select! {
                attempt = self.attempt() => match attempt {
                    // The lease counts from before the request: that is when others began to count at the latest.
                    Ok(true) => renewed = begun,
                    Ok(false) => return,
                    Err(error) => tracing::warn!("the lease was not renewed: {}", said(&error)),
                },
                () = clock.sleep(left) => return,
            }
        }
    }

    /// Lets others work at once.
    pub(crate) async fn release(&mut self) {
        let Ok(Some(lease)) = self.leases.get_opt(NAME).await else { return };
        if holder(&lease) == self.me {
            // If it fails, the others wait until the lease ends.
            let _ = self.write(Some(lease), "").await;
        }
    }

    /// Whether this operator holds the lease after one step.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let found = self.leases.get_opt(NAME).await?;
        let now = self.env.clock.monotonic();
        self.seen = found.as_ref().map(|lease| {
            let version = lease.metadata.resource_version.as_deref().unwrap_or_default();
            lease::see(self.seen.as_ref(), holder(lease), version, now)
        });
        if lease::step(&self.me, self.seen.as_ref(), now) == Step::Wait {
            let server = found.and_then(|lease| lease.metadata.annotations?.remove(SERVER));
            self.other = server.filter(|server| *server != self.server);
            return Ok(false);
        }
        match self.write(found, &self.me.clone()).await {
            // Another operator was faster.
            Err(kube::Error::Api(refusal)) if refusal.code == 409 => Ok(false),
            written => written.map(|()| true),
        }
    }

    /// Replaces the lease that was found, and nothing else.
    async fn write(&self, found: Option<Lease>, holder: &str) -> Result<(), kube::Error> {
        let now = Timestamp::from_microsecond(self.env.clock.wall().0).ok().map(MicroTime);
        let before = found.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let is_same = before.holder_identity.as_deref() == Some(holder);
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds(DURATION)),
            renew_time: now.clone(),
            acquire_time: if is_same { before.acquire_time } else { now },
            lease_transitions: Some(before.lease_transitions.unwrap_or_default().saturating_add(i32::from(!is_same))),
            ..before
        };
        let parameters = PostParams::default();
        let annotation = (SERVER.to_owned(), self.server.clone());
        match found {
            Some(mut lease) => {
                lease.metadata.annotations.get_or_insert_default().extend([annotation]);
                let lease = Lease { spec: Some(spec), ..lease };
                self.leases.replace(NAME, &parameters, &lease).await.map(drop)
            }
            None => {
                let annotations = Some(BTreeMap::from([annotation]));
                let metadata = ObjectMeta { name: Some(NAME.to_owned()), annotations, ..ObjectMeta::default() };
                self.leases.create(&parameters, &Lease { metadata, spec: Some(spec) }).await.map(drop)
            }
        }
    }
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}
