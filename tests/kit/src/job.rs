//! Jobs.

use std::sync::Arc;

use atlas_types::{
    AgentPin, Command, Door, Evidence, Failure, FailureKind, Job, JobId, Namespace, Origin, Payload, Principal, Seq,
    SubmitJob, Timestamp, Verdict,
};

use crate::{digest, pin, spec};

/// A job of the agent `echo`, with an empty object as its input.
pub fn job(id: u64) -> JobBuilder {
    let agent = "echo".parse().expect("the name of an agent");
    let verdict = Verdict::Accepted(pin(digest(1)));
    JobBuilder(SubmitJob::new(JobId(id), agent, verdict, Payload::inline(b"{}")))
}

/// A job that is about to be submitted.
#[derive(Debug, Clone)]
pub struct JobBuilder(SubmitJob);

impl JobBuilder {
    #[must_use]
    pub fn of(mut self, agent: &str) -> Self {
        self.0.agent = agent.parse().expect("the name of an agent");
        self
    }

    /// The door found this version.
    #[must_use]
    pub fn pinned_to(mut self, pin: AgentPin) -> Self {
        self.0.verdict = Verdict::Accepted(pin);
        self
    }

    /// The door found no agent of the name, so the job ends at once.
    #[must_use]
    pub fn without_agent(mut self) -> Self {
        let failure = Failure { kind: FailureKind::NoAgent, error: "no such agent".into() };
        self.0.verdict = Verdict::Refused { pin: None, failure };
        self
    }

    #[must_use]
    pub fn with_input(mut self, input: Payload) -> Self {
        self.0.input = input;
        self
    }

    #[must_use]
    pub fn with_priority(mut self, priority: i64) -> Self {
        self.0.priority = priority;
        self
    }

    #[must_use]
    pub fn with_metadata(mut self, metadata: &[u8]) -> Self {
        self.0.metadata = metadata.into();
        self
    }

    pub fn submission(self) -> SubmitJob {
        self.0
    }

    pub fn submitted(self) -> Command {
        Command::SubmitJob(self.0)
    }

    /// As the state has it after its submission: pending, with an agent that asks for nothing.
    pub fn pending(self) -> Job {
        // Each field by its name, as the state does it: one that is forgotten does not compile.
        let SubmitJob {
            id,
            agent,
            verdict,
            // They say whether and when it runs, and a client's own job that is due has neither.
            spawner: _,
            not_before: _,
            // Only a step has it.
            context: _,
            input,
            priority,
            metadata,
            labels,
            execution_timeout,
            bearer,
            budget_nanodollars,
            questions,
            policies,
            waits_for_node,
            title,
        } = self.0;
        let pin = match verdict {
            Verdict::Accepted(pin) | Verdict::Asked { pin, .. } => Some(pin),
            Verdict::Refused { pin, .. } => pin,
        };
        let origin = Origin {
            namespace: Namespace::default_namespace(),
            principal: Principal::local(),
            door: Door::Local,
            request_id: None,
            body_hash: 0,
            trace: None,
        };
        Job {
            pin,
            spec: Some(Arc::new(spec())),
            priority,
            queue_seq: id.0,
            submitted_seq: Seq(1),
            created_at: Timestamp(1),
            metadata,
            labels,
            execution_timeout,
            bearer,
            budget_nanodollars,
            questions,
            evidence: (!policies.is_empty()).then(|| Arc::new(Evidence { policies, ..Evidence::default() })),
            waits_for_node,
            title,
            ..Job::new(id, agent, input, &origin)
        }
    }
}
