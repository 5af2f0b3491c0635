//! Control groups: they hold the process tree of an agent to the memory and the cores that its contract states.
//!
//! Where this process is and what is mounted is read from texts (`layout`). [`Groups`] finds out once which limits it can enforce,
//! and creates a [`Group`] for each tree with such limits. Otherwise memory is limited by an rlimit and CPU is not; [`Enforced`]
//! says which.

mod group;
mod groups;
mod layout;
mod limits;

pub(crate) use group::Group;
pub(crate) use groups::Groups;
pub use layout::Cgroup;
pub(crate) use limits::{Enforced, Limits};
