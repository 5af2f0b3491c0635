//! One turn: a job is submitted, followed until it has ended, and its questions are put to the person. It survives changes of the leader:
//! what is asked for again has the same idempotency key, and the stream of its answer is opened again.

use std::pin::Pin;
use std::time::Duration;

use atlas_api::types::{Job, JobStep, Line};
use atlas_chat::ChatSettings;
use atlas_env::Env;
use atlas_http::sse::ServerEvent;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::answer::{Answer, News, Piece};
use super::target::{Message, Target};
use super::view::View;
use crate::answers;
use crate::client::{Client, Events};
use crate::command::job::StepReader;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::questions::{self, Question};
use crate::words;

/// The error of a conversation whose earlier message is still being answered.
const ANSWERING: &str = "E1120";
/// The errors of answers that do not fit, and of questions that have ended.
const REFUSED: &str = "E3043";
const CLOSED: &str = "E3041";
/// How long the cluster may be out of reach before a turn is given up.
const AWAY_MAX: Duration = Duration::from_secs(120);
/// The pause before something is asked again.
const PAUSE: Duration = Duration::from_millis(300);
/// How long to wait for the last pieces after the end of a job.
const LAST_PIECES: Duration = Duration::from_millis(500);
/// How often steps are looked at for tools, and the status is renewed.
const TICK: Duration = Duration::from_secs(1);
/// Longest wait of one request.
const WAIT_STEP: &str = "30";
/// The same while a question is left to others.
const WAIT_OTHERS: &str = "3";
/// Most characters of the title of a job.
const TITLE_MAX: usize = 80;

/// A turn to make.
pub(crate) struct Turn<'a> {
    pub(crate) target: &'a Target,
    pub(crate) message: &'a Message,
    pub(crate) conversation: Option<&'a str>,
    pub(crate) settings: &'a ChatSettings,
}

/// How a turn ended.
pub(crate) struct Ended {
    pub(crate) job: Job,
    pub(crate) value: Value,
    /// The answer of a completed job.
    pub(crate) reply: Option<String>,
    /// Whether the person interrupted it.
    pub(crate) interrupted: bool,
}

/// What a person says to a question of a job.
pub(crate) enum Said {
    Words(String),
    /// The question is left to others.
    Nothing,
    /// The turn is interrupted.
    Interrupt,
}

/// The person in front of the terminal.
pub(crate) trait Person {
    /// Whether somebody is there.
    fn is_there(&self) -> bool;

    /// Reads a line after a prompt.
    fn line(&mut self, prompt: &str) -> Said;
}

impl Turn<'_> {
    /// The body of the submission.
    pub(crate) fn body(&self, attended: bool) -> Result<Value, Failure> {
        let mut body: Map<String, Value> = self.target.body(self.message, self.conversation, self.settings)?;
        let title = self.message.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        if !title.is_empty() {
            body.insert("title".to_owned(), words::short(title, TITLE_MAX).into());
        }
        if attended {
            body.insert("questions".to_owned(), "wait".into());
        }
        Ok(Value::Object(body))
    }

    /// Makes the turn.
    pub(crate) async fn make(
        &self,
        client: &Client,
        view: &mut View<'_>,
        person: &mut impl Person,
    ) -> Result<Ended, Failure> {
        let mut interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::usage(format!("interrupts cannot be received: {error}")))?;
        let body = self.body(person.is_there())?;
        let mut job = tokio::select! {
            submitted = submit(client, &body, view) => submitted?,
            _ = interrupts.recv() => {
                return Err(Failure::new("E3102", Exit::JobCancelled, "interrupted before the message was sent"));
            }
        };
        loop {
            let ended = Following::new(client, &job, self.target).follow(view, person, &mut interrupts).await?;
            if ended.interrupted || ended.job.retried_by.is_empty() {
                return Ok(ended);
            }
            view.note(&format!("attempt failed, retrying: {}", ended.job.retried_by));
            job = ended.job.retried_by;
        }
    }
}

