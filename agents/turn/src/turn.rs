//! The machine itself.

use std::sync::Arc;

use atlas_model::{Answer, Image, Message, Messages, NanoDollars, OutputSchema, Part, Request, Role, Stop, Usage};
use serde_json::{Value, json};

use crate::checks::told;
use crate::guard::Guard;
use crate::judge::{self, Ended};
use crate::key::Chain;
use crate::output::Output;
use crate::pages::{self, Pages};
use crate::round::Round;
use crate::same_calls::SameCalls;
use crate::{
    AtLimit, Checks, CountedUsage, CutAnswer, Effect, End, Event, Failure, Format, Halt, Planner, Settings, TodoList,
    ToolReturn, Warning, budget, output,
};

/// Useless answers in a row after which the model is not asked again.
const EMPTY_MAX: u32 = 3;

/// One turn of an agent: from its input to its output.
#[derive(Debug, Clone)]
pub struct Turn {
    settings: Arc<Settings>,
    messages: Messages,
    /// The hash of the settings and messages.
    chain: Chain,
    guard: Guard,
    same: SameCalls,
    planner: Option<Planner>,
    /// Results that were cut.
    pages: Pages,
    /// Whether helpers of the agent work.
    helpers: bool,
    totals: Totals,
    /// The text of the last answer that had one, or those of all answers.
    said: String,
    repairs: u32,
    /// Useless answers in a row.
    empty: u32,
    /// The place of the model that answers: 0, or a fallback.
    answering: usize,
    phase: Phase,
}

/// What a turn has used so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Requests to the model.
    pub requests: u32,
    /// The sum over all answers.
    pub usage: Usage,
    /// Zero if the prices are unknown.
    pub cost: NanoDollars,
    /// Whether a part of the usage, and of the cost, is an estimate.
    pub estimated: bool,
    /// The model that answered last, as it names itself.
    pub model: String,
    /// The tools that the model called, in order.
    pub tools_used: Vec<String>,
    /// How often the agent was asked to go on, because its todo list had open items.
    pub continuations: u32,
}

#[derive(Debug, Clone)]
enum Phase {
    New,
    /// The model is called.
    Asking,
    /// Tools are called.
    Working(Round),
    /// It answered without a call, and helpers of it work.
    Stopping(Box<Answer>),
    Done,
}

impl Phase {
    fn expects(&self) -> &'static str {
        match self {
            Self::New => "its start",
            Self::Asking => "an answer of the model",
            Self::Working(_) => "results of tools",
            Self::Stopping(_) => "whether it may stop",
            Self::Done => "nothing",
        }
    }
}

impl Turn {
    pub fn new(settings: Settings) -> Self {
        Self {
            chain: Chain::new(&settings),
            guard: Guard::new(settings.limits.repeats),
            same: SameCalls::new(settings.limits.same_calls),
            planner: settings.plan.clone().map(|plan| Planner::new(plan.continuation, true, plan.list)),
            pages: Pages::default(),
            helpers: false,
            settings: Arc::new(settings),
            messages: Messages::default(),
            totals: Totals::default(),
            said: String::new(),
            repairs: 0,
            empty: 0,
            answering: 0,
            phase: Phase::New,
        }
    }

    /// What it has used so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Which model the next answer is from: 0 is the model of the settings, 1 its first fallback. It decides what the answer costs.
    pub fn answered_by(&mut self, place: usize) {
        self.answering = place;
    }

    /// What a model call at a place costs. Zero if its prices are unknown.
    pub fn cost(&self, place: usize, usage: &Usage) -> NanoDollars {
        budget::cost(&self.settings, place, usage)
    }

    /// What an answer to the last request used, as the turn counts it.
    pub fn used(&self, answer: &Answer) -> CountedUsage {
        budget::used(&self.settings, || self.request(), answer)
    }

    /// The settings that hold now.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The todo list; none if the agent has none.
    pub fn todo(&self) -> Option<&TodoList> {
        self.planner.as_ref().map(Planner::list)
    }

    /// Notes whether helpers of the agent work. While they do, it does not stop without [`Effect::Stop`].
    pub fn set_helpers(&mut self, work: bool) {
        self.helpers = work;
    }

