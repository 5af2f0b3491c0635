//! Limits that no control group enforces: the tree is looked at while it runs, and at its end.

use std::time::Duration;

use super::Tree;
use crate::cgroup::Breach;
use crate::process::usage::Usage;

/// How often a tree with watched limits is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How much of a peak may be programs and libraries, which are files.
const FILES_BYTES: u64 = 64 << 20;

impl Tree {
    /// The limit that the attempt reached, told once.
    pub(crate) fn breach(&mut self) -> Option<Breach> {
        self.count_kills();
        let is_new = self.kills > self.kills_told;
        self.kills_told = self.kills;
        let killed = self.enforced.killed(self.peak).filter(|_| is_new);
        let spent = self.spent.take().unwrap_or_default();
        // Files count for the peak, and not for the limit.
        let peak = spent.peak_bytes.saturating_sub(FILES_BYTES);
        let at_end = || self.enforced.breach(peak, spent.cpu.saturating_sub(self.cpu_before));
        self.breach.take().or(killed).or_else(at_end)
    }

    /// When the tree must be looked at again. None if no limit asks for it, or it has ended.
    pub(crate) fn look_at(&self) -> Option<Duration> {
        (self.enforced.is_watched() && !self.ended).then(|| self.looked_at + LOOK)
    }

    /// Looks at what the tree uses, and kills it if that is more than its limits permit.
    pub(crate) async fn look(&mut self) {
        let Some(usage) = self.usage().await else { return };
        self.breach = self.enforced.breach(usage.memory_bytes, usage.cpu.saturating_sub(self.cpu_before));
        if self.breach.is_some() {
            self.kill().await;
        }
    }

    /// Counts what comes for another attempt.
    pub(crate) async fn begin_attempt(&mut self) {
        if let Some(usage) = self.usage().await {
            self.cpu_before = usage.cpu;
        }
    }

    /// What the tree uses. None if no limit asks for it, or it has ended.
    async fn usage(&mut self) -> Option<Usage> {
        self.look_at()?;
        let (root, in_namespace, memory_max) = (self.root(), self.in_namespace, self.enforced.watched_memory());
        let look = move || Usage::of_tree(root, in_namespace, memory_max);
        let usage = self.env.spawn_blocking("look at a process tree", look).join().await.ok();
        self.looked_at = self.env.clock.monotonic();
        usage
    }
}
