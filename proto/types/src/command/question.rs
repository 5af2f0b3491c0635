//! Commands about questions to people.

use std::sync::Arc;

use crate::{Ask, FencingToken, JobId, NodeId, QuestionId, StepKey};

/// An attempt asks a question at the next step of its journal. The id follows from job and key, so a later attempt finds the same question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskQuestion {
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// The key under which it is asked: the same in each attempt that asks it, and another one for each question.
    pub key: StepKey,
    pub ask: Arc<Ask>,
}

impl AskQuestion {
    /// The id of the question.
    pub fn id(&self) -> QuestionId {
        self.key.question(self.job)
    }
}

/// Answers an open question. Doors have checked that the answer fits what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerQuestion {
    pub question: QuestionId,
    /// JSON, at most [`crate::ANSWER_BYTES_MAX`] bytes.
    pub answer: Arc<[u8]>,
}

/// The time of an open question has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpireQuestion {
    pub question: QuestionId,
}
