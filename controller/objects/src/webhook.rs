//! Webhooks: a receiver outside the cluster gets selected events as HTTP requests.

use atlas_model::{URL_BYTES_MAX, check_url};
use atlas_types::{Level, ObjectKey, level};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// The kinds of events, as in `GET /api/cluster/events`.
pub const EVENT_KINDS: [&str; 5] = ["job", "agent", "node", "object", "cluster"];

const EVENTS_MAX: usize = 64;
/// What the name of a secret's variable starts with: a webhook cannot use other variables of the controller.
const SECRET_PREFIX: &str = "ATLAS_WEBHOOK_";

/// Where events go, and which.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WebhookSpec {
    /// Where the requests go.
    pub url: String,
    /// `KIND` or `KIND.CHANGE`, such as `job` and `job.ended`.
    pub events: Vec<String>,
    /// The environment variable of the controllers that holds the signing secret; without one, requests are not signed.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// How long a receiver may take to answer.
    #[serde(default = "timeout_default")]
    pub timeout_seconds: u32,
    /// How often an event is sent before it is dropped.
    #[serde(default = "attempts_default")]
    pub attempts: u32,
    /// Whether nothing is sent for now. Events wait until it is resumed.
    #[serde(default)]
    pub paused: bool,
}

fn timeout_default() -> u32 {
    10
}

fn attempts_default() -> u32 {
    20
}

impl WebhookSpec {
    /// Reads the spec of a webhook.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// Whether the webhook wants a change of a kind.
    pub fn wants(&self, kind: &str, change: &str) -> bool {
        self.events.iter().any(|wanted| match wanted.split_once('.') {
            None => wanted == kind,
            Some((wanted_kind, wanted_change)) => wanted_kind == kind && wanted_change == change,
        })
    }

    fn check(&self) -> Result<(), Refusal> {
        check_url(&self.url).map_err(|text| Refusal::new("spec.url", text))?;
        if self.events.is_empty() || self.events.len() > EVENTS_MAX {
            return Err(Refusal::new(
                "spec.events",
                format!("has 1 to {EVENTS_MAX} items, here {}", self.events.len()),
            ));
        }
        self.events.iter().try_for_each(|event| check_event(event))?;
        if let Some(name) = &self.secret_env {
            check_secret(name)?;
        }
        if !(1..=60).contains(&self.timeout_seconds) {
            return Err(Refusal::new("spec.timeout_seconds", "is between 1 and 60"));
        }
        if !(1..=100).contains(&self.attempts) {
            return Err(Refusal::new("spec.attempts", "is between 1 and 100"));
        }
        Ok(())
    }
}

fn check_event(event: &str) -> Result<(), Refusal> {
    let (kind, change) = event.split_once('.').unwrap_or((event, "any"));
    let is_word =
        |word: &str| !word.is_empty() && word.len() <= 32 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    if EVENT_KINDS.contains(&kind) && is_word(change) {
        return Ok(());
    }
    let kinds = EVENT_KINDS.join(", ");
    Err(Refusal::new("spec.events", format!("contains {event:?}, which is not KIND or KIND.CHANGE; kinds are {kinds}")))
}

fn check_secret(name: &str) -> Result<(), Refusal> {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let rest = name.strip_prefix(SECRET_PREFIX).unwrap_or_default();
    if rest.is_empty() || name.len() > 128 || !rest.bytes().all(is_name) {
        let text = format!("is {SECRET_PREFIX} followed by capital letters, digits and _, at most 128 bytes");
        return Err(Refusal::new("spec.secret_env", text));
    }
    Ok(())
}

pub(crate) struct WebhookKind;