/// Submits a job. It waits for the turns before it, and for a cluster that is out of reach for a while; a repeat is the same job.
async fn submit(client: &Client, body: &Value, view: &mut View<'_>) -> Result<String, Failure> {
    let (env, query) = (Env::system(), [("validate", "refuse"), ("only", "agent")]);
    let key = format!("atlasctl-chat-{:032x}", env.entropy.u128());
    let until = env.clock.monotonic() + AWAY_MAX;
    loop {
        match client.post_named(&["api", "jobs"], &query, body, &key).await {
            Ok(answer) => {
                let id = answer["id"].as_str().ok_or_else(|| Failure::answer("a submission is answered with an id"))?;
                return Ok(id.to_owned());
            }
            Err(failure) if failure.code.as_deref() == Some(ANSWERING) => {
                view.status("an earlier message of the conversation is still being answered  (Ctrl+C interrupts)");
            }
            Err(failure) if is_away(&failure) && env.clock.monotonic() < until => {
                view.status("the cluster does not answer; trying again  (Ctrl+C interrupts)");
                env.clock.sleep(PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Whether a failure may pass: the cluster is out of reach, or without a leader.
fn is_away(failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable && failure.code.as_deref() != Some("E4005")
}

/// A job that is followed.
struct Following<'a> {
    client: &'a Client,
    id: &'a str,
    answer: Answer,
    /// Whether the answer is data, which is shown when it is complete.
    is_held: bool,
    /// Reads the steps; none if the job has no tools.
    steps: Option<StepReader>,
    next_step: Option<u64>,
    interrupted: bool,
    /// Questions that the person leaves to others.
    left: Vec<String>,
    since: Duration,
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Value, Failure>> + 'a>>;

impl<'a> Following<'a> {
    fn new(client: &'a Client, id: &'a str, target: &Target) -> Self {
        let steps = (!target.is_model()).then(StepReader::default);
        let since = Env::system().clock.monotonic();
        Self {
            client,
            id,
            answer: Answer::default(),
            is_held: false,
            steps,
            next_step: None,
            interrupted: false,
            left: Vec::new(),
            since,
        }
    }

    async fn follow(
        mut self,
        view: &mut View<'_>,
        person: &mut impl Person,
        interrupts: &mut Signal,
    ) -> Result<Ended, Failure> {
        let (clock, path, query) = (Env::system().clock, ["api", "jobs", self.id, "logs"], [("deltas", "true")]);
        let mut pieces = Pieces { client: self.client, path: &path, query: &query, events: None };
        let mut waiting: Waiting<'_> = Box::pin(wait(self.client, self.id, true));
        let (mut is_open, mut tick) = (view.is_live(), clock.sleep(TICK));
        let value = loop {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    if std::mem::replace(&mut self.interrupted, true) {
                        // The person does not wait for the end of the job.
                        break self.client.get(&["api", "jobs", self.id], &[("view", "full")]).await?;
                    }
                    self.cancel(view).await;
                }
                event = pieces.next(), if is_open => match event {
                    Some(event) => self.hear(&event, view).await,
                    None => is_open = false,
                },
                waited = &mut waiting => {
                    let value = waited?;
                    let job: Job = answers::read(&value)?;
                    let is_unattended = !person.is_there() && !job.needs_answer.is_empty();
                    if job.is_terminal() || job.reason == "in_doubt" || (is_unattended && !self.interrupted) {
                        break value;
                    }
                    let asks = self.ask(&job, view, person).await?;
                    waiting = Box::pin(wait(self.client, self.id, asks));
                }
                () = &mut tick => {
                    self.look(view).await;
                    if self.is_held || !self.answer.has_text() {
                        let waited = words::age((clock.monotonic() - self.since).as_secs_f64());
                        view.status(&format!("{}  {waited}  (Ctrl+C interrupts)", self.id));
                    }
                    tick = clock.sleep(TICK);
                }
            }
        };
        if is_open && !self.interrupted {
            let mut over = clock.sleep(LAST_PIECES);
            loop {
                tokio::select! {
                    event = pieces.next() => match event {
                        Some(event) => self.hear(&event, view).await,
                        None => break,
                    },
                    () = &mut over => break,
                }
            }
        }
        self.look(view).await;
        self.end(value, view)
    }

    /// Shows what is missing of the answer of a job that has ended.
    fn end(self, value: Value, view: &mut View<'_>) -> Result<Ended, Failure> {
        let job: Job = answers::read(&value)?;
        let reply = (job.status == "completed").then(|| reply_of(job.output_data.as_ref().unwrap_or(&Value::Null)));
        view.end_answer();
        if let Some(reply) = reply.as_ref().filter(|reply| view.is_live() && (self.is_held || !self.answer.is(reply))) {
            // A passage is missing after a broken connection, or what the model wrote is not the answer of the agent.
            if self.answer.has_text() && !self.is_held {
                view.restart();
            }
            view.whole(reply);
        }
        Ok(Ended { job, value, reply, interrupted: self.interrupted })
    }

    async fn cancel(&self, view: &mut View<'_>) {
        view.end_answer();
        let cancelled = self.client.post(&["api", "jobs", self.id, "cancel"], &[], &json!({})).await;
        if let Err(failure) = cancelled {
            view.note(&format!("could not cancel {}: {}", self.id, failure.message));
        }
    }

    /// Shows a piece of the answer, or a warning of the job.
    async fn hear(&mut self, event: &ServerEvent, view: &mut View<'_>) {
        if self.interrupted {
            return;
        }
        if !matches!(event.name.as_str(), "delta" | "gap" | "reset") {
            let line: Option<Line> = serde_json::from_str(&event.data).ok();
            if let Some(line) = line.filter(|line| ["warning", "error"].contains(&line.level.as_str())) {
                view.note(&format!("{}: {}", line.level, line.text));
            }
            return;
        }
        let Ok(piece) = serde_json::from_str::<Piece>(&event.data) else { return };
        if self.answer.is_next_step(&piece) {
            // The tools between two answers come before the second.
            self.look(view).await;
        }
        let mut news = self.answer.hear(&event.name, &piece);
        if news == News::Restart {
            view.restart();
            news = self.answer.hear(&event.name, &piece);
        }
        if let News::Text(text) = news {
            self.is_held = self.steps.is_some() && self.answer.is_data();
            if !self.is_held {
                view.text(&text);
            }
        }
    }

    /// Shows tool calls that were recorded since the last look.
    async fn look(&mut self, view: &mut View<'_>) {
        let Some(reader) = self.steps.as_mut().filter(|_| view.is_live()) else { return };
        let after = self.next_step.map(|step| step.to_string());
        let mut query = vec![("limit", "100")];
        query.extend(after.as_deref().map(|after| ("after", after)));
        // What is not seen now is seen at the next look.
        let Ok(found) = self.client.get(&["api", "jobs", self.id, "steps"], &query).await else { return };
        let Ok(steps) = answers::read::<Vec<JobStep>>(&found) else { return };
        for step in steps {
            view.tools(&reader.read(&step));
            self.next_step = Some(step.step);
        }
    }

    /// Puts the questions of a job to the person. Returns whether to stop at further questions.
    async fn ask(&mut self, job: &Job, view: &mut View<'_>, person: &mut impl Person) -> Result<bool, Failure> {
        view.end_answer();
        for id in &job.needs_answer {
            if self.interrupted || self.left.contains(id) {
                continue;
            }
            let (question, _) = questions::get(self.client, id).await?;
            match put(self.client, &question, view, person).await? {
                Said::Words(_) => {}
                Said::Nothing => {
                    view.note(&format!("left to others: atlasctl question show {id}"));
                    self.left.push(id.clone());
                }
                Said::Interrupt => {
                    self.interrupted = true;
                    self.cancel(view).await;
                }
            }
        }
        Ok(!self.interrupted && job.needs_answer.iter().all(|id| !self.left.contains(id)))
    }
}

/// Puts a question until the answer fits, or the person leaves it to others.
async fn put(
    client: &Client,
    question: &Question,
    view: &mut View<'_>,
    person: &mut impl Person,
) -> Result<Said, Failure> {
    view.note(&format!("{} asks: {}", question.job, question.text().trim_end()));
    if let Some(approval) = &question.approval {
        view.note(&format!("for {}; leave it empty if that is somebody else", approval.who));
    }
    loop {
        let said = person.line(&format!("answer ({}): ", question.wanted()));
        let Said::Words(words) = &said else { return Ok(said) };
        if words.trim().is_empty() && question.approval.is_some() {
            return Ok(Said::Nothing);
        }
        match questions::answer(client, question, words).await {
            Ok(_) => return Ok(said),
            Err(failure) if failure.code.as_deref() == Some(REFUSED) => view.note(&failure.message),
            Err(failure) if failure.code.as_deref() == Some(CLOSED) => {
                view.note(&failure.message);
                return Ok(said);
            }
            Err(failure) if failure.exit == Exit::Denied => {
                view.note(&failure.message);
                return Ok(Said::Nothing);
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Waits until a job has ended or, if `asks`, needs an answer. A cluster that is out of reach for a while is asked again.
async fn wait(client: &Client, id: &str, asks: bool) -> Result<Value, Failure> {
    let clock = Env::system().clock;
    let mut away_since: Option<Duration> = None;
    let step = if asks { WAIT_STEP } else { WAIT_OTHERS };
    let questions = if asks { "true" } else { "false" };
    loop {
        let query = [("timeout", step), ("view", "full"), ("questions", questions)];
        match client.get(&["api", "jobs", id, "wait"], &query).await {
            Ok(value) => {
                away_since = None;
                let job: Job = answers::read(&value)?;
                if job.is_terminal() || job.reason == "in_doubt" || (asks && !job.needs_answer.is_empty()) {
                    return Ok(value);
                }
                if !asks {
                    // Somebody else may have answered, and another question may be open.
                    return Ok(value);
                }
            }
            Err(failure) if is_away(&failure) => {
                let now = clock.monotonic();
                if now.saturating_sub(*away_since.get_or_insert(now)) > AWAY_MAX {
                    return Err(failure);
                }
                clock.sleep(PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// The stream of a job, opened again when it breaks. How long that may take is decided by who waits for the job.
struct Pieces<'a> {
    client: &'a Client,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    events: Option<Events<'a>>,
}

impl Pieces<'_> {
    /// The next event; none at the end. Cancel safe: dropping the future loses no event.
    async fn next(&mut self) -> Option<ServerEvent> {
        loop {
            let Some(events) = &mut self.events else {
                match self.client.open(self.path, self.query).await {
                    Ok(events) => self.events = Some(events),
                    Err(failure) if is_away(&failure) => Env::system().clock.sleep(PAUSE).await,
                    Err(_) => return None,
                }
                continue;
            };
            match events.next().await {
                Ok(event) => return event,
                Err(_) => {
                    self.events = None;
                    Env::system().clock.sleep(PAUSE).await;
                }
            }
        }
    }
}

/// The answer in an output, by the rule of conversations: the only text in it, or the member `result`, `message` or `text`; otherwise the output
/// as JSON.
pub(crate) fn reply_of(output: &Value) -> String {
    let Some(members) = output.as_object() else {
        return output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    };
    let named = ["result", "message", "text"].into_iter().find_map(|name| members.get(name)?.as_str());
    let mut texts = members.values().filter_map(Value::as_str);
    let only = texts.next().filter(|_| members.len() == 1);
    named.or(only).map_or_else(|| output.to_string(), str::to_owned)
}

impl Ended {
    /// Why there is no answer.
    pub(crate) fn failure(&self) -> Option<Failure> {
        ending::result(&self.job).err()
    }
}
