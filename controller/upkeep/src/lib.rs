//! What a controller does for its own data: it feeds its history and fills what it missed (`history`, `catch_up`), fetches, checks and collects
//! artifacts (`fill`, `scrub`, `collect`), measures itself (`health`), and collects backups (`backup`).

mod backup;
mod catch_up;
mod collect;
mod fill;
mod health;
mod history;
mod scrub;
mod wanted;

pub use backup::{Backup, backup};
pub use catch_up::catch_up;
pub use collect::collect;
pub use fill::{Completeness, Upkeep, fill};
pub use health::watch;
pub use history::{acknowledge, follow};
pub use scrub::scrub;
pub use wanted::WantedArtifacts;
