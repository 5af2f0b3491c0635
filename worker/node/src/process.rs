//! Process trees that are killed completely and together with their worker.
//!
//! Every agent process is started through a *supervisor*: this program again, with a hidden first argument. The
//! supervisor puts the agent into its own PID namespace where permitted, otherwise it makes itself the subreaper of the
//! agent's descendants. It listens on a socket to the worker: when that closes, on request or because the worker is
//! gone (`kill -9` included), the whole tree is killed, including double forks and new sessions, which a parent-death
//! signal alone would miss. It also knows when the lease ends ([`LeaseWatchdog`]), because a stopped worker does not
//! close its socket.

mod confinement;
mod exposure;
mod left;
mod plan;
mod pre_exec;
mod report;
mod settled;
mod supervisor;
mod tree;
mod usage;
mod watchdog;

pub use confinement::Confinement;
pub(crate) use exposure::{Exposure, Quiet};
pub(crate) use report::Change;
pub use supervisor::run_if_asked;
pub(crate) use tree::{Spawn, Supervisor, SupervisorError, SupervisorProgram, Tree};
pub(crate) use watchdog::LeaseWatchdog;
