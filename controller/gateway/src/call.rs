//! The tool calls: each is a service function with the caller of the request.

use std::time::Duration;

use atlas_api::{Jobs, OperationId, Questions};
use atlas_service::{AgentQuery, Caller, Consistency, Error, Pinned, Submission, SubmittedJob, View};
use atlas_types::{AgentName, JobId, QuestionId, QuestionRule, RequestId};
use bytes::Bytes;
use rmcp::model::{
    CallToolResponse, CallToolResult, CreateTaskResult, InputRequiredResult, InputResponses, JsonObject, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::arguments::{self, Answer, Describe, Job, Run, Search, Wait};
use crate::progress::Told;
use crate::questions::{Asked, Reach};
use crate::server::Server;
use crate::tools::ToolName;
use crate::view::{self, done, error_text, failed};
use crate::{bearer, pins, progress, questions, task, texts};

/// How long a call waits before clients that know tasks get one.
const TASK_AFTER: Duration = Duration::from_secs(2);
/// Most agents in one answer.
const AGENTS_MAX: usize = 100;

/// One call.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Server,
    pub(crate) caller: Caller,
    pub(crate) context: RequestContext<RoleServer>,
    /// Of a call that is made again after its result required input.
    pub(crate) resumed: Option<Resumed>,
}

/// The answers to the questions of an earlier result.
pub(crate) struct Resumed {
    /// The state of that result: the id of the job. It needs no signature: whoever names the job of another needs the right to read it.
    pub(crate) job: String,
    pub(crate) responses: InputResponses,
}

/// What ends a call early: a text for the model.
pub(crate) type Refused = String;

