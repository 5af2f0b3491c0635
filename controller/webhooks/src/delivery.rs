//! The delivery of one webhook: reads its events and sends them one after the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_objects::WebhookSpec;
use atlas_service::{Error, EventFilter, EventKind, EventLabel, Next, Reader, Service};
use atlas_telemetry::{ByDeliveryResult, DeliveryResult};
use atlas_types::{EventRecord, EventSeq};
use bytes::Bytes;
use http::header::HeaderName;

use crate::backoff;
use crate::client::{Client, Receiver};
use crate::message::{Message, Sender};
use crate::secrets::{self, Secret, Secrets};
use crate::signature::sign;
use crate::status::Status;

/// The pause after the events could not be read, and before a missing secret is looked up again.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a webhook waits for an event that it wants before it notes how far it has read.
const IDLE: Duration = Duration::from_secs(5);

/// A status that its delivery changes and the dispatcher writes down.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<Mutex<Status>>);

impl Progress {
    pub(crate) fn new(status: Status) -> Self {
        Self(Arc::new(Mutex::new(status)))
    }

    pub(crate) fn get(&self) -> Status {
        self.lock().clone()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Status) -> T) -> T {
        change(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all deliveries share.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) service: Service,
    pub(crate) client: Client,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) env: Env,
}

/// The delivery of one webhook under one revision of its spec.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) means: Means,
    pub(crate) sender: Sender,
    pub(crate) spec: WebhookSpec,
    pub(crate) progress: Progress,
}

impl Delivery {
    /// Delivers until the task is aborted, or until the controller stops.
    pub(crate) async fn run(self) {
        let timeout = Duration::from_secs(self.spec.timeout_seconds.into());
        let mut receiver = loop {
            match self.means.client.receiver(&self.spec.url, timeout) {
                Ok(receiver) => break receiver,
                Err(error) => self.blocked(&error.to_string()).await,
            }
        };
        let secrets = self.secrets().await;
        self.progress.change(|status| status.signed = !secrets.is_empty());
        let mut line = Line { delivery: &self, receiver: &mut receiver, secrets };
        loop {
            match line.follow().await {
                Ok(()) => return,
                Err(Error::EventsGone { earliest }) => self.progress.change(|status| status.missed(earliest.0)),
                Err(error) => self.blocked(&format!("the events could not be read: {error}")).await,
            }
        }
    }

    /// The signing secrets of the spec; none if it names none. Waits until the named one exists.
    async fn secrets(&self) -> Vec<Secret> {
        let Some(name) = &self.spec.secret_env else { return Vec::new() };
        loop {
            if let Some(secrets) = secrets::of(&*self.means.secrets, name) {
                return secrets;
            }
            let reason = format!("the controller that leads has no environment variable {name} with a signing secret");
            self.blocked(&reason).await;
        }
    }

    async fn blocked(&self, reason: &str) {
        self.progress.change(|status| status.blocked(reason));
        self.means.env.clock.sleep(PAUSE).await;
    }

    fn count(&self, result: DeliveryResult) {
        let label = ByDeliveryResult { atlas_webhook_result: result };
        self.means.service.metrics().webhook_deliveries.get_or_create(&label).inc();
    }
}

/// A delivery with what it sends by.
struct Line<'d> {
    delivery: &'d Delivery,
    receiver: &'d mut Receiver,
    secrets: Vec<Secret>,
}

