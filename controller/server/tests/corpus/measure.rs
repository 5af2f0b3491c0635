//! What a case costs: processor time and memory of this process, as the system counts them. Wall time would tell how busy the
//! machine is.

use std::cell::{Cell, RefCell};
use std::fs;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Processor time of one case. Programs that are not optimised take some twenty times as long.
const CPU_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 50 });
/// Memory of one case.
const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// How many of the costliest cases are reported.
const TOLD: usize = 5;

#[derive(Default)]
pub(crate) struct Gauge {
    costs: RefCell<Vec<(Duration, String)>>,
    most_bytes: Cell<u64>,
}

/// What the process had taken when a case began.
pub(crate) struct Before {
    processor: Duration,
    bytes: u64,
}

impl Gauge {
    /// A case begins.
    pub(crate) fn begin(&self) -> Before {
        // The peak is counted from here on.
        fs::write("/proc/self/clear_refs", "5").expect("the system forgets the peak");
        Before { processor: processor_time(), bytes: status("VmRSS:") }
    }

    /// Whether a case that began at `before` cost too much.
    pub(crate) fn check(&self, before: &Before) -> Result<Duration, String> {
        let took = processor_time().saturating_sub(before.processor);
        let grown = status("VmHWM:").saturating_sub(before.bytes);
        self.most_bytes.set(self.most_bytes.get().max(grown));
        if took > CPU_MAX {
            return Err(format!("it took {took:?} of processor time"));
        }
        if grown > MEMORY_BYTES_MAX {
            return Err(format!("memory grew by {} MiB", grown >> 20));
        }
        Ok(took)
    }

    /// Notes what a case has cost.
    pub(crate) fn note(&self, name: &str, took: Duration) {
        self.costs.borrow_mut().push((took, name.to_owned()));
    }

    /// The costliest cases, the median and the bound, and the most memory that one took.
    pub(crate) fn costs(&self) -> String {
        let mut costs = self.costs.borrow_mut();
        costs.sort_by(|left, right| right.cmp(left));
        let median = costs.get(costs.len() / 2).map_or(Duration::ZERO, |(took, _)| *took);
        let worst: Vec<String> = costs.iter().take(TOLD).map(|(took, name)| format!("{name} {took:.1?}")).collect();
        let worst = worst.join(", ");
        let memory = self.most_bytes.get() >> 20;
        format!("processor time at most {worst} (bound {CPU_MAX:?}), median {median:.1?}; memory at most {memory} MiB")
    }
}

/// The processor time of all threads so far: those of the client, which are this process's too, count against the case.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("the system tells").into()
}

/// A line of the process's status, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
