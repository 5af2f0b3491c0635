//! The helpers of a graph: one team for all its model nodes, so a helper that one node starts can be collected by another.
//!
//! Nodes make their calls in any order. Each call changes the team and is recorded at once, with all that was learned before it, so a
//! later attempt that plays the records in their order has the same team. A call that waits is made again when something has changed.

use std::sync::Arc;
use std::time::Duration;

use atlas_graph::{Graph, Kind};
use atlas_model::{Message, Request, Tool, ToolCall};
use atlas_supervisor::{Answer, Settings, Summary, WaitCause, messages, supervisor_tools, teammate_tools};
use atlas_turn::record::AnswerOutcome as Recorded;
use atlas_turn::{OfferedTool, Outcome, ToolReturn};
use atlas_types::{JobId, StepKey, StepKind, StepUsage, Timestamp, Wait};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use super::host::Surroundings;
use crate::attempt::Work;
use crate::journal::{JournalError, Received, hashed};
use crate::provider::llm::fault::Fault;
use crate::provider::llm::team::{CallPlace, HelperEnd, News, PROJECT, Team, TeamCalls, word};
use crate::provider::llm::tools::help::{INBOX, LOOK_EVERY, envelope};
use crate::provider::platform::{Platform, Stopped};
use crate::provider::round::caller::Told;
use crate::provider::round::model::CallFault;
use crate::provider::{Shared, redacted};

/// What the record of a call begins with.
const RECORD: &[u8] = br#"{"help":"#;

/// How long a call waits for a helper whose end is on its way.
const PAUSE: Duration = Duration::from_millis(100);

/// The outcome of a step.
#[derive(Serialize, Deserialize)]
pub(super) struct HelpStep {
    help: Help,
}

/// The record of a call.
#[derive(Serialize, Deserialize)]
struct Help {
    tool: String,
    arguments: Value,
    result: Value,
    #[serde(flatten)]
    news: News,
    /// The digits in the ids of the helpers that it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    started: Vec<String>,
    /// Messages that it took out of the inbox.
    #[serde(default, skip_serializing_if = "is_zero")]
    read: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl HelpStep {
    /// Reads the outcome of a step. None for those of other work.
    pub(super) fn of(outcome: &[u8]) -> Option<Result<Self, serde_json::Error>> {
        outcome.starts_with(RECORD).then(|| serde_json::from_slice(outcome))
    }

    /// Messages that it took out of the inbox.
    pub(super) fn read(&self) -> u64 {
        self.help.read
    }
}

/// The team of a job.
pub(super) struct Helpers {
    crew: AsyncMutex<Crew>,
    calls: TeamCalls,
    spawns: bool,
}

struct Crew {
    team: Team,
    /// What was learned and is not recorded.
    news: News,
}

/// Whether a tool is one of the team.
pub(super) fn is_one(tool: &str) -> bool {
    tool.starts_with("agent__")
}

impl Helpers {
    /// The team as the records of earlier attempts leave it.
    pub(super) fn new(work: &Arc<Work>, shared: &Shared, graph: &Graph, recorded: Vec<(StepKey, HelpStep)>) -> Self {
        let assignment = &work.assignment;
        let spawns = graph.nodes.iter().any(|node| matches!(node.kind, Kind::Agent(_)));
        let depth = assignment.spawn.map_or(0, |rule| rule.depth);
        let project = graph.variables.iter().find(|variable| variable.name == PROJECT);
        let project = project.and_then(|variable| variable.default.clone()).filter(|folder| folder.starts_with('/'));
        let settings = Settings { spawns, ..Settings::default() };
        let mut team = Team::new(assignment.job, assignment.agent.as_str(), depth, settings, project);
        for (key, HelpStep { help }) in recorded {
            if help.tool != INBOX && word(&help.tool).is_none() {
                let call =
                    ToolCall { id: String::new(), name: help.tool, arguments: help.arguments, opaque: Value::Null };
                team.replay(&call, CallPlace::Key(key), &help.news, &help.started);
            }
        }
        // What was to be cancelled was, before the record.
        team.take_cancelled();
        let crew = AsyncMutex::new(Crew { team, news: News::default() });
        Self { crew, calls: TeamCalls(Platform::of(work, shared)), spawns }
    }