impl Call<'_> {
    /// Refuses a caller that may not use the operation for which a tool stands.
    async fn admit(&self, operation: OperationId, tool: ToolName) -> Result<(), Error> {
        self.server.service.admit(&self.caller, operation, &format!("mcp/{}", tool.as_str())).await
    }

    /// Carries out a call. Errors of tools are results, because models read results and not protocol errors.
    pub(crate) async fn run(
        self,
        tool: ToolName,
        arguments: Option<JsonObject>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(operation) = tool.operation()
            && let Err(error) = self.admit(operation, tool).await
        {
            return Ok(failed(error_text(&error)).into());
        }
        let mut arguments = arguments;
        if let (Some(arguments), Some(definition)) = (&mut arguments, definition(tool.as_str())) {
            // What the input of an agent takes, its own schema says.
            let input = (tool == ToolName::AgentRun).then(|| arguments.shift_remove("input")).flatten();
            texts::read(arguments, &definition.input_schema);
            arguments.extend(input.map(|input| ("input".to_owned(), input)));
        }
        let result = match tool {
            ToolName::AgentsSearch => self.search(arguments).await,
            ToolName::AgentDescribe => self.describe(arguments).await,
            ToolName::AgentRun => {
                return Ok(self.run_agent(arguments).await.unwrap_or_else(|text| failed(text).into()));
            }
            ToolName::JobWait => {
                return Ok(self.wait(arguments).await.unwrap_or_else(|text| failed(text).into()));
            }
            ToolName::JobGet => self.get(arguments).await,
            ToolName::JobAnswer => self.answer(arguments).await,
            ToolName::JobCancel => self.cancel(arguments).await,
            ToolName::ChainRun => self.run_chain(arguments).await,
            ToolName::DocsSearch => self.search_docs(arguments).await,
            ToolName::SearchDocuments => self.search_documents(arguments).await,
        };
        Ok(result.unwrap_or_else(failed).into())
    }

    async fn search(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let search: Search = arguments::read(arguments)?;
        let limit = search.limit.clamp(1, AGENTS_MAX);
        // One more than wanted tells whether there are more.
        let query =
            AgentQuery { text: search.text()?, limit: Some(limit + 1), offset: search.offset, ..AgentQuery::default() };
        let found = self.server.service.agents(&self.caller, &query, Consistency::Linearizable).await;
        let mut found = found.map_err(|error| error_text(&error))?;
        let more = found.len() > limit;
        found.truncate(limit);
        let agents = found.iter().map(|agent| Value::Object(agent.summary(View::Plain))).collect();
        let mut members = Map::from_iter([("agents".to_owned(), Value::Array(agents))]);
        if more {
            members.insert("next_offset".into(), json!(search.offset.saturating_add(limit)));
        }
        Ok(done(members))
    }

    async fn describe(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let Describe { agent, version } = arguments::read(arguments)?;
        let service = &self.server.service;
        let found = service.agent(&self.caller, &agent, version.as_deref(), Consistency::Linearizable).await;
        let mut members = found.map_err(|error| error_text(&error))?.details();
        members.retain(|name, _| {
            ["name", "version", "description", "capabilities", "input_schema", "output_schema", "deprecated"]
                .contains(&name.as_str())
        });
        Ok(done(members))
    }

    /// Runs a pinned agent, whose input the arguments are.
    pub(crate) async fn run_pinned(self, pinned: &Pinned, arguments: Option<JsonObject>) -> CallToolResponse {
        if let Err(error) = self.admit(Jobs::SubmitJob.id(), ToolName::AgentRun).await {
            return failed(error_text(&error)).into();
        }
        let mut arguments = arguments.unwrap_or_default();
        let offered = pins::offered(pinned);
        texts::read(&mut arguments, &offered.schema);
        let input = offered.input(arguments).to_string();
        let ran = async {
            let run = Run {
                agent: pinned.agent.agent.name.to_string(),
                version: pinned.version.clone(),
                input: Some(RawValue::from_string(input).map_err(|error| error.to_string())?),
                wait_seconds: None,
                idempotency_key: None,
                questions: None,
            };
            self.run_one(run).await
        };
        ran.await.unwrap_or_else(|text| failed(text).into())
    }

    async fn run_agent(&self, arguments: Option<JsonObject>) -> Result<CallToolResponse, Refused> {
        self.run_one(arguments::read(arguments)?).await
    }

    async fn run_one(&self, run: Run) -> Result<CallToolResponse, Refused> {
        let wait = self.server.options.wait(run.wait_seconds)?;
        let knows_tasks = self.context.client_capabilities().is_some_and(|known| known.supports_tasks());
        let wait = if knows_tasks { wait.min(TASK_AFTER) } else { wait };
        let (job, reach) = match &self.resumed {
            Some(resumed) => self.resume(resumed).await?,
            None => (self.submit(run).await?, Reach::of(&self.context)),
        };
        match self.awaited(job, wait, reach).await? {
            Waited::Runs(_, task) if knows_tasks => Ok(CallToolResponse::Task(CreateTaskResult::new(task))),
            waited => Ok(waited.into()),
        }
    }

    async fn submit(&self, run: Run) -> Result<SubmittedJob, Refused> {
        let service = &self.server.service;
        let name = AgentName::new(&run.agent).map_err(|error| error.to_string())?;
        let input = match &run.input {
            Some(input) => self.input(&run, input).await,
            None => Bytes::from_static(b"{}"),
        };
        let mut submission = Submission::new(name, input);
        (submission.version, submission.refuse) = (run.version, true);
        if let Some(key) = run.idempotency_key {
            let key = RequestId::new(&key).ok().filter(|key| !key.is_generated());
            submission.request_id = Some(key.ok_or("'idempotency_key' is text of 1 to 255 characters")?);
        }
        submission.questions = match run.questions {
            Some(rule) => rule.parse::<QuestionRule>().map_err(|why| format!("'questions': {why}"))?,
            // Without a user to ask, nobody knows of a job that waits.
            None if Reach::of(&self.context) == Reach::Nobody => QuestionRule::Fail,
            None if self.caller.may(Questions::AnswerQuestion.id()).is_err() => QuestionRule::Fail,
            None => QuestionRule::Wait,
        };
        let caller = bearer::passing_on(&self.caller, &self.context);
        service.submit_to_wait(&caller, submission).await.map_err(|error| error_text(&error))
    }

    /// The input of a run, in which texts are read where the agent asks for something else.
    async fn input(&self, run: &Run, input: &RawValue) -> Bytes {
        let as_sent = || Bytes::from(input.get().to_owned());
        let Some(mut value) = serde_json::from_str::<Value>(input.get()).ok().filter(texts::are_in) else {
            return as_sent();
        };
        let agent =
            self.server.service.agent(&self.caller, &run.agent, run.version.as_deref(), Consistency::Stale).await;
        // An unknown agent is refused when the job is submitted.
        let Some(schema) = agent.ok().and_then(|agent| agent.contract.value.get("input_schema").cloned()) else {
            return as_sent();
        };
        texts::read_input(&mut value, &schema);
        Bytes::from(value.to_string())
    }

    /// The job of an earlier result, after its questions have their answers. A user who did not want to answer is not asked again.
    async fn resume(&self, resumed: &Resumed) -> Result<(SubmittedJob, Reach), Refused> {
        let (service, responses) = (&self.server.service, resumed.responses.clone());
        let taken = async {
            let id = service.awaited_job(&self.caller, &resumed.job).await?;
            Ok((id, questions::respond(service, &self.caller, id, responses).await?))
        };
        match taken.await {
            Ok((id, Asked::Answered)) => Ok((id.into(), Reach::of(&self.context))),
            Ok((id, Asked::Open)) => Ok((id.into(), Reach::Nobody)),
            Err(error) => Err(self.refusal(ToolName::AgentRun, &error).await),
        }
    }

    async fn answer(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let Answer { job_id, question_id, answer } = arguments::read(arguments)?;
        let id = self.job_id(&job_id).await?;
        let service = &self.server.service;
        let open = service.answerable(&self.caller, id).await.map_err(|error| error_text(&error))?;
        let question = match (question_id, open.as_slice()) {
            (Some(id), _) => id.parse::<QuestionId>().map_err(|_| error_text(&Error::UnknownQuestion))?,
            (None, [question]) => question.id,
            (None, []) => return Err(format!("{id} has no open question that you may answer")),
            (None, several) => {
                return Err(format!("{id} has {} open questions: name one in 'question_id'", several.len()));
            }
        };
        let answered = match service.answer(&self.caller, question, &answer, answer.is_string()).await {
            Ok(answered) => answered,
            Err(error) => return Err(self.refusal(ToolName::JobAnswer, &error).await),
        };
        Ok(done(Map::from_iter([
            ("job_id".to_owned(), json!(answered.job.to_string())),
            ("question_id".to_owned(), json!(question.to_string())),
            ("status".to_owned(), json!(answered.status())),
        ])))
    }

    async fn get(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let Job { job_id } = arguments::read(arguments)?;
        let id = self.job_id(&job_id).await?;
        let service = &self.server.service;
        let shown = service.job(&self.caller, id, View::Full, Consistency::Linearizable).await;
        let shown = shown.map_err(|error| error_text(&error))?;
        Ok(view::job(&shown, &service.of_caller(&self.caller, shown.questions())))
    }

    async fn wait(&self, arguments: Option<JsonObject>) -> Result<CallToolResponse, Refused> {
        let Wait { job_id, wait_seconds } = arguments::read(arguments)?;
        let wait = self.server.options.wait(wait_seconds)?;
        let (job, reach) = match &self.resumed {
            Some(resumed) => self.resume(resumed).await?,
            None => (self.job_id(&job_id).await?.into(), Reach::of(&self.context)),
        };
        // Only `agent_run` cancels its job when its call is cancelled: here the client merely stops waiting.
        Ok(self.waited(job, wait, reach).await?.into())
    }

    async fn cancel(&self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let Job { job_id } = arguments::read(arguments)?;
        let id = self.job_id(&job_id).await?;
        let cancelled = match self.server.service.cancel(&self.caller, id, true).await {
            Ok(cancelled) => cancelled,
            Err(error) => return Err(self.refusal(ToolName::JobCancel, &error).await),
        };
        Ok(done(Map::from_iter([
            ("job_id".to_owned(), json!(id.to_string())),
            ("cancelled".to_owned(), json!(cancelled)),
        ])))
    }

    /// The text of an error of a service function, which is recorded if it is a denial.
    pub(crate) async fn refusal(&self, tool: ToolName, error: &Error) -> Refused {
        let Some(operation) = tool.operation() else { return error_text(error) };
        view::refusal(&self.server.service, &self.caller, (operation, tool.as_str()), error).await
    }

    async fn job_id(&self, text: &str) -> Result<JobId, Refused> {
        self.server.service.job_id(&self.caller, text).await.map_err(|error| error_text(&error))
    }

    /// Waits for the job that this call started. The client's cancellation of the call cancels the job.
    async fn awaited(&self, job: SubmittedJob, wait: Duration, reach: Reach) -> Result<Waited, Refused> {
        let id = job.id;
        tokio::select! {
            waited = self.waited(job, wait, reach) => waited,
            () = self.context.ct.cancelled() => {
                let cancelled = self.server.service.cancel(&self.caller, id, true).await;
                cancelled.map_err(|error| error_text(&error))?;
                Err(format!("the call was cancelled, and with it {id}"))
            }
        }
    }

    /// Waits for a job and its retries, and puts its questions to the client's user meanwhile.
    async fn waited(&self, mut job: SubmittedJob, wait: Duration, mut reach: Reach) -> Result<Waited, Refused> {
        let service = &self.server.service;
        let id = job.id;
        loop {
            let question = tokio::select! {
                biased;
                waited = self.quietly(job, wait) => return waited,
                question = service.asked_of(&self.caller, id), if reach != Reach::Nobody => question,
            };
            if reach == Reach::Input {
                let open = service.answerable(&self.caller, id).await.map_err(|error| error_text(&error))?;
                let requests = questions::requests(open.iter().map(AsRef::as_ref));
                return Ok(Waited::Asks(InputRequiredResult::new(Some(requests), Some(id.to_string()))));
            }
            let question = service.question(&self.caller, question, Consistency::Linearizable).await;
            let question = question.map_err(|error| error_text(&error))?;
            let asked = questions::elicit(service, &self.caller, &self.context.peer, &question, wait).await;
            if asked.map_err(|error| error_text(&error))? == Asked::Open {
                reach = Reach::Nobody;
            }
            job = id.into();
        }
    }

    /// Waits for a job and its retries, and reports progress meanwhile if the client asked for it.
    async fn quietly(&self, job: SubmittedJob, wait: Duration) -> Result<Waited, Refused> {
        let service = &self.server.service;
        let id = job.id;
        let waiting = service.wait_for_family(&self.caller, job, View::Full, wait);
        let shown = match self.context.meta.get_progress_token() {
            Some(token) => {
                let wanted = (token, Told::All);
                progress::with(waiting, progress::report(service, &self.caller, id, wanted, &self.context.peer)).await
            }
            None => waiting.await,
        };
        let shown = shown.map_err(|error| error_text(&error))?;
        let result = view::job(&shown, &service.of_caller(&self.caller, shown.questions()));
        Ok(match shown.job().status.is_terminal() {
            true => Waited::Ended(result),
            false => Waited::Runs(result, task::of(shown.job())),
        })
    }
}

/// What waiting came to.
enum Waited {
    Ended(CallToolResult),
    Runs(CallToolResult, rmcp::model::Task),
    /// It has open questions, which the client puts to its user.
    Asks(InputRequiredResult),
}

impl From<Waited> for CallToolResponse {
    fn from(waited: Waited) -> Self {
        match waited {
            Waited::Ended(result) | Waited::Runs(result, _) => result.into(),
            Waited::Asks(required) => required.into(),
        }
    }
}

/// The definition of a tool; none if there is no such tool.
pub(crate) fn definition(name: &str) -> Option<Tool> {
    crate::tools::all().iter().find(|tool| tool.name == name).cloned()
}
