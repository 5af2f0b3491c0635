//! Document bases for agents whose contracts name them ([ADR 85](../../../../docs/adr/0085-document-bases.md)).

use atlas_api::types::DocumentQuery;
use atlas_desk::on_behalf;
use atlas_jobs::relations;
use atlas_registry::KnownContract;
use atlas_types::{Door, Principal};
use serde_json::{Map, Value, json};

use super::{Call, NoResult};
use crate::{Consistency, Error, Service, probes};

const SEARCH: &str = "atlas.documents.search";
/// The texts of chunks, for the agent of the cluster that calls models for bases.
const TEXTS: &str = "atlas.documents.texts";
/// Most bytes of the texts of one answer. As JSON they may be a few times as long.
const TEXTS_BYTES_MAX: usize = 160 << 10;

/// Whether it is a tool for document bases.
pub(super) fn is_one(tool: &str) -> bool {
    tool.starts_with("atlas.documents.")
}

impl Service {
    /// Carries out a call of a job.
    pub(super) async fn tool_documents(&self, call: &Call<'_>, contract: &KnownContract) -> Result<Value, NoResult> {
        match call.tool {
            SEARCH => {}
            TEXTS => return self.chunk_texts(call).await,
            tool => return Err(NoResult::Refused(format!("Unknown tool: {tool}"))),
        }
        let named = contract.value.pointer("/requires/documents").and_then(Value::as_array);
        let base = call.text("base");
        if !named.is_some_and(|named| named.iter().any(|name| name == base)) {
            let short: String = base.chars().take(128).collect();
            return Err(NoResult::Refused(format!(
                "Agent not allowed to search the document base '{short}' — name it in requires.documents"
            )));
        }
        let query = read(&call.arguments)?;
        let found = self.search_documents(&call.caller, base, query, Consistency::Linearizable).await;
        // The agent decides whether it asks again: the worker would ask for ever.
        let found = found.map_err(|error| match error {
            Error::ModelFailed { .. } => NoResult::Refused(error.to_string()),
            error => NoResult::Error(error),
        })?;
        // An agent would take what it gets for all there is.
        if let Some(lost) = found.unreadable.first() {
            return Err(NoResult::Refused(format!(
                "the document base \"{base}\" cannot be searched as a whole: documents of segment {} cannot be read: {}",
                lost.segment, lost.reason
            )));
        }
        Ok(json!({"hits": found.hits}))
    }

    /// The texts of chunks, as far as the job may read them. Only jobs get them that a controller has made: for a search, whose caller may search the
    /// base, or for the cluster itself. Whoever else submits such a job could ask a model about texts that it may not read.
    async fn chunk_texts(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let own = probes::documents()?;
        let job = call.from.as_ref().map(|from| from.job).filter(|job| own.runs(job));
        let caller = match job {
            Some(job) if job.door == Door::Duty && job.principal == Principal::cluster() => {
                on_behalf::cluster_in(job.namespace.clone())
            }
            Some(job) if relations::is_for_search(job) => call.caller.clone(),
            _ => return Err(NoResult::Refused(format!("Unknown tool: {TEXTS}"))),
        };
        let keys = call.arguments.get("chunks").and_then(Value::as_array).into_iter().flatten();
        let keys: Vec<String> = keys.filter_map(Value::as_str).map(str::to_owned).collect();
        let texts = self.bases().chunk_texts(&caller, call.text("base"), keys, TEXTS_BYTES_MAX).await?;
        Ok(json!({ "texts": texts }))
    }
}

/// Reads the arguments. Null is as good as nothing, because programs send what they have.
fn read(arguments: &Map<String, Value>) -> Result<DocumentQuery, NoResult> {
    let is_meant = |(name, value): &(&String, &Value)| name.as_str() != "base" && !value.is_null();
    let members = arguments.iter().filter(is_meant).map(|(name, value)| (name.clone(), value.clone())).collect();
    let read = serde_json::from_value(Value::Object(members));
    read.map_err(|error| NoResult::Error(Error::Malformed(error.to_string())))
}
