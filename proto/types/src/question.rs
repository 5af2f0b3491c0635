//! Questions that jobs put to people.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{AskingRule, ClusterTime, EventSeq, JobId, Micros, Namespace, Principal, QuestionId, Timestamp};

/// Most bytes of what is asked: prompt, options, schema, default and names together.
pub const ASK_BYTES_MAX: u64 = 32 * 1_024;

/// Most options of a question.
pub const OPTIONS_MAX: u64 = 64;

/// Most questions of one job in the state. The oldest that have ended and are recorded go first.
pub const QUESTIONS_MAX: u64 = 64;

/// Most bytes of an answer.
pub const ANSWER_BYTES_MAX: usize = 16 * 1_024;

/// The two options of an approval that names none.
pub const APPROVALS: [&str; 2] = ["approve", "reject"];

/// What kind of answer a question has. Every answer is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskKind {
    /// A decision: one of the options, or any text if `other` is set.
    Approve { options: Vec<Arc<str>>, other: bool },
    /// One of the options, or with `many` a list of some. `other` allows any text.
    Choose { options: Vec<Arc<str>>, many: bool, other: bool },
    /// `"yes"` or `"no"`.
    Confirm,
    /// A text, which may be empty.
    Text,
    /// A value that satisfies a JSON Schema.
    Form { schema: Arc<[u8]> },
}

impl AskKind {
    /// Its word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Choose { .. } => "choose",
            Self::Confirm => "confirm",
            Self::Text => "text",
            Self::Form { .. } => "form",
        }
    }

    /// The options that it names.
    pub fn options(&self) -> &[Arc<str>] {
        match self {
            Self::Approve { options, .. } | Self::Choose { options, .. } => options,
            Self::Confirm | Self::Text | Self::Form { .. } => &[],
        }
    }
}

/// What is asked, and by when it must be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub kind: AskKind,
    /// The question in words.
    pub prompt: Arc<str>,
    /// Who may answer; empty for everybody with the right to answer questions.
    pub answerers: Vec<Principal>,
    /// How long it may be open; without an end if there is none.
    pub timeout: Option<Micros>,
    /// The answer when the time has passed, JSON. Without one the question expires, and its asker decides.
    pub default: Option<Arc<[u8]>>,
}

impl Ask {
    /// Bytes that it counts against the bounds of questions.
    pub fn bytes(&self) -> u64 {
        let options: usize = self.kind.options().iter().map(|option| option.len()).sum();
        let answerers: usize = self.answerers.iter().map(|name| name.as_str().len()).sum();
        let schema = if let AskKind::Form { schema } = &self.kind { schema.len() } else { 0 };
        let default = self.default.as_ref().map_or(0, |default| default.len());
        (options + answerers + schema + default + self.prompt.len()) as u64
    }
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionEnd {
    /// Someone answered.
    Answered {
        /// JSON.
        answer: Arc<[u8]>,
        by: Principal,
    },
    /// Its time passed, and its default is the answer.
    Defaulted,
    /// Its time passed without an answer.
    Expired,
    /// Its job ended first.
    Cancelled,
}

impl QuestionEnd {
    /// Its word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Defaulted => "defaulted",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A question of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: QuestionId,
    /// Its job's.
    pub namespace: Namespace,
    /// Whose it is.
    pub job: JobId,
    /// The step of the job's journal that asks; 0 if a policy asks.
    pub step: u64,
    /// The rule of the policy that asks; none if the job does.
    pub rule: Option<Arc<AskingRule>>,
    pub ask: Arc<Ask>,
    /// The event that says it was asked: the order of questions.
    pub asked: EventSeq,
    pub asked_at: Timestamp,
    /// When its time has passed, on the clock of timeouts.
    pub due: Option<ClusterTime>,
    /// None while it is open.
    pub end: Option<QuestionEnd>,
    /// When it ended.
    pub ended_at: Timestamp,
}

impl Question {
    /// Whether it can be answered.
    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// `open`, or how it ended.
    pub fn status(&self) -> &'static str {
        self.end.as_ref().map_or("open", QuestionEnd::as_str)
    }

    /// The answer, JSON, if it has one.
    pub fn answer(&self) -> Option<&Arc<[u8]>> {
        match self.end.as_ref()? {
            QuestionEnd::Answered { answer, .. } => Some(answer),
            QuestionEnd::Defaulted => self.ask.default.as_ref(),
            QuestionEnd::Expired | QuestionEnd::Cancelled => None,
        }
    }

    /// When its time passes, by the wall clock at which it was asked.
    pub fn deadline(&self) -> Option<Timestamp> {
        let timeout = i64::try_from(self.ask.timeout?.0).unwrap_or(i64::MAX);
        Some(Timestamp(self.asked_at.0.saturating_add(timeout)))
    }

    /// Bytes that it counts against the payload bytes of the cluster.
    pub fn bytes(&self) -> u64 {
        let answer = match &self.end {
            Some(QuestionEnd::Answered { answer, .. }) => answer.len() as u64,
            _ => 0,
        };
        self.ask.bytes() + answer
    }
}

/// What happens to the questions of a job. Its children have the same rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum QuestionRule {
    /// Nobody is there to answer: a job that asks fails.
    #[default]
    Fail,
    /// The job waits for the answer, or until the question's time has passed.
    Wait,
    /// Each question gets this answer.
    Answer(Arc<str>),
}

/// Most bytes of an answer in a rule.
pub const RULE_ANSWER_BYTES_MAX: usize = 1_024;

impl fmt::Display for QuestionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail => f.write_str("fail"),
            Self::Wait => f.write_str("wait"),
            Self::Answer(answer) => write!(f, "answer:{answer}"),
        }
    }
}

impl FromStr for QuestionRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("answer:")) {
            ("fail", _) => Ok(Self::Fail),
            ("wait", _) => Ok(Self::Wait),
            (_, Some(answer)) if answer.len() > RULE_ANSWER_BYTES_MAX => {
                Err(format!("the answer has {} bytes, at most {RULE_ANSWER_BYTES_MAX} are allowed", answer.len()))
            }
            (_, Some(answer)) => Ok(Self::Answer(answer.into())),
            _ => Err("the rule for questions is one of fail, wait, answer:TEXT".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_back_as_printed() {
        for text in ["fail", "wait", "answer:", "answer:yes", "answer:a:b"] {
            assert_eq!(text.parse::<QuestionRule>().map(|rule| rule.to_string()).as_deref(), Ok(text));
        }
        let long = format!("answer:{}", "x".repeat(RULE_ANSWER_BYTES_MAX + 1));
        for text in ["", "Fail", "answer", "wait ", &long] {
            assert!(text.parse::<QuestionRule>().is_err(), "{text:?}");
        }
    }
}
