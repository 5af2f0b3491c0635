//! Queues, and the tasks that empty them. A full queue drops what comes, and counts it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::{Env, Task};
use atlas_telemetry::{BySignal, Metrics};
use atlas_types::TraceContext;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tokio::sync::{mpsc, watch};

use crate::config::{Receiver, Signal};
use crate::logs::Logs;
use crate::send::{SendError, Sender};
use crate::{Config, metrics, spans, value};

/// How often a batch is sent again before it is dropped.
const ATTEMPTS_MAX: u32 = 5;
/// The pause before a batch is sent again; it doubles with each attempt.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a program that stops waits for what is in the queues.
const FLUSH_MAX: Duration = Duration::from_secs(3);

/// The writing end of a queue.
pub(crate) struct Queue<T> {
    sender: mpsc::Sender<T>,
    dropped: Arc<AtomicU64>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), dropped: self.dropped.clone() }
    }
}

impl<T> Queue<T> {
    fn new(max: usize) -> (Self, Waiting<T>) {
        let (sender, receiver) = mpsc::channel(max);
        let dropped = Arc::<AtomicU64>::default();
        (Self { sender, dropped: dropped.clone() }, Waiting { receiver, dropped })
    }

    /// Adds an item, or drops it if the queue is full.
    pub(crate) fn put(&self, item: T) {
        if self.sender.try_send(item).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The reading end of a queue.
struct Waiting<T> {
    receiver: mpsc::Receiver<T>,
    dropped: Arc<AtomicU64>,
}

/// The reading ends of both queues.
type Ends = (Waiting<Span>, Waiting<LogRecord>);

/// Records telemetry. Clones share the queues.
#[derive(Clone)]
pub struct Otlp {
    config: Arc<Config>,
    spans: Queue<Span>,
    logs: Queue<LogRecord>,
    /// None once the tasks have started.
    waiting: Arc<Mutex<Option<Ends>>>,
}

impl std::fmt::Debug for Otlp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Otlp").field(&self.config).finish()
    }
}

impl Otlp {
    /// Makes the queues. Nothing is sent before [`Self::start`].
    pub fn new(config: Config) -> Self {
        let (spans, waiting_spans) = Queue::new(config.queue_max);
        let (logs, waiting_logs) = Queue::new(config.queue_max);
        let waiting = Arc::new(Mutex::new(Some((waiting_spans, waiting_logs))));
        Self { config: Arc::new(config), spans, logs, waiting }
    }

    /// The part of the log that sends its lines; none if they are not sent.
    pub fn logs(&self, env: &Env) -> Option<Logs> {
        self.config.logs.as_ref()?;
        Some(Logs { queue: self.logs.clone(), clock: env.clock.clone() })
    }

    /// Records the spans of a job or a run, if its trace is among those that are sent. `trace` is what its caller decided.
    pub fn record(&self, spans: Vec<Span>, trace: Option<TraceContext>) {
        let Some((id, parent)) = spans::sampled_by(&spans, trace) else { return };
        if self.config.traces.is_some() && self.config.sampler.takes(id, parent) {
            spans.into_iter().for_each(|span| self.spans.put(span));
        }
    }

    /// Counts spans that were lost before they could be recorded.
    pub fn lost(&self, count: u64) {
        self.spans.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Starts to send. A second call sends nothing.
    pub fn start(&self, metrics: &Metrics, env: &Env) -> Running {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = Vec::new();
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((spans, logs)) = waiting else { return Running { stop, tasks, env: env.clone() } };
        let make = |receiver: &Receiver, signal| Courier {
            sender: Sender::new(&self.config, receiver, signal),
            config: self.config.clone(),
            metrics: metrics.clone(),
            env: env.clone(),
            signal,
            stopped: stopped.clone(),
        };
        if let Some(receiver) = &self.config.traces {
            tasks.push(env.spawn("otlp-traces", make(receiver, Signal::Traces).traces(spans)));
        }
        if let Some(receiver) = &self.config.logs {
            tasks.push(env.spawn("otlp-logs", make(receiver, Signal::Logs).logs(logs)));
        }
        if let Some(receiver) = &self.config.metrics {
            tasks.push(env.spawn("otlp-metrics", make(receiver, Signal::Metrics).metrics()));
        }
        Running { stop, tasks, env: env.clone() }
    }
}

/// The tasks that send.
pub struct Running {
    stop: watch::Sender<bool>,
    tasks: Vec<Task<()>>,
    env: Env,
}

impl Running {
    /// Sends what is in the queues, for a limited time, and ends the tasks.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let clock = self.env.clock.clone();
        let mut over = std::pin::pin!(clock.sleep(FLUSH_MAX));
        for task in self.tasks {
            if !task.is_finished() {
                tokio::select! {
                    biased;
                    () = &mut over => {}
                    () = until_finished(&task, &self.env) => {}
                }
            }
            task.abort();
        }
    }
}

async fn until_finished(task: &Task<()>, env: &Env) {
    while !task.is_finished() {
        env.clock.sleep(Duration::from_millis(5)).await;
    }
}