    /// With [`Settings::all_texts`], the texts of all answers, a line apart. An answer that was not used is not among them.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The request of the last [`Effect::Call`].
    pub fn request(&self) -> Request {
        let settings = &self.settings;
        let sampling = settings.sampling.clone();
        let output = match &settings.format {
            Format::Schema { name, schema, .. } if settings.json_schema => {
                Some(OutputSchema { name: name.clone(), schema: schema.clone() })
            }
            _ => None,
        };
        let read = self.pages.are_offered(settings).then(pages::tool);
        Request {
            model: settings.model.clone(),
            system: settings.system.clone(),
            messages: self.messages.clone(),
            tools: settings.tools.iter().map(|offered| offered.tool.clone()).chain(read).collect(),
            max_tokens: sampling.max_tokens.or(settings.limits.budget.map(|_| budget::OUTPUT_ASSUMED)),
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            stop: sampling.stop,
            reasoning_effort: sampling.reasoning_effort,
            extra: sampling.extra,
            output,
            stream: settings.stream,
            ..Request::default()
        }
    }

    /// Goes on with other settings, after the messages so far. The request of the last [`Effect::Call`] is not made; the effects
    /// replace it. In another phase the turn fails.
    pub fn refix(&mut self, settings: Settings) -> Vec<Effect> {
        if !matches!(self.phase, Phase::Asking) {
            let expected = std::mem::replace(&mut self.phase, Phase::Done).expects();
            return fail(Failure::Disorder { expected, got: "other settings" });
        }
        self.phase = Phase::Done;
        self.chain.add(&settings);
        self.guard.set_threshold(settings.limits.repeats);
        self.same.set_repeats(settings.limits.same_calls);
        self.settings = Arc::new(settings);
        self.totals.requests -= 1;
        self.ask()
    }

    /// Takes an event. The effects are in the order in which they have to be performed.
    pub fn step(&mut self, event: Event, checks: &dyn Checks) -> Vec<Effect> {
        match (std::mem::replace(&mut self.phase, Phase::Done), event) {
            (Phase::Done, _) => Vec::new(),
            (Phase::New, Event::Started { input, images, said }) => self.start(&input, images, said),
            (Phase::Asking, Event::Answered(answer)) => self.answered(*answer, checks),
            (Phase::Asking, Event::Failed(error)) => fail(Failure::Call(error)),
            (Phase::Working(round), Event::Returned(returned)) => self.returned(round, returned),
            (Phase::Stopping(answer), Event::Stopping(None)) => {
                self.helpers = false;
                self.conclude(&answer.text(), *answer, checks)
            }
            (Phase::Stopping(answer), Event::Stopping(Some(reminder))) => {
                self.repeat(*answer);
                self.push(Message::user(reminder));
                self.ask()
            }
            (phase, event) => {
                let got = match event {
                    Event::Started { .. } => "its start",
                    Event::Answered(_) => "an answer of the model",
                    Event::Returned(_) => "results of tools",
                    Event::Stopping(_) => "whether it may stop",
                    Event::Failed(_) => "a failed call",
                };
                fail(Failure::Disorder { expected: phase.expects(), got })
            }
        }
    }

    fn start(&mut self, input: &Value, images: Vec<Image>, said: Vec<Message>) -> Vec<Effect> {
        let pictures = |message: &Message| message.parts.iter().any(|part| matches!(part, Part::Image(_)));
        if (!images.is_empty() || said.iter().any(pictures)) && !self.settings.vision {
            return fail(Failure::Vision { model: self.settings.model.clone() });
        }
        let mut messages = said;
        if messages.is_empty() {
            messages.push(Message::user(self.settings.told(input)));
        } else if let Some(last) = messages.last_mut()
            && input.as_object().is_some_and(|members| !members.is_empty())
        {
            // The other members of the input belong to the message to answer.
            last.parts.insert(0, Part::Text { text: self.settings.told(input) });
        }
        if let Some(last) = messages.last_mut() {
            last.parts.extend(images.into_iter().map(Part::Image));
        }
        messages.into_iter().for_each(|message| self.push(message));
        self.ask()
    }

