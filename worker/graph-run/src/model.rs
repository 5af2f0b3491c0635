//! Model nodes: the agent loop of atlas-turn with the settings of the node, its attempts, and the form of its answer.

use std::time::Duration;

use atlas_checks::Schemas;
use atlas_contract::schema::Validator;
use atlas_env::Env;
use atlas_graph::run::{Fault, FaultKind};
use atlas_graph::structured::{Extraction, Reader, Verdict};
use atlas_graph::{Graph, Llm};
use atlas_model::{Answer, CallErrorKind, Message, Request};
use atlas_turn::{
    AtLimit, CutAnswer, Effect, End, Event, Failure, Format, Limits, Sampling, Settings, Turn, Warning, thoughtless,
};
use serde_json::{Value, json};

use crate::host::{Host, NodePlace};

/// The pause before the second attempt. It doubles with each further one.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A model node that is to run.
pub(crate) struct Node<'a> {
    pub(crate) place: NodePlace<'a>,
    pub(crate) graph: &'a Graph,
    pub(crate) llm: &'a Llm,
    pub(crate) host: &'a dyn Host,
    pub(crate) env: &'a Env,
}

/// The texts of an answer.
pub(crate) struct Said {
    /// Those of all turns.
    pub(crate) all: String,
    /// That of the last one.
    pub(crate) last: String,
    /// Set if the last one is not complete.
    pub(crate) cut: Option<CutAnswer>,
}

impl Said {
    /// A text that is complete.
    pub(crate) fn of(text: &str) -> Self {
        Self { all: text.to_owned(), last: text.to_owned(), cut: None }
    }
}

/// Why an attempt failed.
struct Failed {
    text: String,
    /// Whether another attempt can help.
    passes: bool,
}

