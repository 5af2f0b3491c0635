//! Statements about questions to people.

use atlas_types::{Ask, AskKind, Micros, Principal, StepKey};

use super::list;
use crate::tests::script::Words;

/// The key of a question is 1 unless it is given.
pub(super) fn key(words: &Words<'_>, name: &str) -> StepKey {
    StepKey([words.or(name, 1); 16])
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
