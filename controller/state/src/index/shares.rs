//! The namespaces with waiting jobs, by what they have had so far for their weight.

use atlas_types::{Namespace, Share};

use crate::map::Set;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The namespace whose turn is next first.
    order: Set<(Share, Namespace)>,
    /// Noted progress, the least first.
    least: Set<(u64, Namespace)>,
}

impl Shares {
    /// The namespaces with waiting jobs, the one whose turn is next first.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.order.iter().map(|(_, namespace)| namespace)
    }

    /// The namespace with the least noted progress.
    pub(crate) fn least(&self) -> Option<&(u64, Namespace)> {
        self.least.get_min()
    }

    pub(crate) fn change_progress(&mut self, namespace: &Namespace, old: Option<u64>, new: Option<u64>) {
        old.into_iter().for_each(|old| drop(self.least.remove(&(old, namespace.clone()))));
        new.into_iter().for_each(|new| drop(self.least.insert((new, namespace.clone()))));
    }

    /// The share of a namespace changed; it has none without waiting jobs.
    pub(crate) fn change(&mut self, namespace: &Namespace, old: Option<Share>, new: Option<Share>) {
        old.into_iter().for_each(|old| drop(self.order.remove(&(old, namespace.clone()))));
        new.into_iter().for_each(|new| drop(self.order.insert((new, namespace.clone()))));
    }
}
