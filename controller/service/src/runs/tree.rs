//! A run of a chain with the jobs of its steps and all jobs below them.

use atlas_records::{JOBS_MAX, View, write_all};
use serde_json::Value;

use crate::{Caller, Consistency, Error, Service};

impl Service {
    /// The run in its full view as JSON text, with the trees of its steps' jobs in `children`.
    pub async fn chain_tree(&self, caller: &Caller, id: &str, consistency: Consistency) -> Result<Vec<u8>, Error> {
        let run = self.find_run(caller, id, consistency).await?;
        let shown = self.show_run(&run, View::Full).await?;
        let state = self.state(consistency).await?;
        let (mut children, mut left) = (Vec::with_capacity(run.steps.len()), JOBS_MAX);
        for step in &run.steps {
            if left == 0 {
                break;
            }
            // A job that is not kept any more is named in `step_jobs`.
            if let Ok(tree) = self.shared.records.tree_in(caller, &state, step.job, &mut left).await {
                children.push(tree);
            }
        }
        Ok(with_children(&shown, |out| write_all(&children, out)))
    }
}

/// An object with the member `children`.
fn with_children(object: &Value, children: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = object.to_string().into_bytes();
    // The closing brace is removed to add a member.
    out.pop();
    out.extend_from_slice(b",\"children\":[");
    children(&mut out);
    out.extend_from_slice(b"]}");
    out
}
