//! How a message becomes the input of an agent, and its output an answer.

use serde_json::{Map, Value, json};

use super::{Message, Role};

/// The member of the input that has the text of the message.
pub(super) const MESSAGE: &str = "message";
/// The member of the input that has the images of the message.
pub(super) const IMAGES: &str = "images";
/// The member of the input that has the conversation before it.
pub(super) const CONVERSATION: &str = "conversation";

/// Where messages and images go in the input of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The member that gets the message.
    text: Text,
    /// The member that gets the images of the message.
    images: Option<String>,
    /// The members with the model and its settings, if the input chooses them. A message without one has that of the message before it.
    chosen: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// A list of all messages of the conversation, the new one last.
    Messages(String),
    /// The text of the new message.
    Member(String),
    /// The text of the new message. The conversation is apart from it: the agent has a `config.yaml`.
    Continued,
}

impl Mapping {
    /// The mapping of a normalised contract. The error says why the agent takes no messages.
    ///
    /// The member of the messages is the one that `provider.messages` names, or a list `messages` of the input schema. Otherwise the
    /// input has exactly one required member, and that is a text; an agent that accepts any input gets the member `message`.
    pub fn of(contract: &Value) -> Result<Self, String> {
        let settings = contract["provider"]["settings"].as_str();
        let model = contract["model"]["name"].as_str().and_then(|name| name.strip_prefix("{input.")?.strip_suffix('}'));
        let chosen = settings.into_iter().chain(settings.and(model)).map(str::to_owned).collect();
        Ok(Self { chosen, ..Self::of_messages(contract)? })
    }

    fn of_messages(contract: &Value) -> Result<Self, String> {
        let schema = contract.get("input_schema").cloned().unwrap_or_default();
        let named = |member: &str| contract["provider"].get(member).and_then(Value::as_str).map(str::to_owned);
        let kind = |member: &str| schema["properties"].get(member).and_then(|rule| rule.get("type"));
        let is = |member: &str, wanted: &str| kind(member).is_some_and(|kind| *kind == json!(wanted));
        // A schema of its own may have no room for a conversation.
        let takes = schema["additionalProperties"] != false || schema["properties"].get(CONVERSATION).is_some();
        if contract["provider"]["type"] == "normal" && is(MESSAGE, "string") && takes {
            let others = required(&schema).into_iter().filter(|name| *name != MESSAGE).collect::<Vec<_>>();
            return match others.is_empty() {
                true => Ok(Self { text: Text::Continued, images: None, chosen: Vec::new() }),
                false => Err(format!("its input needs {} as well", others.join(", "))),
            };
        }
        let images = named("images").or_else(|| is("images", "array").then(|| "images".to_owned()));
        if let Some(member) = named("messages").or_else(|| is("messages", "array").then(|| "messages".to_owned())) {
            let others = required(&schema).into_iter().filter(|name| **name != member).collect::<Vec<_>>();
            return match others.is_empty() {
                true => Ok(Self { text: Text::Messages(member), images: None, chosen: Vec::new() }),
                false => Err(format!("its input needs {} as well", others.join(", "))),
            };
        }
        let required = required(&schema);
        let text = match required[..] {
            [member] if is(member, "string") => member.to_owned(),
            [] if is("message", "string") || schema["properties"].as_object().is_none_or(Map::is_empty) => {
                MESSAGE.to_owned()
            }
            [] => return Err("its input has no member that is required and a text".to_owned()),
            [member] => return Err(format!("its input needs {member}, which is not a text")),
            _ => return Err(format!("its input needs {}", required.join(", "))),
        };
        Ok(Self { text: Text::Member(text), images, chosen: Vec::new() })
    }

    /// Whether the agent sees what was said before.
    pub fn remembers(&self) -> bool {
        matches!(self.text, Text::Messages(_) | Text::Continued)
    }

    /// Whether the agent takes images.
    pub fn sees(&self) -> bool {
        matches!(self.text, Text::Messages(_)) || self.images.is_some()
    }

