//! What a case costs: processor time and memory of this process, as the system counts them. Wall time would tell how busy the
//! machine is.

use std::cell::RefCell;
use std::fs;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Processor time of one case. Programs that are not optimised take some twenty times as long.
const CPU_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 50 });
/// Memory of one case; all of them together keep below it.
const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// How many of the costliest cases are told.
const TOLD: usize = 5;

pub(crate) struct Gauge {
    bytes: u64,
    costs: RefCell<Vec<(Duration, String)>>,
}

impl Gauge {
    /// From here on.
    pub(crate) fn start() -> Self {
        Self { bytes: status("VmRSS:"), costs: RefCell::default() }
    }

    /// The processor time of all threads so far: those of the client, which are this process's too, count against the case.
    pub(crate) fn now(&self) -> Duration {
        clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("the system tells").into()
    }

    /// Whether a case that began at `before` cost too much.
    pub(crate) fn check(&self, before: Duration) -> Result<Duration, String> {
        let took = self.now().saturating_sub(before);
        if took > CPU_MAX {
            return Err(format!("it took {took:?} of processor time"));
        }
        if self.grown_bytes() > MEMORY_BYTES_MAX {
            return Err(format!("memory grew by {} MiB", self.grown_bytes() >> 20));
        }
        Ok(took)
    }

    /// Notes what a case has cost.
    pub(crate) fn note(&self, name: &str, took: Duration) {
        self.costs.borrow_mut().push((took, name.to_owned()));
    }

    /// The most memory that there ever was, above that of the start.
    pub(crate) fn grown_bytes(&self) -> u64 {
        status("VmHWM:").saturating_sub(self.bytes)
    }

    /// The costliest cases, the median and the bound.
    pub(crate) fn costs(&self) -> String {
        let mut costs = self.costs.borrow_mut();
        costs.sort_by(|left, right| right.cmp(left));
        let median = costs.get(costs.len() / 2).map_or(Duration::ZERO, |(took, _)| *took);
        let worst: Vec<String> = costs.iter().take(TOLD).map(|(took, name)| format!("{name} {took:.1?}")).collect();
        format!("processor time at most {} (bound {CPU_MAX:?}), median {median:.1?}", worst.join(", "))
    }
}

/// A line of the process's status, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
