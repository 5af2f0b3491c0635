//! Who answers in a chat: an agent, or a model behind the cluster's own agent; and what a message becomes in its input.

use atlas_api::types::Agent;
use atlas_chat::ChatSettings;
use atlas_model::CHAT_AGENT;
use serde_json::{Map, Value, json};

use crate::answers;
use crate::client::{Client, all_objects};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words;

/// The kind of models.
const MODEL: &str = "model";
/// The tiers, in the order in which one is taken if nobody is named.
const TIERS: [&str; 3] = ["balanced", "fast", "powerful"];

/// Who answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    Agent(AgentTarget),
    /// A model or a tier of the namespace.
    Model(String),
}

/// An agent, and how it takes messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentTarget {
    pub(crate) name: String,
    /// The version that was named.
    version: Option<String>,
    reads: Reads,
}

/// How an agent takes a message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reads {
    /// All messages, in this member.
    Messages(String),
    /// The message, and what was said before beside it: the agent has a `config.yaml`.
    Continued,
    /// The message alone, in this member, and images in the other.
    Text { member: String, images: Option<String> },
}

/// A message to send.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Message {
    pub(crate) text: String,
    /// Objects with `data` and `mime_type`.
    pub(crate) images: Vec<Value>,
}

impl Target {
    /// Who is meant. Without a name, it is a model of the namespace.
    pub(crate) async fn find(client: &Client, name: Option<&str>, model: Option<&str>) -> Result<Self, Failure> {
        match (name, model) {
            (Some(_), Some(_)) => Err(Failure::usage("an agent has its own model: name an agent or a model, not both")),
            (None, Some(model)) => Self::model(client, model).await,
            (Some(name), None) => Self::named(client, name).await,
            (None, None) => Self::some_model(client).await,
        }
    }

    async fn named(client: &Client, name: &str) -> Result<Self, Failure> {
        match Self::agent(client, name).await {
            Err(failure) if failure.exit == Exit::NotFound => {
                if let Ok(model) = Self::model(client, name).await {
                    return Ok(model);
                }
                if client.get(&["api", "objects", "chain", name], &[]).await.is_ok() {
                    let text = format!("\"{name}\" is a chain, and a chain takes no messages");
                    return Err(Failure::usage(text).with_next(format!("run it: atlasctl run {}", words::shell(name))));
                }
                let text = format!("there is neither an agent nor a model \"{name}\"");
                Err(Failure::new("E1101", Exit::NotFound, text)
                    .with_next("list them: atlasctl agent list   or: atlasctl model list"))
            }
            found => found,
        }
    }

    /// An agent, optionally with `@VERSION`.
    pub(crate) async fn agent(client: &Client, name: &str) -> Result<Self, Failure> {
        let (name, version) = name.split_once('@').map_or((name, None), |(name, version)| (name, Some(version)));
        let query: Vec<(&str, &str)> = version.iter().map(|version| ("version", *version)).collect();
        let value = client.get(&["api", "agents", name], &query).await?;
        let agent: Agent = answers::read(&value)?;
        let reads = Reads::of(&value["contract"], &agent.input_schema).map_err(|why| {
            let text = format!("{name} takes no messages: {why}");
            Failure::new("E1104", Exit::Invalid, text).with_next(format!("run it: atlasctl run {}", words::shell(name)))
        })?;
        let version = version.map(str::to_owned);
        Ok(Self::Agent(AgentTarget { name: name.to_owned(), version, reads }))
    }

    /// A model of the namespace.
    pub(crate) async fn model(client: &Client, name: &str) -> Result<Self, Failure> {
        match client.get(&["api", "objects", MODEL, name], &[]).await {
            Ok(_) => Ok(Self::Model(name.to_owned())),
            Err(failure) if failure.exit == Exit::NotFound => {
                of_tier(client, name).await?.map(Self::Model).ok_or(failure)
            }
            Err(failure) => Err(failure),
        }
    }

    /// The model to talk with if nobody was named: that of a tier, or the first.
    async fn some_model(client: &Client) -> Result<Self, Failure> {
        let names = models(client).await?;
        for tier in TIERS {
            if let Some(name) = of_tier(client, tier).await? {
                return Ok(Self::Model(name));
            }
        }
        let tier = TIERS.iter().find(|tier| names.iter().any(|name| name == *tier));
        let name = tier.map(|tier| (*tier).to_owned()).or_else(|| names.into_iter().next());
        name.map(Self::Model).ok_or_else(|| {
            Failure::new("E3202", Exit::NotFound, "the namespace has no model to talk with")
                .with_next("add one: atlasctl model add NAME --provider PROVIDER --name ID   or name an agent: atlasctl chat AGENT")
        })
    }

