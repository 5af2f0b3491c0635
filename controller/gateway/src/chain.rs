//! The tool `chain_run`: starts a run of a stored chain, or goes on waiting for one.

use atlas_service::{ChainSource, ChainStart, View};
use bytes::Bytes;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Map, Value, json};

use crate::arguments::{self, ChainRun};
use crate::call::{Call, Refused};
use crate::tools::ToolName;
use crate::view::{OUTPUT_BYTES_MAX, done, error_text};

impl Call<'_> {
    pub(crate) async fn run_chain(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let ChainRun { chain, input, id, wait_seconds } = arguments::read(arguments)?;
        let wait = self.server.options.wait(wait_seconds)?;
        let service = &self.server.service;
        let (id, is_new) = match (chain, id) {
            (None, Some(id)) => (id, false),
            (Some(chain), None) => {
                let input =
                    input.map_or_else(|| Bytes::from_static(b"{}"), |input| Bytes::from(input.get().to_owned()));
                let start = ChainStart::new(ChainSource::Named(chain), input);
                let run = service.start_chain(&self.caller, start).await.map_err(|error| error_text(&error))?;
                (run.shown(), true)
            }
            _ => return Err("give 'chain' to start a run, or 'id' to wait for one".to_owned()),
        };
        let waited = tokio::select! {
            waited = service.wait_chain_run(&self.caller, &id, View::Plain, wait) => waited,
            () = self.context.ct.cancelled(), if is_new => {
                let cancelled = service.cancel_chain_run(&self.caller, &id).await;
                cancelled.map_err(|error| error_text(&error))?;
                return Err(format!("the call was cancelled, and with it {id}"));
            }
        };
        match waited {
            Ok(run) => Ok(shown(&run)),
            Err(error) => Err(self.refusal(ToolName::ChainRun, &error).await),
        }
    }
}

/// The run as it is shown to models: no more than they need.
fn shown(run: &Value) -> CallToolResult {
    let mut members: Map<String, Value> = ["id", "chain_name", "status", "current_step", "total_steps"]
        .iter()
        .map(|member| ((*member).to_owned(), run[*member].clone()))
        .collect();
    if let Some(result) = run["result"].as_object() {
        let bytes = result["output"].to_string().len();
        let output = match bytes <= OUTPUT_BYTES_MAX {
            true => ("output", result["output"].clone()),
            false => ("output_bytes", json!(bytes)),
        };
        members.insert(output.0.to_owned(), output.1);
        if result["success"] != true {
            members.insert("error".to_owned(), result["error"].clone());
        }
    }
    let failed = members.contains_key("error");
    let mut result = done(members);
    result.is_error = failed.then_some(true);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_shows_its_output_or_why_it_failed() {
        let run = |result: Value| json!({"id": "chain-1", "chain_name": "c", "status": "s", "current_step": 1, "total_steps": 2, "input_data": {}, "result": result});
        let told = |result: Value| {
            let shown = shown(&run(result));
            let mut members = shown.structured_content.expect("an object");
            let members = members.as_object_mut().expect("an object");
            for common in ["id", "chain_name", "status", "current_step", "total_steps"] {
                assert!(members.remove(common).is_some(), "{common}");
            }
            (json!(members).to_string(), shown.is_error)
        };
        assert_eq!(told(Value::Null), ("{}".to_owned(), None));
        let done = json!({"success": true, "output": {"a": 1}, "error": ""});
        assert_eq!(told(done), (r#"{"output":{"a":1}}"#.to_owned(), None));
        let failed = json!({"success": false, "output": {}, "error": "boom"});
        assert_eq!(told(failed), (r#"{"error":"boom","output":{}}"#.to_owned(), Some(true)));
        let large = json!({"success": true, "output": {"a": "x".repeat(OUTPUT_BYTES_MAX)}, "error": ""});
        assert_eq!(told(large), (r#"{"output_bytes":65544}"#.to_owned(), None));
    }
}