    /// What the other members of an input choose.
    pub(super) fn settings(&self, others: &Map<String, Value>) -> Map<String, Value> {
        let chosen = self.chosen.iter().filter_map(|name| Some((name.clone(), others.get(name)?.clone())));
        chosen.collect()
    }

    /// Takes the settings out of messages. What was chosen last counts for members that the input does not have.
    pub(super) fn keep_settings(&self, messages: &mut [Message], others: &mut Map<String, Value>) {
        let mut latest = Map::new();
        for message in messages {
            latest.extend(std::mem::take(&mut message.settings));
        }
        for name in &self.chosen {
            if let (None, Some(value)) = (others.get(name), latest.shift_remove(name)) {
                others.insert(name.clone(), value);
            }
        }
    }

    /// The input for the last of some messages.
    pub fn input(&self, messages: &[Message]) -> Value {
        self.continued(messages, None, Map::new())
    }

    /// The same with other members, and with what the agent has kept.
    pub(super) fn continued(&self, messages: &[Message], kept: Option<&Value>, mut input: Map<String, Value>) -> Value {
        match &self.text {
            Text::Messages(member) => {
                input.insert(member.clone(), json!(messages));
            }
            Text::Continued => {
                let last = messages.last().map_or("", |message| message.content.as_str());
                input.insert(MESSAGE.to_owned(), json!(last));
                // The first message stands alone.
                if messages.len() > 1 {
                    let mut conversation = json!({ "messages": messages });
                    if let Some(kept) = kept {
                        conversation["kept"] = kept.clone();
                    }
                    input.insert(CONVERSATION.to_owned(), conversation);
                }
            }
            Text::Member(member) => {
                let last = messages.iter().rev().find(|message| message.role == Role::User);
                input.insert(member.clone(), json!(last.map_or("", |message| message.content.as_str())));
                if let (Some(member), Some(last)) = (&self.images, last.filter(|last| !last.images.is_empty())) {
                    input.insert(member.clone(), json!(last.images));
                }
            }
        }
        Value::Object(input)
    }
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The answer in an output: the only text in it, or the member `result`, `message` or `text`; otherwise the output as JSON.
pub fn reply_of(output: &Value) -> String {
    let Some(members) = output.as_object() else {
        return output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    };
    let named = ["result", "message", "text"].into_iter().find_map(|name| members.get(name)?.as_str());
    let mut texts = members.values().filter_map(Value::as_str);
    let only = texts.next().filter(|_| members.len() == 1);
    named.or(only).map_or_else(|| output.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn mapping(schema: Value, provider: Value) -> Result<Mapping, String> {
        Mapping::of(&json!({ "input_schema": schema, "provider": provider }))
    }

    fn said(role: Role, content: &str) -> Message {
        Message { role, content: content.to_owned(), images: Vec::new(), kept: None, settings: Map::new() }
    }

    #[test]
    fn one_required_text_takes_the_message() {
        let schema = json!({
            "properties": { "q": { "type": "string" }, "images": { "type": "array" }, "lang": { "type": "string" } },
            "required": ["q"]
        });
        let mapping = mapping(schema, json!({})).expect("a mapping");
        assert!(!mapping.remembers() && mapping.sees());
        let mut picture = said(Role::User, "b");
        picture.images = vec![json!({ "data": "AA==", "mime_type": "image/png" })];
        let messages = [said(Role::User, "a"), said(Role::Assistant, "A"), picture];
        let input = mapping.input(&messages);
        assert_eq!(input, json!({ "q": "b", "images": [{ "data": "AA==", "mime_type": "image/png" }] }));
    }

    #[test]
    fn declared_messages_take_the_conversation() {
        let schema = json!({ "properties": { "said": { "type": "array" } }, "required": ["said"] });
        let mapping = mapping(schema, json!({ "messages": "said" })).expect("a mapping");
        let messages = [said(Role::User, "a"), said(Role::Assistant, "A"), said(Role::User, "b")];
        let input = mapping.input(&messages);
        assert_eq!(input["said"][1], json!({ "role": "assistant", "content": "A" }));
        assert!(mapping.remembers());
    }

    #[test]
    fn an_agent_with_a_config_gets_the_conversation_apart() {
        let text = json!({ "type": "string" });
        let schema = json!({ "properties": { "message": text }, "required": ["message"] });
        let mapping = mapping(schema, json!({ "type": "normal" })).expect("a mapping");
        assert!(mapping.remembers() && !mapping.sees());
        assert_eq!(mapping.input(&[said(Role::User, "a")]), json!({ "message": "a" }));
        let messages = [said(Role::User, "a"), said(Role::Assistant, "A"), said(Role::User, "b")];
        let kept = json!({ "variables": { "x": "1" } });
        let others = json!({ "variables": { "y": "2" }, "conversation": "forged" }).as_object().cloned();
        let input = mapping.continued(&messages, Some(&kept), others.unwrap_or_default());
        assert_eq!((&input["message"], &input["variables"]["y"]), (&json!("b"), &json!("2")));
        assert_eq!(input["conversation"]["kept"], kept);
        assert_eq!(input["conversation"]["messages"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn what_was_chosen_last_counts() {
        let contract = json!({
            "provider": {"type": "llm", "messages": "said", "settings": "chosen"}, "model": {"name": "{input.model}"},
            "input_schema": {"properties": {"said": {"type": "array"}}, "required": ["said"]},
        });
        let mapping = Mapping::of(&contract).expect("a mapping");
        let members = |value: Value| value.as_object().cloned().expect("an object");
        let mut first = said(Role::User, "a");
        first.settings = mapping.settings(&members(json!({"model": "m", "chosen": {"top_k": 1}, "x": 5})));
        assert_eq!(first.settings, members(json!({"chosen": {"top_k": 1}, "model": "m"})));
        let mut others = members(json!({"model": "n"}));
        let mut messages = [first, said(Role::Assistant, "A"), said(Role::User, "b")];
        mapping.keep_settings(&mut messages, &mut others);
        assert_eq!(others, members(json!({"model": "n", "chosen": {"top_k": 1}})));
        assert!(messages.iter().all(|message| message.settings.is_empty()));
        let plain = json!({"provider": {"messages": "said"}, "model": {"name": "{input.model}"}, "input_schema": contract["input_schema"]});
        assert!(Mapping::of(&plain).expect("a mapping").settings(&others).is_empty());
    }

    #[test]
    fn a_schema_without_room_takes_the_message_alone() {
        let members = json!({ "message": { "type": "string" } });
        let closed = json!({ "properties": members, "required": ["message"], "additionalProperties": false });
        assert!(!mapping(closed, json!({ "type": "normal" })).expect("a mapping").remembers());
    }

    #[test]
    fn any_input_takes_a_message() {
        let mapping = mapping(json!({ "type": "object" }), json!({})).expect("a mapping");
        assert_eq!(mapping.input(&[said(Role::User, "a")]), json!({ "message": "a" }));
        assert!(!mapping.sees());
    }

    #[test]
    fn other_agents_take_none() {
        let text = json!({ "type": "string" });
        let two = json!({ "properties": { "a": text, "b": text }, "required": ["a", "b"] });
        assert_eq!(mapping(two, json!({})), Err("its input needs a, b".to_owned()));
        let number = json!({ "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        assert_eq!(mapping(number, json!({})), Err("its input needs n, which is not a text".to_owned()));
        let none = json!({ "properties": { "a": text } });
        assert!(mapping(none, json!({})).is_err());
        let more = json!({ "properties": { "messages": { "type": "array" } }, "required": ["messages", "topic"] });
        assert_eq!(mapping(more, json!({})), Err("its input needs topic as well".to_owned()));
    }

    #[test]
    fn answers_are_texts() {
        assert_eq!(reply_of(&json!({ "result": "x", "n": 1 })), "x");
        assert_eq!(reply_of(&json!({ "summary": "x" })), "x");
        assert_eq!(reply_of(&json!({ "a": "x", "b": "y" })), r#"{"a":"x","b":"y"}"#);
        assert_eq!(reply_of(&json!("x")), "x");
    }
}
