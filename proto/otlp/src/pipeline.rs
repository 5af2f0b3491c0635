//! Queues, and the tasks that empty them. A full queue drops what comes, and counts it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::{Env, Task};
use atlas_telemetry::{BySignal, Metrics};
use atlas_types::TraceContext;
use opentelemetry::InstrumentationScope;
use opentelemetry::logs::LoggerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, LogExporter, SpanExporter};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1 as proto;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter as _, SdkLogRecord, SdkLoggerProvider};
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::{mpsc, watch};

use crate::config::Signal;
use crate::logs::Logs;
use crate::{Config, metrics, send, spans, value};

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
type Ends = (Waiting<SpanData>, Waiting<SdkLogRecord>);

/// Records telemetry. Clones share the queues.
#[derive(Clone)]
pub struct Otlp {
    config: Arc<Config>,
    spans: Queue<SpanData>,
    logs: Queue<SdkLogRecord>,
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
        let logger = SdkLoggerProvider::builder().build().logger("atlas");
        Some(Logs { queue: self.logs.clone(), logger, clock: env.clock.clone() })
    }

    /// Records the spans of a job or a run, if its trace is among those that are sent. `trace` is what its caller decided.
    pub fn record(&self, spans: Vec<SpanData>, trace: Option<TraceContext>) {
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
        let make = |signal| Courier {
            config: self.config.clone(),
            metrics: metrics.clone(),
            env: env.clone(),
            signal,
            stopped: stopped.clone(),
        };
        if let Some(exporter) = self.config.traces.as_ref().and_then(|to| built(send::spans(&self.config, to))) {
            tasks.push(env.spawn("otlp-traces", make(Signal::Traces).traces(exporter, spans)));
        }
        if let Some(exporter) = self.config.logs.as_ref().and_then(|to| built(send::logs(&self.config, to))) {
            tasks.push(env.spawn("otlp-logs", make(Signal::Logs).logs(exporter, logs)));
        }
        if let Some(receiver) = &self.config.metrics {
            let sender = send::Metrics::new(&self.config, receiver);
            tasks.push(env.spawn("otlp-metrics", make(Signal::Metrics).metrics(sender)));
        }
        Running { stop, tasks, env: env.clone() }
    }
}

/// The configuration was checked when it was read, so this does not fail in practice; if it does, the signal is not sent.
fn built<T>(exporter: Result<T, ExporterBuildError>) -> Option<T> {
    exporter.inspect_err(|error| tracing::error!(%error, "telemetry is not sent")).ok()
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
    config: Arc<Config>,
    metrics: Metrics,
    env: Env,
    signal: Signal,
    stopped: watch::Receiver<bool>,
}

impl Courier {
    async fn traces(self, exporter: SpanExporter, mut waiting: Waiting<SpanData>) {
        while let Some(spans) = self.batch(&mut waiting).await {
            let count = spans.len() as u64;
            self.ended(count, &exporter.export(spans).await);
        }
    }

    async fn logs(self, exporter: LogExporter, mut waiting: Waiting<SdkLogRecord>) {
        let scope = value::scope();
        while let Some(lines) = self.batch(&mut waiting).await {
            let batch: Vec<(&SdkLogRecord, &InstrumentationScope)> = lines.iter().map(|line| (line, &scope)).collect();
            let sent = exporter.export(LogBatch::new(&batch)).await;
            self.ended(lines.len() as u64, &sent);
        }
    }

    async fn metrics(self, sender: send::Metrics) {
        let nanos = || u64::try_from(self.env.clock.wall().0).unwrap_or(0).saturating_mul(1_000);
        let began = nanos();
        let mut stopped = self.stopped.clone();
        loop {
            let goes_on = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => false,
                () = self.env.clock.sleep(self.config.interval) => true,
            };
            let message = self.message(metrics::metrics(&self.metrics.render(), began, nanos()));
            self.ended(1, &sender.send(message).await);
            if !goes_on {
                return;
            }
        }
    }

    fn message(&self, metrics: Vec<opentelemetry_proto::tonic::metrics::v1::Metric>) -> ExportMetricsServiceRequest {
        let scope = proto::InstrumentationScope {
            name: "atlas".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Default::default()
        };
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() }];
        let attributes = self.config.resource.iter().map(|(key, value)| value::label(key, value)).collect();
        let resource = Some(Resource { attributes, ..Resource::default() });
        let resource_metrics = vec![ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }];
        ExportMetricsServiceRequest { resource_metrics }
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

    /// Counts what was sent, or dropped because the receiver did not take it in time.
    fn ended(&self, count: u64, sent: &OTelSdkResult) {
        if let Err(error) = sent {
            tracing::warn!(signal = ?self.signal, count, %error, "telemetry was dropped");
        }
        self.count(sent.is_ok(), count);
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
