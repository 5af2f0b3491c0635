//! Calls about helpers and within the team. Each is one step of the journal, and while an agent waits for a helper its job may park.

use std::sync::Arc;
use std::time::Duration;

use atlas_model::{Message, Request, ToolCall as Asked};
use atlas_supervisor::{AgentId, Answer, Envelope, Payload, Summary, WaitCause, messages};
use atlas_turn::record::{HelpOutcome, StopOutcome as MayStop};
use atlas_turn::{Key, Outcome, ToolReturn};
use atlas_types::{Micros, StepKey, StepKind, StepUsage, StreamKind, Timestamp, Wait};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::drive::{Driver, ESTIMATED, USAGE};
use super::super::fault::Fault;
use super::super::fixed::Fixed;
use super::super::model::Models;
use super::super::outage::Patience;
use super::super::team::{self, CallPlace, News, Team, TeamCalls};
use super::stopped;
use crate::journal::{Asker, Received, Steps as _, hashed};
use crate::provider::platform::Stopped;
use crate::provider::redacted;
use crate::provider::round::model::{CallFault, ModelRound, PaidCall, TryFault};

/// The tool that reads messages.
pub(in crate::provider) const INBOX: &str = "agent__check_inbox";

/// How long a job waits before it looks for questions of its helpers, if it parks meanwhile.
pub(in crate::provider) const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The record of a call.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    helped: HelpOutcome,
    #[serde(flatten)]
    news: News,
    /// Messages that it took out of the inbox.
    #[serde(default, skip_serializing_if = "is_zero")]
    read: u64,
}

/// The record of the end of a turn.
#[derive(Serialize, Deserialize)]
struct End {
    #[serde(flatten)]
    stopped: MayStop,
    #[serde(flatten)]
    news: News,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a call came to.
#[derive(Default)]
struct Made {
    result: Value,
    news: News,
    read: u64,
    usage: StepUsage,
}

impl Driver<'_, '_> {
    /// Makes a call about helpers, or within the team.
    pub(super) async fn help(&mut self, call: &Asked, models: (&Fixed, Option<&Models>)) -> Result<ToolReturn, Fault> {
        let Some(mut team) = self.team.take() else { return Err(Fault::internal("the agent has no team")) };
        let record = self.helped(call, &mut team, models).await;
        self.team = Some(team);
        let outcome = Outcome::Value(record?.helped.result);
        Ok(ToolReturn { call: call.id.clone(), outcome })
    }

    async fn helped(
        &mut self,
        call: &Asked,
        team: &mut Team,
        models: (&Fixed, Option<&Models>),
    ) -> Result<Record, Fault> {
        let number = self.journal.next();
        let key = StepKey(HelpOutcome::key(number, call).0);
        if let Some(recorded) = self.journal.recorded(StepKind::Effect, key).await? {
            let record: Record = read(&recorded, number)?;
            if !is_of_platform(&call.name) {
                team.call(call, CallPlace::Step(number), &record.news);
                // What was to be cancelled was, before the record.
                team.take_cancelled();
            }
            self.journal.note_read(record.read);
            return Ok(record);
        }
        self.journal.may_leave().await?;
        self.ask_for_ends(team).await?;
        let made = match call.name.as_str() {
            INBOX => self.inbox().await?,
            name => match team::word(name) {
                Some(word) => {
                    let result = self.team_calls().result(word, &call.arguments, key).await.map_err(stopped)?;
                    Made { result, news: News::at(self.now_ms()), ..Made::default() }
                }
                None => self.supervise(call, (number, key), team, models).await?,
            },
        };
        let Made { result, news, read, usage } = made;
        let Outcome::Value(result) = redacted(Outcome::Value(result), self.control.secrets.redactor()) else {
            return Err(Fault::internal("a result became an error"));
        };
        let record = Record { helped: HelpOutcome { result, working: team.works() }, news, read };
        let outcome = serde_json::to_vec(&record).map_err(|error| Fault::internal(error.to_string()))?;
        self.journal.record(StepKind::Effect, key, outcome, usage).await?;
        self.journal.note_read(read);
        Ok(record)
    }

    /// The end of the turn of an agent whose helpers work: none if it may stop, or what it is told.
    pub(in super::super) async fn stopping(&mut self, key: Key) -> Result<Option<String>, Fault> {
        let Some(mut team) = self.team.take() else { return Ok(None) };
        let end = self.may_stop(key, &mut team).await;
        self.team = Some(team);
        Ok(end?.stopped.reminder)
    }

