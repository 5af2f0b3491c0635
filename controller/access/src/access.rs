//! What one principal may do.

use std::collections::BTreeMap;

use atlas_types::{Namespace, Principal};

use crate::right::{Right, Rights};

/// Where a right is needed, or granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In one namespace.
    In(Namespace),
    /// In the cluster: in every namespace, and for what belongs to none.
    Cluster,
}

/// A principal and what it is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Who it is.
    pub principal: Principal,
    grants: Vec<(Place, Rights)>,
    attributes: Attributes,
}

/// What is known of a principal besides its name, such as its team: texts by the names of attributes.
pub type Attributes = BTreeMap<String, Vec<String>>;

impl Access {
    /// The access of a principal.
    pub fn new(principal: Principal, grants: Vec<(Place, Rights)>) -> Self {
        Self { principal, grants, attributes: Attributes::new() }
    }

    /// The same with what else is known of the principal.
    #[must_use]
    pub fn with_attributes(self, attributes: Attributes) -> Self {
        Self { attributes, ..self }
    }

    /// What is known of the principal besides its name.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Whether the principal has a right. A grant in the cluster counts in every namespace; one in a namespace does not count for what
    /// belongs to the cluster.
    pub fn may(&self, right: Right, place: &Place) -> bool {
        right == Right::Public
            || self
                .grants
                .iter()
                .any(|(granted, rights)| rights.has(right) && (*granted == Place::Cluster || granted == place))
    }

    /// The grants, in their order.
    pub fn grants(&self) -> &[(Place, Rights)] {
        &self.grants
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(name: Option<&str>) -> Place {
        name.map_or(Place::Cluster, |name| Place::In(Namespace::new(name).expect("a name")))
    }

    fn access(grants: &[(Option<&str>, &[Right])]) -> Access {
        let grants = grants.iter().map(|(name, rights)| (place(*name), Rights::of(rights))).collect();
        Access::new(Principal::new("ann").expect("a name"), grants)
    }

    #[test]
    fn a_grant_counts_where_it_is() {
        let ann = access(&[(Some("a"), &[Right::JobsRead, Right::JobsSubmit]), (None, &[Right::JobsRead])]);
        for (right, name, expected) in [
            (Right::JobsSubmit, Some("a"), true),
            (Right::JobsSubmit, Some("b"), false),
            (Right::JobsSubmit, None, false),
            (Right::JobsRead, Some("b"), true),
            (Right::JobsRead, None, true),
            (Right::NodesRead, Some("a"), false),
            (Right::Public, Some("b"), true),
        ] {
            assert_eq!(ann.may(right, &place(name)), expected, "{right} in {name:?}");
        }
    }

    #[test]
    fn nothing_is_granted_by_default() {
        let nobody = access(&[]);
        for right in Right::ALL {
            assert_eq!(nobody.may(right, &Place::Cluster), right == Right::Public, "{right}");
        }
    }

    proptest! {
        /// Another grant never takes a right away, and a grant in one namespace never shows in another.
        #[test]
        fn grants_only_add(first: u8, second: u8, asked in 1usize..Right::ALL.len()) {
            let right = Right::ALL[asked];
            let some = |bits: u8| {
                Right::ALL.into_iter().enumerate().filter(|(at, _)| bits >> (at % 8) & 1 == 1).map(|(_, right)| right).collect::<Vec<_>>()
            };
            let (one, two) = (some(first), some(second));
            let before = access(&[(Some("a"), &one)]);
            let after = access(&[(Some("a"), &one), (Some("b"), &two)]);
            prop_assert!(!before.may(right, &place(Some("a"))) || after.may(right, &place(Some("a"))));
            prop_assert_eq!(before.may(right, &place(Some("a"))), after.may(right, &place(Some("a"))));
            prop_assert!(!before.may(right, &place(Some("b"))));
        }
    }
}
