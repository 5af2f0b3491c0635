//! The kinds of instruments, and their registration with name and unit.

use std::hash::Hash;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};

/// The kind of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations in buckets.
    Histogram,
}

impl Kind {
    /// The name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "up-down",
            Self::Histogram => "histogram",
        }
    }
}

/// One declared instrument, for the reference page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declaration {
    /// The name: dotted, lower case.
    pub name: &'static str,
    /// The unit in UCUM; an annotation in braces names the counted things.
    pub unit: &'static str,
    /// The kind of the instrument.
    pub kind: Kind,
    /// The description, one sentence.
    pub sentence: &'static str,
}

impl Declaration {
    /// The name in a scrape: underscores, the unit appended, counters with `_total`.
    pub fn scrape_name(&self) -> String {
        let mut name = self.name.replace('.', "_");
        if let Some(unit) = unit(self.unit) {
            name.push('_');
            name.push_str(unit.as_str());
        }
        if self.kind == Kind::Counter {
            name.push_str("_total");
        }
        name
    }
}

/// The unit that a scrape appends to a name; annotations such as `{job}` append nothing.
pub(crate) fn unit(ucum: &str) -> Option<Unit> {
    match ucum {
        "s" => Some(Unit::Seconds),
        "By" => Some(Unit::Bytes),
        _ => None,
    }
}

/// A type of field in [`crate::Metrics`].
pub(crate) trait Instrument: Metric + Clone {
    /// The kind of the instrument.
    const KIND: Kind;

    /// Creates an instrument at zero.
    fn create() -> Self;
}

impl Instrument for Counter {
    const KIND: Kind = Kind::Counter;
    fn create() -> Self {
        Self::default()
    }
}

impl Instrument for Gauge {
    const KIND: Kind = Kind::Gauge;
    fn create() -> Self {
        Self::default()
    }
}

/// Buckets from 50 µs to a little over 7 minutes, with a factor of 2.5, so that one scale fits both a commit and a long
/// job.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(50e-6, 2.5, 18))
}

impl Instrument for Histogram {
    const KIND: Kind = Kind::Histogram;
    fn create() -> Self {
        buckets()
    }
}

/// A counter for each value of its attributes.
pub(crate) type CounterBy<A> = Family<A, Counter>;
/// A gauge for each value of its attributes.
pub(crate) type GaugeBy<A> = Family<A, Gauge>;
/// A histogram for each value of its attributes.
pub(crate) type HistogramBy<A> = Family<A, Histogram, fn() -> Histogram>;

/// A gauge of fractions for each value of its attributes.
pub(crate) type ShareBy<A> = Family<A, Gauge<f64, AtomicU64>>;

/// The traits that the attributes of an instrument need.
pub(crate) trait Attributes:
    Clone + Eq + Hash + EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static
{
}
impl<A: Clone + Eq + Hash + EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static> Attributes for A {}

impl<A: Attributes> Instrument for CounterBy<A> {
    const KIND: Kind = Kind::Counter;
    fn create() -> Self {
        Self::default()
    }
}

impl<A: Attributes> Instrument for GaugeBy<A> {
    const KIND: Kind = Kind::Gauge;
    fn create() -> Self {
        Self::default()
    }
}

impl<A: Attributes> Instrument for ShareBy<A> {
    const KIND: Kind = Kind::Gauge;
    fn create() -> Self {
        Self::default()
    }
}

impl<A: Attributes> Instrument for HistogramBy<A> {
    const KIND: Kind = Kind::Histogram;
    fn create() -> Self {
        Self::new_with_constructor(buckets)
    }
}

/// Registers an instrument under its declared name, unit and sentence.
pub(crate) fn register<I: Instrument>(registry: &mut Registry, declaration: &Declaration, instrument: &I) {
    // The registry adds a full stop to each help text.
    let help = declaration.sentence.trim_end_matches('.');
    let name = declaration.name.replace('.', "_");
    match unit(declaration.unit) {
        Some(unit) => registry.register_with_unit(name, help, unit, instrument.clone()),
        None => registry.register(name, help, instrument.clone()),
    }
}
