//! What a case costs: processor time and memory of this process, as the system counts them. Wall time would tell how busy the
//! machine is.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

/// Processor time of one case. Programs that are not optimised take some twenty times as long.
const CPU_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 50 });
/// Memory of one case; all of them together keep below it.
const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// What the system counts processor time in.
const TICK: Duration = Duration::from_millis(10);

pub(crate) struct Gauge {
    bytes: u64,
    slowest: Cell<Duration>,
}

impl Gauge {
    /// From here on.
    pub(crate) fn start() -> Self {
        Self { bytes: status("VmRSS:"), slowest: Cell::new(Duration::ZERO) }
    }

    /// The processor time so far.
    pub(crate) fn now(&self) -> Duration {
        let stat = fs::read_to_string("/proc/self/stat").expect("the system tells");
        // The second field is a name in parentheses and may hold anything.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u32 = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse().unwrap_or(0)).sum();
        TICK * ticks
    }

    /// Whether a case that began at `before` cost too much.
    pub(crate) fn check(&self, before: Duration) -> Result<(), String> {
        let took = self.now().saturating_sub(before);
        self.slowest.set(self.slowest.get().max(took));
        if took > CPU_MAX {
            return Err(format!("it took {took:?} of processor time"));
        }
        if self.grown_bytes() > MEMORY_BYTES_MAX {
            return Err(format!("memory grew by {} MiB", self.grown_bytes() >> 20));
        }
        Ok(())
    }

    /// The most memory that there ever was, above that of the start.
    pub(crate) fn grown_bytes(&self) -> u64 {
        status("VmHWM:").saturating_sub(self.bytes)
    }

    pub(crate) fn slowest(&self) -> String {
        format!("{:?}", self.slowest.get())
    }
}

/// A line of the process's status, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
