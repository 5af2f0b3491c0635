//! Faults of disks: slow, full, failing, damaged, gone.

use std::time::Duration;

use turmoil::Sim;

use super::Due;
use crate::Bug;
use crate::run::{RENEW, World};
use crate::seen::Seen;

/// Less than this in a segment of the log is not damaged: it may be all last groups, and they may be torn.
const DAMAGE_MIN: usize = 6 * BLOCK;
/// What the log writes at least.
const BLOCK: usize = 4_096;

impl World {
    /// The power goes in the middle of a sync that is soon to come; the loop notices that the member has failed.
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

    /// A machine's disk is beyond repair: another member comes in its place, which has nothing.
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

    /// One at a time, and only of a whole group: what two have lost nobody can bring back.
    fn may_lose_a_disk(&self) -> bool {
        let all_up = (0..self.options.members).all(|member| self.is_up(member));
        all_up && self.cluster.replacement().is_none() && self.damaged.is_empty()
    }

    /// A bit of what a member has synced turns. Below the durable mark it may be in the last group; without one it is in front of the
    /// last groups, which could as well be torn. The member must not start on it, and gets a new disk.
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

    /// Where the log of a member ends, if that is in this segment and the durable mark says that all of it was durable.
    fn marked_end(&self, member: usize, sequence: u64) -> Option<usize> {
        let log = self.cluster.synced_log(member)?;
        let whole = log.mark.is_some_and(|mark| mark.group >= log.end.group) && log.end.sequence == sequence;
        usize::try_from(log.end.offset).ok().filter(|_| whole)
    }

    /// The disk of a member that could not start is replaced, as soon as no other member is.
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

    /// Nothing more fits on a member's disk for a while.
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
