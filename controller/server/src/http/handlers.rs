//! The function behind each operation.

use atlas_api::{
    Access, Agents, Audit, Chains, Cluster, Conversations, Events, Figures, Jobs, Names, Nodes, Objects, OperationId,
    Orchestrators, Policies, Questions, Skills, Triggers, catalogue,
};
use atlas_service::{Caller, Error, NodeAction};
use http::StatusCode;

use super::answer::{self, Answer};
use super::request::Request;
use super::{
    HttpDoor, access, agents, audit, batch, chains, cluster, cluster_events, conversations, events, jobs, logins, logs,
    mcp, messages, nodes, objects, orchestrator, policies, questions, secrets, skills, snapshot, traces, triggers,
};

/// Calls the function behind an operation that the caller may use. What is larger than others is on the heap.
pub(super) async fn call(
    door: &HttpDoor,
    operation: OperationId,
    caller: &Caller,
    request: &mut Request,
    names: &Names,
) -> Answer {
    let Names { first, second } = names;
    match operation {
        OperationId::Jobs(operation) => match operation {
            Jobs::SubmitJob => jobs::submit(door, caller, request).await,
            Jobs::ListJobs => jobs::list(door, caller, request).await,
            Jobs::SubmitJobs => batch::submit(door, caller, request).await,
            Jobs::GetJob => jobs::get(door, caller, request, first).await,
            Jobs::DeleteJob => jobs::delete(door, caller, first).await,
            Jobs::WaitForJob => jobs::wait(door, caller, request, first).await,
            Jobs::CancelJob => jobs::cancel(door, caller, first).await,
            Jobs::ResolveJob => jobs::resolve(door, caller, request, first).await,
            Jobs::SendMessage => messages::send(door, caller, request, first).await,
            Jobs::RetryJob => jobs::retry(door, caller, request, first).await,
            Jobs::EraseJob => jobs::erase(door, caller, first).await,
            Jobs::EraseJobs => jobs::erase_all(door, caller).await,
            Jobs::ForkJob => jobs::fork(door, caller, request, first).await,
            Jobs::GetJobTree => jobs::tree(door, caller, request, first).await,
            Jobs::GetJobPolicies => policies::of_job(door, caller, first).await,
            Jobs::ExplainJob => jobs::explain(door, caller, request, first).await,
            Jobs::ListSteps => jobs::steps(door, caller, request, first).await,
            Jobs::GetReceipt => jobs::receipt(door, caller, request, first).await,
        },
        OperationId::Questions(operation) => match operation {
            Questions::FollowJob => events::job(door, caller, request, first).await,
            Questions::JobLogs => logs::get(door, caller, request, first).await,
            Questions::ListTraces => traces::list(door, caller, request).await,
            Questions::GetTrace => traces::get(door, caller, request, first).await,
            Questions::ListQuestions => questions::list(door, caller, request).await,
            Questions::GetQuestion => questions::get(door, caller, request, first).await,
            Questions::AnswerQuestion => questions::answer(door, caller, request, first).await,
        },
        OperationId::Events(operation) => match operation {
            Events::FollowEvents => cluster_events::all(door, caller, request).await,
            Events::FollowAll => events::all(door, caller, request).await,
            Events::FollowAllAtWs => events::all(door, caller, request).await,
        },
        OperationId::Chains(operation) => match operation {
            Chains::StartChain => Box::pin(chains::start(door, caller, request)).await,
            Chains::ListChainRuns => Box::pin(chains::list(door, caller, request)).await,
            Chains::CheckChain => Box::pin(chains::check(door, caller, request)).await,
            Chains::GetChainRun => Box::pin(chains::get(door, caller, request, first)).await,
            Chains::CancelChainRun => chains::cancel(door, caller, first).await,
            Chains::GetChainTree => Box::pin(chains::tree(door, caller, request, first)).await,
        },
        OperationId::Agents(operation) => match operation {
            Agents::ListAgents => agents::list(door, caller, request).await,
            Agents::RegisterAgent => agents::register(door, caller, request).await,
            Agents::GetAgent => agents::get(door, caller, request, first).await,
            Agents::ListVersions => agents::versions(door, caller, request, first).await,
            Agents::GetVersion => agents::version(door, caller, request, first, second).await,
            Agents::RetireAgent => agents::retire(door, caller, first, second).await,
            Agents::DeleteAgent => agents::delete(door, caller, first, second).await,
            Agents::ResumeAgent => agents::resume(door, caller, first, second).await,
            Agents::RollBackAgent => agents::roll_back(door, caller, request, first, second).await,
            Agents::DeprecateAgent => agents::deprecate(door, caller, request, first, second).await,
        },
        OperationId::Nodes(operation) => match operation {
            Nodes::ListNodes => nodes::list(door, caller, request).await,
            Nodes::GetNode => nodes::get(door, caller, request, first).await,
            Nodes::RemoveNode => nodes::remove(door, caller, first).await,
            Nodes::DrainNode => nodes::act(door, caller, request, first, NodeAction::Drain { deadline: None }).await,
            Nodes::CordonNode => nodes::act(door, caller, request, first, NodeAction::Cordon).await,
            Nodes::UncordonNode => nodes::act(door, caller, request, first, NodeAction::Uncordon).await,
            Nodes::ResumeNode => nodes::act(door, caller, request, first, NodeAction::Resume).await,
            Nodes::LabelNode => nodes::label(door, caller, request, first).await,
        },
        OperationId::Objects(operation) => match operation {
            Objects::ListObjectKinds => objects::kinds(door, caller),
            Objects::ListObjects => Box::pin(objects::list(door, caller, request, first)).await,
            Objects::GetObject => Box::pin(objects::get(door, caller, request, first, second)).await,
            Objects::PutObject => Box::pin(objects::put(door, caller, request, first, second)).await,
            Objects::DeleteObject => Box::pin(objects::delete(door, caller, request, first, second)).await,
            Objects::LogInToModel => Box::pin(logins::log_in(door, caller, request, first)).await,
            Objects::LogOutOfModel => logins::log_out(door, caller, first).await,
            Objects::LogInToMcpServer => Box::pin(logins::log_in_to_server(door, caller, request, first)).await,
            Objects::LogOutOfMcpServer => logins::log_out_of_server(door, caller, first).await,
            Objects::SetSecret => secrets::set(door, caller, request, first).await,
        },
        OperationId::Orchestrators(operation) => match operation {
            Orchestrators::Orchestrator => orchestrator::get(door, caller, request).await,
            Orchestrators::SelectOrchestrator => orchestrator::select(door, caller, request).await,
        },
        OperationId::Policies(operation) => match operation {
            Policies::ExplainPolicies => policies::explain(door, caller, request).await,
        },
        OperationId::Triggers(operation) => match operation {
            Triggers::CreateTrigger => Box::pin(triggers::create(door, caller, request)).await,
            Triggers::ListTriggers => Box::pin(triggers::list(door, caller, request)).await,
            Triggers::GetTrigger => Box::pin(triggers::get(door, caller, request, first)).await,
            Triggers::ChangeTrigger => Box::pin(triggers::change(door, caller, request, first)).await,
            Triggers::DeleteTrigger => triggers::delete(door, caller, first).await,
            Triggers::FireTrigger => triggers::fire(door, caller, request, first).await,
            Triggers::TriggerDeliveries => Box::pin(triggers::deliveries(door, caller, request, first)).await,
            Triggers::NextFirings => Box::pin(triggers::next(door, caller, request, first)).await,
            Triggers::TestTrigger => Box::pin(triggers::test(door, caller, request, first)).await,
            Triggers::BackfillTrigger => Box::pin(triggers::backfill(door, caller, request, first)).await,
            Triggers::CallHook => Box::pin(triggers::call(door, caller, request, first)).await,
        },
        OperationId::Figures(operation) => match operation {
            Figures::Health => nodes::health(door, caller, request).await,
            Figures::Ready => nodes::ready(door, request).await,
            Figures::Version => Ok(answer::body(StatusCode::OK, &door.about)),
            Figures::Figures => Ok(answer::json(StatusCode::OK, &door.service.figures(caller))),
            Figures::FiguresOfAgent => Ok(answer::json(StatusCode::OK, &door.service.figures_of(caller, first)?)),
            Figures::ErrorPage => {
                let page = catalogue::page(first).ok_or(Error::UnknownPath)?;
                Ok(answer::text_page(StatusCode::OK, page))
            }
            Figures::Metrics => Ok(answer::metrics(door.metrics())),
            Figures::OpenApi => Ok(answer::json(StatusCode::OK, atlas_api::document())),
        },
        OperationId::Skills(operation) => match operation {
            Skills::ListSkills => skills::list(door, caller, request).await,
            Skills::DeploySkill => skills::deploy(door, caller, request).await,
            Skills::GetSkill => skills::get(door, caller, request, first).await,
            Skills::TestSkill => skills::test(door, caller, request, first).await,
            Skills::RemoveSkill => Box::pin(objects::delete(door, caller, request, "skill", first)).await,
        },
        OperationId::Conversations(operation) => match operation {
            Conversations::ListConversations => conversations::list(door, caller, request).await,
            Conversations::GetConversation => conversations::get(door, caller, request, first).await,
            Conversations::DeleteConversation => conversations::delete(door, caller, first).await,
            Conversations::McpRegistry => mcp::registry(door, caller, request).await,
        },
        OperationId::Cluster(operation) => match operation {
            Cluster::Cluster => cluster::status(door),
            Cluster::ListMembers => cluster::members(door, request),
            Cluster::RemoveMember => cluster::remove(door, first).await,
            Cluster::CreateJoinToken => cluster::create_token(door, caller, request).await,
            Cluster::RevokeJoinToken => cluster::revoke_token(door, caller, request).await,
            Cluster::TransferLeader => cluster::transfer_leader(door, request).await,
            Cluster::Snapshot => snapshot::get(door).await,
            Cluster::SecurityPolicy => Err(Error::NotConfigured("No security policy configured").into()),
        },
        OperationId::Access(operation) => match operation {
            Access::McpResource => mcp::resource(door, request).await,
            Access::McpResourceOfAgent => mcp::resource(door, request).await,
            Access::Whoami => access::whoami(door, request).await,
            Access::CreateToken => access::create(door, caller, request).await,
        },
        OperationId::Audit(operation) => match operation {
            Audit::ReadAudit => audit::read(door, request).await,
        },
    }
}
