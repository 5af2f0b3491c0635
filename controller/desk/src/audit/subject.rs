//! What a command is recorded as.

use atlas_audit::{Decision, Record};
use atlas_types::{ApprovalAnswer, Command, Door, Request, RunDefinition, Verdict};

/// The verb of submissions.
const SUBMIT: &str = "submitJob";

/// The record of a request, if it is accepted; none for what the cluster does by itself and for what workers report.
pub(super) fn subject(request: &Request, at_ms: u64) -> Option<Record> {
    let Request { origin, command } = request;
    if matches!(origin.door, Door::Duty | Door::Peer) {
        return None;
    }
    let (verb, object) = named(command)?;
    let parent = match command {
        Command::SubmitJob(command) => command.spawner.map(|spawner| spawner.parent().to_string()),
        _ => None,
    };
    let request_id = origin.request_id.as_ref().filter(|id| !id.is_generated());
    Some(Record {
        at_ms,
        principal: origin.principal.to_string(),
        on_behalf_of: parent.unwrap_or_default(),
        namespace: origin.namespace.to_string(),
        door: origin.door.as_str().to_owned(),
        verb: verb.to_owned(),
        object,
        decision: Decision::Allow,
        code: String::new(),
        request_id: request_id.map(ToString::to_string).unwrap_or_default(),
        count: 0,
    })
}

/// The policies that ask before a job runs.
fn asked(verdict: &Verdict) -> String {
    let Verdict::Asked { asks, .. } = verdict else { return String::new() };
    asks.iter().map(|ask| format!(" asks policy/{}", ask.rule.policy)).collect()
}

/// What an approval says, without its reason.
fn decided(answer: &[u8]) -> &'static str {
    let text: String = serde_json::from_slice(answer).unwrap_or_default();
    match ApprovalAnswer::read(&text) {
        Some(ApprovalAnswer::Approved) => " approve",
        Some(ApprovalAnswer::Rejected(_)) => " reject",
        None => "",
    }
}

/// The verb of a command and what it is about. Verbs are those of the operations of the HTTP interface.
fn named(command: &Command) -> Option<(&'static str, String)> {
    let job = |id: atlas_types::JobId| format!("job/{id}");
    Some(match command {
        Command::SubmitJob(command) => {
            let asked = asked(&command.verdict);
            (SUBMIT, format!("job/{} agent/{}{asked}", command.id, command.agent))
        }
        Command::CancelJob(command) => ("cancelJob", job(command.job)),
        Command::RetryJob(command) => ("retryJob", job(command.job)),
        Command::ForkJob(command) => ("forkJob", job(command.job)),
        Command::ErasePayloads(command) => match command.job {
            Some(id) => ("eraseJob", job(id)),
            None => ("eraseJobs", "job".to_owned()),
        },
        Command::ResolveJob(command) => ("resolveJob", job(command.job)),
        Command::DeliverMessage(command) => ("sendMessage", job(command.job)),
        Command::AnswerQuestion(command) => {
            let decided = decided(&command.answer);
            ("answerQuestion", format!("question/{}{decided}", command.question))
        }
        Command::StartRun(command) => {
            let chain = match &command.definition {
                RunDefinition::Named(name) => format!(" chain/{name}"),
                _ => String::new(),
            };
            ("startChain", format!("run/{}{chain}", command.id))
        }
        Command::CancelRun(command) => ("cancelChainRun", format!("run/{}", command.run)),
        Command::FireTrigger(command) => ("fireTrigger", format!("trigger/{}", command.name)),
        Command::RegisterAgent(command) => ("registerAgent", format!("agent/{}@{}", command.name, command.version)),
        Command::RetireAgent(command) => ("retireAgent", format!("agent/{}@{}", command.name, command.version)),
        Command::DeprecateAgent(command) => ("deprecateAgent", format!("agent/{}@{}", command.name, command.version)),
        Command::ResumeAgent(command) => ("resumeAgent", format!("agent/{}@{}", command.name, command.version)),
        Command::ResumeNode(command) => ("resumeNode", format!("node/{}", command.node)),
        Command::DeleteAgent(command) => ("deleteAgent", format!("agent/{}@{}", command.name, command.version)),
        Command::PutObject(command) => ("putObject", format!("{}/{}", command.kind, command.name)),
        Command::DeleteObject(command) => ("deleteObject", format!("{}/{}", command.kind, command.name)),
        Command::DrainNode(command) => ("drainNode", format!("node/{}", command.node)),
        Command::Cordon(command) if command.cordoned => ("cordonNode", format!("node/{}", command.node)),
        Command::Cordon(command) => ("uncordonNode", format!("node/{}", command.node)),
        Command::LabelNode(command) => ("labelNode", format!("node/{}", command.node)),
        Command::RemoveNode(command) => ("removeNode", format!("node/{}", command.node)),
        Command::ConfigureCluster(_) => ("configureCluster", "cluster".to_owned()),
        Command::CreateJoinToken(command) => ("createJoinToken", format!("join-token/{}", command.hash)),
        Command::RevokeJoinToken(command) => ("revokeJoinToken", format!("join-token/{}", command.hash)),
        Command::RegisterNode(_)
        | Command::LoseNode(_)
        | Command::NoteRival(_)
        | Command::WarmChanged(_)
        | Command::GrantLease(_)
        | Command::StartJob(_)
        | Command::CompleteJob(_)
        | Command::FailJob(_)
        | Command::FailPending(_)
        | Command::LoseLease(_)
        | Command::WakeJob(_)
        | Command::SinkAck(_)
        | Command::PruneJobs(_)
        | Command::ReportDigest(_)
        | Command::JoinMember(_)
        | Command::ForsakeChild(_)
        | Command::RecordSteps(_)
        | Command::ReserveBudget(_)
        | Command::FoldSteps(_)
        | Command::StoreLog(_)
        | Command::ParkJob(_)
        | Command::ObserveObjects(_)
        | Command::CarryJob(_)
        | Command::EndCarried(_)
        | Command::AdvanceRun(_)
        | Command::AskQuestion(_)
        | Command::ExpireQuestion(_)
        | Command::RouteJob(_)
        | Command::ConsultOrchestrator(_) => return None,
    })
}