    fn answered(&mut self, answer: Answer, checks: &dyn Checks) -> Vec<Effect> {
        let CountedUsage { usage, estimated } = self.used(&answer);
        self.totals.usage += usage;
        self.totals.cost += self.cost(self.answering, &usage);
        self.totals.estimated |= estimated;
        self.totals.model.clone_from(&answer.model);
        let has_calls = answer.tool_calls().next().is_some();
        if self.settings.judged {
            match Ended::of(&answer.stop) {
                Ended::Refused => return fail(Failure::refused(&answer)),
                // The arguments of the last call are not all there.
                Ended::Cut if has_calls => return self.cut(&answer),
                Ended::Broken => return self.ask_anew(&answer),
                Ended::Whole | Ended::Cut => {}
            }
        }
        let text = answer.text();
        self.note_text(&text, has_calls);
        if !has_calls {
            if !self.helpers {
                return self.conclude(&text, answer, checks);
            }
            let key = self.chain.key("stop", &text);
            self.phase = Phase::Stopping(Box::new(answer));
            return vec![Effect::Stop { key }];
        }
        self.empty = 0;
        let round = Round::plan(&answer, &self.settings, checks, &self.same, &mut self.planner, &self.pages);
        self.same.record(round.calls());
        if let Some(planner) = &mut self.planner {
            planner.note_calls();
        }
        self.totals.tools_used.extend(round.names().map(str::to_owned));
        self.push(Message { role: Role::Assistant, parts: round.parts(answer) });
        let calls = round.allowed();
        if calls.is_empty() {
            return self.returned(round, Vec::new());
        }
        let (key, parallel) = (self.chain.key("tools", &calls), self.settings.limits.parallel.max(1));
        self.phase = Phase::Working(round);
        vec![Effect::Tools { key, calls, parallel }]
    }

    fn note_text(&mut self, text: &str, has_calls: bool) {
        if text.trim().is_empty() {
            return;
        }
        if !self.settings.all_texts {
            if has_calls {
                text.clone_into(&mut self.said);
            }
            return;
        }
        if !self.said.is_empty() {
            self.said.push('\n');
        }
        self.said.push_str(text);
    }

    fn returned(&mut self, round: Round, returned: Vec<ToolReturn>) -> Vec<Effect> {
        let results = round.results(returned, &self.settings, &mut self.pages);
        let parts = results.results.into_iter().map(Part::ToolResult).collect();
        self.push(Message { role: Role::User, parts });
        match self.guard.observe(results.observed, self.totals.requests) {
            Some(halt) => self.halt(halt),
            None => self.ask(),
        }
    }

    /// Asks the model, unless all requests or the budget are used up.
    fn ask(&mut self) -> Vec<Effect> {
        if self.totals.requests >= self.settings.limits.requests {
            return self.limit();
        }
        if let Some(failure) = self.overspends() {
            return fail(failure);
        }
        self.totals.requests += 1;
        self.phase = Phase::Asking;
        vec![Effect::Call { key: self.chain.key("model", &()) }]
    }

    /// Why the next request must not be made under the budget.
    fn overspends(&self) -> Option<Failure> {
        let budget = self.settings.limits.budget?;
        let Some(next) = budget::cost_max(&self.settings, &mut self.request()) else {
            return Some(Failure::Unpriced { model: self.settings.model.clone(), budget });
        };
        let spent = self.totals.cost;
        let mut total = spent;
        total += next;
        (total > budget).then_some(Failure::Budget { budget, spent, next })
    }

