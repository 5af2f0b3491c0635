//! People who answer the questions of sleepers and of policies, sometimes twice, and sometimes too late.

use std::sync::Arc;

use atlas_types::{
    AnswerQuestion, Ask, AskKind, AskQuestion, Command, FencingToken, JobId, Micros, NodeId, QuestionId, Reason,
    StepKey,
};

use crate::leader::Reply;
use crate::message::{Event, Member};
use crate::options::{MS, SECOND};
use crate::rng::mix;
use crate::workload;
use crate::world::World;

/// The key of the question that a round asks: the same in each attempt.
fn key(job: JobId, begin: u64) -> StepKey {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(job.0 ^ begin).to_le_bytes());
    StepKey(key)
}

/// The question of the round that begins with a step.
pub(crate) fn question(job: JobId, begin: u64) -> QuestionId {
    key(job, begin).question(job)
}

impl World {
    /// The leader asks for an attempt, before it parks the job.
    pub(crate) fn ask(&mut self, member: Member, (job, node, token): (JobId, NodeId, FencingToken), begin: u64) {
        let hurried = mix(job.0 ^ begin).is_multiple_of(5);
        let ask = Ask {
            kind: AskKind::Text,
            prompt: "?".into(),
            answerers: Vec::new(),
            timeout: hurried.then_some(Micros(2 * SECOND)),
            default: mix(job.0).is_multiple_of(2).then(|| Arc::from(*b"1")),
        };
        let command = AskQuestion { job, node, token, key: key(job, begin), ask: Arc::new(ask) };
        self.gather(member, workload::request(Command::AskQuestion(command)), Reply::Nobody);
        self.after_up_to(4 * SECOND, Event::Answer(job, question(job, begin)));
    }

    /// Somebody answers what a policy asks about a job, until nothing is asked about it any more. The job may be submitted later than they look
    /// for it, or never.
    pub(crate) fn approve(&mut self, job: JobId, looks: u32) {
        let state = self.oracle.state();
        let ended = state.job(job).is_some_and(|job| job.reason != Reason::Approval);
        if ended || looks == 0 {
            return;
        }
        let open = state.questions_of(job).find(|question| question.is_open() && question.rule.is_some());
        if let (Some(question), Some(member)) = (open.map(|question| question.id), self.raft.leader) {
            let answer: &[u8] = if mix(job.0 ^ 2).is_multiple_of(4) { br#""reject""# } else { br#""approve""# };
            let command = Command::AnswerQuestion(AnswerQuestion { question, answer: answer.into() });
            let request = workload::request_of(self.oracle.namespace_of(job), command);
            self.gather(member, request, Reply::Nobody);
        }
        self.after(300 * MS, Event::Approve(job, looks - 1));
    }

    /// Somebody answers a question until it has ended. It may be asked later than they look for it.
    pub(crate) fn answer(&mut self, job: JobId, id: QuestionId) {
        let state = self.oracle.state();
        let over = state.question(id).is_some_and(|question| !question.is_open());
        if over || state.job(job).is_none_or(|job| job.status.is_terminal()) {
            return;
        }
        if let Some(member) = self.raft.leader {
            let command = AnswerQuestion { question: id, answer: Arc::from(*b"2") };
            self.gather(member, workload::request(Command::AnswerQuestion(command)), Reply::Nobody);
        }
        self.after(300 * MS, Event::Answer(job, id));
    }
}
