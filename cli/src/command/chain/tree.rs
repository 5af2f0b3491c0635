//! The steps of a run as a tree.

use atlas_api::types::Job;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::display::JobDisplay as _;
use crate::words;

/// ```text
/// chain-4f3a09c1d27be685  greet-and-sum  2 steps
///  ├ job-8c0e…  summarize 0.1.0  completed 1.8 s  $0.0006
///  └ job-1b77…  hello 0.1.0  completed 9 ms  mapped
/// ```
pub(super) async fn tree_of(client: &Client, run: &Value) -> String {
    let steps = run["step_jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines = vec![title(run)];
    for (index, step) in steps.iter().enumerate() {
        let branch = if index + 1 == steps.len() { "└" } else { "├" };
        lines.push(format!(" {branch} {}", line(step, job(client, step).await.as_ref())));
    }
    lines.extend(run["steps_left"].as_array().into_iter().flatten().map(left));
    lines.join("\n")
}

/// A step that does not run.
fn left(step: &Value) -> String {
    let why = step["error"].as_str().unwrap_or("skipped");
    format!("   {}  {why}", step["name"].as_str().unwrap_or_default())
}

/// The run, its chain, and the number of steps.
pub(super) fn title(run: &Value) -> String {
    let text = |member: &str| run[member].as_str().unwrap_or_default();
    let steps = words::count(run["total_steps"].as_u64().unwrap_or_default(), "step");
    format!("{}  {}  {steps}", text("id"), text("chain_name"))
}

/// The job of a step; none if it is not kept any more.
async fn job(client: &Client, step: &Value) -> Option<Job> {
    let id = step["job_id"].as_str()?;
    answers::read(&client.get(&["api", "jobs", id], &[("view", "full")]).await.ok()?).ok()
}

fn line(step: &Value, job: Option<&Job>) -> String {
    let text = |member: &str| step[member].as_str().unwrap_or_default();
    let agent = format!("{} {}", text("agent"), text("version"));
    let mut parts = vec![text("job_id").to_owned(), agent.trim_end().to_owned()];
    match job.filter(|job| job.is_terminal()) {
        Some(job) => {
            parts.push(format!("{} {}", text("status"), words::milliseconds(job.total_ms())));
            parts.push(job.cost());
        }
        None => parts.push(text("status").to_owned()),
    }
    if text("strategy") != "none" {
        parts.push(text("strategy").to_owned());
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_shows_how_it_got_its_input() {
        let step =
            json!({"job_id": "job-1", "agent": "a", "version": "1.0.0", "status": "running", "strategy": "mapped"});
        assert_eq!(line(&step, None), "job-1  a 1.0.0  running  mapped");
        let first = json!({"job_id": "job-1", "agent": "a", "version": null, "status": "failed", "strategy": "none"});
        assert_eq!(line(&first, None), "job-1  a  failed");
        assert_eq!(left(&json!({"step": 2, "name": "c", "error": null})), "   c  skipped");
        assert_eq!(left(&json!({"step": 2, "name": "c", "error": "no"})), "   c  no");
        let run = json!({"id": "chain-1", "chain_name": "c", "total_steps": 1});
        assert_eq!(title(&run), "chain-1  c  1 step");
    }
}
