//! The namespaces with waiting jobs, by what they have had so far for their weight.

use atlas_types::{Namespace, Share};

use crate::map::{Map, Set};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The namespace whose turn is next first.
    order: Set<(Share, Namespace)>,
    of: Map<Namespace, Share>,
    /// Noted progress, the least first.
    least: Set<(u64, Namespace)>,
    progress: Map<Namespace, u64>,
}

impl Shares {
    /// The namespaces with waiting jobs, the one whose turn is next first.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.order.iter().map(|(_, namespace)| namespace)
    }

    /// The noted progress of a namespace.
    pub(crate) fn progress(&self, namespace: &Namespace) -> u64 {
        self.progress.get(namespace).copied().unwrap_or(0)
    }

    /// The namespace with the least noted progress.
    pub(crate) fn least(&self) -> Option<&(u64, Namespace)> {
        self.least.get_min()
    }

    pub(crate) fn set_progress(&mut self, namespace: &Namespace, progress: Option<u64>) {
        let old = match progress {
            Some(progress) => self.progress.insert(namespace.clone(), progress),
            None => self.progress.remove(namespace),
        };
        old.into_iter().for_each(|old| drop(self.least.remove(&(old, namespace.clone()))));
        progress.into_iter().for_each(|new| drop(self.least.insert((new, namespace.clone()))));
    }

    /// Sets the share of a namespace; none if it has no waiting jobs.
    pub(crate) fn set(&mut self, namespace: &Namespace, share: Option<Share>) {
        if self.of.get(namespace) == share.as_ref() {
            return;
        }
        let old = match share {
            Some(share) => self.of.insert(namespace.clone(), share),
            None => self.of.remove(namespace),
        };
        old.into_iter().for_each(|old| drop(self.order.remove(&(old, namespace.clone()))));
        share.into_iter().for_each(|new| drop(self.order.insert((new, namespace.clone()))));
    }
}
