//! What must hold after every command, one file an invariant. Unit tests, the simulation and debug builds check them all.

mod approval_1;
mod bucket_1;
mod budget_1;
mod cap_1;
mod circuit_1;
mod count_1;
mod dedupe_1;
mod event_1;
mod inbox_1;
mod index_1;
mod job_1;
mod job_2;
mod job_3;
mod journal_1;
mod journal_2;
mod journal_3;
mod lease_1;
mod lease_2;
mod node_1;
mod object_1;
mod park_1;
mod park_2;
mod question_1;
mod route_1;
mod run_1;
mod spawn_1;

use crate::halves::both;
use crate::image::is_many;
use crate::state::State;

/// A broken invariant: a fault of ours, never an answer to a caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is broken: {detail}")]
pub struct Violation {
    /// Its name, such as `LEASE-1`.
    pub name: &'static str,
    /// What was found.
    pub detail: String,
}

type Check = fn(&State) -> Result<(), String>;

/// All of them. `INDEX-1` comes first: the others may use the indexes.
const ALL: [(&str, Check); 26] = [
    ("INDEX-1", index_1::check),
    ("LEASE-1", lease_1::check),
    ("LEASE-2", lease_2::check),
    ("CAP-1", cap_1::check),
    ("COUNT-1", count_1::check),
    ("JOB-1", job_1::check),
    ("JOB-2", job_2::check),
    ("JOB-3", job_3::check),
    ("NODE-1", node_1::check),
    ("DEDUPE-1", dedupe_1::check),
    ("EVENT-1", event_1::check),
    ("BUCKET-1", bucket_1::check),
    ("CIRCUIT-1", circuit_1::check),
    ("SPAWN-1", spawn_1::check),
    ("JOURNAL-1", journal_1::check),
    ("JOURNAL-2", journal_2::check),
    ("JOURNAL-3", journal_3::check),
    ("BUDGET-1", budget_1::check),
    ("PARK-1", park_1::check),
    ("PARK-2", park_2::check),
    ("INBOX-1", inbox_1::check),
    ("QUESTION-1", question_1::check),
    ("APPROVAL-1", approval_1::check),
    ("ROUTE-1", route_1::check),
    ("OBJECT-1", object_1::check),
    ("RUN-1", run_1::check),
];

impl State {
    /// Checks every invariant. This looks at the whole state; it is for tests, simulation, debug builds and loading.
    pub fn check_invariants(&self) -> Result<(), Violation> {
        self.check(&ALL)
    }

    /// Checks every invariant of a state that was read. Its indexes were made from it a moment ago, so they are not made again to
    /// compare them.
    pub(crate) fn check_loaded(&self) -> Result<(), Violation> {
        debug_assert_eq!(index_1::check_tables(self), Ok(()), "a rebuild gives the same again");
        let [(name, _), others @ ..] = &ALL;
        self.check(&[(name, index_1::check_nodes)])?;
        if !is_many(self.jobs.len()) {
            return self.check(others);
        }
        let (some, rest) = others.split_at(others.len() / 3);
        let (some, rest) = both(true, || self.check(some), || self.check(rest));
        some.and(rest)
    }

    fn check(&self, invariants: &[(&'static str, Check)]) -> Result<(), Violation> {
        for (name, check) in invariants {
            check(self).map_err(|detail| Violation { name, detail })?;
        }
        Ok(())
    }
}

/// Ok if `holds`, otherwise what was found instead.
fn ensure(holds: bool, detail: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(detail()) }
}

#[cfg(test)]
mod tests;
