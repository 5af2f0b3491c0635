//! Who may change what somebody began: jobs, runs of chains and conversations.
//!
//! Whoever began something may change it as long as it may submit jobs; others need the right to control the jobs of others. The
//! functions behind all doors decide here, and no door does.

use atlas_access::Right;
use atlas_objects::ConversationSpec;
use atlas_types::{JobId, Object, Principal};

use crate::conversations::ConversationScope;
use crate::{Caller, Consistency, Error, Service};

impl Caller {
    /// Refuses a caller that may control nothing, not even what it began itself. Whether it began something is decided where that is read.
    pub(crate) fn may_control_own(&self) -> Result<(), Error> {
        match self.needs(Right::JobsControl) {
            Err(_) if self.needs(Right::JobsSubmit).is_ok() => Ok(()),
            controls => controls,
        }
    }

    /// Refuses a caller that neither began something nor may control what others began.
    fn may_control(&self, began_by: Option<&Principal>) -> Result<(), Error> {
        self.may_control_own()?;
        if began_by == Some(&self.principal) { Ok(()) } else { self.needs(Right::JobsControl) }
    }

    /// Refuses a caller that may not cancel a run of a chain.
    pub(crate) fn may_control_run(&self, run: &atlas_types::Run) -> Result<(), Error> {
        self.may_control(Some(&run.principal))
    }

    /// Refuses a caller that may not change or delete a conversation. One that all callers of an agent share is nobody's.
    pub(crate) fn may_control_conversation(&self, object: &Object) -> Result<(), Error> {
        let owned =
            ConversationSpec::read(&object.spec).ok().filter(|spec| spec.scope != ConversationScope::Shared.as_str());
        let owner = owned.and_then(|spec| Principal::new(&spec.owner).ok());
        self.may_control(owner.as_ref())
    }

    /// Refuses a caller that neither began something nor may read the jobs of others.
    pub(crate) fn may_see(&self, began_by: &Principal) -> Result<(), Error> {
        if *began_by == self.principal { Ok(()) } else { self.needs(Right::JobsRead) }
    }
}

impl Service {
    /// Refuses a caller that may not change a job. One that could change only its own is told when there is no such job.
    pub(crate) async fn may_control_job(&self, caller: &Caller, id: JobId) -> Result<(), Error> {
        caller.may_control_own()?;
        if caller.needs(Right::JobsControl).is_ok() {
            return Ok(());
        }
        let state = self.state(Consistency::Linearizable).await?;
        caller.may_control(Some(&self.job_in(caller, &state, id).await?.principal))
    }

    /// The job that a caller goes on waiting for: one that it submitted, or any if it may read jobs.
    pub async fn awaited_job(&self, caller: &Caller, text: &str) -> Result<JobId, Error> {
        let id = self.job_id(caller, text).await?;
        if caller.needs(Right::JobsRead).is_err() {
            let state = self.state(Consistency::Linearizable).await?;
            caller.may_see(&self.job_in(caller, &state, id).await?.principal)?;
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atlas_access::{Access, Place, Rights};
    use atlas_types::{Door, Namespace};

    use super::*;

    fn ann(rights: &[Right]) -> Caller {
        let place = Place::In(Namespace::default_namespace());
        let access = Access::new(Principal::new("ann").expect("a name"), vec![(place, Rights::of(rights))]);
        Caller::authenticated(Door::Http, Some(Arc::new(access)))
    }

    #[test]
    fn what_one_began_one_may_change_and_what_others_began_needs_a_right() {
        let [own, other] = ["ann", "bob"].map(|name| Principal::new(name).expect("a name"));
        for (rights, may_own, may_others) in [
            (&[Right::JobsRead, Right::QuestionsAnswer][..], false, false),
            (&[Right::JobsSubmit], true, false),
            (&[Right::JobsControl], true, true),
        ] {
            let caller = ann(rights);
            assert_eq!(caller.may_control_own().is_ok(), may_own, "{rights:?}");
            assert_eq!(caller.may_control(Some(&own)).is_ok(), may_own, "{rights:?}");
            assert_eq!(caller.may_control(Some(&other)).is_ok(), may_others, "{rights:?}");
            assert_eq!(caller.may_control(None).is_ok(), may_others, "{rights:?}");
            let elsewhere = caller.in_namespace("elsewhere").expect("a name");
            assert!(elsewhere.may_control(Some(&own)).is_err(), "{rights:?}");
        }
        let all = Caller::anonymous(Door::Http);
        assert!(all.may_control(Some(&other)).is_ok() && all.may_see(&other).is_ok());
        assert!(ann(&[]).may_see(&own).is_ok() && ann(&[]).may_see(&other).is_err());
    }
}