    /// Who answers, for people.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Agent(agent) => &agent.name,
            Self::Model(name) => name,
        }
    }

    /// The agent whose jobs answer.
    pub(crate) fn agent_name(&self) -> &str {
        match self {
            Self::Agent(agent) => &agent.name,
            Self::Model(_) => CHAT_AGENT,
        }
    }

    /// Whether it is a model.
    pub(crate) fn is_model(&self) -> bool {
        matches!(self, Self::Model(_))
    }

    /// Whether it sees what was said before.
    pub(crate) fn remembers(&self) -> bool {
        !matches!(self, Self::Agent(AgentTarget { reads: Reads::Text { .. }, .. }))
    }

    /// The body of the job that answers a message, without what all jobs have. The error says why it cannot take the message.
    pub(crate) fn body(
        &self,
        message: &Message,
        conversation: Option<&str>,
        settings: &ChatSettings,
    ) -> Result<Map<String, Value>, Failure> {
        let conversation = conversation.filter(|_| self.remembers());
        let mut input = Map::new();
        let mut body = Map::new();
        body.insert("agent".to_owned(), self.agent_name().into());
        match self {
            Self::Model(model) => {
                input.insert("model".to_owned(), model.as_str().into());
                // An empty object says that nothing is set any more.
                if conversation.is_some() || !settings.is_empty() {
                    input.insert("settings".to_owned(), settings.value());
                }
                said(&mut input, "messages", message, conversation.is_some());
            }
            Self::Agent(AgentTarget { name, version, reads }) => {
                if let Some(version) = version {
                    body.insert("version".to_owned(), version.as_str().into());
                }
                let blind = |name: &str| Failure::new("E3204", Exit::Invalid, format!("{name} takes no images"));
                match reads {
                    Reads::Messages(member) => said(&mut input, member, message, conversation.is_some()),
                    Reads::Continued if !message.images.is_empty() => return Err(blind(name)),
                    Reads::Continued => drop(input.insert("message".to_owned(), message.text.as_str().into())),
                    Reads::Text { member, images } => {
                        input.insert(member.clone(), message.text.as_str().into());
                        match images {
                            _ if message.images.is_empty() => {}
                            Some(images) => drop(input.insert(images.clone(), json!(message.images))),
                            None => return Err(blind(name)),
                        }
                    }
                }
            }
        }
        body.insert("input".to_owned(), Value::Object(input));
        if let Some(conversation) = conversation {
            body.insert("conversation".to_owned(), conversation.into());
        }
        Ok(body)
    }
}

/// Puts a message into an input: as the text that continues a conversation, or as a conversation of one message.
fn said(input: &mut Map<String, Value>, member: &str, message: &Message, continues: bool) {
    let Message { text, images } = message;
    if continues {
        input.insert("message".to_owned(), text.as_str().into());
        if !images.is_empty() {
            input.insert("images".to_owned(), json!(images));
        }
        return;
    }
    let mut one = json!({"role": "user", "content": text});
    if !images.is_empty() {
        one["images"] = json!(images);
    }
    input.insert(member.to_owned(), json!([one]));
}

impl Reads {
    /// How an agent takes messages, by the rules of the controllers. The error says why it takes none.
    fn of(contract: &Value, schema: &Value) -> Result<Self, String> {
        let provider = &contract["provider"];
        let named = |member: &str| provider[member].as_str().map(str::to_owned);
        let is = |member: &str, kind: &str| schema["properties"][member]["type"] == kind;
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let needs = |others: Vec<&str>| Err(format!("its input needs {} as well", others.join(", ")));
        let takes = schema["additionalProperties"] != false || schema["properties"].get("conversation").is_some();
        if provider["type"] == "normal" && is("message", "string") && takes {
            let others: Vec<&str> = required.into_iter().filter(|name| *name != "message").collect();
            return if others.is_empty() { Ok(Self::Continued) } else { needs(others) };
        }
        let messages = named("messages").or_else(|| is("messages", "array").then(|| "messages".to_owned()));
        if let Some(member) = messages.filter(|_| provider["type"] != "graph") {
            let others: Vec<&str> = required.into_iter().filter(|name| *name != member).collect();
            return if others.is_empty() { Ok(Self::Messages(member)) } else { needs(others) };
        }
        let images = named("images").or_else(|| is("images", "array").then(|| "images".to_owned()));
        let is_open = schema["properties"].as_object().is_none_or(Map::is_empty);
        let member = match required[..] {
            [member] if is(member, "string") => member,
            [] if is("message", "string") || is_open => "message",
            [] => return Err("its input has no member that is required and a text".to_owned()),
            [member] => return Err(format!("its input needs {member}, which is not a text")),
            _ => return Err(format!("its input needs {}", required.join(", "))),
        };
        Ok(Self::Text { member: member.to_owned(), images })
    }
}

