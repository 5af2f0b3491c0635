//! Statements about questions to people.

use std::sync::Arc;

use atlas_types::{
    AgentPin, ApprovalAsk, Ask, AskKind, AskingRule, JobId, Micros, ObjectName, Principal, QuestionId, StepKey, Verdict,
};

use super::list;
use crate::tests::script::{Run, Words};

/// The key of a question is 1 unless it is given.
pub(super) fn key(words: &Words<'_>, name: &str) -> StepKey {
    StepKey([words.or(name, 1); 16])
}

/// The question with a key, or with `approval=N` that for the approval of this number.
pub(super) fn id(run: &Run, job: JobId, words: &Words<'_>) -> QuestionId {
    let Some(number) = words.get::<usize>("approval") else { return key(words, "q").question(job) };
    let approvals = run.state.job(job).and_then(|job| job.approvals.clone());
    approvals.map_or(QuestionId(0), |approvals| approvals.all[number].question)
}

/// The verdict on a job that is accepted. With `asked=N` so many rules ask; they are named `r0`, `r1` and so on.
pub(super) fn asked(words: &Words<'_>, pin: AgentPin) -> Verdict {
    let Some(count) = words.get("asked") else { return Verdict::Accepted(pin) };
    let rule = |number: u32| AskingRule {
        policy: ObjectName::new("p").expect("a name"),
        rule: format!("r{number}").into(),
        role: None,
        own: words.or("own", false),
    };
    let ask = || Ask {
        kind: AskKind::Approve { options: Vec::new(), other: true },
        timeout: Some(Micros::from_secs(words.or("within", 60))),
        ..ask(words)
    };
    let asks = (0..count).map(|number| ApprovalAsk { rule: Arc::new(rule(number)), ask: Arc::new(ask()) }).collect();
    Verdict::Asked { pin, asks }
}

pub(super) fn ask(words: &Words<'_>) -> Ask {
    let kind = match words.text("kind") {
        Some("confirm") => AskKind::Confirm,
        Some("choose") => {
            let options = (0..words.or("options", 2)).map(|option: u32| option.to_string().into()).collect();
            AskKind::Choose { options, many: false, other: false }
        }
        _ => AskKind::Text,
    };
    Ask {
        kind,
        prompt: " ".repeat(words.or("bytes", 2)).into(),
        answerers: list(words, "answerers").iter().map(|name| Principal::new(name).expect("a name")).collect(),
        timeout: words.get("timeout").map(Micros::from_secs),
        default: words.text("default").map(|text| text.as_bytes().into()),
    }
}
