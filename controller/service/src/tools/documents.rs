//! Document bases for agents whose contracts name them ([ADR 85](../../../../docs/adr/0085-document-bases.md)).

use atlas_api::types::DocumentQuery;
use atlas_registry::KnownContract;
use serde_json::{Map, Value, json};

use super::{Call, NoResult};
use crate::{Consistency, Error, Service};

const SEARCH: &str = "atlas.documents.search";

/// Whether it is a tool for document bases.
pub(super) fn is_one(tool: &str) -> bool {
    tool.starts_with("atlas.documents.")
}

impl Service {
    /// Carries out a call of a job.
    pub(super) async fn tool_documents(&self, call: &Call<'_>, contract: &KnownContract) -> Result<Value, NoResult> {
        if call.tool != SEARCH {
            return Err(NoResult::Refused(format!("Unknown tool: {}", call.tool)));
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
        let found = self.bases().search(&call.caller, base, query, Consistency::Linearizable).await?;
        // An agent would take what it gets for all there is.
        if let Some(lost) = found.unreadable.first() {
            return Err(NoResult::Refused(format!(
                "the document base \"{base}\" cannot be searched as a whole: {} documents of segment {} cannot be read: {}",
                lost.documents, lost.segment, lost.reason
            )));
        }
        Ok(json!({"hits": found.hits}))
    }
}

/// Reads the arguments. Null is as good as nothing, because programs send what they have.
fn read(arguments: &Map<String, Value>) -> Result<DocumentQuery, NoResult> {
    let is_meant = |(name, value): &(&String, &Value)| name.as_str() != "base" && !value.is_null();
    let members = arguments.iter().filter(is_meant).map(|(name, value)| (name.clone(), value.clone())).collect();
    let read = serde_json::from_value(Value::Object(members));
    read.map_err(|error| NoResult::Error(Error::Malformed(error.to_string())))
}
