//! Starts and stops deliveries as webhooks and leadership change, and writes down how far they got.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::{Env, Task};
use atlas_objects::WebhookSpec;
use atlas_raft::Leadership;
use atlas_service::{Consistency, Service};
use atlas_types::{EventSeq, Object, Observation};
use tokio::sync::watch;

use crate::client::Client;
use crate::delivery::{Delivery, Means, Progress};
use crate::message::Sender;
use crate::secrets::Secrets;
use crate::status::{Activity, Status};

/// How often the dispatcher looks for changed webhooks and writes statuses.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After how many looks a status is written in which only events passed that the webhook does not want.
const LOOKS_PER_CURSOR: u32 = 20;
/// The most webhooks to which events are delivered: the oldest ones.
const WEBHOOKS_MAX: usize = 256;
/// How long the last statuses may take to be written when the controller stops.
const LAST_WRITE_MAX: Duration = Duration::from_secs(1);

/// What delivery needs.
pub struct Parts {
    /// Webhooks and events.
    pub service: Service,
    /// Signing secrets.
    pub secrets: Arc<dyn Secrets>,
    /// The machine.
    pub env: Env,
}

/// The task that delivers while this controller leads.
pub struct Webhooks {
    stop: watch::Sender<bool>,
    /// None once it has ended.
    task: Mutex<Option<Task<()>>>,
}

impl Webhooks {
    /// Starts it.
    pub fn start(parts: Parts) -> Self {
        let Parts { service, secrets, env } = parts;
        let client = Client::new(&env);
        let means = Means { service, client, secrets, env: env.clone() };
        let (stop, stopped) = watch::channel(false);
        let task = env.spawn_restarting("webhooks", move || run(means.clone(), stopped.clone()));
        Self { stop, task: Mutex::new(Some(task)) }
    }

    /// Ends all deliveries and writes down how far they got, so that the next leader repeats little. Completes once that is
    /// done; a second call does nothing.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // A panic was reported already.
            let _ = task.join().await;
        }
    }
}

async fn run(means: Means, stop: watch::Receiver<bool>) {
    let leadership = means.service.handle().leadership();
    while leads_or_stops(leadership.clone(), stop.clone()).await {
        let mut dispatcher = Dispatcher { means: means.clone(), running: BTreeMap::new() };
        let goes_on = tokio::select! {
            biased;
            () = is_set(stop.clone()) => false,
            goes_on = leads_no_more(leadership.clone()) => goes_on,
            () = dispatcher.lead() => true,
        };
        if !goes_on {
            // Refused if this controller leads no more, and the next leader then repeats what it cannot know.
            let _ = tokio::time::timeout(LAST_WRITE_MAX, dispatcher.write(true)).await;
            return;
        }
        means.service.metrics().webhook_failing.set(0);
    }
}

/// Completes once this controller leads; false if it stops before.
async fn leads_or_stops(mut leadership: watch::Receiver<Leadership>, stop: watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        () = is_set(stop) => false,
        led = leadership.wait_for(leads) => led.is_ok(),
    }
}

/// Completes once another controller may lead; false if this one has stopped.
async fn leads_no_more(mut leadership: watch::Receiver<Leadership>) -> bool {
    leadership.wait_for(|leadership| !leads(leadership)).await.is_ok()
}

/// Completes once the flag is set, or can be set no more.
async fn is_set(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn leads(leadership: &Leadership) -> bool {
    matches!(leadership, Leadership::Leader { .. })
}

/// The deliveries of one leader. Dropping it ends them.
struct Dispatcher {
    means: Means,
    running: BTreeMap<EventSeq, Running>,
}

/// A webhook and its delivery.
struct Running {
    object: Arc<Object>,
    progress: Progress,
    /// None while the webhook is paused, or beyond the limit.
    task: Option<Task<()>>,
    /// How often the dispatcher looked since it wrote the status.
    looks: u32,
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        std::mem::take(&mut self.running).into_values().for_each(Running::end);
    }
}

