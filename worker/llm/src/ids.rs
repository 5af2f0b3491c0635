//! Ids of calls in the form that a provider takes. A conversation may hold ids that another provider made.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use atlas_model::{Message, Part};
use sha2::{Digest, Sha256};

/// What a provider takes as the id of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Mistral: exactly nine letters and digits.
    Nine,
    /// Anthropic and Bedrock: one to 64 letters, digits, `_` and `-`.
    Word,
    /// OpenAI: at most so many bytes.
    Short(usize),
}

impl Rule {
    fn accepts(self, id: &str) -> bool {
        match self {
            Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            Self::Word => crate::names::is_legal(id),
            Self::Short(bytes_max) => (1..=bytes_max).contains(&id.len()),
        }
    }

    /// An id in this form that depends on `id` and `number` alone, so that later requests of a conversation begin alike.
    fn make(self, id: &str, number: u64) -> String {
        const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let digest = Sha256::new().chain_update(id).chain_update(number.to_be_bytes()).finalize();
        let letters = digest.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        match self {
            Self::Nine => letters.take(9).collect(),
            Self::Word | Self::Short(_) => "call_".chars().chain(letters.take(24)).collect(),
        }
    }
}

/// The ids of one request: each is sent as it is or, if the provider would refuse it, in another form. Different ids stay
/// different, and a result has the id of its call.
#[derive(Debug, Default)]
pub(crate) struct Ids(BTreeMap<String, String>);

impl Ids {
    pub(crate) fn new(messages: &[Message], rule: Rule) -> Self {
        let parts = messages.iter().flat_map(|message| &message.parts);
        let ids = parts.filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.id.as_str()),
            Part::ToolResult(result) => Some(result.call.as_str()),
            Part::Text { .. } | Part::Image(_) | Part::Reasoning { .. } => None,
        });
        let refused: Vec<&str> = ids.clone().filter(|id| !rule.accepts(id)).collect();
        let mut made = BTreeMap::new();
        if refused.is_empty() {
            return Self(made);
        }
        let mut used: BTreeSet<String> = ids.filter(|id| rule.accepts(id)).map(str::to_owned).collect();
        for id in refused {
            if made.contains_key(id) {
                continue;
            }
            let free = (0..).map(|number| rule.make(id, number)).find(|candidate| used.insert(candidate.clone()));
            made.extend(free.map(|free| (id.to_owned(), free)));
        }
        Self(made)
    }

    /// The id as the provider takes it.
    pub(crate) fn get<'a>(&'a self, id: &'a str) -> &'a str {
        self.0.get(id).map_or(id, String::as_str)
    }

    /// The same, for what lives longer than these.
    pub(crate) fn sent<'a>(&self, id: &'a str) -> Cow<'a, str> {
        self.0.get(id).map_or(Cow::Borrowed(id), |made| Cow::Owned(made.clone()))
    }
}

#[cfg(test)]
mod tests {
    use atlas_model::{Role, ToolCall, ToolResult};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn conversation(ids: &[String]) -> Vec<Message> {
        let call = |id: &String| {
            Part::ToolCall(ToolCall { id: id.clone(), name: "f".into(), arguments: json!({}), opaque: json!(null) })
        };
        let result = |id: &String| {
            Part::ToolResult(ToolResult { call: id.clone(), name: "f".into(), content: "1".into(), error: false })
        };
        let message = |role, parts| Message { role, parts };
        vec![
            message(Role::Assistant, ids.iter().map(call).collect()),
            message(Role::User, ids.iter().map(result).collect()),
        ]
    }

    #[test]
    fn legal_ids_stay() {
        let ids = ["abcDEF123", "toolu_01", "functions.get:0", ""].map(str::to_owned);
        let kept = |rule| {
            let mapped = Ids::new(&conversation(&ids), rule);
            ids.iter().map(|id| mapped.get(id) == id).collect::<Vec<_>>()
        };
        assert_eq!(kept(Rule::Nine), [true, false, false, false]);
        assert_eq!(kept(Rule::Word), [true, true, false, false]);
        assert_eq!(kept(Rule::Short(10)), [true, true, false, false]);
    }

    proptest! {
        #[test]
        fn ids_are_accepted_and_stay_apart(ids in prop::collection::btree_set("[a-b.]{0,12}", 0..20)) {
            let ids: Vec<String> = ids.into_iter().collect();
            for rule in [Rule::Nine, Rule::Word, Rule::Short(29)] {
                let mapped = Ids::new(&conversation(&ids), rule);
                let sent: BTreeSet<&str> = ids.iter().map(|id| mapped.get(id)).collect();
                prop_assert_eq!(sent.len(), ids.len());
                prop_assert!(sent.iter().all(|id| rule.accepts(id)), "{:?}", sent);
            }
        }
    }
}
