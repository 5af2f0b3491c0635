//! The commands, one file each. The dispatcher is a table; each file checks everything and then changes anything.

mod advance_run;
mod answer_question;
mod ask_question;
mod cancel_job;
mod cancel_run;
mod carry_job;
mod complete_job;
mod configure_cluster;
mod consult_orchestrator;
mod cordon;
mod create_join_token;
mod delete_agent;
mod delete_object;
mod deliver_message;
mod deprecate_agent;
mod drain_node;
mod end_carried;
mod erase_payloads;
mod expire_question;
mod fail_job;
mod fail_pending;
mod fire_trigger;
mod fold_steps;
mod fork_job;
mod forsake_child;
mod grant_lease;
mod join_member;
mod label_node;
mod lose_lease;
mod lose_node;
mod note_rival;
mod observe_objects;
mod park_job;
mod prune_jobs;
mod put_object;
mod record_steps;
mod register_agent;
mod register_node;
mod remove_node;
mod reserve_budget;
mod resolve_job;
mod resume_agent;
mod resume_node;
mod retire_agent;
mod retry_job;
mod revoke_join_token;
mod route_job;
mod sink_ack;
mod spawn;
mod start_job;
mod start_run;
mod store_log;
mod submit_job;
mod wake_job;
mod warm_changed;
mod wave;

pub use submit_job::submitted;

use atlas_types::{Command, INLINE_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX, Outcome, Payload, Rejection, level};

use crate::change::Change;
use crate::state::State;

/// Applies one command.
pub(crate) fn apply(command: &Command, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    match command {
        Command::RegisterAgent(command) => register_agent::apply(command, change),
        Command::RetireAgent(command) => retire_agent::apply(command, change),
        Command::DeleteAgent(command) => delete_agent::apply(command, change),
        Command::DeprecateAgent(command) => deprecate_agent::apply(command, change),
        Command::ResumeAgent(command) => resume_agent::apply(command, change),
        Command::ResumeNode(command) => resume_node::apply(command, change),
        Command::NoteRival(command) => note_rival::apply(command, change),
        Command::RegisterNode(command) => register_node::apply(command, change),
        Command::DrainNode(command) => drain_node::apply(command, change),
        Command::Cordon(command) => cordon::apply(command, change),
        Command::LabelNode(command) => label_node::apply(command, change),
        Command::RemoveNode(command) => remove_node::apply(command, change),
        Command::LoseNode(command) => lose_node::apply(command, change),
        Command::WarmChanged(command) => warm_changed::apply(command, change),
        Command::SubmitJob(command) => submit_job::apply(command, change),
        Command::GrantLease(command) => grant_lease::apply(command, change),
        Command::StartJob(command) => start_job::apply(command, change),
        Command::CompleteJob(command) => complete_job::apply(command, change),
        Command::FailJob(command) => fail_job::apply(command, change),
        Command::FailPending(command) => fail_pending::apply(command, change),
        Command::CancelJob(command) => cancel_job::apply(command, change),
        Command::LoseLease(command) => lose_lease::apply(command, change),
        Command::WakeJob(command) => wake_job::apply(command, change),
        Command::RetryJob(command) => retry_job::apply(command, change),
        Command::SinkAck(command) => sink_ack::apply(command, change),
        Command::PruneJobs(command) => prune_jobs::apply(command, change),
        Command::ConfigureCluster(command) => configure_cluster::apply(command, change),
        Command::ResolveJob(command) => resolve_job::apply(command, change),
        // Told to the members, which compare it; the state does not keep it.
        Command::ReportDigest(_) => Ok(Outcome::Done),
        Command::CreateJoinToken(command) => create_join_token::apply(command, change),
        Command::RevokeJoinToken(command) => revoke_join_token::apply(command, change),
        Command::JoinMember(command) => join_member::apply(command, change),
        Command::ForsakeChild(command) => forsake_child::apply(command, change),
        Command::RecordSteps(command) => record_steps::apply(command, change),
        Command::ReserveBudget(command) => reserve_budget::apply(command, change),
        Command::FoldSteps(command) => fold_steps::apply(command, change),
        Command::StoreLog(command) => store_log::apply(command, change),
        Command::ParkJob(command) => park_job::apply(command, change),
        Command::DeliverMessage(command) => deliver_message::apply(command, change),
        Command::AskQuestion(command) => ask_question::apply(command, change),
        Command::AnswerQuestion(command) => answer_question::apply(command, change),
        Command::ExpireQuestion(command) => expire_question::apply(command, change),
        Command::CarryJob(command) => carry_job::apply(command, change),
        Command::EndCarried(command) => end_carried::apply(command, change),
        Command::StartRun(command) => start_run::apply(command, change),
        Command::AdvanceRun(command) => advance_run::apply(command, change),
        Command::CancelRun(command) => cancel_run::apply(command, change),
        Command::RouteJob(command) => route_job::apply(command, change),
        Command::ConsultOrchestrator(command) => consult_orchestrator::apply(command, change),
        Command::PutObject(command) => put_object::apply(command, change),
        Command::DeleteObject(command) => delete_object::apply(command, change),
        Command::ObserveObjects(command) => observe_objects::apply(command, change),
        Command::FireTrigger(command) => fire_trigger::apply(command, change),
        Command::ForkJob(command) => fork_job::apply(command, change),
        Command::ErasePayloads(command) => erase_payloads::apply(command, change),
    }
}

