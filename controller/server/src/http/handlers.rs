//! The function behind each operation.

use std::pin::Pin;

use atlas_api::{
    Access, Agents, Audit, Bases, Chains, Cluster, Conversations, Events, Figures, Jobs, Library, Names, Nodes,
    Objects, Openai, OperationId, Orchestrators, Policies, Questions, Skills, Triggers, catalogue,
};
use atlas_service::{Caller, Error, NodeAction};
use http::StatusCode;

use super::answer::{self, Answer};
use super::request::Request;
use super::{
    HttpDoor, access, agents, audit, bases, batch, chains, cluster, cluster_events, conversations, events, jobs,
    library, logins, logs, mcp, messages, nodes, objects, openai, orchestrator, policies, questions, secrets, skills,
    snapshot, traces, triggers,
};

/// Calls the function behind an operation that the caller may use. Each is boxed by itself, so that a request has room for its own
/// operation and not for the largest of all.
pub(super) fn call<'a>(
    door: &'a HttpDoor,
    operation: OperationId,
    caller: &'a Caller,
    request: &'a mut Request,
    names: &'a Names,
) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
    let Names { first, second } = names;
    match operation {
        OperationId::Jobs(operation) => match operation {
            Jobs::SubmitJob => Box::pin(jobs::submit(door, caller, request)),
            Jobs::ListJobs => Box::pin(jobs::list(door, caller, request)),
            Jobs::SubmitJobs => Box::pin(batch::submit(door, caller, request)),
            Jobs::GetJob => Box::pin(jobs::get(door, caller, request, first)),
            Jobs::DeleteJob => Box::pin(jobs::delete(door, caller, first)),
            Jobs::WaitForJob => Box::pin(jobs::wait(door, caller, request, first)),
            Jobs::CancelJob => Box::pin(jobs::cancel(door, caller, first)),
            Jobs::ResolveJob => Box::pin(jobs::resolve(door, caller, request, first)),
            Jobs::SendMessage => Box::pin(messages::send(door, caller, request, first)),
            Jobs::RetryJob => Box::pin(jobs::retry(door, caller, request, first)),
            Jobs::EraseJob => Box::pin(jobs::erase(door, caller, first)),
            Jobs::EraseJobs => Box::pin(jobs::erase_all(door, caller)),
            Jobs::ForkJob => Box::pin(jobs::fork(door, caller, request, first)),
            Jobs::GetJobTree => Box::pin(jobs::tree(door, caller, request, first)),
            Jobs::GetJobPolicies => Box::pin(policies::of_job(door, caller, first)),
            Jobs::ExplainJob => Box::pin(jobs::explain(door, caller, request, first)),
            Jobs::ListSteps => Box::pin(jobs::steps(door, caller, request, first)),
            Jobs::GetReceipt => Box::pin(jobs::receipt(door, caller, request, first)),
        },
        OperationId::Questions(operation) => match operation {
            Questions::FollowJob => Box::pin(events::job(door, caller, request, first)),
            Questions::JobLogs => Box::pin(logs::get(door, caller, request, first)),
            Questions::ListTraces => Box::pin(traces::list(door, caller, request)),
            Questions::GetTrace => Box::pin(traces::get(door, caller, request, first)),
            Questions::ListQuestions => Box::pin(questions::list(door, caller, request)),
            Questions::GetQuestion => Box::pin(questions::get(door, caller, request, first)),
            Questions::AnswerQuestion => Box::pin(questions::answer(door, caller, request, first)),
        },
        OperationId::Events(operation) => match operation {
            Events::FollowEvents => Box::pin(cluster_events::all(door, caller, request)),
            Events::FollowAll => Box::pin(events::all(door, caller, request)),
            Events::FollowAllAtWs => Box::pin(events::all(door, caller, request)),
        },
        OperationId::Chains(operation) => match operation {
            Chains::StartChain => Box::pin(chains::start(door, caller, request)),
            Chains::ListChainRuns => Box::pin(chains::list(door, caller, request)),
            Chains::CheckChain => Box::pin(chains::check(door, caller, request)),
            Chains::GetChainRun => Box::pin(chains::get(door, caller, request, first)),
            Chains::CancelChainRun => Box::pin(chains::cancel(door, caller, first)),
            Chains::GetChainTree => Box::pin(chains::tree(door, caller, request, first)),
        },
        OperationId::Agents(operation) => match operation {
            Agents::ListAgents => Box::pin(agents::list(door, caller, request)),
            Agents::RegisterAgent => Box::pin(agents::register(door, caller, request)),
            Agents::GetAgent => Box::pin(agents::get(door, caller, request, first)),
            Agents::ListVersions => Box::pin(agents::versions(door, caller, request, first)),
            Agents::GetVersion => Box::pin(agents::version(door, caller, request, first, second)),
            Agents::RetireAgent => Box::pin(agents::retire(door, caller, first, second)),
            Agents::DeleteAgent => Box::pin(agents::delete(door, caller, first, second)),
            Agents::ResumeAgent => Box::pin(agents::resume(door, caller, first, second)),
            Agents::RollBackAgent => Box::pin(agents::roll_back(door, caller, request, first, second)),
            Agents::DeprecateAgent => Box::pin(agents::deprecate(door, caller, request, first, second)),
        },
        OperationId::Nodes(operation) => match operation {
            Nodes::ListNodes => Box::pin(nodes::list(door, caller, request)),
            Nodes::GetNode => Box::pin(nodes::get(door, caller, request, first)),
            Nodes::RemoveNode => Box::pin(nodes::remove(door, caller, first)),
            Nodes::DrainNode => {
                Box::pin(nodes::act(door, caller, request, first, NodeAction::Drain { deadline: None }))
            }
            Nodes::CordonNode => Box::pin(nodes::act(door, caller, request, first, NodeAction::Cordon)),
            Nodes::UncordonNode => Box::pin(nodes::act(door, caller, request, first, NodeAction::Uncordon)),
            Nodes::ResumeNode => Box::pin(nodes::act(door, caller, request, first, NodeAction::Resume)),
            Nodes::LabelNode => Box::pin(nodes::label(door, caller, request, first)),
        },
        OperationId::Objects(operation) => match operation {
            Objects::ListObjectKinds => Box::pin(async move { objects::kinds(door, caller) }),
            Objects::ListObjects => Box::pin(objects::list(door, caller, request, first)),
            Objects::GetObject => Box::pin(objects::get(door, caller, request, first, second)),
            Objects::PutObject => Box::pin(objects::put(door, caller, request, first, second)),
            Objects::DeleteObject => Box::pin(objects::delete(door, caller, request, first, second)),
            Objects::LogInToModel => Box::pin(logins::log_in(door, caller, request, first)),
            Objects::LogOutOfModel => Box::pin(logins::log_out(door, caller, first)),
            Objects::LogInToMcpServer => Box::pin(logins::log_in_to_server(door, caller, request, first)),
            Objects::LogOutOfMcpServer => Box::pin(logins::log_out_of_server(door, caller, first)),
            Objects::SetSecret => Box::pin(secrets::set(door, caller, request, first)),
        },
        OperationId::Openai(operation) => match operation {
            Openai::ListUsableModels => Box::pin(openai::list(door, caller)),
            Openai::GetUsableModel => Box::pin(openai::model(door, caller, first)),
            Openai::GetUsableModelOf => Box::pin(openai::model_of(door, caller, first, second)),
            Openai::CreateChatCompletion => Box::pin(openai::chat(door, caller, request)),
            Openai::CreateCompletion => Box::pin(openai::complete(door, caller, request)),
            Openai::CreateEmbeddings => Box::pin(openai::embed(door, caller, request)),
            Openai::CreateResponse => Box::pin(openai::create(door, caller, request)),
            Openai::GetResponse => Box::pin(openai::get(door, caller, request, first)),
            Openai::ListInputItems => Box::pin(openai::input_items(door, caller, request, first)),
            Openai::CancelResponse => Box::pin(openai::cancel(door, caller, first)),
            Openai::DeleteResponse => Box::pin(openai::delete(door, caller, first)),
        },
        OperationId::Orchestrators(operation) => match operation {
            Orchestrators::Orchestrator => Box::pin(orchestrator::get(door, caller, request)),
            Orchestrators::SelectOrchestrator => Box::pin(orchestrator::select(door, caller, request)),
        },
        OperationId::Policies(operation) => match operation {
            Policies::ExplainPolicies => Box::pin(policies::explain(door, caller, request)),
        },
        OperationId::Triggers(operation) => match operation {
            Triggers::CreateTrigger => Box::pin(triggers::create(door, caller, request)),
            Triggers::ListTriggers => Box::pin(triggers::list(door, caller, request)),
            Triggers::GetTrigger => Box::pin(triggers::get(door, caller, request, first)),
            Triggers::ChangeTrigger => Box::pin(triggers::change(door, caller, request, first)),
            Triggers::DeleteTrigger => Box::pin(triggers::delete(door, caller, first)),
            Triggers::FireTrigger => Box::pin(triggers::fire(door, caller, request, first)),
            Triggers::TriggerDeliveries => Box::pin(triggers::deliveries(door, caller, request, first)),
            Triggers::NextFirings => Box::pin(triggers::next(door, caller, request, first)),
            Triggers::TestTrigger => Box::pin(triggers::test(door, caller, request, first)),
            Triggers::BackfillTrigger => Box::pin(triggers::backfill(door, caller, request, first)),
            Triggers::CallHook => Box::pin(triggers::call(door, caller, request, first)),
        },
        OperationId::Figures(operation) => match operation {
            Figures::Health => Box::pin(nodes::health(door, caller, request)),
            Figures::Ready => Box::pin(nodes::ready(door, request)),
            Figures::Version => Box::pin(async move { Ok(answer::body(StatusCode::OK, &door.about)) }),
            Figures::Figures => {
                Box::pin(async move { Ok(answer::json(StatusCode::OK, &door.service.figures(caller))) })
            }
            Figures::FiguresOfAgent => {
                Box::pin(async move { Ok(answer::json(StatusCode::OK, &door.service.figures_of(caller, first)?)) })
            }
            Figures::ErrorPage => Box::pin(async move {
                let page = catalogue::page(first).ok_or(Error::UnknownPath)?;
                Ok(answer::text_page(StatusCode::OK, page))
            }),
            Figures::Metrics => Box::pin(async move { Ok(answer::metrics(door.metrics())) }),
            Figures::OpenApi => Box::pin(async move { Ok(answer::json(StatusCode::OK, atlas_api::document())) }),
        },
        OperationId::Skills(operation) => match operation {
            Skills::ListSkills => Box::pin(skills::list(door, caller, request)),
            Skills::DeploySkill => Box::pin(skills::deploy(door, caller, request)),
            Skills::GetSkill => Box::pin(skills::get(door, caller, request, first)),
            Skills::TestSkill => Box::pin(skills::test(door, caller, request, first)),
            Skills::RemoveSkill => Box::pin(objects::delete(door, caller, request, "skill", first)),
        },
        OperationId::Conversations(operation) => match operation {
            Conversations::ListConversations => Box::pin(conversations::list(door, caller, request)),
            Conversations::GetConversation => Box::pin(conversations::get(door, caller, request, first)),
            Conversations::BranchConversation => Box::pin(conversations::branch(door, caller, request, first)),
            Conversations::DeleteConversation => Box::pin(conversations::delete(door, caller, first)),
            Conversations::McpRegistry => Box::pin(mcp::registry(door, caller, request)),
        },
        OperationId::Library(operation) => match operation {
            Library::GetMemory => Box::pin(library::memory(door, caller, request)),
            Library::ListMemoryEntries => Box::pin(library::memory_entries(door, caller, request)),
            Library::WriteMemory => Box::pin(library::write_memory(door, caller, request)),
            Library::ClearMemory => Box::pin(library::clear_memory(door, caller, request)),
            Library::SearchKnowledge => Box::pin(library::search(door, caller, request)),
            Library::ListKnowledge => Box::pin(library::entries(door, caller, request)),
            Library::StoreKnowledge => Box::pin(library::store(door, caller, request)),
            Library::GetKnowledge => Box::pin(library::entry(door, caller, request, first)),
            Library::ChangeKnowledge => Box::pin(library::change(door, caller, request, first)),
            Library::DeleteKnowledge => Box::pin(library::delete(door, caller, first)),
            Library::ListKnowledgeDomains => Box::pin(library::domains(door, caller, request)),
            Library::GetKnowledgeAcl => Box::pin(library::acl(door, caller, request)),
        },
        OperationId::Bases(operation) => match operation {
            Bases::ListBases => Box::pin(bases::list(door, caller, request)),
            Bases::CreateBase => Box::pin(bases::create(door, caller, request)),
            Bases::GetBase => Box::pin(bases::get(door, caller, request, first)),
            Bases::ChangeBase => Box::pin(bases::change(door, caller, request, first)),
            Bases::DeleteBase => Box::pin(bases::delete(door, caller, first)),
            Bases::CollectBase => Box::pin(bases::collect(door, caller, first)),
            Bases::RebuildBase => Box::pin(bases::rebuild(door, caller, request, first)),
            Bases::ListDocuments => Box::pin(bases::documents(door, caller, request, first)),
            Bases::AddDocuments => Box::pin(bases::add(door, caller, request, first)),
            Bases::RemoveDocuments => Box::pin(bases::remove(door, caller, request, first)),
            Bases::SearchDocuments => Box::pin(bases::search(door, caller, request, first)),
        },
        OperationId::Cluster(operation) => match operation {
            Cluster::Cluster => Box::pin(async move { cluster::status(door) }),
            Cluster::ListMembers => Box::pin(async move { cluster::members(door, request) }),
            Cluster::RemoveMember => Box::pin(cluster::remove(door, first)),
            Cluster::CreateJoinToken => Box::pin(cluster::create_token(door, caller, request)),
            Cluster::RevokeJoinToken => Box::pin(cluster::revoke_token(door, caller, request)),
            Cluster::TransferLeader => Box::pin(cluster::transfer_leader(door, request)),
            Cluster::Snapshot => Box::pin(snapshot::get(door)),
            Cluster::SecurityPolicy => {
                Box::pin(async move { Err(Error::NotConfigured("No security policy configured").into()) })
            }
        },
        OperationId::Access(operation) => match operation {
            Access::McpResource => Box::pin(mcp::resource(door, request)),
            Access::McpResourceOfAgent => Box::pin(mcp::resource(door, request)),
            Access::Whoami => Box::pin(access::whoami(door, request)),
            Access::CreateToken => Box::pin(access::create(door, caller, request)),
        },
        OperationId::Audit(operation) => match operation {
            Audit::ReadAudit => Box::pin(audit::read(door, request)),
        },
    }
}