impl Dispatcher {
    /// Runs until it is dropped.
    async fn lead(&mut self) {
        // The statuses that the last leader wrote must be applied here before they are read.
        while let Err(error) = self.means.service.state(Consistency::Linearizable).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "webhooks wait for the state");
            self.means.env.clock.sleep(LOOK_EVERY).await;
        }
        loop {
            self.look();
            self.write(false).await;
            self.means.env.clock.sleep(LOOK_EVERY).await;
        }
    }

    /// Adjusts the deliveries to the webhooks of the state.
    fn look(&mut self) {
        let mut before = std::mem::take(&mut self.running);
        for (index, object) in self.means.service.webhooks().into_iter().enumerate() {
            let uid = object.uid;
            let running = match before.remove(&uid) {
                // Its status may have been written since.
                Some(old) if old.object.revision == object.revision => Running { object, ..old },
                old => self.begin(object, old, index),
            };
            self.running.insert(uid, running);
        }
        // What is left was deleted.
        before.into_values().for_each(Running::end);
        let failing = self.running.values().filter(|running| running.is_failing()).count();
        self.means.service.metrics().webhook_failing.set(i64::try_from(failing).unwrap_or(i64::MAX));
    }

    /// Starts the delivery of a webhook that is new here, or that was changed.
    fn begin(&self, object: Arc<Object>, old: Option<Running>, index: usize) -> Running {
        // What this leader knows is newer than what the state has.
        let progress = match old {
            Some(old) => {
                let mut status = old.progress.get();
                old.end();
                status.resumed();
                Progress::new(status)
            }
            None => Progress::new(Status::of(&object)),
        };
        let spec = WebhookSpec::read(&object.spec);
        let task = match spec {
            Ok(spec) if spec.paused => {
                progress.change(Status::paused);
                None
            }
            Ok(_) if index >= WEBHOOKS_MAX => {
                let reason = format!("events are delivered to the {WEBHOOKS_MAX} oldest webhooks of the cluster");
                progress.change(|status| status.blocked(&reason));
                None
            }
            Ok(spec) => Some(self.spawn(&object, spec, progress.clone())),
            // A newer program wrote a spec that this one cannot read.
            Err(refusal) => {
                progress.change(|status| status.blocked(&format!("the controller cannot read it: {refusal}")));
                None
            }
        };
        Running { object, progress, task, looks: LOOKS_PER_CURSOR }
    }

    fn spawn(&self, object: &Object, spec: WebhookSpec, progress: Progress) -> Task<()> {
        let cluster = self.means.service.handle().cluster_id();
        let sender = Sender { cluster, key: object.key.clone(), uid: object.uid };
        let delivery = Delivery { means: self.means.clone(), sender, spec, progress };
        self.means.env.spawn_restarting("webhook", move || delivery.clone().run())
    }

    /// Writes the statuses that changed, all in one proposal.
    async fn write(&mut self, last: bool) {
        let mut observations = Vec::new();
        for running in self.running.values_mut() {
            let Running { object, progress, looks, .. } = running;
            *looks = looks.saturating_add(1);
            let (status, stored) = (progress.get(), Status::stored(object));
            let minor = stored.as_ref().is_some_and(|stored| status.differs_in_cursor_only(stored));
            if stored.as_ref() == Some(&status) || (minor && *looks < LOOKS_PER_CURSOR && !last) {
                continue;
            }
            *looks = 0;
            let (key, uid, revision) = (object.key.clone(), object.uid, object.revision);
            observations.push(Observation { key, uid, revision, status: status.document().into() });
        }
        if observations.is_empty() {
            return;
        }
        if let Err(error) = self.means.service.observe_objects(observations).await {
            // The next look finds that the state does not have them.
            tracing::debug!(error = &error as &dyn std::error::Error, "the statuses of webhooks were not written");
        }
    }
}

impl Running {
    /// Ends its delivery. An attempt that is under way may still reach the receiver.
    fn end(self) {
        self.task.iter().for_each(Task::abort);
    }

    fn is_failing(&self) -> bool {
        matches!(self.progress.get().state, Activity::Retrying | Activity::Blocked)
    }
}
