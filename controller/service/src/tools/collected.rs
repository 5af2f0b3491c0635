//! The tools with which a worker hands the documents of a base's sources over. Only jobs of the cluster's own agent, submitted by the cluster
//! itself, may call them: whoever else submits one has no right to change a base by it.

use atlas_api::types::DocumentDraft;
use atlas_bases::{CollectedBase, Intake, KeptRange};
use atlas_desk::on_behalf;
use atlas_types::{COLLECT, Door, Job, Principal};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Call, NoResult};
use crate::{Error, Service, probes};

/// Documents of a source.
#[derive(Deserialize)]
struct Put {
    base: String,
    from: String,
    documents: Vec<DocumentDraft>,
}

/// What a source has, in a range of names.
#[derive(Deserialize)]
struct Keep {
    base: String,
    from: String,
    after: Option<String>,
    until: Option<String>,
    seen: Vec<String>,
}

/// The end of the job.
#[derive(Deserialize)]
struct End {
    base: String,
    sources: Vec<String>,
    documents: u64,
    errors: Vec<String>,
}

/// Whether it is such a tool.
pub(super) fn is_one(tool: &str) -> bool {
    tool.starts_with(COLLECT)
}

impl Service {
    /// Carries out a call of a job.
    pub(super) async fn tool_collected(&self, call: &Call<'_>, job: &Job) -> Result<Value, NoResult> {
        let is_own = job.door == Door::Duty && job.principal == Principal::cluster() && probes::collector()?.runs(job);
        if !is_own {
            return Err(NoResult::Refused(format!("Unknown tool: {}", call.tool)));
        }
        let (cluster, arguments) = (on_behalf::cluster_in(job.namespace.clone()), &call.arguments);
        let bases = self.bases();
        match call.tool.strip_prefix(COLLECT) {
            Some("begin") => {
                bases.sources(&cluster, call.text("base")).await?;
                Ok(json!({}))
            }
            Some("put") => {
                let Put { base, from, documents } = read(arguments)?;
                let Intake { added, replaced, unchanged, refused } =
                    bases.take(&cluster, &base, &from, documents).await?;
                let refused: Vec<Value> =
                    refused.into_iter().map(|(source, reason)| json!({"source": source, "reason": reason})).collect();
                Ok(json!({"added": added, "replaced": replaced, "unchanged": unchanged, "refused": refused}))
            }
            Some("keep") => {
                let Keep { base, from, after, until, seen } = read(arguments)?;
                let range = KeptRange { after, until, seen: seen.into_iter().collect() };
                Ok(json!({"removed": bases.keep_seen(&cluster, &base, &from, &range).await?}))
            }
            Some("end") => {
                let End { base, sources, documents, errors } = read(arguments)?;
                let ended = CollectedBase { job: Some(job.id), sources, documents, errors, failed: false };
                Ok(json!({"removed": bases.end_collection(&cluster, &base, &ended).await?}))
            }
            _ => Err(NoResult::Refused(format!("Unknown tool: {}", call.tool))),
        }
    }
}

fn read<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, NoResult> {
    let read = serde_json::from_value(Value::Object(arguments.clone()));
    read.map_err(|error| NoResult::Error(Error::Malformed(error.to_string())))
}
