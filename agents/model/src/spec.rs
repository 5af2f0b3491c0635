//! The spec of a model: where it is reached, what it can do, what it costs and what it may be asked.
//!
//! It is the document of an object of the kind `model`. The controllers check it, and workers that call the model read it.

mod check;
mod local;
mod login;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Day, NanoDollars, PriceList, Prices};

pub use check::{
    FALLBACKS_MAX, HEADERS_MAX, NAME_BYTES_MAX, PATCH_BYTES_MAX, SpecError, VALUE_BYTES_MAX, check_headers,
};
pub use local::{LOCAL_DIMENSIONS, LOCAL_MODELS};
pub use login::{KnownIssuer, LoginSpec, SCOPES_MAX, TokenBody, login_secret};

/// A model that agents can use.
///
/// Members that this program does not know are ignored: a newer one wrote them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The protocol, and with it the default address.
    pub provider: Provider,
    /// The id that the provider knows the model by.
    pub name: String,
    /// What it is for.
    #[serde(default, rename = "type")]
    pub purpose: Purpose,
    /// The address of the API without a slash at its end. None: that of the provider.
    #[serde(default)]
    pub base_url: Option<String>,
    /// A [`Reference`](crate::Reference) to the key, if the provider wants one.
    #[serde(default)]
    pub key: Option<String>,
    /// Where access tokens come from, if the provider wants them instead of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginSpec>,
    /// Whether the `Authorization` header of the request that a job came from is passed on. A key, a login or such a header of the spec
    /// wins.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forward_inbound_auth: bool,
    /// More headers of each request. Values may contain references.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What only some providers have, such as `api_version`, `region` or `project`. Values may be references.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// What is changed in each request just before it is sent.
    #[serde(default)]
    pub patch: Option<Patch>,
    /// None: the embedded price list decides.
    #[serde(default)]
    pub prices: Option<Prices>,
    /// What the cluster may ask of it.
    #[serde(default)]
    pub limits: Limits,
    /// Most tokens of a request and its answer together.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Most tokens of an answer.
    #[serde(default)]
    pub output_tokens_max: Option<u32>,
    /// What it can do: declared, never guessed from its name.
    #[serde(default)]
    pub capabilities: BTreeSet<Capability>,
    /// Whether its answers can arrive in pieces.
    #[serde(default = "yes")]
    pub stream: bool,
    /// How long one try of a call may take.
    #[serde(default = "timeout_default")]
    pub timeout_seconds: u32,
    /// What happens after a failure that may pass.
    #[serde(default)]
    pub retry: Retry,
    /// Models of the same namespace that are tried, in this order, once the retries are used up.
    #[serde(default)]
    pub fallbacks: Vec<String>,
}

/// The protocols of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// OpenAI chat completions, and every server that is compatible with them.
    Openai,
    /// OpenAI responses.
    OpenaiResponses,
    /// OpenAI chat completions on Azure.
    Azure,
    /// Anthropic messages.
    Anthropic,
    /// Google AI.
    Gemini,
    /// Models on Google Cloud.
    Vertex,
    /// Models on AWS.
    Bedrock,
    /// Cohere chat.
    Cohere,
    /// Ollama's own protocol.
    Ollama,
    /// Models that workers run themselves; nothing is sent.
    Local,
    /// Answers from a file, for tests; nothing is sent.
    Scripted,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 11] = [
        Self::Openai,
        Self::OpenaiResponses,
        Self::Azure,
        Self::Anthropic,
        Self::Gemini,
        Self::Vertex,
        Self::Bedrock,
        Self::Cohere,
        Self::Ollama,
        Self::Local,
        Self::Scripted,
    ];

    /// Its word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
            Self::Bedrock => "bedrock",
            Self::Cohere => "cohere",
            Self::Ollama => "ollama",
            Self::Local => "local",
            Self::Scripted => "scripted",
        }
    }
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Answers messages.
    #[default]
    Chat,
    /// Turns texts into vectors.
    Embedding,
    /// Sorts texts by how well they answer a question.
    Reranker,
}

/// What a model can do beside reading and writing text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// It calls tools.
    Tools,
    /// It reads images.
    Vision,
    /// It answers in the form of a JSON Schema.
    JsonSchema,
    /// It reasons before it answers, as much as it is told to.
    Reasoning,
}

/// A change of each request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Patch {
    /// Replaces the whole address.
    #[serde(default)]
    pub url: Option<String>,
    /// A JSON merge patch of the body: objects merge, null removes, everything else replaces.
    #[serde(default)]
    pub body: Option<PatchBody>,
    /// Headers that are set, or removed where the value is null.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
}

/// A merge patch. Objects have no fractions, so a patch that needs one is written as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PatchBody {
    /// The patch itself.
    Object(Map<String, Value>),
    /// JSON text of an object.
    Text(String),
}

impl PatchBody {
    /// The patch; none if the text is no JSON object.
    pub fn members(&self) -> Option<Map<String, Value>> {
        match self {
            Self::Object(members) => Some(members.clone()),
            Self::Text(text) => serde_json::from_str(text).ok(),
        }
    }
}

/// What the whole cluster may ask of a model. None: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Calls at the same time.
    pub concurrency: Option<u32>,
    /// Calls a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, read and written.
    pub tokens_per_minute: Option<u64>,
}

/// How often and how long a call is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retry {
    /// Tries of one call, the first included.
    pub attempts: u32,
    /// How long all tries and the pauses between them may take.
    pub deadline_seconds: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, deadline_seconds: 600 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(value: &bool) -> bool {
    !value
}

fn yes() -> bool {
    true
}

fn timeout_default() -> u32 {
    300
}

impl ModelSpec {
    /// Reads a spec and refuses one that means nothing.
    pub fn read(json: &[u8]) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_slice(json).map_err(|error| SpecError::unreadable(&error))?;
        spec.check()?;
        Ok(spec)
    }

    /// Whether the credential of a caller is passed on, and nothing of its own is shown instead.
    pub fn forwards(&self) -> bool {
        let mut headers = self.headers.keys();
        let shows_own = self.key.is_some()
            || self.login.is_some()
            || headers.any(|name| name.eq_ignore_ascii_case("authorization"));
        self.forward_inbound_auth && !shows_own
    }

    /// What its tokens cost on a day: its own prices, or those of a list. Models that run on machines of their users cost nothing
    /// unless they have prices. None: the price is not known.
    pub fn prices_on(&self, list: &PriceList, day: Day) -> Option<Prices> {
        let free = Prices { input: NanoDollars(0), output: NanoDollars(0), cache_read: None, cache_write: None };
        let is_local = matches!(self.provider, Provider::Ollama | Provider::Local | Provider::Scripted);
        self.prices.or_else(|| list.prices(&self.name, day)).or(is_local.then_some(free))
    }
}
