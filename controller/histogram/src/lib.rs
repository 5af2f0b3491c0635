//! Replaces the histograms that openraft keeps of its own work, with the same names and functions.
//!
//! The root manifest replaces the published `base2histogram` 0.2.3 with this package. The published one builds the tables of all its
//! sixteen widths when the first histogram is created, of which openraft uses one: 26 MiB that every controller would hold for
//! its whole life. Here a bucket is found without a table. Use the published one again once it builds its tables one by one.

use std::fmt;
use std::marker::PhantomData;

/// Buckets in which the values of one power of two are told apart: a percentile is off by a quarter at most.
const BUCKETS_PER_POWER: usize = 4;

/// Bits of a value below its highest that choose among them.
const BITS: u32 = BUCKETS_PER_POWER.trailing_zeros();

/// Counts of values, by their size. The published one can keep something beside them, which openraft does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram<T = ()> {
    /// Grows up to the largest value that was seen.
    buckets: Vec<u64>,
    samples: u64,
    beside: PhantomData<T>,
}

/// Where the values of a histogram lie. A percentile is the smallest value that its bucket may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PercentileStats {
    /// How many values there are.
    pub samples: u64,
    /// One in a thousand is less.
    pub p0_1: u64,
    /// One in a hundred is less.
    pub p1: u64,
    /// One in twenty is less.
    pub p5: u64,
    /// One in ten is less.
    pub p10: u64,
    /// Half of them are less.
    pub p50: u64,
    /// One in ten is more.
    pub p90: u64,
    /// One in a hundred is more.
    pub p99: u64,
    /// One in a thousand is more.
    pub p99_9: u64,
}

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Histogram<T> {
    /// An empty one.
    pub fn new() -> Self {
        Self { buckets: Vec::new(), samples: 0, beside: PhantomData }
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `count` times.
    pub fn record_n(&mut self, value: u64, count: u64) {
        let bucket = bucket_of(value);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += count;
        self.samples += count;
    }

    /// How many values were counted.
    pub fn total(&self) -> u64 {
        self.samples
    }

    /// Where the values lie; all zero where there are none.
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats {
            samples: self.samples,
            p0_1: self.per_mille(1),
            p1: self.per_mille(10),
            p5: self.per_mille(50),
            p10: self.per_mille(100),
            p50: self.per_mille(500),
            p90: self.per_mille(900),
            p99: self.per_mille(990),
            p99_9: self.per_mille(999),
        }
    }

    fn per_mille(&self, share: u64) -> u64 {
        let wanted = (self.samples * share).div_ceil(1000);
        let mut seen = 0;
        let reached = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0, smallest_of)
    }
}

/// Values below four have a bucket each; every power of two above has four.
fn bucket_of(value: u64) -> usize {
    let power = value.max(1).ilog2();
    if power < BITS {
        return value as usize;
    }
    let within = (value >> (power - BITS)) as usize - BUCKETS_PER_POWER;
    (power - BITS + 1) as usize * BUCKETS_PER_POWER + within
}

fn smallest_of(bucket: usize) -> u64 {
    if bucket < BUCKETS_PER_POWER {
        return bucket as u64;
    }
    let within = BUCKETS_PER_POWER + bucket % BUCKETS_PER_POWER;
    (within as u64) << (bucket / BUCKETS_PER_POWER - 1)
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, p0_1, p1, p5, p10, p50, p90, p99, p99_9 } = self;
        write!(
            f,
            "[samples: {samples}, P0.1: {p0_1}, P1: {p1}, P5: {p5}, P10: {p10}, P50: {p50}, P90: {p90}, P99: {p99}, P99.9: {p99_9}]"
        )
    }
}

/// Histograms one below the other. Nobody draws them here: each is a line.
#[derive(Debug, Clone, Default)]
pub struct AsciiChart(Vec<(String, Histogram)>);

impl AsciiChart {
    /// Without lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one line more.
    #[must_use]
    pub fn add(mut self, name: impl Into<String>, histogram: Histogram) -> Self {
        self.0.push((name.into(), histogram));
        self
    }

    /// What is printed.
    pub fn detailed(&self) -> impl fmt::Display {
        self
    }
}

impl fmt::Display for AsciiChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, histogram)| writeln!(f, "{name} {}", histogram.percentile_stats()))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        let around = (0..64).flat_map(|power| [(1_u64 << power) - 1, 1 << power, (1 << power) + (1 << power) / 3]);
        for value in around.chain([u64::MAX]) {
            let bucket = bucket_of(value);
            assert!(smallest_of(bucket) <= value, "{value}");
            assert!(value == u64::MAX || value < smallest_of(bucket + 1) || bucket == bucket_of(u64::MAX), "{value}");
        }
    }

    #[test]
    fn percentiles_are_told_to_a_quarter() {
        let mut histogram: Histogram = Histogram::new();
        (1..=1000).for_each(|value| histogram.record(value));
        let stats = histogram.percentile_stats();
        expect!["[samples: 1000, P0.1: 1, P1: 10, P5: 48, P10: 96, P50: 448, P90: 896, P99: 896, P99.9: 896]"]
            .assert_eq(&stats.to_string());
        expect!["[samples: 0, P0.1: 0, P1: 0, P5: 0, P10: 0, P50: 0, P90: 0, P99: 0, P99.9: 0]"]
            .assert_eq(&Histogram::<()>::new().percentile_stats().to_string());
    }
}
