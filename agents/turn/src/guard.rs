//! The loop guard: notices a model that makes the same calls and gets the same results again and again.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Halt;

/// Characters of arguments and results in a warning.
const PREVIEW_MAX: usize = 200;

/// A call and its result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Observed {
    tool: String,
    /// Canonical JSON.
    arguments: String,
    /// Of the result's content, and whether it is an error.
    result: [u8; 32],
    preview: String,
}

impl Observed {
    pub(crate) fn new(tool: String, arguments: &Value, content: &str, failed: bool) -> Self {
        let mut canonical = String::new();
        write_canonical(&mut canonical, arguments);
        let mut hasher = Sha256::new();
        hasher.update([u8::from(failed)]);
        hasher.update(content);
        let result = hasher.finalize().into();
        Self { tool, arguments: canonical, result, preview: preview(content) }
    }
}

/// Counts equal rounds in a row.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// Zero disables it.
    threshold: u32,
    last: Vec<Observed>,
    repeats: u32,
}

impl Guard {
    pub(crate) fn new(threshold: u32) -> Self {
        Self { threshold, last: Vec::new(), repeats: 0 }
    }

    /// Another threshold. What was counted so far counts on.
    pub(crate) fn set_threshold(&mut self, threshold: u32) {
        self.threshold = threshold;
    }

    /// Adds a round. Some if it is the last one that is allowed.
    pub(crate) fn observe(&mut self, mut round: Vec<Observed>, request: u32) -> Option<Halt> {
        if self.threshold == 0 || round.is_empty() {
            return None;
        }
        round.sort();
        self.repeats = if round == self.last { self.repeats + 1 } else { 1 };
        self.last = round;
        if self.repeats < self.threshold {
            return None;
        }
        let first = self.last.first()?;
        let (arguments, result) = (preview(&first.arguments), first.preview.clone());
        let mut tools: Vec<String> = self.last.iter().map(|one| one.tool.clone()).collect();
        tools.dedup();
        Some(Halt { tools, repeats: self.repeats, threshold: self.threshold, request, arguments, result })
    }
}

impl Halt {
    /// What the caller is told after the partial answer.
    pub(crate) fn explanation(&self) -> String {
        let names: Vec<String> = self.tools.iter().map(|tool| format!("\"{tool}\"")).collect();
        let (tool, it) = if names.len() == 1 { ("tool", "it") } else { ("tools", "them") };
        format!(
            "[The agent was stopped: it called the {tool} {} {} times in a row with the same arguments, and each time got the same \
             result. Probably the data or the service behind {it} has a problem. This answer is incomplete.]",
            names.join(", "),
            self.repeats
        )
    }
}

fn preview(text: &str) -> String {
    let mut preview: String = text.chars().take(PREVIEW_MAX).collect();
    if preview.len() < text.len() {
        preview.push('…');
    }
    preview
}

/// JSON with sorted members.
fn write_canonical(out: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(out, value);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn round(tools: &[(&str, &str)]) -> Vec<Observed> {
        tools
            .iter()
            .map(|(tool, result)| Observed::new((*tool).to_owned(), &json!({"b": 1, "a": [2]}), result, false))
            .collect()
    }

    #[test]
    fn equal_rounds_in_a_row_halt() {
        let mut guard = Guard::new(3);
        assert_eq!(guard.observe(round(&[("a", "x"), ("b", "y")]), 1), None);
        assert_eq!(guard.observe(round(&[("b", "y"), ("a", "x")]), 2), None);
        assert_eq!(guard.observe(round(&[("a", "x"), ("b", "z")]), 3), None);
        assert_eq!(guard.observe(round(&[("a", "x"), ("b", "z")]), 4), None);
        let halt = guard.observe(round(&[("b", "z"), ("a", "x")]), 5).expect("the third");
        assert_eq!(
            (halt.repeats, halt.request, &halt.arguments[..], &halt.result[..]),
            (3, 5, r#"{"a":[2],"b":1}"#, "x")
        );
        assert_eq!(halt.tools, ["a", "b"]);
    }

    #[test]
    fn an_error_differs_from_the_same_text() {
        let mut guard = Guard::new(2);
        let observed = |failed| vec![Observed::new("a".into(), &json!({}), "x", failed)];
        assert!(guard.observe(observed(false), 1).is_none() && guard.observe(observed(true), 2).is_none());
        assert!(guard.observe(observed(true), 3).is_some());
        let mut off = Guard::new(0);
        assert!((0..100).all(|request| off.observe(observed(false), request).is_none()));
    }
}
