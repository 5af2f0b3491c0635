//! How many runs of each namespace are continued at the same time: one whose orchestrators or models are slow leaves room for the others.

use std::collections::BTreeMap;

use atlas_types::Namespace;

/// Most runs that are continued at the same time.
const AT_ONCE_MAX: usize = 64;

/// The runs that are being continued, by namespace.
#[derive(Debug, Default)]
pub(super) struct Shares {
    held: BTreeMap<Namespace, usize>,
    total: usize,
}

impl Shares {
    /// Whether there is a place for any namespace.
    pub(super) fn have_room(&self) -> bool {
        self.total < AT_ONCE_MAX
    }

    /// Takes a place for a run of a namespace, which may have half of those that the others leave.
    pub(super) fn admits(&mut self, namespace: &Namespace) -> bool {
        let own = self.held.get(namespace).copied().unwrap_or_default();
        let left = AT_ONCE_MAX - (self.total - own);
        let admitted = self.have_room() && own < left.div_ceil(2);
        if admitted {
            *self.held.entry(namespace.clone()).or_default() += 1;
            self.total += 1;
        }
        admitted
    }

    /// Gives the place of a run back.
    pub(super) fn give_back(&mut self, namespace: &Namespace) {
        let Some(held) = self.held.get_mut(namespace) else { return };
        (*held, self.total) = (*held - 1, self.total - 1);
        if *held == 0 {
            self.held.remove(namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Namespace {
        Namespace::new(text).expect("a name")
    }

    #[test]
    fn a_namespace_leaves_half_of_the_room() {
        let mut shares = Shares::default();
        let mut taken = |namespace: &str| (0..100).take_while(|_| shares.admits(&name(namespace))).count();
        assert_eq!(["a", "b", "c", "d", "e", "f", "g"].map(&mut taken), [32, 16, 8, 4, 2, 1, 1]);
        assert_eq!(taken("h"), 0, "all places are taken");
        shares.give_back(&name("b"));
        shares.give_back(&name("nobody"));
        assert!(!shares.admits(&name("a")));
        assert!(shares.admits(&name("h")));
        assert_eq!(shares.total, AT_ONCE_MAX);
    }
}
