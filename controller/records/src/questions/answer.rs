//! Whether an answer fits what is asked, and the form in which it is recorded. Doors check answers here; the state keeps what it gets.

use std::sync::Arc;

use atlas_contract::joined;
use atlas_contract::schema::Validator;
use atlas_types::{APPROVALS, ApprovalAnswer, Ask, AskKind};
use serde_json::Value;

/// The answer as it is recorded; otherwise why it does not fit.
pub(super) fn fitted(ask: &Ask, answer: &Value) -> Result<Value, String> {
    match &ask.kind {
        AskKind::Approve { options, other } => chosen(&approvals(options), *other, answer),
        AskKind::Choose { options, many: false, other } => chosen(options, *other, answer),
        AskKind::Choose { options, many: true, other } => several(options, *other, answer),
        AskKind::Confirm => confirmed(answer),
        AskKind::Text => {
            answer.is_string().then(|| answer.clone()).ok_or_else(|| "the answer must be a text".to_owned())
        }
        AskKind::Form { schema } => filled(schema, answer),
    }
}

/// The answer to the question of a policy, which a text that merely sounds like it is not.
pub(super) fn approval(answer: &Value) -> Result<Value, String> {
    let read = answer.as_str().and_then(ApprovalAnswer::read);
    read.map(|_| answer.clone())
        .ok_or_else(|| "the answer must be \"approve\", \"reject\" or \"reject: WHY\"".to_owned())
}

/// The answer that a text of a person or of a rule stands for.
pub(super) fn from_text(ask: &Ask, text: &str) -> Result<Value, String> {
    let answer = match &ask.kind {
        AskKind::Choose { many: true, .. } => {
            text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(Value::from).collect()
        }
        AskKind::Form { .. } => {
            serde_json::from_str(text).map_err(|error| format!("the answer is not JSON: {error}"))?
        }
        _ => Value::from(text),
    };
    fitted(ask, &answer)
}

/// The options of an approval.
pub(super) fn approvals(options: &[Arc<str>]) -> Vec<Arc<str>> {
    if options.is_empty() { APPROVALS.map(Arc::from).to_vec() } else { options.to_vec() }
}

fn chosen(options: &[Arc<str>], other: bool, answer: &Value) -> Result<Value, String> {
    let named = || format!("the answer must be one of {}", named(options, other));
    let text = answer.as_str().ok_or_else(named)?;
    let allowed = options.iter().any(|option| **option == *text) || (other && !text.trim().is_empty());
    if allowed { Ok(answer.clone()) } else { Err(named()) }
}

/// Each option once, in the order of the answer.
fn several(options: &[Arc<str>], other: bool, answer: &Value) -> Result<Value, String> {
    let named = || format!("the answer must be a list of some of {}", named(options, other));
    let mut several: Vec<Value> = Vec::new();
    for one in answer.as_array().ok_or_else(named)? {
        let one = chosen(options, other, one).map_err(|_| named())?;
        if !several.contains(&one) {
            several.push(one);
        }
    }
    Ok(several.into())
}

fn named(options: &[Arc<str>], other: bool) -> String {
    let quoted: Vec<String> = options.iter().map(|option| format!("{option:?}")).collect();
    let other = if other { ", or another text" } else { "" };
    format!("{}{other}", quoted.join(", "))
}

fn confirmed(answer: &Value) -> Result<Value, String> {
    let yes = match answer {
        Value::Bool(yes) => Some(*yes),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "yes" | "y" => Some(true),
            "no" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    };
    let word = |yes| if yes { "yes" } else { "no" };
    yes.map(|yes| Value::from(word(yes))).ok_or_else(|| "the answer must be \"yes\" or \"no\"".to_owned())
}

