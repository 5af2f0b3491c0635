//! Who may change what somebody began: jobs, runs of chains and conversations.
//!
//! Whoever began something may change it as long as it may submit jobs; others need the right to control the jobs of others. The
//! functions behind all doors decide here, and no door does.

use atlas_access::Right;
use atlas_types::{JobId, Principal};

use crate::{Caller, Consistency, Desk, Error};

/// Refuses a caller that may control nothing, not even what it began itself. Whether it began something is decided where that is read.
pub fn may_control_own(caller: &Caller) -> Result<(), Error> {
    match caller.needs(Right::JobsControl) {
        Err(_) if caller.needs(Right::JobsSubmit).is_ok() => Ok(()),
        controls => controls,
    }
}

/// Refuses a caller that neither began something nor may control what others began.
pub fn may_control(caller: &Caller, began_by: Option<&Principal>) -> Result<(), Error> {
    may_control_own(caller)?;
    if began_by == Some(&caller.principal) { Ok(()) } else { caller.needs(Right::JobsControl) }
}

/// Refuses a caller that neither began something nor may read the jobs of others.
pub fn may_see(caller: &Caller, began_by: &Principal) -> Result<(), Error> {
    if *began_by == caller.principal { Ok(()) } else { caller.needs(Right::JobsRead) }
}

impl Desk {
    /// Refuses a caller that may not change a job. One that could change only its own is told when there is no such job.
    pub async fn may_control_job(&self, caller: &Caller, id: JobId) -> Result<(), Error> {
        may_control_own(caller)?;
        if caller.needs(Right::JobsControl).is_ok() {
            return Ok(());
        }
        let state = self.state(Consistency::Linearizable).await?;
        may_control(caller, Some(&self.job_in(caller, &state, id).await?.principal))
    }

    /// The job that a caller goes on waiting for: one that it submitted, or any if it may read jobs.
    pub async fn awaited_job(&self, caller: &Caller, text: &str) -> Result<JobId, Error> {
        let id = self.job_id(caller, text).await?;
        if caller.needs(Right::JobsRead).is_err() {
            let state = self.state(Consistency::Linearizable).await?;
            may_see(caller, &self.job_in(caller, &state, id).await?.principal)?;
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
            assert_eq!(may_control_own(&caller).is_ok(), may_own, "{rights:?}");
            assert_eq!(may_control(&caller, Some(&own)).is_ok(), may_own, "{rights:?}");
            assert_eq!(may_control(&caller, Some(&other)).is_ok(), may_others, "{rights:?}");
            assert_eq!(may_control(&caller, None).is_ok(), may_others, "{rights:?}");
            let elsewhere = caller.in_namespace("elsewhere").expect("a name");
            assert!(may_control(&elsewhere, Some(&own)).is_err(), "{rights:?}");
        }
        let all = Caller::anonymous(Door::Http);
        assert!(may_control(&all, Some(&other)).is_ok() && may_see(&all, &other).is_ok());
        assert!(may_see(&ann(&[]), &own).is_ok() && may_see(&ann(&[]), &other).is_err());
    }
}