/// The model that the namespace has for a tier, if it says so.
async fn of_tier(client: &Client, tier: &str) -> Result<Option<String>, Failure> {
    if !TIERS.contains(&tier) {
        return Ok(None);
    }
    let object = client.get_if_known(&["api", "objects", "tier", tier]).await?;
    Ok(object["spec"]["model"].as_str().map(str::to_owned))
}

/// The names of the models that hold conversations.
pub(crate) async fn models(client: &Client) -> Result<Vec<String>, Failure> {
    let objects = all_objects(client, MODEL).await?;
    let chats = objects.iter().filter(|object| object["spec"]["type"].as_str().is_none_or(|kind| kind == "chat"));
    Ok(chats.filter_map(|object| Some(object["metadata"]["name"].as_str()?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(target: &Target, conversation: Option<&str>, settings: &Value, expected: &Expect) {
        let picture = json!({"data": "AA==", "mime_type": "image/png"});
        let message = Message { text: "hi".to_owned(), images: vec![picture] };
        let body = target.body(&message, conversation, &ChatSettings::of(settings));
        expected.assert_eq(&body.map_or_else(|failure| failure.message, |body| Value::Object(body).to_string()));
    }

    fn agent(provider: &Value, schema: &Value) -> Result<Target, String> {
        let reads = Reads::of(&json!({ "provider": provider }), schema)?;
        Ok(Target::Agent(AgentTarget { name: "a".to_owned(), version: Some("1.0.0".to_owned()), reads }))
    }

    #[test]
    fn a_model_gets_messages_and_settings() {
        let model = Target::Model("fast".to_owned());
        assert!(model.remembers() && model.is_model());
        let settings = json!({"temperature": 0.5});
        check(
            &model,
            Some("trip"),
            &settings,
            &expect![[
                r#"{"agent":"model-chat","input":{"model":"fast","settings":{"temperature":0.5},"message":"hi","images":[{"data":"AA==","mime_type":"image/png"}]},"conversation":"trip"}"#
            ]],
        );
        check(
            &model,
            None,
            &json!({}),
            &expect![[
                r#"{"agent":"model-chat","input":{"model":"fast","messages":[{"role":"user","content":"hi","images":[{"data":"AA==","mime_type":"image/png"}]}]}}"#
            ]],
        );
    }

    #[test]
    fn an_agent_gets_the_message_where_it_takes_it() {
        let text = json!({"type": "string"});
        let required = |name: &str| json!({"properties": {name: text}, "required": [name]});
        let said = json!({"properties": {"said": {"type": "array"}}, "required": ["said"]});
        let reader = agent(&json!({"type": "llm", "messages": "said"}), &said).expect("messages");
        check(
            &reader,
            None,
            &json!({}),
            &expect![[
                r#"{"agent":"a","version":"1.0.0","input":{"said":[{"role":"user","content":"hi","images":[{"data":"AA==","mime_type":"image/png"}]}]}}"#
            ]],
        );
        let normal = agent(&json!({"type": "normal"}), &required("message")).expect("a message");
        check(&normal, Some("trip"), &json!({}), &expect!["a takes no images"]);
        let alone = agent(&json!({"type": "exec", "images": "pictures"}), &required("q")).expect("a text");
        assert!(!alone.remembers());
        check(
            &alone,
            Some("trip"),
            &json!({}),
            &expect![[
                r#"{"agent":"a","version":"1.0.0","input":{"q":"hi","pictures":[{"data":"AA==","mime_type":"image/png"}]}}"#
            ]],
        );
        assert!(agent(&json!({"type": "exec"}), &json!({"type": "object"})).is_ok());
    }

    #[test]
    fn agents_without_messages_say_why() {
        let refused = |provider: &Value, schema: &Value| agent(provider, schema).expect_err("refused");
        let two = json!({"properties": {}, "required": ["a", "b"]});
        assert_eq!(refused(&json!({"type": "exec"}), &two), "its input needs a, b");
        let number = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]});
        assert_eq!(refused(&json!({"type": "exec"}), &number), "its input needs n, which is not a text");
        let more = json!({"properties": {"messages": {"type": "array"}}, "required": ["messages", "topic"]});
        assert_eq!(refused(&json!({"type": "llm"}), &more), "its input needs topic as well");
    }
}
