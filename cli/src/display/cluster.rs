//! The controllers in words.

use atlas_api::types::ClusterView;

/// What people are told about the controllers.
pub(crate) trait ClusterDisplay {
    /// Whether enough voters answer for changes and confirmed reads.
    fn has_majority(&self) -> bool;

    /// The voters that answer, and those that do not.
    fn voters_by_answer(&self) -> (Vec<&str>, Vec<&str>);
}

impl ClusterDisplay for ClusterView {
    fn has_majority(&self) -> bool {
        self.quorum.voters == 0 || self.quorum.reachable * 2 > self.quorum.voters
    }

    fn voters_by_answer(&self) -> (Vec<&str>, Vec<&str>) {
        let voters = self.members.iter().filter(|member| member.role != "learner");
        let (mut here, mut away) = (Vec::new(), Vec::new());
        for member in voters {
            if member.reachable { here.push(&*member.name) } else { away.push(&*member.name) }
        }
        (here, away)
    }
}
