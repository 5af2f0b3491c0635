//! Knowledge at a server over MCP: its tools `knowledge_search`, `knowledge_get`, `knowledge_create`, `knowledge_update`, `knowledge_list`
//! and `knowledge_delete`, over streamable HTTP. Its session begins with the first call, and anew when the server does not know it any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use atlas_http::sse::Parser;
use atlas_knowledge::{Entry, Name};
use atlas_library::{
    EntryPage, EntryQuery, EntryRecord, EntryUpdate, KnowledgeStore, Reader, StoreAnswer, StoreError, StorePlace,
    Writer,
};
use futures::future::FutureExt as _;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};

use crate::json;
use crate::site::{ANSWER_BYTES_MAX, Answered, LIMIT_MAX, Sent, Site};

/// The version of the protocol that this client speaks.
const VERSION: &str = "2025-06-18";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Longest session id that is kept.
const SESSION_BYTES_MAX: usize = 1024;

/// Knowledge at a server over MCP.
pub(crate) struct McpKnowledge {
    site: Site,
    session: Mutex<Option<Session>>,
    next: AtomicU64,
}

/// What the server said when the session began.
#[derive(Clone)]
struct Session {
    /// None if the server keeps no sessions.
    id: Option<String>,
    version: String,
}

/// Why a call has no result.
enum NoResult {
    Failed(StoreError),
    /// The server does not know the session, so it did nothing.
    Session,
}

impl From<StoreError> for NoResult {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl McpKnowledge {
    pub(crate) fn new(site: Site) -> Self {
        Self { site, session: Mutex::new(None), next: AtomicU64::new(1) }
    }

    /// The result of a tool.
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, StoreError> {
        let parameters = json!({"name": tool, "arguments": arguments});
        let result = match self.within_session(&parameters).await {
            Ok(result) => result,
            Err(NoResult::Failed(error)) => return Err(error),
            Err(NoResult::Session) => {
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
                self.within_session(&parameters).await.map_err(|error| match error {
                    NoResult::Failed(error) => error,
                    NoResult::Session => self.site.failed("it does not know a session that has just begun"),
                })?
            }
        };
        if result.get("isError") == Some(&Value::Bool(true)) {
            return Err(self.site.failed(&format!("its tool {tool} failed")));
        }
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        match (text, result.get("structuredContent")) {
            (Some(text), _) if text.trim().is_empty() => Ok(Value::Null),
            (Some(text), _) => serde_json::from_str(text)
                .map_err(|_| self.site.failed(&format!("the result of its tool {tool} is not JSON"))),
            (None, Some(result)) => Ok(result.clone()),
            // A tool without a result found nothing.
            (None, None) => Ok(Value::Null),
        }
    }

    async fn within_session(&self, parameters: &Value) -> Result<Value, NoResult> {
        let known = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let session = match known {
            Some(session) => session,
            None => self.begin().await?,
        };
        self.ask("tools/call", parameters, Some(&session)).await.map(|(result, _)| result)
    }

    async fn begin(&self) -> Result<Session, NoResult> {
        let about = json!({"name": "atlas", "version": env!("CARGO_PKG_VERSION")});
        let parameters = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about});
        let (result, id) = self.ask("initialize", &parameters, None).await?;
        let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or(VERSION);
        let session = Session { id, version: version.chars().take(32).collect() };
        let sent = self.sent(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), Some(&session));
        let answer = self.site.send(sent).await?;
        self.site.whole(answer).await?;
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.clone());
        Ok(session)
    }

    /// The result of a request, and the session that the server names.
    async fn ask(
        &self,
        method: &str,
        parameters: &Value,
        session: Option<&Session>,
    ) -> Result<(Value, Option<String>), NoResult> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        let answer = self.site.send(self.sent(&request, session)).await?;
        if answer.status == StatusCode::NOT_FOUND && session.is_some_and(|session| session.id.is_some()) {
            return Err(NoResult::Session);
        }
        let named = answer.headers.get(SESSION).and_then(|id| id.to_str().ok());
        let named = named.filter(|id| id.len() <= SESSION_BYTES_MAX).map(str::to_owned);
        let mut message = self.message(answer, id).await?;
        if message.get("error").is_some_and(|error| !error.is_null()) {
            return Err(self.site.failed(&format!("it refused {method}")).into());
        }
        Ok((message.get_mut("result").map(Value::take).unwrap_or_default(), named))
    }

    fn sent(&self, message: &Value, session: Option<&Session>) -> Sent<'static> {
        let mut headers = vec![(ACCEPT, "application/json, text/event-stream".to_owned())];
        if let Some(Session { id, version }) = session {
            headers.push((PROTOCOL, version.clone()));
            headers.extend(id.clone().map(|id| (SESSION, id)));
        }
        Sent { method: Method::POST, path: &[], query: Vec::new(), headers, body: message.to_string().into_bytes() }
    }

    /// The message that answers a request: the body, or one of its events.
    async fn message(&self, answer: Answered, id: u64) -> Result<Value, StoreError> {
        let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !answer.status.is_success() || !kind.starts_with("text/event-stream") {
            let bytes = self.site.whole(answer).await?;
            return serde_json::from_slice(&bytes).map_err(|_| self.site.failed("its answer is not JSON"));
        }
        let mut body = answer.body;
        let (mut parser, mut events, mut read) = (Parser::new(ANSWER_BYTES_MAX), Vec::new(), 0);
        let too_large = || self.site.failed(&format!("its answer has more than {ANSWER_BYTES_MAX} bytes"));
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| self.site.failed("its answer broke off"))?.into_data() else { continue };
            read += data.len();
            if read > ANSWER_BYTES_MAX || parser.push(&data, &mut events).is_err() {
                return Err(too_large());
            }
            for event in events.drain(..) {
                let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
                if message.get("id") == Some(&json!(id)) {
                    return Ok(message);
                }
            }
        }
        Err(self.site.failed("its answer ended without a result"))
    }

    async fn list(&self, tool: &str, arguments: Value) -> Result<Vec<EntryRecord>, StoreError> {
        let result = self.call(tool, arguments).await?;
        if result.is_null() {
            return Ok(Vec::new());
        }
        let entries = json::entries(&result).ok_or_else(|| self.site.failed("its answer is no list of entries"))?;
        Ok(entries.into_iter().map(EntryRecord::from).collect())
    }
}