    /// The model is done. An answer that does not match the schema is returned to it.
    fn conclude(&mut self, text: &str, answer: Answer, checks: &dyn Checks) -> Vec<Effect> {
        let asked = self.totals.requests < self.settings.limits.requests;
        if asked && let Some(next) = self.planner.as_mut().and_then(|planner| planner.stopped(text)) {
            self.totals.continuations += 1;
            self.repeat(answer);
            self.push(Message::user(next.message));
            return self.ask();
        }
        let all = self.settings.all_texts && self.settings.format == Format::Text;
        let cut = self.settings.judged && Ended::of(&answer.stop) == Ended::Cut;
        let says_nothing = judge::is_empty(&answer) && (!all || self.said.is_empty());
        if self.settings.judged && says_nothing {
            // All tokens went into thoughts.
            return if cut { self.cut(&answer) } else { self.ask_anew(&answer) };
        }
        self.empty = 0;
        let text = if all { &self.said } else { text };
        let (value, problems) = match output::of(text, &self.settings, checks) {
            Output::Good(value) if cut => {
                // An object that was meant became a text.
                let half = self.settings.format == Format::Json
                    && value["result"].as_str() == Some(text.trim())
                    && output::is_json_begun(text);
                if half {
                    return self.cut(&answer);
                }
                let warning = Effect::Warn(Warning::Cut(self.cut_of(&answer)));
                return vec![warning, Effect::Finish { output: value, end: End::Answer }];
            }
            Output::Good(value) => return finish(value, End::Answer),
            // The next answer would be cut as well.
            Output::Bad { .. } if cut => return self.cut(&answer),
            Output::Bad { value, problems } => (value, problems),
        };
        let Format::Schema { repairs, .. } = self.settings.format else { return finish(value, End::Answer) };
        if self.repairs >= repairs || self.totals.requests >= self.settings.limits.requests {
            return finish(value, End::Answer);
        }
        self.repairs += 1;
        self.repeat(answer);
        self.push(Message::user(format!(
            "Your answer does not match the required JSON schema: {}. Answer again with the JSON value only.",
            told(&problems)
        )));
        self.ask()
    }

    /// Asks again after an answer that is of no use. It is not repeated to the model: some providers refuse thoughts that nothing follows.
    fn ask_anew(&mut self, answer: &Answer) -> Vec<Effect> {
        self.empty += 1;
        let word = if let Stop::Other(word) = &answer.stop { judge::bounded(word) } else { String::new() };
        let word = Some(word).filter(|word| !word.is_empty());
        if self.empty >= EMPTY_MAX || self.totals.requests >= self.settings.limits.requests {
            return fail(Failure::Empty { model: judge::bounded(&answer.model), times: self.empty, word });
        }
        let why = match word {
            Some(word) => format!("Your last answer was not used, because it ended with {word}."),
            None => "Your last answer was empty.".to_owned(),
        };
        self.push(Message::user(format!("{why} Answer now, with the result or with a call of a tool.")));
        self.ask()
    }

    fn cut(&self, answer: &Answer) -> Vec<Effect> {
        fail(Failure::Cut(self.cut_of(answer)))
    }

    fn cut_of(&self, answer: &Answer) -> CutAnswer {
        CutAnswer { model: judge::bounded(&answer.model), max_tokens: self.request().max_tokens }
    }

    /// Adds an answer to the messages. Providers refuse messages without content.
    fn repeat(&mut self, answer: Answer) {
        let answered = Message { role: Role::Assistant, parts: answer.parts };
        if answered.parts.iter().any(|part| !matches!(part, Part::Text { text } if text.trim().is_empty())) {
            self.push(answered);
        }
    }

    fn limit(&self) -> Vec<Effect> {
        let output = match self.settings.limits.at_limit {
            AtLimit::Error => json!({"error": "max iterations reached", "tools_used": self.totals.tools_used}),
            AtLimit::Partial => {
                let most = self.settings.limits.requests;
                let requests = if most == 1 { "request" } else { "requests" };
                self.partial(&format!("[The agent was stopped after {most} {requests}. This answer is incomplete.]"))
            }
        };
        finish(output, End::Limit)
    }

    fn halt(&self, halt: Halt) -> Vec<Effect> {
        let output = self.partial(&halt.explanation());
        vec![Effect::Warn(Warning::Halted(halt)), Effect::Finish { output, end: End::Repeats }]
    }

    fn partial(&self, explanation: &str) -> Value {
        let said = self.said.trim();
        let text = if said.is_empty() { explanation.to_owned() } else { format!("{said}\n\n{explanation}") };
        json!({"result": text})
    }

    fn push(&mut self, message: Message) {
        self.chain.add(&message);
        self.messages.push(message);
    }
}

fn finish(output: Value, end: End) -> Vec<Effect> {
    vec![Effect::Finish { output, end }]
}

fn fail(failure: Failure) -> Vec<Effect> {
    vec![Effect::Fail(failure)]
}