impl Node<'_> {
    /// The result of the node: text, or the value of its schema.
    pub(crate) async fn run(&self, instructions: Option<String>, prompt: String) -> Result<Value, Fault> {
        let work = self.answer(instructions.unwrap_or_default(), prompt);
        let Some(seconds) = self.llm.timeout else { return work.await };
        let limit = self.env.clock.sleep(Duration::from_secs(seconds));
        tokio::select! {
            biased;
            result = work => result,
            () = limit => Err(Fault::new(FaultKind::Llm, format!("the model node timed out after {seconds} s"))),
        }
    }

    async fn answer(&self, instructions: String, prompt: String) -> Result<Value, Fault> {
        let said = self.attempts(&instructions, &prompt).await?;
        match &self.llm.output_schema {
            None => {
                if let Some(cut) = said.cut {
                    self.host.warn(self.place, format!("node \"{}\": {cut}", self.place.node)).await;
                }
                Ok(Value::from(said.all))
            }
            Some(schema) => structured(self.host, (self.place, self.model()), schema, &said).await,
        }
    }

    fn model(&self) -> Option<&str> {
        self.llm.model.as_deref().or(self.graph.model.as_deref())
    }

    async fn attempts(&self, instructions: &str, prompt: &str) -> Result<Said, Fault> {
        let tools = self.host.tools(self.place, self.llm.tools.as_deref().unwrap_or_default()).await?;
        let settings = Settings {
            model: self.model().unwrap_or_default().to_owned(),
            system: instructions.to_owned(),
            tools,
            sampling: Sampling {
                max_tokens: None,
                temperature: self.llm.temperature.or(self.graph.temperature),
                top_p: self.llm.top_p.or(self.graph.top_p),
                reasoning_effort: self.llm.reasoning_effort.clone().or_else(|| self.graph.reasoning_effort.clone()),
                ..Sampling::default()
            },
            format: Format::Text,
            limits: Limits {
                requests: u32::try_from(self.llm.max_iterations).unwrap_or(u32::MAX),
                at_limit: AtLimit::Partial,
                ..Limits::default()
            },
            mark_errors: true,
            utf8: true,
            judged: self.host.judges(self.model()),
            // The texts of earlier answers are a result as well.
            all_texts: true,
            ..Settings::default()
        };
        let mut attempt = 1;
        let mut pause = PAUSE;
        loop {
            let failed = match self.turn(settings.clone(), prompt).await {
                Ok(said) => return Ok(said),
                Err(failed) => failed,
            };
            if !failed.passes || attempt >= self.llm.max_attempts {
                return Err(Fault::new(FaultKind::Llm, failed.text));
            }
            attempt += 1;
            self.env.clock.sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    /// One attempt: a conversation without a past.
    async fn turn(&self, settings: Settings, prompt: &str) -> Result<Said, Failed> {
        let checks = Schemas::of(&settings);
        let mut turn = Turn::new(settings);
        // The text of the last answer that was used.
        let mut last = String::new();
        let said = vec![Message::user(prompt)];
        let mut effects = turn.step(Event::Started { input: json!({}), images: Vec::new(), said }, &checks);
        loop {
            let (mut answered, before) = (None, turn.said().len());
            let event = match effects.pop() {
                Some(Effect::Call { .. }) => {
                    let request = turn.request();
                    match self.host.call(self.place, self.model(), request).await {
                        Ok(answer) => {
                            answered = Some(answer.text());
                            Event::Answered(Box::new(answer))
                        }
                        Err(error) => Event::Failed(error),
                    }
                }
                Some(Effect::Tools { calls, .. }) => Event::Returned(self.host.use_tools(self.place, calls).await),
                Some(Effect::Finish { end: End::Answer, .. }) => {
                    let cut = effects.into_iter().find_map(|effect| match effect {
                        Effect::Warn(Warning::Cut(cut)) => Some(cut),
                        _ => None,
                    });
                    return concluded(turn.said(), &last, cut);
                }
                Some(Effect::Finish { .. }) => {
                    let text = format!("the model still called tools after {} turns", self.llm.max_iterations);
                    return Err(Failed { text, passes: false });
                }
                Some(Effect::Fail(failure)) => return Err(failed(&failure)),
                // A node has no helpers.
                Some(Effect::Stop { .. }) => Event::Stopping(None),
                // A warning is followed by the end of the turn.
                Some(Effect::Warn(_)) => continue,
                None => return Err(Failed { text: "the agent loop ended without a result".to_owned(), passes: false }),
            };
            effects = turn.step(event, &checks);
            if let Some(text) = answered.filter(|_| turn.said().len() > before) {
                last = text;
            }
        }
    }
}

fn concluded(all: &str, last: &str, cut: Option<CutAnswer>) -> Result<Said, Failed> {
    if last.is_empty() {
        return Err(Failed { text: "the model produced no output".to_owned(), passes: true });
    }
    Ok(Said { all: all.to_owned(), last: last.to_owned(), cut })
}

fn failed(failure: &Failure) -> Failed {
    let passes = match failure {
        Failure::Call(error) => {
            matches!(error.kind, CallErrorKind::RateLimited | CallErrorKind::Connection | CallErrorKind::Timeout)
        }
        Failure::Empty { .. } => true,
        _ => false,
    };
    Failed { text: failure.to_string(), passes }
}

/// Brings a text into the form of a schema, with further model calls if it has another one.
pub(crate) async fn structured(
    host: &dyn Host,
    (place, model): (NodePlace<'_>, Option<&str>),
    schema: &Value,
    said: &Said,
) -> Result<Value, Fault> {
    let broken = |text: String| Fault::new(FaultKind::Extraction, text);
    let validator =
        Validator::compile(schema).map_err(|error| broken(format!("output_schema is not usable: {error}")))?;
    let problems = |value: &Value| {
        validator
            .explain(value)
            .into_iter()
            .map(|problem| format!("at {} {}", problem.pointer, problem.message))
            .collect()
    };
    let mut reader = Reader::new(thoughtless);
    let (mut last, mut all) = (said.last.clone(), said.all.clone());
    loop {
        match reader.read(&last, &all, schema, problems) {
            Verdict::Good(value) => return Ok(value),
            Verdict::Bad(why) => return Err(broken(why)),
            // What is missing cannot be extracted.
            Verdict::Ask(_) if let Some(cut) = &said.cut => return Err(broken(cut.to_string())),
            Verdict::Ask(Extraction { system, user }) => {
                let request = Request {
                    model: model.unwrap_or_default().to_owned(),
                    system,
                    messages: vec![Message::user(user)].into(),
                    ..Request::default()
                };
                let answer: Answer =
                    host.call(place, model, request).await.map_err(|error| broken(error.to_string()))?;
                last = answer.text();
                all.clone_from(&last);
            }
        }
    }
}
