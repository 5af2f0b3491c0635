//! One replica's step, and the head on which a leader plans: ADR 1 without Raft.
//!
//! [`Replica`] takes committed entries as bytes and keeps the state and its chain. [`Head`] runs ahead of it: it
//! applies the gathered requests, runs the leader tasks, and returns one entry with the state, answers and events that
//! every replica will compute, because `apply` is deterministic. Both are pure. Gathering, committing and answering are
//! the business of the leader loop in `atlas-raft`.
//!
//! ```
//! # use atlas_replica::{Head, Replica};
//! # use atlas_state::State;
//! # use atlas_types::{ClusterTime, Command, ConfigureCluster, Namespace, Origin, Request, Timestamp};
//! # let command = Command::ConfigureCluster(ConfigureCluster { config: Default::default() });
//! # let gathered = vec![Request { origin: Origin::duty(Namespace::default_namespace()), command }];
//! let mut replica = Replica::new(State::new(1));
//! let mut head = Head::new(replica.state().clone());
//! let planned = head.plan(gathered, Timestamp(1), ClusterTime(0), &mut |_, _| Vec::new());
//! let applied = replica.apply(&planned.entry_bytes).unwrap(); // once a majority has it
//! assert_eq!(applied.events, planned.events);
//! assert_eq!(replica.state().chain(), head.state().chain());
//! ```

mod head;
mod replica;
#[cfg(test)]
mod tests;

pub use head::{Duties, Head, PlannedEntry};
pub use replica::{AppliedEntry, Halt, Replica, decode};
