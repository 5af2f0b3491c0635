//! Approvals: the questions of policies whether a job may run.

use std::sync::Arc;

use crate::{APPROVALS, AgentName, Ask, JobId, Micros, ObjectName, Principal, QuestionId, Timestamp};

/// Most approvals that one job waits for.
pub const JOB_APPROVALS_MAX: usize = 16;

/// Most approvals from before a redirect that a job keeps: the newest.
pub const EARLIER_APPROVALS_MAX: usize = 48;

/// Most characters of an answer in the error of a job.
const WHY_CHARS_MAX: usize = 1_000;

/// Before this in an answer that refuses, `reject` is written: what follows says why.
const REJECTED: &str = "reject:";

/// The rule of a policy that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingRule {
    pub policy: ObjectName,
    /// Its name in the policy.
    pub rule: Arc<str>,
    /// Only principals with this role in the namespace of the job may answer.
    pub role: Option<ObjectName>,
    /// Whoever submitted the job may answer as well.
    pub own: bool,
}

/// An approval that a job needs before it runs, as the door found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAsk {
    pub rule: Arc<AskingRule>,
    /// The question, which has a time that passes and no default.
    pub ask: Arc<Ask>,
}

/// An approval of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub policy: ObjectName,
    /// The name of the rule.
    pub rule: Arc<str>,
    pub question: QuestionId,
    /// The agent that may run with it: another one than that of the job if an orchestrator redirected the job since.
    pub agent: AgentName,
    /// Who approved; none while nobody has.
    pub by: Option<Principal>,
}

/// The approvals of a job. It runs once it has all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    /// Those from before a redirect first, and of each agent in the order of the policies.
    pub all: Vec<Approval>,
    /// The time before which the job may not run even then.
    pub not_before: Option<Timestamp>,
}

impl Approvals {
    /// Whether the job has all of them.
    pub fn is_complete(&self) -> bool {
        self.all.iter().all(|approval| approval.by.is_some())
    }
}

/// What an answer to the question of a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAnswer<'a> {
    Approved,
    /// With the reason, which is empty if there is none.
    Rejected(&'a str),
}

impl<'a> ApprovalAnswer<'a> {
    /// Reads `approve`, `reject`, or `reject: WHY`; none for any other text.
    pub fn read(text: &'a str) -> Option<Self> {
        let [approve, reject] = APPROVALS;
        match text.strip_prefix(REJECTED) {
            Some(why) => Some(Self::Rejected(why.trim())),
            None if text == approve => Some(Self::Approved),
            None => (text == reject).then_some(Self::Rejected("")),
        }
    }
}

/// The error of a job that was not approved because of an answer.
pub fn rejected(approval: &Approval, by: &Principal, why: &str) -> String {
    let Approval { policy, rule, .. } = approval;
    let why: String = why.chars().take(WHY_CHARS_MAX).collect();
    let why = if why.is_empty() { why } else { format!(": {why}") };
    format!(
        "E2112: {by} rejected the job, which needs an approval by the rule \"{rule}\" of the policy \"{policy}\"{why}"
    )
}

/// The error of a job that nobody approved in time.
pub fn unapproved(approval: &Approval, timeout: Option<Micros>) -> String {
    let Approval { policy, rule, .. } = approval;
    let within = timeout.map_or_else(String::new, |timeout| format!(" within {} s", timeout.0 / 1_000_000));
    format!("E2113: nobody approved the job{within}, which the rule \"{rule}\" of the policy \"{policy}\" demands")
}

impl JobId {
    /// The id of the question that a policy asks about the job. `number` differs between all questions of the job.
    pub fn approval(self, number: u64) -> QuestionId {
        // Far from the numbers by which retries and children get their ids.
        QuestionId(self.derive(u64::MAX / 11).derive(number).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_itself_approves() {
        use ApprovalAnswer::{Approved, Rejected};
        let read = ApprovalAnswer::read;
        assert_eq!(read("approve"), Some(Approved));
        assert_eq!([read("reject"), read("reject:")], [Some(Rejected("")); 2]);
        assert_eq!(read("reject: not on a Friday "), Some(Rejected("not on a Friday")));
        for text in ["", "yes", "Approve", "approve ", "approve: now", "rejected"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_rule_and_who_answered() {
        let (policy, agent) = (ObjectName::new("prod").expect("a name"), AgentName::new("a").expect("a name"));
        let approval = Approval { policy, rule: "mail".into(), question: QuestionId(1), agent, by: None };
        let by = Principal::new("bob").expect("a name");
        let long = "x".repeat(2 * WHY_CHARS_MAX);
        assert_eq!(
            rejected(&approval, &by, "no"),
            "E2112: bob rejected the job, which needs an approval by the rule \"mail\" of the policy \"prod\": no"
        );
        assert!(rejected(&approval, &by, "").ends_with("\"prod\""));
        assert!(rejected(&approval, &by, &long).len() < long.len());
        assert_eq!(
            unapproved(&approval, Some(Micros::from_secs(60))),
            "E2113: nobody approved the job within 60 s, which the rule \"mail\" of the policy \"prod\" demands"
        );
    }
}