fn filled(schema: &[u8], answer: &Value) -> Result<Value, String> {
    let compiled = serde_json::from_slice(schema).map_err(|error| error.to_string());
    let validator = compiled.and_then(|schema| Validator::compile(&schema).map_err(|error| error.to_string()));
    let validator = validator.map_err(|why| format!("the schema of the question cannot be used: {why}"))?;
    let violations = validator.explain(answer);
    if violations.is_empty() { Ok(answer.clone()) } else { Err(joined(&violations)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(kind: AskKind) -> Ask {
        Ask { kind, prompt: "?".into(), answerers: Vec::new(), timeout: None, default: None }
    }

    fn options(options: &[&str]) -> Vec<Arc<str>> {
        options.iter().map(|option| Arc::from(*option)).collect()
    }

    fn choose(many: bool, other: bool) -> Ask {
        ask(AskKind::Choose { options: options(&["a", "b"]), many, other })
    }

    fn check(ask: &Ask, accepted: &[(Value, Value)], refused: &[Value]) {
        for (answer, recorded) in accepted {
            assert_eq!(fitted(ask, answer).as_ref(), Ok(recorded), "{answer}");
        }
        for answer in refused {
            assert!(fitted(ask, answer).is_err(), "{answer} fits {ask:?}");
        }
    }

    #[test]
    fn a_choice_is_one_of_its_options_or_another_text_if_that_is_allowed() {
        check(
            &choose(false, false),
            &[(json!("a"), json!("a"))],
            &[json!("c"), json!("A"), json!(["a"]), json!(1), json!("")],
        );
        check(&choose(false, true), &[(json!("c d"), json!("c d"))], &[json!(" "), json!(null)]);
        let approve = |names: &[&str]| ask(AskKind::Approve { options: options(names), other: false });
        check(
            &approve(&[]),
            &[(json!("approve"), json!("approve")), (json!("reject"), json!("reject"))],
            &[json!("yes")],
        );
        check(&approve(&["ship"]), &[(json!("ship"), json!("ship"))], &[json!("approve")]);
    }

    #[test]
    fn an_approval_is_one_of_three_forms() {
        for good in [json!("approve"), json!("reject"), json!("reject: not today")] {
            assert_eq!(approval(&good).as_ref(), Ok(&good));
        }
        for other in [json!("yes"), json!("Approve"), json!(""), json!(true), json!(["approve"]), json!(null)] {
            assert!(approval(&other).is_err(), "{other}");
        }
    }

    #[test]
    fn several_are_a_list_with_each_of_them_once() {
        let accepted = [(json!(["b", "a", "b"]), json!(["b", "a"])), (json!([]), json!([]))];
        check(&choose(true, false), &accepted, &[json!("a"), json!(["c"]), json!([1]), json!({"a": true})]);
        assert_eq!(from_text(&choose(true, false), " b, a ,"), Ok(json!(["b", "a"])));
    }

    #[test]
    fn a_confirmation_is_yes_or_no_in_many_words() {
        let yes = [json!("yes"), json!("Y "), json!(true)].map(|answer| (answer, json!("yes")));
        check(&ask(AskKind::Confirm), &yes, &[json!("maybe"), json!(1), json!(null), json!(["yes"])]);
        check(&ask(AskKind::Confirm), &[(json!("NO"), json!("no")), (json!(false), json!("no"))], &[]);
    }

    #[test]
    fn a_text_may_be_empty_and_a_form_has_a_schema() {
        check(&ask(AskKind::Text), &[(json!(""), json!(""))], &[json!(1), json!(null)]);
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let form = ask(AskKind::Form { schema: schema.to_string().into_bytes().into() });
        check(&form, &[(json!({"n": 1}), json!({"n": 1}))], &[json!({}), json!({"n": "x"}), json!("n")]);
        assert_eq!(from_text(&form, "{\"n\": 2}"), Ok(json!({"n": 2})));
        assert!(from_text(&form, "n=2").is_err());
        let broken = ask(AskKind::Form { schema: (*b"{").into() });
        check(&broken, &[], &[json!({})]);
    }
}
