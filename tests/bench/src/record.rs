//! Writes the figures into docs/internals/performance.md, between its two marks, with the machine on which they were measured.

use std::path::Path;

use anyhow::{Context, Result};

use crate::figures::{HEAD, Row};

const BEGIN: &str = "<!-- figures -->";
const END: &str = "<!-- /figures -->";

pub(crate) fn write(rows: &[Row], stolen: &Stolen) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/performance.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    let (before, rest) = text.split_once(BEGIN).context("the page has no begin mark")?;
    let (_, after) = rest.split_once(END).context("the page has no end mark")?;
    let page = format!("{before}{BEGIN}\n\n{}\n\n{}\n{END}{after}", machine(stolen), table(rows));
    std::fs::write(&path, page).with_context(|| format!("could not write {}", path.display()))
}

fn table(rows: &[Row]) -> String {
    let mut table = format!("| {} |\n|{}\n", HEAD.join(" | "), "---|".repeat(HEAD.len()));
    for row in rows {
        table += &format!("| {} |\n", row.cells().join(" | "));
    }
    table
}

/// The CPU time that the host takes from this machine during the measurement. Figures of a machine with stolen time are
/// too high.
pub(crate) struct Stolen {
    before: Option<[u64; 2]>,
}

impl Stolen {
    /// Starts the measurement.
    pub(crate) fn start() -> Self {
        Self { before: ticks() }
    }

    /// The stolen share of the busy time in percent. None if the system does not count it.
    pub(crate) fn percent(&self) -> Option<f64> {
        let ([busy, stolen], [busy_before, stolen_before]) = (ticks()?, self.before?);
        let (busy, stolen) = (busy - busy_before, stolen - stolen_before);
        Some(stolen as f64 * 100.0 / (busy + stolen).max(1) as f64)
    }
}

/// Busy and stolen time of all cores since the start.
fn ticks() -> Option<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let times: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>().ok()?;
    // user, nice, system, idle, iowait, irq, softirq, steal
    let [user, nice, system, _, _, irq, softirq, stolen, ..] = times[..] else { return None };
    Some([user + nice + system + irq + softirq, stolen])
}

/// The processor, cores, memory, kernel and stolen time. Contains nothing that identifies the machine.
fn machine(stolen: &Stolen) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field(&read("/proc/cpuinfo"), "model name");
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kernel = read("/proc/sys/kernel/osrelease");
    let taken = stolen.percent().map_or_else(String::new, |percent| {
        format!(" The host kept {percent:.0} % of the processor time that was asked for.")
    });
    format!("Machine: {model}, {cores} cores, {memory}, Linux {}. Release build.{taken}", kernel.trim())
}