    /// The tools of the team, by their names. None if the graph has no such tool.
    pub(super) fn offered(&self, name: &str) -> Option<OfferedTool> {
        let own = if self.spawns { supervisor_tools() } else { Vec::new() };
        let tool: Tool = own.into_iter().chain(teammate_tools()).find(|tool| tool.name == name)?;
        Some(OfferedTool { name: name.to_owned(), tool })
    }

    /// Cancels what still works for a run that has ended.
    pub(super) async fn dismiss(&self) -> Result<(), Fault> {
        let working: Vec<JobId> = self.crew.lock().await.team.working();
        self.calls.cancel(working).await.map_err(|Stopped| JournalError::Stopped.into())
    }
}

impl Surroundings<'_> {
    /// Makes a call about helpers, or within the team, unless it is recorded.
    pub(super) async fn help(&self, call: &ToolCall, key: StepKey) -> Result<ToolReturn, JournalError> {
        let outcome = match self.book.known(key) {
            Some(outcome) => outcome,
            None => self.helped(call, key).await?,
        };
        let step: HelpStep =
            serde_json::from_slice(&outcome).map_err(|error| JournalError::Unreadable { step: 0, error })?;
        Ok(ToolReturn { call: call.id.clone(), outcome: Outcome::Value(step.help.result) })
    }

    async fn helped(&self, call: &ToolCall, key: StepKey) -> Result<Arc<[u8]>, JournalError> {
        let (helpers, clock) = (&self.helpers, &self.shared.env.clock);
        let mut asked: Option<BoxFuture<'static, ()>> = None;
        let now = || now_ms(clock.wall());
        if call.name == INBOX {
            let record = |received: Vec<Received>| {
                let read = received.len() as u64;
                let unasked = received.into_iter().filter(|one| one.answers.is_none());
                self.record(call, messages(unasked.map(envelope).collect()), &News::at(now()), Vec::new(), read)
            };
            return self.book.read_messages(key, record).await;
        }
        if let Some(word) = word(&call.name) {
            let result = helpers.calls.result(word, &call.arguments, key).await.map_err(stopped)?;
            let outcome = self.record(call, result, &News::at(now()), Vec::new(), 0)?;
            return self.book.record(StepKind::Effect, key, outcome, StepUsage::default()).await;
        }
        loop {
            let mut crew = helpers.crew.lock().await;
            let Crew { team, news } = &mut *crew;
            news.set_now(now());
            self.begin_all(team).await?;
            let find = hashed(&("team find", key.0));
            helpers.calls.find(&call.name, &call.arguments, find, news).await.map_err(stopped)?;
            helpers.calls.look(team, news, hashed(&("team questions", key.0, now()))).await.map_err(stopped)?;
            let answer = team.call(call, CallPlace::Key(key), news);
            self.begin_all(team).await?;
            helpers.calls.cancel(team.take_cancelled()).await.map_err(stopped)?;
            let result = match answer {
                Answer::Now(result) => result,
                Answer::Summarize(summary) => self.summarized(summary, key).await?,
                Answer::Wait(WaitCause::Helper(id)) => {
                    let wait = team.end_of(&id);
                    drop(crew);
                    let Some(wait) = wait else {
                        clock.sleep(PAUSE).await;
                        continue;
                    };
                    let signal =
                        asked.get_or_insert_with(|| helpers.calls.asked(hashed(&("team asked", key.0, now()))));
                    if self.wait_for_helper(wait, signal).await? {
                        asked = None;
                    }
                    continue;
                }
                // Only tools for people ask them.
                Answer::Wait(WaitCause::Reply(_)) | Answer::Ask(_) => {
                    let error = serde::de::Error::custom("a tool for helpers asks people");
                    return Err(JournalError::Unreadable { step: 0, error });
                }
            };
            let outcome = self.record(call, result, news, team.take_started(), 0)?;
            let recorded = self.book.record(StepKind::Effect, key, outcome, StepUsage::default()).await?;
            // The team has learned it with the call, and a later attempt does so from the record.
            *news = News::default();
            return Ok(recorded);
        }
    }

