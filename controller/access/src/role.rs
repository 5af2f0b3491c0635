//! Roles that every cluster has. Others are objects of the kind `role`.

use crate::right::{Right, Rights};

const VIEWER: Rights = Rights::of(&[
    Right::JobsRead,
    Right::AgentsRead,
    Right::NodesRead,
    Right::ObjectsRead,
    Right::ClusterRead,
    Right::MetricsRead,
]);
const SUBMITTER: Rights = VIEWER.with(Rights::of(&[Right::JobsSubmit, Right::QuestionsAnswer]));
const OPERATOR: Rights =
    SUBMITTER.with(Rights::of(&[Right::JobsControl, Right::AgentsPublish, Right::ObjectsWrite, Right::NodesOperate]));

/// The roles, each with the rights of those before it.
pub const BUILT_IN: [(&str, Rights); 4] =
    [("viewer", VIEWER), ("submitter", SUBMITTER), ("operator", OPERATOR), ("admin", Rights::ALL)];

/// The rights of a built-in role.
pub fn built_in(name: &str) -> Option<Rights> {
    BUILT_IN.into_iter().find(|(known, _)| *known == name).map(|(_, rights)| rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_the_rights_of_the_one_before() {
        for pair in BUILT_IN.windows(2) {
            assert_eq!(pair[1].1.with(pair[0].1), pair[1].1, "{} after {}", pair[1].0, pair[0].0);
        }
        assert_eq!(built_in("admin"), Some(Rights::ALL));
        assert_eq!(built_in("Admin"), None);
    }
}
