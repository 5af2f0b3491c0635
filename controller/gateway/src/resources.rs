//! Resources: outputs of jobs that are too large for a result.

use atlas_service::{Caller, Consistency, Service, View};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, ResourceContents, ResourceTemplate};
use serde_json::Value;

use crate::view::error_text;

/// The template of outputs.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("atlas://jobs/{job_id}/output", "job output")
        .with_description("The whole output of a job, as JSON.")
        .with_mime_type("application/json")
}

/// Reads a resource.
pub(crate) async fn read(service: &Service, caller: &Caller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let unknown = |text: String| ErrorData::resource_not_found(text, None);
    let job = uri.strip_prefix("atlas://jobs/").and_then(|rest| rest.strip_suffix("/output"));
    let job = job.ok_or_else(|| unknown(format!("no resource {}", uri.chars().take(200).collect::<String>())))?;
    let id = service.job_id(caller, job).await.map_err(|error| unknown(error_text(&error)))?;
    let shown = service.job(caller, id, View::Plain, Consistency::Linearizable).await;
    let shown = shown.map_err(|error| unknown(error_text(&error)))?;
    let mut text = Vec::new();
    shown.write(&mut text, View::Plain);
    let output =
        serde_json::from_slice::<Value>(&text).ok().and_then(|mut job| job.get_mut("output_data").map(Value::take));
    match output.filter(|output| !output.is_null()) {
        Some(output) => {
            let contents = ResourceContents::text(output.to_string(), uri).with_mime_type("application/json");
            Ok(ReadResourceResult::new(vec![contents]))
        }
        None => Err(unknown(format!("{id} has no output; its status is {}", shown.job().status.as_str()))),
    }
}
