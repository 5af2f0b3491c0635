//! Disk faults: slow, full, failing, damaged or lost.

use std::time::Duration;

use turmoil::Sim;

use super::Due;
use crate::Bug;
use crate::run::{RENEW, World};
use crate::seen::Seen;

/// Segments with less data are not damaged: they may consist only of last groups, which could be torn.
const DAMAGE_MIN: usize = 6 * BLOCK;
/// The smallest write of the log.
const BLOCK: usize = 4_096;

impl World {
    /// The power fails in the middle of one of the next syncs. The main loop notices that the member has failed.
    pub(super) fn crash_in_a_sync(&mut self, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        let n = self.rng.below(4);
        let disk = self.cluster.disk(member);
        disk.lose_power_at_sync(n);
        self.failing.insert((member, "power lost in a sync"), disk.syncs() + n);
        self.cluster.count("power lost in a sync");
        true
    }

    pub(super) fn fail_sync(&mut self, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        let n = self.rng.below(4);
        let disk = self.cluster.disk(member);
        disk.fail_sync(n);
        self.failing.insert((member, "syncs failed"), disk.syncs() + n);
        self.cluster.count("syncs failed");
        true
    }

    pub(super) fn slow_disk(&mut self, member: usize) -> bool {
        let most = Duration::from_millis(self.rng.range(20, 300));
        self.cluster.disk(member).set_latency(most / 4, most);
        let long = Duration::from_millis(self.rng.range(1_000, 5_000));
        self.after(long, Due::DiskWell(member));
        self.cluster.count("slow disks");
        true
    }

    /// Replaces a machine's disk and the member on it. The new member starts without data.
    pub(super) fn replace(&mut self, sim: &mut Sim<'_>, member: usize) -> bool {
        if !self.may_lose_a_disk() {
            return false;
        }
        self.kill(sim, member);
        self.cluster.replace(member);
        self.cluster.see(Seen::Replaced { member });
        self.cluster.count("disks replaced");
        let back = self.rng.range(50, 1_500);
        self.after(Duration::from_millis(back), Due::Start(member));
        true
    }

    /// True if a member may lose its disk: only one at a time, and only while all are up, because data lost by two
    /// members cannot be recovered.
    fn may_lose_a_disk(&self) -> bool {
        let all_up = (0..self.options.members).all(|member| self.is_up(member));
        all_up && self.cluster.replacement().is_none() && self.damaged.is_empty()
    }

    /// Flips a bit of a member's synced data. Below the durable mark it may be in the last group. Without a mark it
    /// lies before the last groups, which could otherwise be taken for torn. The member must not start with this data
    /// and gets a new disk.
    pub(super) fn damage(&mut self, sim: &mut Sim<'_>, member: usize) -> bool {
        let disk = self.cluster.disk(member);
        let Some(sequence) = disk.sequences().last().copied() else { return false };
        let written = disk.with(sequence, |bytes| bytes.iter().rposition(|byte| *byte != 0)).flatten();
        let Some(written) = written.filter(|written| *written > DAMAGE_MIN) else { return false };
        if !self.may_lose_a_disk() {
            return false;
        }
        self.kill(sim, member);
        let (drawn, cuts) = (self.rng.below(written as u64 / 2) as usize, self.cluster.has(Bug::DamageCutOff));
        let end = self.marked_end(member, sequence);
        let turned = disk.with(sequence, |bytes| {
            let is_written = |at: &usize| bytes[*at] != 0;
            let at = match end {
                Some(end) => (0..end.saturating_sub(drawn)).rev().find(is_written)?,
                None => (drawn..written).find(is_written)?,
            };
            bytes[at] ^= 1;
            if cuts {
                bytes[at / BLOCK * BLOCK..].fill(0);
            }
            Some(())
        });
        if cuts {
            disk.forget_mark();
        }
        if turned.flatten().is_some() {
            if end.is_some() {
                self.cluster.count("disks damaged below the mark");
            }
            self.damaged.insert(member);
            self.cluster.see(Seen::Damaged { member });
            self.cluster.count("disks damaged");
        }
        let back = self.rng.range(50, 1_500);
        self.after(Duration::from_millis(back), Due::Start(member));
        true
    }

    /// The end of a member's log, if it is in this segment and the durable mark covers the whole log.
    fn marked_end(&self, member: usize, sequence: u64) -> Option<usize> {
        let log = self.cluster.synced_log(member)?;
        let whole = log.mark.is_some_and(|mark| mark.group >= log.end.group) && log.end.sequence == sequence;
        usize::try_from(log.end.offset).ok().filter(|_| whole)
    }

    /// Replaces the disk of a member that could not start, as soon as no other member is being replaced.
    pub(super) fn renew(&mut self, member: usize) {
        if !self.damaged.contains(&member) {
            return;
        }
        if self.cluster.replace(member) {
            self.damaged.remove(&member);
            self.cluster.see(Seen::Replaced { member });
            self.after(Duration::ZERO, Due::Start(member));
        } else {
            self.after(RENEW, Due::Renew(member));
        }
    }

    /// Fills a member's disk for a while.
    pub(super) fn fill_disk(&mut self, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        self.cluster.disk(member).set_capacity(Some(0));
        self.cluster.see(Seen::DiskFull { member });
        self.cluster.count("disks full");
        let long = Duration::from_millis(self.rng.range(500, 4_000));
        self.after(long, Due::Room(member));
        true
    }
}
