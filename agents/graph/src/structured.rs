//! The form of answers for which a node has an `output_schema`: the hint in the request, and what is done with an answer.

use serde_json::Value;

/// What is to be done with an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It has the form.
    Good(Value),
    /// Another model call has to bring it into the form.
    Ask(Extraction),
    /// It has not the form, and the model was asked often enough.
    Bad(String),
}

/// A call that brings an answer into the form of a schema. The model gets no tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extraction {
    pub system: String,
    pub user: String,
}

/// The state of reading one answer: an answer, its extraction, and one repair of that.
#[derive(Debug, Clone)]
pub struct Reader {
    asked: u32,
    /// Takes away what a model thinks aloud before its answer.
    thoughtless: fn(&str) -> &str,
}

/// What is appended to the instructions or the prompt of a node with a schema.
pub fn hint(schema: &Value) -> String {
    format!(
        "\n\nAnswer with one JSON object that matches the schema below. Write nothing else: no explanation and no code fence.\n\n{}",
        pretty(schema)
    )
}

impl Reader {
    /// A reader of answers without the thoughts that the function takes away.
    pub fn new(thoughtless: fn(&str) -> &str) -> Self {
        Self { asked: 0, thoughtless }
    }

    /// Reads an answer. `last` is the text of the model's last turn, `all` that of all turns; they differ if it used tools. `problems`
    /// says what keeps a value from matching the schema.
    pub fn read(&mut self, last: &str, all: &str, schema: &Value, problems: impl Fn(&Value) -> Vec<String>) -> Verdict {
        let mut why = Vec::new();
        for text in [last, all] {
            match parse((self.thoughtless)(text)) {
                Some(value) => {
                    why = problems(&value);
                    if why.is_empty() {
                        return Verdict::Good(value);
                    }
                }
                None if why.is_empty() => why = vec!["the answer is not JSON".to_owned()],
                None => {}
            }
        }
        self.asked += 1;
        match self.asked {
            1 => Verdict::Ask(extraction(schema, all, &[])),
            2 => Verdict::Ask(extraction(schema, all, &why)),
            _ => Verdict::Bad(format!("the answer does not match the schema: {}", why.join("; "))),
        }
    }
}

fn extraction(schema: &Value, text: &str, problems: &[String]) -> Extraction {
    let system = "Write the JSON object that the text contains, in the form of the schema. Write nothing else. Give all required \
                  members, with the types of the schema. Use null or the most likely value where the text says nothing, and add no \
                  members of your own.";
    let mut user = format!("Schema:\n{}\n\nText:\n{text}", pretty(schema));
    if !problems.is_empty() {
        user.push_str(&format!("\n\nThis is wrong with the text:\n{}", problems.join("\n")));
    }
    Extraction { system: system.to_owned(), user }
}

/// An answer as JSON: without a code fence around it.
fn parse(text: &str) -> Option<Value> {
    let mut text = text.trim();
    if let Some(rest) = text.strip_prefix("```") {
        text = rest.strip_prefix("json").unwrap_or(rest).trim_start();
    }
    text = text.trim_end();
    text = text.strip_suffix("```").unwrap_or(text);
    serde_json::from_str(text.trim()).ok()
}

fn pretty(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap_or_else(|_| schema.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Accepts objects with a member `x`.
    fn problems(value: &Value) -> Vec<String> {
        if value.get("x").is_some() { Vec::new() } else { vec!["x is missing".to_owned()] }
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn check(text: &str, expected: Option<Value>) {
        let verdict = Reader::new(|text| text).read(text, text, &json!({}), problems);
        let good = match verdict {
            Verdict::Good(value) => Some(value),
            _ => None,
        };
        assert_eq!(good, expected, "{text}");
    }

    #[test]
    fn json_is_found_in_fences_and_behind_what_is_taken_away() {
        check(r#" {"x": 1} "#, Some(json!({"x": 1})));
        check("```json\n{\"x\": 1}\n```", Some(json!({"x": 1})));
        check("```\n{\"x\": 1}```\n", Some(json!({"x": 1})));
        check("x is 1", None);
        let mut reader = Reader::new(|text| text.trim_start_matches("hm "));
        assert_eq!(reader.read("hm {\"x\": 1}", "", &json!({}), problems), Verdict::Good(json!({"x": 1})));
        check("42", None);
    }

    #[test]
    fn the_last_turn_is_read_before_all_of_them() {
        let verdict = Reader::new(|text| text).read(r#"{"x": 2}"#, "I look it up\n{\"x\": 2}", &json!({}), problems);
        assert_eq!(verdict, Verdict::Good(json!({"x": 2})));
    }

    #[test]
    fn a_model_extracts_once_and_repairs_once() {
        let mut reader = Reader::new(|text| text);
        let Verdict::Ask(first) = reader.read("prose", "prose", &json!({}), problems) else { panic!("no extraction") };
        assert!(first.user.ends_with("Text:\nprose"), "{}", first.user);
        let Verdict::Ask(second) = reader.read("{}", "{}", &json!({}), problems) else { panic!("no repair") };
        assert!(second.user.ends_with("Text:\n{}\n\nThis is wrong with the text:\nx is missing"), "{}", second.user);
        let bad = "the answer does not match the schema: the answer is not JSON".to_owned();
        assert_eq!(reader.read("no", "no", &json!({}), problems), Verdict::Bad(bad));
    }
}
