//! Writes the figures into docs/internals/performance.md, between its two marks, with the machine they were measured on.

use std::path::Path;

use anyhow::{Context, Result};

use crate::figures::{HEAD, Row};

const BEGIN: &str = "<!-- figures -->";
const END: &str = "<!-- /figures -->";

pub(crate) fn write(rows: &[Row]) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/performance.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    let (before, rest) = text.split_once(BEGIN).context("the page has no begin mark")?;
    let (_, after) = rest.split_once(END).context("the page has no end mark")?;
    let page = format!("{before}{BEGIN}\n\n{}\n\n{}\n{END}{after}", machine(), table(rows));
    std::fs::write(&path, page).with_context(|| format!("could not write {}", path.display()))
}

fn table(rows: &[Row]) -> String {
    let mut table = format!("| {} |\n|{}\n", HEAD.join(" | "), "---|".repeat(HEAD.len()));
    for row in rows {
        table += &format!("| {} |\n", row.cells().join(" | "));
    }
    table
}

/// Processor, cores, memory and kernel; nothing that names the machine.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field(&read("/proc/cpuinfo"), "model name");
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("Machine: {model}, {cores} cores, {memory}, Linux {}. Release build.", kernel.trim())
}
