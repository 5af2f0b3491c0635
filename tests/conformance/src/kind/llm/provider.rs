//! Agents of the provider `llm`, run by a real cluster whose worker calls a local server that answers what the row says.

use std::fs;
use std::path::Path;

use atlas_llm_server::{Reply, Server};
use serde_json::{Map, Value, json};

use crate::agents;
use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text, unknown};
use crate::setup::{Setup, only};

/// The name of the agent, if the row gives none.
const NAME: &str = "llm-agent";

pub(in crate::kind) fn judge(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["agent", "input", "responses", "memory", "knowledge"])?;
    if let Some(member) = unknown(&row.expect, &["output", "error", "status", "requests", "execution_metadata"]) {
        return Err(Stop::skip(format!("llm agents of which \"{member}\" is expected")));
    }
    let contract = contract(&row.input["agent"])?;
    let replies: Vec<Reply> = items(&row.input, "responses").map(reply).collect::<Result<_, _>>()?;
    let last = replies.last().cloned().ok_or_else(|| Stop::skip("llm agents without responses"))?;
    // A model that has said everything repeats itself.
    let answer = move |_: &Value, number: usize| replies.get(number).unwrap_or(&last).clone();
    let server = Server::start(answer).map_err(|error| Stop::system("start a server", error))?;
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let agents = folder.path().join("agents");
    write(&agents, &contract)?;
    let setup = Setup::new()
        .with_worker_variable("ANTHROPIC_API_KEY", "key-of-the-row")
        .with_worker_variable("ANTHROPIC_BASE_URL", &server.base_url());
    let cluster = Cluster::start(bench.programs()?, &setup, folder.path())?;
    cluster.register(&agents::found_in(&agents)?)?;
    fill(&cluster, &row.input)?;
    let submission = json!({"agent": contract["agent"]["name"], "input": row.input["input"]});
    let id = cluster.http.submit(&submission)?;
    let job = cluster.http.wait(&id)?;
    compare(&row.expect, &answered(&row.expect, &job, &server), &Captures::new())
}

/// Writes what the row says is in the shared memory and in the knowledge.
pub(in crate::kind) fn fill(cluster: &Cluster, input: &Value) -> Judged {
    if let Some(text) = input.get("memory").and_then(Value::as_str) {
        let body = json!({"content": text, "action": "write"});
        cluster
            .http
            .send("POST", "/api/memory", &[], Some(body.to_string().into_bytes()))?
            .success("write the memory")?;
    }
    for entry in items(input, "knowledge") {
        cluster
            .http
            .send("POST", "/api/knowledge/entries", &[], Some(entry.to_string().into_bytes()))?
            .success("store an entry")?;
    }
    Ok(())
}

/// The contract with the members that a row may leave out.
fn contract(agent: &Value) -> Result<Value, Stop> {
    let mut members = Map::from_iter([("name".to_owned(), json!(NAME)), ("version".to_owned(), json!("1.0.0"))]);
    members.extend(agent.as_object().cloned().unwrap_or_default());
    let contract = json!({"agent": members});
    let parsed = atlas_contract::parse(contract.to_string().as_bytes())
        .map_err(|error| Stop::fail(format!("the agent of the row is refused: {error}")))?;
    let requires = &parsed.requires;
    if !requires.skills.is_empty() || requires.platform_tools {
        return Err(Stop::skip("skills of llm agents"));
    }
    Ok(contract)
}

fn reply(response: &Value) -> Result<Reply, Stop> {
    if let Some(member) = unknown(response, &["content", "usage", "error", "status"]) {
        return Err(Stop::skip(format!("responses with \"{member}\"")));
    }
    if response.get("error").is_some() {
        // Without a status, one that is not tried again.
        let status = response["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(400);
        return Ok(Reply::Error { status, text: text(response, "error").to_owned() });
    }
    let tokens = |place: usize| response["usage"][place].as_u64().unwrap_or(0);
    Ok(Reply::Message { content: items(response, "content").cloned().collect(), tokens: [tokens(0), tokens(1)] })
}

fn write(agents: &Path, contract: &Value) -> Judged {
    let folder = agents.join(NAME);
    let failed = |error: std::io::Error| Stop::system("write the agent of the row", error);
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::write(folder.join("agent.yaml"), contract.to_string()).map_err(failed)
}

/// The members that the row expects.
fn answered(expected: &Value, job: &Value, server: &Server) -> Value {
    let measured = ["input_tokens", "output_tokens", "model"].into_iter().filter_map(|name| {
        let value = job["metadata"].get(format!("_trace_{name}"))?;
        Some((name.to_owned(), value.clone()))
    });
    let all = json!({
        "output": job["output_data"],
        "error": job["error"],
        "status": job["status"],
        "requests": server.requests(),
        "execution_metadata": Value::Object(measured.collect()),
    });
    let members = expected.as_object().into_iter().flatten();
    Value::Object(members.map(|(name, _)| (name.clone(), all[name.as_str()].clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_messages_or_errors() {
        let message = reply(&json!({"content": [{"type": "text", "text": "x"}], "usage": [3, 4]}));
        let content = vec![json!({"type": "text", "text": "x"})];
        assert_eq!(message, Ok(Reply::Message { content, tokens: [3, 4] }));
        let error = reply(&json!({"error": "boom"}));
        assert_eq!(error, Ok(Reply::Error { status: 400, text: "boom".to_owned() }));
        assert_eq!(reply(&json!({"delay": 1})), Err(Stop::skip("responses with \"delay\"")));
    }

    #[test]
    fn agents_get_a_name_and_missing_features_are_not_covered() {
        let plain = contract(&json!({"provider": "llm"})).expect("covered");
        assert_eq!(plain["agent"]["name"], NAME);
        let memory = contract(&json!({"provider": "llm", "requires": {"memory": true}}));
        assert!(memory.is_ok(), "{memory:?}");
        let skills = contract(&json!({"provider": "llm", "requires": {"skills": ["words"]}}));
        assert_eq!(skills, Err(Stop::skip("skills of llm agents")));
    }
}