impl Line<'_> {
    /// Sends what comes after the cursor, until the controller stops or the events cannot be read.
    async fn follow(&mut self) -> Result<(), Error> {
        let Delivery { means, sender, spec, progress } = self.delivery;
        let cursor = EventSeq(progress.get().cursor);
        let mut reader = means.service.follow_namespace(&sender.key.namespace, cursor).await?;
        let filter = filter(spec);
        progress.change(Status::unblocked);
        loop {
            self.announce_gap().await;
            let Some(records) = self.next(&mut reader, &filter).await? else { return Ok(()) };
            for record in records {
                let EventLabel { kind, change, .. } = EventLabel::of(&record);
                let wanted = spec.wants(kind.as_str(), change)
                    && means.service.is_seen_in(&record.event, &sender.key.namespace).await?;
                if wanted {
                    self.announce_gap().await;
                    self.send_event(&record).await?;
                } else {
                    progress.change(|status| status.passed(record.seq.0));
                }
            }
            progress.change(|status| status.passed(reader.cursor().0));
        }
    }

    /// The next events of the wanted kinds, an empty list now and then if there are none; none once the controller stops.
    async fn next(&mut self, reader: &mut Reader, filter: &EventFilter) -> Result<Option<Vec<EventRecord>>, Error> {
        // Between its steps a reader has lost nothing, so it can be asked again.
        let next = tokio::select! {
            biased;
            next = reader.next_events(filter) => next?,
            () = self.delivery.means.env.clock.sleep(IDLE) => Next::Changes(Vec::new()),
        };
        match next {
            Next::Changes(records) => Ok(Some(records)),
            Next::Behind | Next::Over => Ok(None),
        }
    }

    /// Sends an event until the receiver accepts it or its attempts are used up.
    async fn send_event(&mut self, record: &EventRecord) -> Result<(), Error> {
        let Delivery { means, sender, spec, progress } = self.delivery;
        let message = sender.event(&means.service, record).await?;
        while !self.attempt(&message).await {
            if progress.get().attempts >= spec.attempts {
                tracing::warn!(webhook = %sender.key.name, event = %record.seq, "an event was dropped after its last attempt");
                self.delivery.count(DeliveryResult::dropped);
                progress.change(|status| status.dropped(record.seq.0));
                return Ok(());
            }
            self.back_off().await;
        }
        let seconds = self.seconds();
        progress.change(|status| status.delivered(record.seq.0, seconds));
        Ok(())
    }

    /// Tells the receiver about lost events, until it accepts that: what was lost must not stay unnoticed, so there is no
    /// last attempt. Events wait meanwhile.
    async fn announce_gap(&mut self) {
        let progress = &self.delivery.progress;
        let Some(gap) = progress.get().gap else { return };
        let message = self.delivery.sender.gap(&gap);
        while !self.attempt(&message).await {
            self.back_off().await;
        }
        let seconds = self.seconds();
        progress.change(|status| status.announced(seconds));
    }

    /// Sends a message once; false if the receiver did not accept it.
    async fn attempt(&mut self, message: &Message) -> bool {
        let progress = &self.delivery.progress;
        let name = HeaderName::from_static;
        let mut headers = vec![
            (name("atlas-delivery"), message.id.clone()),
            (name("atlas-event"), message.event.clone()),
            (name("atlas-attempt"), progress.get().attempts.saturating_add(1).to_string()),
        ];
        if !self.secrets.is_empty() {
            // Each attempt has the time at which it is made, because receivers refuse old ones.
            let signature = sign(&self.secrets, self.seconds(), &message.id, &message.body);
            headers.push((name("atlas-signature"), signature));
        }
        match self.receiver.post(&headers, Bytes::copy_from_slice(&message.body)).await {
            Ok(()) => {
                self.delivery.count(DeliveryResult::delivered);
                true
            }
            Err(error) => {
                self.delivery.count(DeliveryResult::failed);
                progress.change(|status| status.failed(&error.to_string()));
                false
            }
        }
    }

    async fn back_off(&mut self) {
        let env = &self.delivery.means.env;
        let failures = self.delivery.progress.get().attempts;
        env.clock.sleep(backoff::pause(failures, env.entropy.u64())).await;
    }

    fn seconds(&self) -> i64 {
        self.delivery.means.env.clock.wall().0 / 1_000_000
    }
}

/// The kinds of events among which are those that a webhook wants.
fn filter(spec: &WebhookSpec) -> EventFilter {
    let kinds = spec.events.iter().filter_map(|event| EventKind::of_word(event.split('.').next().unwrap_or_default()));
    EventFilter { kinds: kinds.collect(), name: None }
}