    async fn may_stop(&mut self, key: Key, team: &mut Team) -> Result<End, Fault> {
        let (number, key) = (self.journal.next(), StepKey(key.0));
        if let Some(recorded) = self.journal.recorded(StepKind::Effect, key).await? {
            let end: End = read(&recorded, number)?;
            team.stopping(&end.news);
            team.take_cancelled();
            return Ok(end);
        }
        self.journal.may_leave().await?;
        self.ask_for_ends(team).await?;
        let mut news = News::at(self.now_ms());
        team.poll(&mut news);
        let reminder = team.stopping(&news);
        self.team_calls().cancel(team.take_cancelled()).await.map_err(stopped)?;
        let end = End { stopped: MayStop { reminder }, news };
        let outcome = serde_json::to_vec(&end).map_err(|error| Fault::internal(error.to_string()))?;
        self.journal.record(StepKind::Effect, key, outcome, StepUsage::default()).await?;
        Ok(end)
    }

    /// Cancels what still works for an agent that has ended.
    pub(in super::super) async fn dismiss(&mut self) -> Result<(), Fault> {
        let working = self.team.as_ref().map(Team::working).unwrap_or_default();
        self.team_calls().cancel(working).await.map_err(stopped)
    }

    async fn supervise(
        &mut self,
        call: &Asked,
        (number, step): (u64, StepKey),
        team: &mut Team,
        (fixed, models): (&Fixed, Option<&Models>),
    ) -> Result<Made, Fault> {
        let (calls, place) = (self.team_calls(), CallPlace::Step(number));
        let mut news = News::at(self.now_ms());
        let key = hashed(&("team find", number));
        calls.find(&call.name, &call.arguments, key, &mut news).await.map_err(stopped)?;
        let look = hashed(&("team questions", number));
        calls.look(team, &mut news, look).await.map_err(stopped)?;
        let mut answer = team.call(call, place, &news);
        let mut asked: Option<BoxFuture<'static, ()>> = None;
        loop {
            self.ask_for_ends(team).await?;
            calls.cancel(team.take_cancelled()).await.map_err(stopped)?;
            match answer {
                Answer::Now(result) => return Ok(Made { result, news, ..Made::default() }),
                Answer::Summarize(summary) => {
                    let (result, usage) = self.summarized(summary, (number, step), (fixed, models)).await?;
                    return Ok(Made { result, news, usage, ..Made::default() });
                }
                Answer::Wait(WaitCause::Helper(id)) => {
                    let key = hashed(&("team asked", number, self.now_ms()));
                    let signal = asked.get_or_insert_with(|| calls.asked(key));
                    if !self.wait_for(&id, team, &mut news, signal).await? {
                        asked = None;
                    }
                    calls.look(team, &mut news, look).await.map_err(stopped)?;
                    answer = team.resume(WaitCause::Helper(id), place, &news);
                }
                Answer::Wait(WaitCause::Reply(_)) | Answer::Ask(_) => {
                    return Err(Fault::internal("a tool for helpers asks people"));
                }
            }
        }
    }

    /// Asks for the ends of helpers of which this attempt does not know yet. Those of an earlier attempt are found again.
    async fn ask_for_ends(&self, team: &mut Team) -> Result<(), Fault> {
        let asker: Asker = self.journal.asker();
        for (id, step, call) in team.unbegun() {
            let begun = asker.child(step, call).await?;
            team.began(&id, begun);
        }
        Ok(())
    }

    /// Waits until a helper ends or a helper asks, or for some time. False if one asked.
    async fn wait_for(
        &mut self,
        id: &AgentId,
        team: &Team,
        news: &mut News,
        asked: &mut BoxFuture<'static, ()>,
    ) -> Result<bool, Fault> {
        let Some((wait, end)) = team.end_of(id) else { return Ok(true) };
        let later = i64::try_from(LOOK_EVERY.as_micros()).unwrap_or(i64::MAX);
        let look_at = Timestamp(self.control.env.clock.wall().0.saturating_add(later));
        let clock = Arc::clone(&self.control.env.clock);
        let over = async {
            tokio::select! {
                biased;
                told = end => Some(Some(told)),
                () = asked => None,
                () = clock.sleep(LOOK_EVERY) => Some(None),
            }
        };
        // If the leader says first that a wait is over, its news are on their way.
        let over = self.journal.wait(vec![wait, Wait::Time { at: look_at }], over).await?;
        match over {
            Some(Some(Some(Ok(told)))) => news.end(id, told),
            // Nobody will say how it ends, because this attempt is over.
            Some(Some(Some(Err(_)))) => return Err(stopped(Stopped)),
            Some(None) => return Ok(false),
            Some(Some(None)) | None => {}
        }
        Ok(true)
    }

