//! Control groups: they limit the process tree of an agent to the memory and the cores that its contract states.
//!
//! The groups of this process and the mounts are parsed from texts (`layout`). [`Groups`] finds out once which limits
//! it can enforce, and creates a [`Group`] for each tree with such limits. Otherwise memory is limited by an rlimit and
//! CPU is not; [`Enforced`] says which.

mod group;
mod groups;
mod layout;
mod limits;

pub(crate) use group::Group;
pub(crate) use groups::Groups;
pub use layout::Cgroup;
pub(crate) use limits::{Breach, Enforced, Limits};