/// Sends one signal.
struct Courier {
    sender: Sender,
    config: Arc<Config>,
    metrics: Metrics,
    env: Env,
    signal: Signal,
    stopped: watch::Receiver<bool>,
}

impl Courier {
    async fn traces(self, mut waiting: Waiting<Span>) {
        while let Some(spans) = self.batch(&mut waiting).await {
            let count = spans.len() as u64;
            let scope_spans = vec![ScopeSpans { scope: Some(value::scope()), spans, ..ScopeSpans::default() }];
            let resource = Some(value::resource(&self.config.resource));
            let request = ExportTraceServiceRequest {
                resource_spans: vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }],
            };
            let rejected = |answer: ExportTraceServiceResponse| answer.partial_success.map(|part| part.rejected_spans);
            self.deliver(count, &request, rejected).await;
        }
    }

    async fn logs(self, mut waiting: Waiting<LogRecord>) {
        while let Some(log_records) = self.batch(&mut waiting).await {
            let count = log_records.len() as u64;
            let scope_logs = vec![ScopeLogs { scope: Some(value::scope()), log_records, ..ScopeLogs::default() }];
            let resource = Some(value::resource(&self.config.resource));
            let request = ExportLogsServiceRequest {
                resource_logs: vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }],
            };
            let rejected =
                |answer: ExportLogsServiceResponse| answer.partial_success.map(|part| part.rejected_log_records);
            self.deliver(count, &request, rejected).await;
        }
    }

    async fn metrics(self) {
        let nanos = || u64::try_from(self.env.clock.wall().0).unwrap_or(0).saturating_mul(1_000);
        let began = nanos();
        let mut stopped = self.stopped.clone();
        loop {
            let goes_on = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => false,
                () = self.env.clock.sleep(self.config.interval) => true,
            };
            let metrics = metrics::metrics(&self.metrics.render(), began, nanos());
            let scope_metrics = vec![ScopeMetrics { scope: Some(value::scope()), metrics, ..ScopeMetrics::default() }];
            let resource = Some(value::resource(&self.config.resource));
            let request = ExportMetricsServiceRequest {
                resource_metrics: vec![ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }],
            };
            let refused = |answer: ExportMetricsServiceResponse| {
                answer.partial_success.map(|part| part.rejected_data_points.min(1))
            };
            self.deliver(1, &request, refused).await;
            if !goes_on {
                return;
            }
        }
    }

    /// The next batch; none once the program stops and the queue is empty.
    async fn batch<T>(&self, waiting: &mut Waiting<T>) -> Option<Vec<T>> {
        let (mut stopped, max) = (self.stopped.clone(), self.config.batch_max);
        self.count(false, waiting.dropped.swap(0, Ordering::Relaxed));
        let mut batch = Vec::new();
        let received = tokio::select! {
            biased;
            received = waiting.receiver.recv_many(&mut batch, max) => received,
            _ = stopped.wait_for(|stopped| *stopped) => 0,
        };
        if received > 0 && received < max {
            // More may follow soon.
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => {}
                () = self.env.clock.sleep(self.config.gather) => {}
            }
        }
        while batch.len() < max
            && let Ok(item) = waiting.receiver.try_recv()
        {
            batch.push(item);
        }
        self.count(false, waiting.dropped.swap(0, Ordering::Relaxed));
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a request until it is accepted, refused, or sent often enough.
    async fn deliver<A: Message + Default>(
        &self,
        count: u64,
        request: &impl Message,
        rejected: impl Fn(A) -> Option<i64>,
    ) {
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS_MAX {
            match self.sender.send::<A>(request).await {
                Ok(answer) => {
                    let rejected = rejected(answer).map_or(0, |rejected| rejected.max(0).unsigned_abs().min(count));
                    self.count(false, rejected);
                    self.count(true, count - rejected);
                    return;
                }
                Err(error) if error.is_passing() && attempt < ATTEMPTS_MAX && !*self.stopped.borrow() => {
                    let mut stopped = self.stopped.clone();
                    tokio::select! {
                        _ = stopped.wait_for(|stopped| *stopped) => {}
                        () = self.env.clock.sleep(pause) => {}
                    }
                    pause *= 2;
                }
                Err(error) => {
                    self.dropped(count, &error);
                    return;
                }
            }
        }
    }

    fn dropped(&self, count: u64, error: &SendError) {
        tracing::warn!(signal = ?self.signal, count, %error, "telemetry was dropped");
        self.count(false, count);
    }

    fn count(&self, sent: bool, count: u64) {
        let signal = match self.signal {
            Signal::Traces => atlas_telemetry::Signal::traces,
            Signal::Metrics => atlas_telemetry::Signal::metrics,
            Signal::Logs => atlas_telemetry::Signal::logs,
        };
        if count > 0 {
            let family = if sent { &self.metrics.otlp_sent } else { &self.metrics.otlp_dropped };
            family.get_or_create(&BySignal { signal }).inc_by(count);
        }
    }
}