impl Kind for WebhookKind {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn about(&self) -> &'static str {
        "A receiver outside the cluster, and the events that are sent to it."
    }

    fn level(&self) -> Level {
        level::OBJECTS
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["url", "events"],
            "properties": {
                "url": {
                    "type": "string", "maxLength": URL_BYTES_MAX,
                    "description": "Where events are sent, `http://` or `https://`. Redirects are not followed."
                },
                "events": {
                    "type": "array", "minItems": 1, "maxItems": EVENTS_MAX, "items": { "type": "string" },
                    "description": "The events that are sent: `KIND` or `KIND.CHANGE`, such as `agent` and `job.ended`."
                },
                "secret_env": {
                    "type": ["string", "null"],
                    "description": "The environment variable of each controller that contains the signing secret. Its name starts with \
                        `ATLAS_WEBHOOK_`. Without it, requests are not signed."
                },
                "timeout_seconds": {
                    "type": "integer", "minimum": 1, "maximum": 60, "default": timeout_default(),
                    "description": "How long a receiver may take to answer."
                },
                "attempts": {
                    "type": "integer", "minimum": 1, "maximum": 100, "default": attempts_default(),
                    "description": "How often an event is sent before it is dropped."
                },
                "paused": {
                    "type": "boolean", "default": false,
                    "description": "Send nothing for now. The events wait."
                }
            }
        })
    }

    fn admit(&self, _key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        WebhookSpec::read(spec)?.check()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::check;

    #[test]
    fn documents() {
        let with = |member: &str| format!(r#"{{"events":["job"],{member}"url":"https://a.b"}}"#);
        let url = |url: &str| format!(r#"{{"events":["job"],"url":"{url}"}}"#);
        let event = |event: &str| format!(r#"{{"events":["{event}"],"url":"https://a.b"}}"#);
        let cases = [
            with(""),
            with(r#""later":1,"#),
            with(r#""secret_env":"ATLAS_WEBHOOK_A1","#),
            with(r#""secret_env":"PATH","#),
            with(r#""secret_env":"ATLAS_WEBHOOK_","#),
            with(r#""timeout_seconds":0,"#),
            with(r#""attempts":0,"#).replace(r#""attempts":0,"#, "").replace("{", r#"{"attempts":0,"#),
            url("https://user:word@a.b/c"),
            url("https:///c"),
            url("ftp://a.b"),
            url("http://a.b/ c"),
            url(&format!("http://a.b/{}", "x".repeat(2_048))),
            url("http://[::1]:80?q"),
            event("job.ended"),
            event("job."),
            event("gizmo"),
            r#"{"events":[],"url":"https://a.b"}"#.to_owned(),
            r#"{"url":"https://a.b"}"#.to_owned(),
        ];
        check(
            "webhook",
            &cases.each_ref().map(String::as_str),
            &expect![[r#"
            ok {"events":["job"],"url":"https://a.b"}
            ok {"events":["job"],"later":1,"url":"https://a.b"}
            ok {"events":["job"],"secret_env":"ATLAS_WEBHOOK_A1","url":"https://a.b"}
            ! `spec.secret_env` is ATLAS_WEBHOOK_ followed by capital letters, digits and _, at most 128 bytes
            ! `spec.secret_env` is ATLAS_WEBHOOK_ followed by capital letters, digits and _, at most 128 bytes
            ! `spec.timeout_seconds` is between 1 and 60
            ! `spec.attempts` is between 1 and 100
            ! `spec.url` contains a user name; keep credentials out of addresses
            ! `spec.url` names no host
            ! `spec.url` does not start with http:// or https://
            ! `spec.url` contains a space, a control character or a character beyond ASCII; percent-encode it
            ! `spec.url` is longer than 2048 bytes
            ok {"events":["job"],"url":"http://[::1]:80?q"}
            ok {"events":["job.ended"],"url":"https://a.b"}
            ! `spec.events` contains "job.", which is not KIND or KIND.CHANGE; kinds are job, agent, node, object, cluster
            ! `spec.events` contains "gizmo", which is not KIND or KIND.CHANGE; kinds are job, agent, node, object, cluster
            ! `spec.events` has 1 to 64 items, here 0
            ! `spec` cannot be read: missing field `events` at line 1 column 21
        "#]],
        );
    }

    #[test]
    fn events_are_chosen_by_kind_and_change() {
        let spec = WebhookSpec::read(br#"{"events":["agent","job.ended"],"url":"http://a"}"#).expect("a spec");
        assert!(spec.wants("agent", "registered") && spec.wants("job", "ended"));
        assert!(!spec.wants("job", "granted") && !spec.wants("node", "ended"));
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = WebhookSpec::read(include_bytes!("../golden/webhook.json")).expect("a spec");
        let expected = WebhookSpec {
            url: "https://ci.example.com/atlas".into(),
            events: ["job.ended", "agent", "node.down"].map(String::from).into(),
            secret_env: Some("ATLAS_WEBHOOK_CI".into()),
            timeout_seconds: 5,
            attempts: 10,
            paused: false,
        };
        assert_eq!(spec, expected);
    }
}