    /// All messages that the job has not read.
    async fn inbox(&mut self) -> Result<Made, Fault> {
        let received = self.journal.unread().await?;
        let read = received.len() as u64;
        let result = messages(received.into_iter().filter(|one| one.answers.is_none()).map(envelope).collect());
        Ok(Made { result, news: News::at(self.now_ms()), read, ..Made::default() })
    }

    /// A summary of a long output. If the model cannot be asked, the result has the whole output.
    async fn summarized(
        &mut self,
        summary: Summary,
        (number, key): (u64, StepKey),
        (fixed, models): (&Fixed, Option<&Models>),
    ) -> Result<(Value, StepUsage), Fault> {
        let (mut opened, is_other) = (None, fixed.summarizer.is_some());
        let fixed = fixed.summarizer.as_deref().unwrap_or(fixed);
        let models = match models.filter(|_| !is_other) {
            Some(models) => models,
            None => {
                let models = self.open(fixed).await?;
                &*opened.insert(models)
            }
        };
        let mut request = Request {
            system: summary.instructions().to_owned(),
            messages: vec![Message::user(&summary.output)].into(),
            idempotency_key: Some(format!("{}-{number}", self.work.assignment.job)),
            ..Request::default()
        };
        let (clock, job) = (Arc::clone(&self.control.env.clock), self.work.assignment.job.to_string());
        let (purse, outage_limit, settings) = (self.purse(), self.outage_limit, &fixed.settings);
        let round = ModelRound { clock: &clock, job: &job, purse: &purse, outage_limit, settings, models };
        let (began, place) = (self.control.now(), (key, self.journal.number(key)));
        let called = round.paid(place, &mut request, Patience::default(), &mut *self.control).await;
        Ok(match called.map_err(TryFault::into_fault) {
            Ok(PaidCall { answered, usage, estimated }) => {
                let text = answered.answer.text();
                if estimated {
                    self.metadata.insert(USAGE.to_owned(), ESTIMATED.into());
                }
                (summary.result(Some(text).filter(|text| !text.trim().is_empty())), usage)
            }
            Err(CallFault::Journal(error)) => return Err(error.into()),
            Err(CallFault::Call(error)) => {
                let text = format!("the output of a helper was not summarised, and is whole: {error}");
                self.control.say(StreamKind::Log, "warning", text).await;
                let duration = Micros::from(self.control.now().saturating_sub(began));
                (summary.result(None), StepUsage { duration, ..StepUsage::default() })
            }
        })
    }

    fn team_calls(&self) -> TeamCalls {
        TeamCalls(self.platform())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.control.env.clock.wall().0 / 1000).unwrap_or_default()
    }
}

/// Whether the controller, or the journal, answers a call.
fn is_of_platform(tool: &str) -> bool {
    tool == INBOX || team::word(tool).is_some()
}

/// A message. One of a person may be any JSON.
pub(in crate::provider) fn envelope(received: Received) -> Envelope {
    let Received { from, at_us, body, .. } = received;
    let body: Value = serde_json::from_str(body.get()).unwrap_or_default();
    let (sender, content) = match (body["from"].as_str(), body["content"].as_str()) {
        (Some(sender), Some(content)) => (sender.to_owned(), content.to_owned()),
        _ => (from, body.as_str().map_or_else(|| body.to_string(), str::to_owned)),
    };
    let sent_ms = u64::try_from(at_us / 1000).unwrap_or_default();
    Envelope { from: sender, payload: Payload::Text(content), sent_ms }
}

fn read<T: for<'de> Deserialize<'de>>(recorded: &[u8], number: u64) -> Result<T, Fault> {
    serde_json::from_slice(recorded).map_err(|error| Fault::internal(format!("step {number} is not readable: {error}")))
}
