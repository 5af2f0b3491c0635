//! Process trees that die whole, and with their worker.
//!
//! Every agent process is started through a *keeper*: this program again, with a hidden first argument. The keeper puts the
//! agent into a PID namespace of its own where it may, else it makes itself the subreaper of all that the agent leaves
//! behind. It listens on a socket to the worker: when that closes, by an order or because the worker is gone (`kill -9`
//! included), the whole tree is killed, double forks and new sessions included. A parent-death signal alone would miss those.
//! It also knows when the lease ends ([`Leash`]), for a worker that is stopped closes no socket.

mod confinement;
mod keeper;
mod leash;
mod left;
mod pre_exec;
mod tree;

pub use confinement::Confinement;
pub use keeper::run_if_asked;
pub(crate) use leash::Leash;
pub(crate) use tree::{Change, Keeper, KeeperError, Spawn, Tree};
