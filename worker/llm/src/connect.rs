//! From the spec of a model to a target that can be called: protocol, address, key, patches, proxy.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use atlas_http::{Proxy, ProxyError};
use atlas_model::task::DIMENSIONS_MAX;
use atlas_model::{ModelSpec, Provider, Purpose, Reference};
use atlas_secrets::{Template, TemplateError};
use atlas_types::SecretText;

use crate::anthropic::Anthropic;
use crate::auth::{Auth, LoginTokens};
use crate::bedrock::{self, Bedrock};
use crate::client::{Backend, Http, READ_TIMEOUT, Target};
use crate::cohere::Cohere;
use crate::embedding::{Dialect as Embeds, EmbeddingProtocol};
use crate::gemini::Gemini;
use crate::local::{Local, LocalModels};
use crate::ollama::{self, Ollama};
use crate::openai::{AZURE_API_VERSION, Access, Chat, Responses, known};
use crate::reranking::{Dialect as Ranks, RerankingProtocol};
use crate::scripted::Script;
use crate::vertex::VertexAi;
use crate::vertex::adc::{Adc, AdcError};
use crate::{Endpoint, Protocol, Secret};

/// What the machine that calls a model adds to its spec.
pub struct Surroundings<'a> {
    /// The value of a secret of the namespace.
    pub secret: &'a dyn Fn(&str) -> Option<Secret>,
    /// The value of a variable of the environment: for references, and for the proxy.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The tokens of a model with a login.
    pub login: Option<Arc<dyn LoginTokens>>,
    /// The credential of the job's caller, as the `Authorization` header has it.
    pub bearer: Option<&'a SecretText>,
    /// What answers for models of the provider `scripted`.
    pub script: Option<Arc<Script>>,
    /// What runs models of the provider `local`.
    pub local: Option<Arc<dyn LocalModels>>,
}

/// Why a model cannot be called. No value of a secret is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// A reference leads nowhere.
    #[error("{what} \"{name}\" is not set; the model refers to it in its {place}")]
    Reference { what: &'static str, name: String, place: &'static str },
    /// A text has more references, or is longer, than any model needs.
    #[error("the model's {place} cannot be read")]
    Template {
        place: &'static str,
        #[source]
        cause: TemplateError,
    },
    /// A member that the provider needs is absent.
    #[error("the provider {provider} needs {what}")]
    Missing { provider: &'static str, what: &'static str },
    /// The model is not for conversations, or its provider is not available here.
    #[error("the model cannot be called: {problem}")]
    Unsupported { problem: String },
    /// The application-default credentials cannot be used.
    #[error("the model's credentials are not valid")]
    Credentials(#[source] AdcError),
    /// The proxy is not one.
    #[error("the model's proxy is not valid")]
    Proxy(#[source] ProxyError),
}

/// A target for the model `name`.
pub fn target(name: &str, spec: &ModelSpec, surroundings: &Surroundings<'_>) -> Result<Target, ConnectError> {
    Ok(Target {
        name: name.to_owned(),
        model: spec.name.clone(),
        backend: Connect { spec, surroundings }.backend()?,
        purpose: spec.purpose,
        stream: spec.stream,
        timeout: seconds(spec.timeout_seconds),
        attempts: spec.retry.attempts,
        deadline: seconds(spec.retry.deadline_seconds),
        context_window: spec.context_window,
        output_tokens_max: spec.output_tokens_max,
        capabilities: Some(spec.capabilities.clone()),
        gate: None,
    })
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds))
}

struct Connect<'a> {
    spec: &'a ModelSpec,
    surroundings: &'a Surroundings<'a>,
}

