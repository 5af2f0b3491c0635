//! The table itself, one file a subject.

mod access;
mod agents;
mod audit;
mod chains;
mod cluster;
mod events;
mod figures;
mod jobs;
mod nodes;
mod objects;
mod orchestrators;
mod parts;
mod policies;
mod questions;
mod triggers;

use super::Operation;
pub(super) use parts::NAMESPACE;

/// The subjects, in the order of the pages.
const SUBJECTS: &[&[Operation]] = &[
    jobs::OPERATIONS,
    questions::OPERATIONS,
    events::OPERATIONS,
    chains::OPERATIONS,
    agents::OPERATIONS,
    nodes::OPERATIONS,
    objects::OPERATIONS,
    orchestrators::OPERATIONS,
    policies::OPERATIONS,
    triggers::OPERATIONS,
    figures::OPERATIONS,
    cluster::OPERATIONS,
    access::OPERATIONS,
    audit::OPERATIONS,
];

/// Every operation, by subject.
pub(crate) fn operations() -> impl Iterator<Item = &'static Operation> {
    SUBJECTS.iter().copied().flatten()
}