impl KnowledgeStore for McpKnowledge {
    fn place(&self) -> Option<&StorePlace> {
        Some(self.site.place())
    }

    fn search<'a>(&'a self, _: Reader<'a>, wanted: EntryQuery<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        let EntryQuery { text, domains, tags, limit } = wanted;
        let arguments = move |domain: Option<&str>| {
            let mut arguments =
                Map::from_iter([("query".to_owned(), json!(text)), ("limit".to_owned(), json!(limit.min(LIMIT_MAX)))]);
            arguments.extend(domain.map(|domain| ("domain".to_owned(), json!(domain))));
            arguments.extend((!tags.is_empty()).then(|| ("tags".to_owned(), json!(tags))));
            Value::Object(arguments)
        };
        let searched = async move {
            let Some(domains) = domains else { return self.list("knowledge_search", arguments(None)).await };
            let mut found = Vec::new();
            for domain in domains {
                found.extend(self.list("knowledge_search", arguments(Some(domain))).await?);
                if found.len() >= limit {
                    break;
                }
            }
            Ok(found)
        };
        self.site.within(searched).boxed()
    }

    fn list<'a>(&'a self, _: Reader<'a>, page: EntryPage<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        let EntryPage { domain, limit, offset } = page;
        let mut arguments = json!({"limit": limit, "offset": offset});
        if let Some(domain) = domain.filter(|domain| !domain.is_empty()) {
            arguments["domain"] = json!(domain);
        }
        self.site.within(Self::list(self, "knowledge_list", arguments)).boxed()
    }

    fn get<'a>(&'a self, _: Reader<'a>, id: &'a Name) -> StoreAnswer<'a, Option<EntryRecord>> {
        let got = async move {
            let result = self.call("knowledge_get", json!({"entry_id": id.as_str()})).await?;
            Ok(json::entry(&result).map(EntryRecord::from))
        };
        self.site.within(got).boxed()
    }

    fn create<'a>(&'a self, _: Writer<'a>, entry: &'a Entry, _: bool) -> StoreAnswer<'a, EntryRecord> {
        let created = async move {
            let result = self.call("knowledge_create", json!({"entry": json::written(entry)})).await?;
            Ok(json::entry(&result).unwrap_or_else(|| entry.clone()).into())
        };
        self.site.within(created).boxed()
    }

    fn update<'a>(&'a self, _: Writer<'a>, update: EntryUpdate<'a>) -> StoreAnswer<'a, EntryRecord> {
        let updated = async move {
            let mut arguments = json::change(update.change);
            arguments.insert("entry_id".to_owned(), json!(update.new.id.as_str()));
            let result = self.call("knowledge_update", Value::Object(arguments)).await?;
            Ok(json::entry(&result).unwrap_or_else(|| update.new.clone()).into())
        };
        self.site.within(updated).boxed()
    }

    fn delete<'a>(&'a self, _: Writer<'a>, id: &'a Name) -> StoreAnswer<'a, bool> {
        let deleted = async move {
            let result = self.call("knowledge_delete", json!({"entry_id": id.as_str()})).await?;
            let said = result.get("deleted").or_else(|| result.get("result")).unwrap_or(&result);
            Ok(said.as_bool().unwrap_or(!said.is_null()))
        };
        self.site.within(deleted).boxed()
    }
}
