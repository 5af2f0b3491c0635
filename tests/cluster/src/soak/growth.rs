//! Decides whether a process still grows after all its bounded data has reached its limits.

use std::fmt;

use super::sample::Sample;

/// Allowed growth of memory, for the allocator and caches.
const BYTES_SLACK: u64 = 2 << 20;
/// Allowed growth of open files, because connections and slots come and go.
const FILES_SLACK: u64 = 8;

/// The medians of a process's memory and open files in the second and last third of a run. In the first third, caches
/// fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    bytes: (u64, u64),
    files: (u64, u64),
}

impl Growth {
    pub(super) fn of(samples: &[Sample]) -> Self {
        let third = samples.len() / 3;
        let (middle, last) = (&samples[third..2 * third], &samples[2 * third..]);
        let both = |of: fn(&Sample) -> u64| (median(middle.iter().map(of)), median(last.iter().map(of)));
        Self { bytes: both(|sample| sample.bytes), files: both(|sample| sample.files) }
    }

    /// Whether the growth is within 5% plus the allowed noise.
    pub fn is_flat(&self) -> bool {
        let ((was, is), (had, has)) = (self.bytes, self.files);
        is <= was + was / 20 + BYTES_SLACK && has <= had + FILES_SLACK
    }
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let ((was, is), (had, has)) = (self.bytes, self.files);
        let verdict = if self.is_flat() { "flat" } else { "GROWS" };
        write!(f, "{:.1} → {:.1} MiB, {had} → {has} files: {verdict}", mib(was), mib(is))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(samples: impl Iterator<Item = (u64, u64)>) -> String {
        let samples: Vec<Sample> = samples.map(|(mib, files)| Sample { bytes: mib << 20, files }).collect();
        Growth::of(&samples).to_string()
    }

    #[test]
    fn what_fills_its_caches_is_flat_and_what_goes_on_growing_is_not() {
        assert_eq!(grown((0..90).map(|n: u64| (n.min(25) + 10, 30))), "35.0 → 35.0 MiB, 30 → 30 files: flat");
        assert_eq!(grown((0..90).map(|n| (n + 10, 30))), "55.0 → 85.0 MiB, 30 → 30 files: GROWS");
        assert_eq!(grown((0..90).map(|n| (30, n))), "30.0 → 30.0 MiB, 45 → 75 files: GROWS");
        assert_eq!(grown([(5, 5)].into_iter()), "0.0 → 5.0 MiB, 0 → 5 files: GROWS");
        assert_eq!(grown([].into_iter()), "0.0 → 0.0 MiB, 0 → 0 files: flat");
    }
}
