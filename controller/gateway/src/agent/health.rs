//! `get_health`: whether an agent can answer, from what the cluster knows. No model is called.

use atlas_api::Agents;
use rmcp::model::CallToolResult;
use serde_json::{Map, json};

use super::{AgentServer, Asked};
use crate::view::{done, failed, iso_seconds, plain_error_text as error_text};

/// The status, the time and, unless all is well, the reasons.
pub(super) async fn answer(server: &AgentServer, asked: &Asked) -> CallToolResult {
    if let Err(error) = asked.caller.may(Agents::GetAgent.id()) {
        return failed(error_text(&error));
    }
    let health = match server.service.agent_health(&asked.caller, &asked.agent).await {
        Ok(health) => health,
        Err(error) => return failed(error_text(&error)),
    };
    let mut members = Map::new();
    members.insert("status".into(), json!(health.status));
    members.insert("timestamp".into(), json!(iso_seconds(health.at)));
    members.extend(health.message.map(|message| ("message".to_owned(), json!(message))));
    done(members)
}
