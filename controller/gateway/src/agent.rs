//! The MCP server of one agent, `/agents/{name}/mcp`: tools to send it a message and to ask for its health, and the prompt with what was
//! said (ADR 25). Its tools, arguments and texts are those of Pallas.

mod health;
mod history;
mod send;
mod tools;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use atlas_api::{Agents, Jobs};
use atlas_service::{Caller, Consistency, Error, Service, ShownAgent};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::context::{self, VERSIONS};
use crate::view::{failed, plain_error_text as error_text};
use send::Sending;

/// The agent of a request, which the door takes from the path.
#[derive(Debug, Clone)]
pub(crate) struct Addressed(pub(crate) Arc<str>);

/// Serves agents. It holds nothing of its own, so each session has a copy.
#[derive(Clone)]
pub(crate) struct AgentServer {
    pub(crate) service: Service,
    /// The longest turn.
    pub(crate) turn_max: Duration,
}

/// The caller of a request, the agent that it addresses, and the session.
struct Asked {
    caller: Caller,
    agent: Arc<str>,
    /// The id of the MCP session; none in the versions of the protocol without sessions.
    session: Option<String>,
}

impl Asked {
    fn of(context: &RequestContext<RoleServer>) -> Result<Self, ErrorData> {
        let parts = context.extensions.get::<http::request::Parts>();
        let parts = parts.ok_or_else(|| ErrorData::internal_error("the request has no head", None))?;
        let agent = parts.extensions.get::<Addressed>();
        let Addressed(agent) = agent.ok_or_else(|| ErrorData::internal_error("the request has no agent", None))?;
        let session = context::session(context);
        Ok(Self { caller: context::caller(context)?, agent: agent.clone(), session: session.map(str::to_owned) })
    }
}

impl AgentServer {
    async fn agent(&self, asked: &Asked) -> Result<ShownAgent, Error> {
        asked.caller.may(Agents::GetAgent.id())?;
        self.service.agent(&asked.caller, &asked.agent, None, Consistency::Linearizable).await
    }
}

fn refused(error: &Error) -> ErrorData {
    ErrorData::invalid_params(error_text(error), None)
}

impl ServerHandler for AgentServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().build();
        let name = Implementation::new("atlas-agent", env!("CARGO_PKG_VERSION")).with_title("An agent of Atlas");
        ServerConfig::new(capabilities).with_server_info(name)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let shown = self.agent(&Asked::of(&context)?).await.map_err(|error| refused(&error))?;
        Ok(ListToolsResult::with_all_items(tools::of(&shown)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::named(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = Asked::of(&context)?;
        match request.name.as_ref() {
            tools::GET_HEALTH => Ok(health::answer(self, &asked).await.into()),
            // Some clients call the agent by its name.
            name if name == tools::SEND_MESSAGE || *name == *asked.agent => {
                context::allowed(&self.service, &asked.caller, Jobs::SubmitJob.id(), tools::SEND_MESSAGE).await?;
                let sending = Sending { server: self, asked, context };
                Ok(sending.answer(request.arguments).await.unwrap_or_else(failed).into())
            }
            name => {
                let name: String = name.chars().take(100).collect();
                Err(ErrorData::invalid_params(format!("unknown tool {name:?}; list them with tools/list"), None))
            }
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let shown = self.agent(&Asked::of(&context)?).await.map_err(|error| refused(&error))?;
        Ok(ListPromptsResult::with_all_items(history::prompts(&shown)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let asked = Asked::of(&context)?;
        context::allowed(&self.service, &asked.caller, Jobs::GetJob.id(), "prompts/get").await?;
        history::prompt(self, &asked, &request).await.map(Into::into)
    }
}
