//! Log lines as messages.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use atlas_env::Clock;
use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, Severity};
use opentelemetry_sdk::logs::{SdkLogRecord, SdkLogger};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::pipeline::Queue;
use crate::value::{text, whole};

/// Parts of the program whose lines are not sent, because sending causes them.
const OWN: [&str; 6] = ["atlas_otlp", "h2", "rustls", "tonic", "tower", "want"];

/// Puts each line of the log into the queue. It never waits.
pub struct Logs {
    pub(crate) queue: Queue<SdkLogRecord>,
    /// Makes empty records; the SDK has no other way.
    pub(crate) logger: SdkLogger,
    pub(crate) clock: Arc<dyn Clock>,
}

impl<S: Subscriber> Layer<S> for Logs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        let part = target.split("::").next().unwrap_or_default();
        if OWN.contains(&part) || part.starts_with("hyper") || part.starts_with("opentelemetry") {
            return;
        }
        let micros = u64::try_from(self.clock.wall().0).unwrap_or(0);
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        let level = *event.metadata().level();
        let mut record = self.logger.create_log_record();
        record.set_timestamp(at);
        record.set_observed_timestamp(at);
        record.set_severity_number(severity(level));
        record.set_severity_text(level.as_str());
        event.record(&mut Fields(&mut record));
        record.add_attribute("code.namespace", target);
        self.queue.put(record);
    }
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::Error,
        Level::WARN => Severity::Warn,
        Level::INFO => Severity::Info,
        Level::DEBUG => Severity::Debug,
        Level::TRACE => Severity::Trace,
    }
}

/// Writes the fields of a line into a record.
struct Fields<'r>(&'r mut SdkLogRecord);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut shown = String::new();
        // Writing to a string cannot fail; a field that cannot be shown is shown as far as it goes.
        let _ = write!(shown, "{value:?}");
        self.record_str(field, &shown);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let value = AnyValue::from(text(value));
        if field.name() == "message" {
            self.0.set_body(value);
        } else {
            self.0.add_attribute(field.name(), value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.add_attribute(field.name(), whole(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.add_attribute(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.add_attribute(field.name(), value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_str(field, &atlas_env::chain(value));
    }
}
