//! The server of one session or request, as `rmcp` calls it.

use std::borrow::Cow;
use std::sync::Arc;

use atlas_env::Env;
use atlas_service::{Caller, Consistency, Service, View};
use atlas_types::JobId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, GetTaskParams, GetTaskResult, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::SessionRestoreMarker;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::bases::Address;
use crate::call::{Call, Resumed, definition};
use crate::context::{VERSIONS, allowed, caller, session};
use crate::door::GatewayOptions;
use crate::lists::Lists;
use crate::tools::{self, ToolName};
use crate::verbs::Method;
use crate::view::{error_text, refusal};
use crate::{bases, page, pins, questions, resources, task};

const INSTRUCTIONS: &str = "Atlas runs agents as typed functions. Find one with agents_search, read its schemas with \
    agent_describe, run it with agent_run. A long run answers with a job_id: call job_wait. search_documents searches document bases.";

/// Refuses a caller that may not use a method.
async fn may_use(service: &Service, caller: &Caller, method: Method) -> Result<(), ErrorData> {
    allowed(service, caller, method.operation(), method.as_str()).await
}

/// Serves the platform's tools. It holds nothing of its own, so each session has a copy.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) service: Service,
    pub(crate) options: Arc<GatewayOptions>,
    pub(crate) lists: Arc<Lists>,
    pub(crate) env: Env,
}

impl Server {
    /// The job of a task.
    async fn job(&self, caller: &Caller, task: &str) -> Result<JobId, ErrorData> {
        allowed(&self.service, caller, Method::GetTask.operation(), "tasks").await?;
        let id = self.service.job_id(caller, task).await;
        id.map_err(|error| ErrorData::invalid_params(error_text(&error), None))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        let capabilities = capabilities.enable_resources().enable_tasks().build();
        let name = Implementation::new("atlas", env!("CARGO_PKG_VERSION")).with_title("Atlas");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    /// A session that rested is opened again with the messages of its client.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(SessionRestoreMarker { id, .. }) = context.extensions.get() {
            self.lists.back(id, &context.peer);
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = caller(&context)?;
        may_use(&self.service, &caller, Method::ListTools).await?;
        self.lists.begin();
        let pinned = pins::tools(&self.service, &caller).await;
        let pinned = pinned.map_err(|error| ErrorData::internal_error(error_text(&error), None))?;
        if let Some(session) = session(&context) {
            self.lists.seen(session, &context.peer, &caller, &pinned);
        }
        let (tools, next) = page::of(tools::all().iter().cloned().chain(pinned).collect(), request.as_ref())?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        Ok(result)
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = caller(context.request_context())?;
        may_use(&self.service, &caller, Method::Listen).await?;
        self.lists.listen(&context).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        definition(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context)?;
        let resumed =
            request.request_state.map(|job| Resumed { job, responses: request.input_responses.unwrap_or_default() });
        let Some(tool) = ToolName::of(&request.name) else {
            let pinned = pins::find(&self.service, &caller, &request.name).await;
            if let Some(pinned) = pinned.map_err(|error| ErrorData::internal_error(error_text(&error), None))? {
                return Ok(Call { server: self, caller, context, resumed }
                    .run_pinned(&pinned, request.arguments)
                    .await);
            }
            let name: String = request.name.chars().take(100).collect();
            return Err(ErrorData::invalid_params(format!("unknown tool {name:?}; list them with tools/list"), None));
        };
        Call { server: self, caller, context, resumed }.run(tool, request.arguments).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = caller(&context)?;
        // Outputs are many and of short interest: the results of tools name them.
        let mut all = resources::pages();
        all.extend(bases::resources(&self.service, &caller).await);
        let (resources, next) = page::of(all, request.as_ref())?;
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = caller(&context)?;
        match Address::read(&request.uri) {
            // What a base has is no output of a job.
            Some(_) => {
                let operation = atlas_api::Bases::ListDocuments.id();
                allowed(&self.service, &caller, operation, Method::ReadResource.as_str()).await?;
            }
            None => may_use(&self.service, &caller, Method::ReadResource).await?,
        }
        resources::read(&self.service, &caller, &request.uri).await.map(Into::into)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = caller(&context)?;
        let id = self.job(&caller, &request.task_id).await?;
        let shown = self.service.job(&caller, id, View::Full, Consistency::Linearizable).await;
        let shown = shown.map_err(|error| ErrorData::invalid_params(error_text(&error), None))?;
        let asked = self.service.of_caller(&caller, shown.questions());
        Ok(GetTaskResult::new(task::detailed(&shown, &asked)))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = caller(&context)?;
        may_use(&self.service, &caller, Method::UpdateTask).await?;
        let id = self.job(&caller, &request.task_id).await?;
        match questions::respond(&self.service, &caller, id, request.input_responses).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let method = Method::UpdateTask;
                let text = refusal(&self.service, &caller, (method.operation(), method.as_str()), &error).await;
                Err(ErrorData::invalid_params(text, None))
            }
        }
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = caller(&context)?;
        let cancelled = async {
            let id = self.service.job_id(&caller, &request.task_id).await?;
            self.service.cancel(&caller, id, true).await
        };
        match cancelled.await {
            Ok(_) => Ok(()),
            Err(error) => {
                let method = Method::CancelTask;
                let text = refusal(&self.service, &caller, (method.operation(), method.as_str()), &error).await;
                Err(ErrorData::invalid_params(text, None))
            }
        }
    }
}
