//! Statements about decisions of orchestrators.

use atlas_types::{AgentPin, Decision, Verdict};

use super::{digest, failure, question, version};
use crate::tests::script::{Words, agent};

/// `execute`, `reject=REASON` or `redirect=AGENT`; nothing voids the decision.
pub(super) fn decision(words: &Words<'_>) -> Option<Decision> {
    if let Some(reason) = words.text("reject") {
        return Some(Decision::Reject(reason.into()));
    }
    if let Some(name) = words.text("redirect") {
        let pin = AgentPin { version: version(words), digest: digest(words) };
        let verdict = match words.text("refused") {
            None => question::asked(words, pin),
            Some("unknown") => Verdict::Refused { pin: None, failure: failure(words) },
            Some(_) => Verdict::Refused { pin: Some(pin), failure: failure(words) },
        };
        return Some(Decision::Redirect(agent(name), verdict));
    }
    (words.rest(2).0 == ["execute"]).then_some(Decision::Execute)
}
