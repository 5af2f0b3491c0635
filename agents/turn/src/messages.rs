//! The messages of a conversation in an input: the contract names the member that has them.

use atlas_model::{Message, Part, Role};
use serde_json::Value;

use crate::images::image;

/// Most messages of one input.
const MESSAGES_MAX: usize = 10_000;

/// Takes the messages out of an input. They are objects with `role` (`user` or `assistant`), `content` (a text) and, where there are
/// some, `images`. The last one is from the user.
pub fn take(input: &mut Value, member: &str) -> Result<Vec<Message>, String> {
    let Some(found) = input.as_object_mut().and_then(|members| members.shift_remove(member)) else {
        return Ok(Vec::new());
    };
    let Value::Array(found) = found else { return Err(format!("'{member}' is not a list of messages")) };
    if found.len() > MESSAGES_MAX {
        return Err(format!("'{member}' has more than {MESSAGES_MAX} messages"));
    }
    let read = |(at, value)| message(value).map_err(|why| format!("'{member}/{at}' {why}"));
    let messages: Vec<Message> = found.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    match messages.last() {
        Some(last) if last.role != Role::User => Err(format!("'{member}' does not end with a message of the user")),
        _ => Ok(messages),
    }
}

/// The messages of the conversation that a job of an agent with a `config.yaml` continues, with the one to answer as the last. Its input has
/// them in `conversation`, apart from its own members. Providers refuse messages without content, so these are left out.
pub fn continued(input: &Value) -> Result<Vec<Message>, String> {
    let mut conversation = input.get("conversation").cloned().unwrap_or_default();
    let mut said = take(&mut conversation, "messages")?;
    said.retain(|message| {
        message.parts.iter().any(|part| !matches!(part, Part::Text { text } if text.trim().is_empty()))
    });
    Ok(said)
}

/// Messages whose last one, from the user, is this prompt instead.
pub fn prompted(mut said: Vec<Message>, prompt: Option<&str>) -> Vec<Message> {
    if let Some(prompt) = prompt {
        said.pop();
        said.push(Message::user(prompt));
    }
    said
}

fn message(value: &Value) -> Result<Message, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let role = match text("role") {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err("has a role that is neither \"user\" nor \"assistant\"".to_owned()),
    };
    let content = text("content").ok_or("has no text \"content\"")?;
    let mut parts = vec![Part::Text { text: content.to_owned() }];
    for (at, picture) in value.get("images").and_then(Value::as_array).into_iter().flatten().enumerate() {
        parts.push(Part::Image(image(picture).map_err(|why| format!("has an image, number {at}, that {why}"))?));
    }
    Ok(Message { role, parts })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_taken_out() {
        let said = json!([
            {"role": "user", "content": "Who?", "images": [{"data": "AA==", "mime_type": "image/png"}]},
            {"role": "assistant", "content": "Ada."},
            {"role": "user", "content": "When?"},
        ]);
        let mut input = json!({"said": said, "z": 2});
        let messages = take(&mut input, "said").expect("messages");
        let shown: Vec<_> = messages.iter().map(|message| (message.role, message.parts.len())).collect();
        assert_eq!(shown, [(Role::User, 2), (Role::Assistant, 1), (Role::User, 1)]);
        assert_eq!(input, json!({"z": 2}));
        assert_eq!(take(&mut input, "said"), Ok(Vec::new()));
    }

    #[test]
    fn a_conversation_is_apart_from_the_other_members() {
        let said = json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "b"},
        ]);
        let input = json!({"message": "b", "conversation": {"messages": said}});
        assert_eq!(continued(&input), Ok(vec![Message::user("a"), Message::user("b")]));
        assert_eq!(continued(&json!({"message": "b"})), Ok(Vec::new()));
        assert!(continued(&json!({"conversation": {"messages": 5}})).is_err());
    }

    #[test]
    fn malformed_messages_are_refused() {
        let refused = |said: Value| take(&mut json!({"said": said}), "said").expect_err("refused");
        assert_eq!(refused(json!("x")), "'said' is not a list of messages");
        assert_eq!(
            refused(json!([{"content": "x"}])),
            "'said/0' has a role that is neither \"user\" nor \"assistant\""
        );
        assert_eq!(refused(json!([{"role": "user"}])), "'said/0' has no text \"content\"");
        let ends = json!([{"role": "assistant", "content": "x"}]);
        assert_eq!(refused(ends), "'said' does not end with a message of the user");
        let picture = json!([{"role": "user", "content": "x", "images": [{}]}]);
        assert!(refused(picture).contains("has no \"data\" and \"mime_type\""));
    }
}
