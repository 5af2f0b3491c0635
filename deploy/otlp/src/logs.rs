//! Log lines as messages.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use atlas_env::Clock;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::pipeline::Queue;
use crate::value::{count, flag, share, text, word};

/// Programs parts whose lines are not sent, because sending causes them.
const OWN: [&str; 5] = ["atlas_otlp", "hyper", "h2", "rustls", "tower"];

/// Puts each line of the log into the queue. It never waits.
pub struct Logs {
    pub(crate) queue: Queue<LogRecord>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl<S: Subscriber> Layer<S> for Logs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        let part = target.split("::").next().unwrap_or_default();
        if OWN.contains(&part) || part.starts_with("hyper") {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let at = u64::try_from(self.clock.wall().0).unwrap_or(0).saturating_mul(1_000);
        let level = *event.metadata().level();
        fields.attributes.push(word("code.namespace", target));
        self.queue.put(LogRecord {
            time_unix_nano: at,
            observed_time_unix_nano: at,
            severity_number: severity(level).into(),
            severity_text: level.as_str().to_owned(),
            body: Some(text(&fields.message)),
            attributes: fields.attributes,
            ..LogRecord::default()
        });
    }
}

fn severity(level: Level) -> SeverityNumber {
    match level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    attributes: Vec<KeyValue>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut shown = String::new();
        // Writing to a string cannot fail; a field that cannot be shown is shown as far as it goes.
        let _ = write!(shown, "{value:?}");
        self.record_str(field, &shown);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.attributes.push(word(field.name(), value));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.attributes.push(count(field.name(), value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attributes.push(share(field.name(), value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attributes.push(flag(field.name(), value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.attributes.push(word(field.name(), &atlas_env::chain(value)));
    }
}