impl Connect<'_> {
    fn backend(&self) -> Result<Backend, ConnectError> {
        if let (Provider::Scripted, Purpose::Chat, Some(script)) =
            (self.spec.provider, self.spec.purpose, &self.surroundings.script)
        {
            return Ok(Backend::Scripted(Arc::clone(script)));
        }
        if self.spec.provider == Provider::Local {
            return self.local().map(Backend::Local);
        }
        let (protocol, base_url) = match self.spec.purpose {
            Purpose::Chat => self.protocol()?,
            Purpose::Embedding => self.embedding()?,
            Purpose::Reranker => self.reranking()?,
        };
        let headers = self.spec.headers.iter().map(|(name, value)| Ok((name.clone(), self.fill(value, "headers")?)));
        let bearer = self.surroundings.bearer.filter(|_| self.spec.forwards());
        let bearer = bearer.map(|bearer| Ok(("authorization".to_owned(), Secret::from(bearer.expose()))));
        let endpoint = Endpoint { base_url, headers: headers.chain(bearer).collect::<Result<_, _>>()? };
        let proxy = self.parameter("proxy")?;
        let setting = proxy.as_ref().map(Secret::expose);
        // Providers without an address of their own in the spec are reached over HTTPS.
        let address = if endpoint.base_url.is_empty() { "https://provider" } else { &endpoint.base_url };
        let proxy = Proxy::choose(setting, self.surroundings.variable, address).map_err(ConnectError::Proxy)?;
        let patches = self.patch()?.into_iter().collect();
        let (login, plain) = (self.login()?, self.plain_http()?);
        let read_timeout = READ_TIMEOUT;
        Ok(Backend::Http(Box::new(Http { protocol, endpoint, patches, proxy, login, plain, read_timeout })))
    }

    fn local(&self) -> Result<Local, ConnectError> {
        let problem = || "only workers run models of the provider local".to_owned();
        let unsupported = || ConnectError::Unsupported { problem: problem() };
        let models = self.surroundings.local.as_ref().ok_or_else(unsupported)?;
        Ok(Local { models: Arc::clone(models), dimensions: self.spec.local_dimensions() })
    }

    fn login(&self) -> Result<Option<Arc<dyn LoginTokens>>, ConnectError> {
        match (&self.spec.login, &self.surroundings.login) {
            (None, _) => Ok(None),
            (Some(_), Some(tokens)) => Ok(Some(Arc::clone(tokens))),
            (Some(_), None) => {
                Err(ConnectError::Unsupported { problem: "its login works only in agents of the cluster".to_owned() })
            }
        }
    }

    /// Whether requests may go to other machines without encryption: only if the model says so.
    fn plain_http(&self) -> Result<bool, ConnectError> {
        match self.parameter("plain_http")?.as_ref().map(Secret::expose) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => {
                let problem = "the parameter plain_http is neither true nor false".to_owned();
                Err(ConnectError::Unsupported { problem })
            }
        }
    }

    /// The protocol and the address; an empty address is that of the protocol.
    fn protocol(&self) -> Result<(Arc<dyn Protocol>, String), ConnectError> {
        let own = || self.spec.base_url.clone().unwrap_or_default();
        let key = self.key()?;
        Ok(match self.spec.provider {
            Provider::Openai => self.chat(key)?,
            Provider::OpenaiResponses => {
                let base_url = self.spec.base_url.clone().unwrap_or_else(|| known::OPENAI.to_owned());
                (Arc::new(Responses { access: self.access(key)? }), base_url)
            }
            Provider::Azure => (Arc::new(Chat { access: self.azure(key)?, ..Chat::default() }), own()),
            Provider::Anthropic => (Arc::new(Anthropic { auth: key_or_none(key) }), own()),
            Provider::Gemini => (Arc::new(Gemini { auth: key_or_none(key) }), own()),
            Provider::Vertex => (Arc::new(self.vertex(key)?), own()),
            Provider::Bedrock => (Arc::new(self.bedrock(key)?), own()),
            Provider::Ollama => {
                let base_url = self.spec.base_url.clone().unwrap_or_else(|| ollama::LOCAL.to_owned());
                (Arc::new(Ollama { key }), base_url)
            }
            Provider::Cohere => (Arc::new(Cohere { auth: key_or_none(key) }), own()),
            Provider::Local => return Err(no_such_work(Provider::Local, "conversations", "all others")),
            Provider::Scripted => return Err(self.missing("a script: the agent ships none")),
        })
    }

    /// The protocol and the address of a model that turns texts into vectors.
    fn embedding(&self) -> Result<(Arc<dyn Protocol>, String), ConnectError> {
        let (own, key) = (self.spec.base_url.clone().unwrap_or_default(), self.key()?);
        let (dialect, access, base_url) = match self.spec.provider {
            Provider::Openai | Provider::OpenaiResponses => {
                let (server, base_url) = self.server()?;
                (Embeds::of_server(server), self.access(key)?, base_url)
            }
            Provider::Azure => (Embeds::Openai, self.azure(key)?, own),
            Provider::Cohere => (Embeds::Cohere, self.access(key)?, own),
            Provider::Gemini => (Embeds::Gemini, self.access(key)?, own),
            Provider::Ollama => {
                let base_url = self.spec.base_url.clone().unwrap_or_else(|| ollama::LOCAL.to_owned());
                (Embeds::Ollama, self.access(key)?, base_url)
            }
            other => return Err(no_such_work(other, "embeddings", "azure, cohere, gemini, local, ollama and openai")),
        };
        let dimensions = self.dimensions()?;
        Ok((Arc::new(EmbeddingProtocol { dialect, access, dimensions }), base_url))
    }

    /// The protocol and the address of a reranker.
    fn reranking(&self) -> Result<(Arc<dyn Protocol>, String), ConnectError> {
        let key = self.key()?;
        let (dialect, base_url) = match self.spec.provider {
            Provider::Openai => {
                let (server, base_url) = self.server()?;
                if base_url == known::OPENAI {
                    return Err(self.missing("a base_url, or the parameter server: OpenAI has no rerankers"));
                }
                (Ranks::of_server(server), base_url)
            }
            Provider::Cohere => (Ranks::Cohere, self.spec.base_url.clone().unwrap_or_default()),
            other => return Err(no_such_work(other, "rerankers", "cohere and openai")),
        };
        Ok((Arc::new(RerankingProtocol { dialect, access: self.access(key)? }), base_url))
    }

    fn dimensions(&self) -> Result<Option<u32>, ConnectError> {
        let Some(text) = self.parameter("dimensions")? else { return Ok(None) };
        let length = text.expose().parse().ok().filter(|length| (1..=DIMENSIONS_MAX).contains(&(*length as usize)));
        let problem = || format!("the parameter dimensions is no whole number from 1 to {DIMENSIONS_MAX}");
        length.map(Some).ok_or_else(|| ConnectError::Unsupported { problem: problem() })
    }

    /// OpenAI, a known server by the parameter `server`, or another one by its address.
    fn chat(&self, key: Option<Secret>) -> Result<(Arc<dyn Protocol>, String), ConnectError> {
        let (server, base_url) = self.server()?;
        let mut chat = match server {
            None if base_url == known::OPENAI => Chat::default(),
            server => Chat::compatible(server.map_or("", |server| server.name), None),
        };
        chat.access = self.access(key)?;
        Ok((Arc::new(chat), base_url))
    }

    fn azure(&self, key: Option<Secret>) -> Result<Access, ConnectError> {
        let key = key.ok_or_else(|| self.missing("a key"))?;
        let version = self.parameter("api_version")?;
        let api_version = version.map_or(AZURE_API_VERSION.to_owned(), |version| version.expose().to_owned());
        Ok(Access::Azure { key, api_version })
    }

    /// The server that speaks OpenAI's protocol, if it is a known one, and its address.
    fn server(&self) -> Result<(Option<&'static known::Server>, String), ConnectError> {
        let named = self.parameter("server")?;
        let named = named.as_ref().map(Secret::expose);
        let unknown = || ConnectError::Unsupported { problem: "no server of that name is known".to_owned() };
        let named = named.map(|name| known::find(name).ok_or_else(unknown)).transpose()?;
        let mut base_url = match (&self.spec.base_url, named) {
            (Some(base_url), _) => base_url.clone(),
            (None, Some(server)) => server.base_url.to_owned(),
            (None, None) => known::OPENAI.to_owned(),
        };
        if base_url.contains("{account}") {
            let account = self.parameter("account")?.ok_or_else(|| self.missing("the parameter account"))?;
            base_url = base_url.replace("{account}", &crate::percent::encode(account.expose(), ""));
        }
        let server = named.or_else(|| known::SERVERS.iter().find(|server| server.base_url == base_url));
        Ok((server, base_url))
    }

    fn access(&self, key: Option<Secret>) -> Result<Access, ConnectError> {
        let organization = self.parameter("organization")?.map(|name| name.expose().to_owned());
        Ok(key.map_or(Access::Open, |key| Access::Bearer { key, organization }))
    }

    fn vertex(&self, key: Option<Secret>) -> Result<VertexAi, ConnectError> {
        let project = self.parameter("project")?.ok_or_else(|| self.missing("the parameter project"))?;
        let location = self.parameter("location")?.map_or("global".to_owned(), |text| text.expose().to_owned());
        let project = project.expose().to_owned();
        let credentials = match self.parameter("credentials")? {
            Some(text) => Some(text),
            None if key.is_none() && self.spec.login.is_none() => return Err(self.missing("the parameter credentials")),
            None => None,
        };
        let (auth, quota_project) = match credentials {
            Some(text) => {
                let adc = Adc::parse(text.expose()).map_err(ConnectError::Credentials)?;
                let quota_project = adc.quota_project.clone();
                (Auth::Token(Arc::new(adc)), quota_project)
            }
            None => (key_or_none(key), None),
        };
        Ok(VertexAi { project, location, auth, quota_project })
    }

    fn bedrock(&self, key: Option<Secret>) -> Result<Bedrock, ConnectError> {
        let text = |name| Ok(self.parameter(name)?.map(|text| text.expose().to_owned()));
        let region = text("region")?.ok_or_else(|| self.missing("the parameter region"))?;
        let access = match (text("access_key_id")?, key) {
            (Some(access_key_id), key) => {
                let secret = self.parameter("secret_access_key")?.or(key);
                let secret_access_key = secret.ok_or_else(|| self.missing("the parameter secret_access_key"))?;
                let session_token = self.parameter("session_token")?;
                bedrock::Access::Signed { access_key_id, secret_access_key, session_token }
            }
            (None, Some(key)) => bedrock::Access::Bearer(key),
            (None, None) => return Err(self.missing("a key, or the parameters access_key_id and secret_access_key")),
        };
        Ok(Bedrock { access, region })
    }

    /// The patch, with the references of its headers resolved.
    fn patch(&self) -> Result<Option<atlas_model::Patch>, ConnectError> {
        let Some(mut patch) = self.spec.patch.clone() else { return Ok(None) };
        for value in patch.headers.values_mut().flatten() {
            *value = self.fill(value, "patch")?.expose().to_owned();
        }
        Ok(Some(patch))
    }

    fn key(&self) -> Result<Option<Secret>, ConnectError> {
        self.spec.key.as_ref().map(|key| self.fill(key, "key")).transpose()
    }

    fn parameter(&self, name: &str) -> Result<Option<Secret>, ConnectError> {
        self.spec.parameters.get(name).map(|value| self.fill(value, "parameters")).transpose()
    }

    /// A text with its references resolved. A text without references stays.
    fn fill(&self, text: &str, place: &'static str) -> Result<Secret, ConnectError> {
        let template = Template::parse(text).map_err(|cause| ConnectError::Template { place, cause })?;
        let filled = template.fill(|reference| self.resolve(reference, place))?;
        Ok(Secret::from(filled.expose()))
    }

    fn resolve(&self, reference: Reference<'_>, place: &'static str) -> Result<SecretText, ConnectError> {
        let (what, name, value) = match reference {
            Reference::Secret(name) => {
                ("the secret", name, (self.surroundings.secret)(name).map(|value| SecretText::new(value.expose())))
            }
            Reference::Variable(name) => {
                ("the variable", name, (self.surroundings.variable)(name).map(SecretText::new))
            }
        };
        value.ok_or_else(|| ConnectError::Reference { what, name: name.to_owned(), place })
    }

    fn missing(&self, what: &'static str) -> ConnectError {
        ConnectError::Missing { provider: self.spec.provider.as_str(), what }
    }
}

fn no_such_work(provider: Provider, what: &str, known: &str) -> ConnectError {
    let problem = format!("the provider {} has no {what} here; those that have are {known}", provider.as_str());
    ConnectError::Unsupported { problem }
}

fn key_or_none(key: Option<Secret>) -> Auth {
    key.map_or(Auth::None, Auth::Key)
}
