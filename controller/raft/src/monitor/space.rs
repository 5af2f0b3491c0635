//! Disk space (B.38): when it runs low, new work is refused before the log fails, and a ballast file is freed so that
//! running work can finish. When space is available again, this is reverted automatically.
//!
//! The log does not depend on this monitor: an entry without disk space for its segment waits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{Command, Request};
use tokio::sync::watch;

use crate::machine::Raft;
use atlas_log::{Log, Space};

/// The interval at which the disk is checked.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// With less free space than this, the log cannot create a segment.
const LEAST_BYTES: u64 = 2 << 20;

/// How much disk space a member reserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceLimits {
    /// Size of the ballast file, which is freed when space runs low; 0 for no ballast file.
    pub ballast_bytes: u64,
    /// With less free space than this, new work is refused. With twice as much it is accepted again.
    pub reserve_bytes: u64,
}

/// How much disk space is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Enough.
    Ample,
    /// Only enough for requests that end work or free space. New work is refused.
    Short,
    /// Not even enough for the log. Nothing is proposed at this member, but it still answers reads.
    None,
}

/// The disk of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// How much space is left.
    pub room: Room,
    /// Bytes that are free.
    pub free_bytes: u64,
}

/// Frees the ballast of a stopped member if its disk is nearly full, so that its other files can be opened.
pub fn make_room(data_dir: &Path, limits: SpaceLimits) {
    let dir = data_dir.join("raft").join("log");
    if atlas_log::file::free_bytes(&dir).is_ok_and(|free| free < limits.reserve_bytes)
        && let Err(error) = atlas_log::file::set_ballast(&dir, 0)
    {
        tracing::warn!(%error, "could not free the ballast on the log's disk");
    }
}

/// True if requests need space that is not freed again when running work ends.
pub(crate) fn grows(requests: &[Request]) -> bool {
    let grows = |request: &Request| {
        use Command::{ForkJob, RegisterAgent, RetryJob, SubmitJob};
        matches!(request.command, SubmitJob(_) | RegisterAgent(_) | RetryJob(_) | ForkJob(_))
    };
    requests.iter().any(grows)
}

/// Checks the disk periodically.
pub(crate) struct SpaceKeeper {
    raft: Raft,
    log: Log,
    space: Arc<dyn Space>,
    limits: SpaceLimits,
    disk: watch::Sender<Disk>,
    /// True while the ballast file exists.
    ballast: bool,
    env: Env,
}

impl SpaceKeeper {
    /// Checks for the first time, and frees the ballast of an earlier start if space is low.
    pub(crate) fn new(raft: Raft, log: Log, limits: SpaceLimits, env: Env) -> (Self, watch::Receiver<Disk>) {
        let space = log.space();
        let (disk, seen) = watch::channel(Disk { room: Room::Ample, free_bytes: u64::MAX });
        let mut keeper = Self { raft, log, space, limits, disk, ballast: true, env };
        let free = keeper.space.free_bytes();
        // With enough space, the ballast file is written again, because an existing one may be incomplete.
        keeper.ballast = free.is_ok_and(|free| free < limits.reserve_bytes);
        let free = keeper.space.free_bytes();
        let look = keeper.judge(free.unwrap_or(u64::MAX));
        let changed = change_ballast(keeper.space.as_ref(), keeper.ballast, look.ballast, limits);
        keeper.note(look, changed);
        (keeper, seen)
    }

    /// Checks until Raft stops.
    pub(crate) async fn run(mut self) {
        loop {
            self.env.clock.sleep(LOOK_EVERY).await;
            let (space, limits, held) = (Arc::clone(&self.space), self.limits, self.ballast);
            let free = self.env.spawn_blocking("disk-free", move || space.free_bytes()).join().await;
            let Ok(Ok(free)) = free else { continue };
            let look = self.judge(free);
            let mut changed = Ok(held);
            if look.ballast != held {
                let space = Arc::clone(&self.space);
                let change = move || change_ballast(space.as_ref(), held, look.ballast, limits);
                let changing = self.env.spawn_blocking("disk-ballast", change).join().await;
                changed = changing.unwrap_or(Ok(held));
            }
            self.note(look, changed);
        }
    }