/// Refuses inline bytes beyond what the formats allow.
fn check_size(bytes: u64) -> Result<(), Rejection> {
    if bytes > INLINE_BYTES_MAX as u64 { Err(Rejection::PayloadTooLarge { bytes }) } else { Ok(()) }
}

/// Refuses a report whose output, stream or metadata is beyond what the formats allow.
fn check_report(
    output: Option<&Payload>,
    stream: Option<&Payload>,
    metadata: Option<&std::sync::Arc<[u8]>>,
) -> Result<(), Rejection> {
    check_size(output.map_or(0, Payload::inline_bytes))?;
    check_size(stream.map_or(0, Payload::inline_bytes))?;
    check_size(metadata.map_or(0, |metadata| metadata.len() as u64))
}

/// Refuses labels beyond their bounds, which doors check as well.
fn check_labels<'a>(state: &State, labels: impl Iterator<Item = (&'a String, &'a String)>) -> Result<(), Rejection> {
    if state.level < level::COUNTED_TEXTS {
        return Ok(());
    }
    for (before, (key, value)) in labels.enumerate() {
        check_limit("labels", before as u64, LABELS_MAX as u64)?;
        let bytes = key.len().max(value.len());
        if bytes > LABEL_BYTES_MAX {
            return Err(Rejection::PayloadTooLarge { bytes: bytes as u64 });
        }
    }
    Ok(())
}

/// Refuses `more` payload bytes than the state has room for, and `texts` beside them.
fn check_bytes(state: &State, more: u64, texts: u64) -> Result<(), Rejection> {
    let limit = state.config.inline_bytes_max;
    let texts = if state.level >= level::COUNTED_TEXTS { texts } else { 0 };
    if state.inline_bytes() + more + texts > limit {
        return Err(Rejection::LimitReached { what: "payload bytes", limit });
    }
    Ok(())
}

/// Refuses to go beyond a bound that the object of a namespace sets.
fn check_namespace(what: &'static str, used: u64, limit: Option<u64>) -> Result<(), Rejection> {
    match limit {
        Some(limit) if used >= limit => Err(Rejection::NamespaceLimit { what, limit }),
        _ => Ok(()),
    }
}

/// Refuses to go beyond a bound of the state.
fn check_limit(what: &'static str, used: u64, limit: u64) -> Result<(), Rejection> {
    debug_assert!(Rejection::LIMITS.contains(&what), "the formats do not know {what:?}");
    if used >= limit { Err(Rejection::LimitReached { what, limit }) } else { Ok(()) }
}
