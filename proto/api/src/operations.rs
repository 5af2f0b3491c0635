//! The rows, one file a subject.

/// Declares the operations of a subject with the names by which programs call them.
macro_rules! operation_ids {
    ($(#[$doc:meta])* $subject:ident { $($variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "their rows say what they do")]
        pub enum $subject {
            $($variant,)*
        }

        impl $subject {
            /// What programs call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Which operation it is.
            pub const fn id(self) -> $crate::OperationId {
                $crate::OperationId::$subject(self)
            }
        }
    };
}

macro_rules! subjects {
    ($($module:ident $subject:ident,)*) => {
        $(mod $module;)*

        $(pub use $module::$subject;)*

        /// An operation, by subject.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum OperationId {
            $(
                #[doc = concat!("Of [`", stringify!($subject), "`].")]
                $subject($subject),
            )*
        }

        impl OperationId {
            /// Its row.
            pub fn row(self) -> &'static Operation {
                let rows = match self {
                    $(Self::$subject(_) => $module::OPERATIONS,)*
                };
                rows.iter().find(|row| row.id == self).unwrap_or(&FORGOTTEN)
            }

            /// What programs call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$subject(id) => id.name(),)*
                }
            }
        }

        /// The subjects, in the order of the pages.
        const SUBJECTS: &[&[Operation]] = &[$($module::OPERATIONS,)*];
    };
}

pub(crate) mod operation;
mod parts;

use operation::Operation;
pub(crate) use parts::NAMESPACE;

subjects! {
    jobs Jobs,
    questions Questions,
    events Events,
    chains Chains,
    agents Agents,
    nodes Nodes,
    objects Objects,
    orchestrators Orchestrators,
    policies Policies,
    triggers Triggers,
    figures Figures,
    skills Skills,
    conversations Conversations,
    library Library,
    bases Bases,
    openai Openai,
    cluster Cluster,
    access Access,
    audit Audit,
}

/// The row of an operation without one. A test finds that there is none; if there were, nobody could use it but those who may change who may do
/// what.
const FORGOTTEN: Operation = parts::forgotten();

/// Every operation, by subject.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    SUBJECTS.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names_of_their_own() {
        let mut names: Vec<&str> = operations().map(|operation| operation.id.name()).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for operation in operations() {
            assert!(std::ptr::eq(operation.id.row(), operation), "{:?}", operation.id);
            let same = operations().filter(|other| other.path == operation.path && other.verb == operation.verb);
            assert_eq!(same.count(), 1, "{:?}", operation.id);
        }
    }

    #[test]
    fn owners_change_what_is_in_a_namespace() {
        use crate::Ownership;
        for operation in operations().filter(|operation| operation.ownership == Ownership::OwnOrControl) {
            assert!(operation.in_namespace, "{:?}", operation.id);
        }
    }
}