    fn judge(&self, free_bytes: u64) -> Look {
        let before = self.disk.borrow().room;
        judge(self.limits, before, free_bytes, self.ballast, self.log.waits_for_space())
    }

    /// Reports the result of a check.
    fn note(&mut self, look: Look, ballast: std::io::Result<bool>) {
        self.ballast = ballast.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not change the ballast on the log's disk");
            false
        });
        let Disk { room: before, .. } = *self.disk.borrow();
        self.disk.send_replace(look.disk);
        let Disk { room, free_bytes } = look.disk;
        if room == before {
            return;
        }
        match room {
            Room::Ample => tracing::info!(free_bytes, "disk space is available again: accepting new work"),
            Room::Short => tracing::error!(free_bytes, "the disk is nearly full: refusing new work"),
            Room::None => tracing::error!(free_bytes, "the disk is full: writes wait for space"),
        }
        // A member that cannot append must not be elected. This stops the election timeout; an early election looks at
        // the room itself. A single member cannot hand over.
        if self.raft.voter_ids().count() > 1 {
            self.raft.runtime_config().elect(room != Room::None);
        }
    }
}

/// The result of a check of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    disk: Disk,
    /// Whether the ballast file is to exist from now on.
    ballast: bool,
}

/// Classifies `free_bytes`. After a shortage, space is ample again only with twice the reserve plus the ballast, so
/// that the result does not oscillate.
fn judge(limits: SpaceLimits, before: Room, free_bytes: u64, ballast: bool, log_waits: bool) -> Look {
    let SpaceLimits { ballast_bytes, reserve_bytes } = limits;
    let look = |room, ballast| Look { disk: Disk { room, free_bytes }, ballast };
    if log_waits || free_bytes < LEAST_BYTES {
        return look(Room::None, false);
    }
    if free_bytes < reserve_bytes {
        return look(Room::Short, false);
    }
    let wanted = if ballast { 0 } else { ballast_bytes };
    let roomy = free_bytes >= wanted.saturating_add(2 * reserve_bytes);
    if before != Room::Ample && !roomy {
        return look(Room::Short, ballast);
    }
    look(Room::Ample, ballast_bytes > 0 && (ballast || roomy))
}

/// Creates or frees the ballast. Returns whether it exists afterwards.
fn change_ballast(space: &dyn Space, held: bool, wanted: bool, limits: SpaceLimits) -> std::io::Result<bool> {
    if held != wanted {
        space.set_ballast(if wanted { limits.ballast_bytes } else { 0 })?;
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn room_gets_short_before_it_ends_and_comes_back_with_a_margin() {
        let limits = SpaceLimits { ballast_bytes: 64 << 20, reserve_bytes: 64 << 20 };
        let mut table = String::new();
        let (mut room, mut ballast) = (Room::Ample, false);
        // Free space in MiB as each check sees it. Freeing the ballast shows in the next check.
        for (free, waits) in [
            (500, false),
            (436, false),
            (63, false),
            (127, false),
            (1, false),
            (70, true),
            (150, false),
            (192, false),
            (128, false),
        ] {
            let look = judge(limits, room, free << 20, ballast, waits);
            (room, ballast) = (look.disk.room, look.ballast);
            table += &format!(
                "{free:>3} MiB{} {room:?}{}\n",
                if waits { ", log waits:" } else { ":" },
                if ballast { ", ballast" } else { "" }
            );
        }
        expect![[r#"
            500 MiB: Ample, ballast
            436 MiB: Ample, ballast
             63 MiB: Short
            127 MiB: Short
              1 MiB: None
             70 MiB, log waits: None
            150 MiB: Short
            192 MiB: Ample, ballast
            128 MiB: Ample, ballast
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_small_disk_is_used_without_a_ballast() {
        let limits = SpaceLimits { ballast_bytes: 64 << 20, reserve_bytes: 64 << 20 };
        let look = judge(limits, Room::Ample, 100 << 20, false, false);
        assert_eq!((look.disk.room, look.ballast), (Room::Ample, false));
    }
}
