//! The members of an object in a body, each with its text.
//!
//! A derived reader would refuse a member that is written twice, which Atlas for Python does not: the last one counts. It would also read all
//! values before the first error can be told, and could not say which unknown names there are in which order. So this is a visitor.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in the order of the body.
pub(crate) struct Members<'a>(Vec<(Name<'a>, &'a RawValue)>);

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Members<'a> {
    /// The text of a member. The last of several with this name counts.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(known, _)| known.0 == name).map(|(_, value)| *value)
    }

    /// The names that are none of these, as often as they are there.
    pub(crate) fn without(&self, known: &[&str]) -> Vec<String> {
        let names = self.0.iter().map(|(name, _)| &*name.0);
        names.filter(|name| !known.contains(name)).map(str::to_owned).collect()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_names_counts_and_unknown_ones_are_told_in_their_order() {
        let body = br#"{"z": 1, "input": {"a": 1}, "b": 2, "\u0069nput": [2], "z": 3}"#;
        let members: Members<'_> = serde_json::from_slice(body).expect("an object");
        assert_eq!(members.get("input").map(RawValue::get), Some("[2]"));
        assert!(members.get("agent").is_none());
        assert_eq!(members.without(&["agent", "input"]), ["z", "b", "z"]);
        for body in ["[]", "1", "null", r#"{"a": 1"#, r#"{"a": 1} 2"#, r#"{1: 2}"#] {
            assert!(serde_json::from_str::<Members<'_>>(body).is_err(), "{body}");
        }
        let not_text = serde_json::from_slice::<Members<'_>>(b"{\"agent\": \"a\", \"z\": \"\xff\"}");
        assert!(not_text.is_err(), "what is ignored is text as well");
    }
}