    fn record(
        &self,
        call: &ToolCall,
        result: Value,
        news: &News,
        started: Vec<String>,
        read: u64,
    ) -> Result<Vec<u8>, JournalError> {
        let result = match redacted(Outcome::Value(result), self.secrets().redactor()) {
            Outcome::Value(result) => result,
            Outcome::Error { .. } => Value::Null,
        };
        let (tool, arguments) = (call.name.clone(), call.arguments.clone());
        let help = Help { tool, arguments, result, news: news.clone(), started, read };
        serde_json::to_vec(&HelpStep { help }).map_err(|error| JournalError::Unreadable { step: 0, error })
    }

    /// Asks for the ends of helpers of which this attempt does not know yet. Those of an earlier attempt are found again.
    async fn begin_all(&self, team: &mut Team) -> Result<(), JournalError> {
        for (id, step, call) in team.unbegun() {
            let begun = self.book.asker().child(step, call).await?;
            team.began(&id, begun);
        }
        Ok(())
    }

    /// Waits until a helper ends or a helper asks, or for some time. True if one asked.
    async fn wait_for_helper(
        &self,
        (wait, end): (Wait, HelperEnd),
        asked: &mut BoxFuture<'static, ()>,
    ) -> Result<bool, JournalError> {
        let clock = &self.shared.env.clock;
        let later = i64::try_from(LOOK_EVERY.as_micros()).unwrap_or(i64::MAX);
        let look_at = Timestamp(clock.wall().0.saturating_add(later));
        let over = async {
            tokio::select! {
                biased;
                // Nobody will say how it ends, because this attempt is over.
                told = end => told.map(|_| false).map_err(|_| JournalError::Stopped),
                () = asked => Ok(true),
                () = clock.sleep(LOOK_EVERY) => Ok(false),
            }
        };
        self.book.wait(vec![wait, Wait::Time { at: look_at }], over).await
    }

    /// A summary of a long output by the graph's own model. If it cannot be asked, the result has the whole output.
    async fn summarized(&self, summary: Summary, key: StepKey) -> Result<Value, JournalError> {
        let Some(own) = self.models.as_ref().and_then(|models| models.named(None)) else {
            return Ok(summary.result(None));
        };
        let settings = &own.0.settings;
        let request = Request {
            model: settings.model.clone(),
            system: summary.instructions().to_owned(),
            messages: vec![Message::user(&summary.output)].into(),
            ..Request::default()
        };
        let why = match self.called(own, hashed(&("summary", key.0)), request).await {
            Ok(outcome) => match serde_json::from_slice::<Recorded>(&outcome) {
                Ok(Recorded { answer, .. }) => {
                    self.tokens.add(&answer.usage);
                    return Ok(summary.result(Some(answer.text()).filter(|text| !text.trim().is_empty())));
                }
                Err(error) => error.to_string(),
            },
            Err(CallFault::Call(error)) => error.to_string(),
            Err(CallFault::Journal(error)) => return Err(error),
        };
        let text = format!("the output of a helper was not summarised, and is whole: {why}");
        self.tell(Told::Log { level: "warning", text });
        Ok(summary.result(None))
    }
}

fn stopped(_: Stopped) -> JournalError {
    JournalError::Stopped
}

/// In milliseconds since 1970.
fn now_ms(wall: Timestamp) -> u64 {
    u64::try_from(wall.0 / 1000).unwrap_or_default()
}
