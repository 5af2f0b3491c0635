//! A small language of commands, one statement each, separated by `;` or lines:
//!
//! ```text
//! agent a effects=once; node n1 places=2; job j1 agent=a; grant j1 n1; start j1; complete j1; show j1
//! ```
//!
//! Each statement is one entry. It is applied twice, as a whole entry and as the head plans it, which must agree; all
//! invariants are checked, and a refusal must leave no trace.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use atlas_objects::TriggerStatus;
use atlas_types::{
    AdvanceRun, AgentName, Circuit, ClusterTime, Command, Door, Entry, Event, EventRecord, FireTrigger, JobChange,
    JobId, Level, Namespace, NodeId, Origin, Outcome, Parent, PayloadBody, Principal, Question, QuestionEnd, Reason,
    Rejection, Request, RequestId, RunNext, StateImage, StepKey, Timestamp, TriggerStart,
};

use super::build;
use crate::{Applied, State};

/// A script at work.
pub(crate) struct Run {
    pub(crate) state: State,
    names: BTreeMap<JobId, String>,
    out: String,
}

/// The words and options of one statement.
pub(crate) struct Words<'a> {
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn read(statement: &'a str) -> Self {
        let (options, words): (Vec<_>, Vec<_>) = statement.split_whitespace().partition(|word| word.contains('='));
        let options = options.into_iter().filter_map(|option| option.split_once('=')).collect();
        Self { words, options }
    }

    pub(crate) fn word(&self, at: usize) -> &'a str {
        self.words.get(at).unwrap_or_else(|| panic!("{:?} lacks word {at}", self.words))
    }

    /// All words from `at` on, and all options.
    pub(crate) fn rest(&self, at: usize) -> (&[&'a str], &BTreeMap<&'a str, &'a str>) {
        (&self.words[at..], &self.options)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.options.get(key).copied()
    }

    pub(crate) fn get<T: FromStr>(&self, key: &str) -> Option<T> {
        let text = self.text(key)?;
        Some(text.parse().unwrap_or_else(|_| panic!("{key}={text}")))
    }

    pub(crate) fn or<T: FromStr>(&self, key: &str, default: T) -> T {
        self.get(key).unwrap_or(default)
    }
}

impl Run {
    pub(crate) fn new() -> Self {
        let mut state = State::new(7);
        (state.at, state.clock) = (Timestamp(1_000_000), ClusterTime(1_000_000));
        Self { state, names: BTreeMap::new(), out: String::new() }
    }

    /// Runs statements that must be accepted and print nothing.
    pub(crate) fn prepare(&mut self, script: &str) {
        let out = self.play(script);
        assert!(!out.contains('!'), "the preparation was refused: {out}");
    }

    /// Runs statements and returns what they printed.
    pub(crate) fn play(&mut self, script: &str) -> String {
        for statement in script.split([';', '\n']).map(str::trim).filter(|text| !text.is_empty()) {
            let words = Words::read(statement);
            match words.word(0) {
                "clock" => self.state.clock = self.state.clock.plus(build::seconds(words.word(1))),
                "level" => self.state.level = Level(words.word(1).parse().expect("a number")),
                "show" if words.word(1).starts_with('r') && !words.word(1).contains('/') => {
                    self.show_run(words.word(1))
                }
                "buckets" => self.show_buckets(),
                "turns" => {
                    let turns: Vec<_> = self.state.namespaces_in_turn().map(ToString::to_string).collect();
                    self.out += &format!("turns {}\n", turns.join(" "));
                }
                "first" => {
                    let first = self.state.class_heads().next().and_then(|(_, job)| self.names.get(&job.id).cloned());
                    self.out += &format!("first {}\n", first.unwrap_or_default());
                }
                "show" => self.show(words.word(1)),
                "questions" => self.show_questions(&words),
                "evidence" => self.show_evidence(words.word(1)),
                "revisions" => self.show_revisions(words.word(1)),
                "approvals" => self.show_approvals(words.word(1)),
                "inbox" => self.show_inbox(words.word(1)),
                "journal" => self.show_journal(words.word(1)),
                "envelope" => self.show_envelope(words.word(1)),
                "status" => self.show_status(words.word(1)),
                "trigger" => self.show_trigger(words.word(1)),
                "log" => self.show_log(words.word(1)),
                _ => self.step(&words),
            }
        }
        std::mem::take(&mut self.out)
    }

    /// The packages that each version of an agent had and has, by the first bytes of their digests.
    fn show_revisions(&mut self, name: &str) {
        let name = name.parse().expect("an agent name");
        let mut told = String::new();
        for agent in self.state.agent_versions(&Namespace::default_namespace(), &name) {
            told += &format!("{name} {}:", agent.version);
            for old in &agent.revisions {
                told += &format!(" {}={:02x}", old.number, old.digest.0[0]);
            }
            let by = agent.registered_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            told += &format!(" now {}={:02x}{by}\n", agent.revision, agent.digest.0[0]);
        }
        self.out += &told;
    }

    /// What a job keeps for its receipt.
    fn show_evidence(&mut self, name: &str) {
        let id = self.job_id(name);
        let evidence = self.state.job(id).and_then(|job| job.evidence.clone()).unwrap_or_default();
        let grants: Vec<_> =
            evidence.grants.iter().map(|grant| format!("{} on {}", grant.attempt.0, grant.node)).collect();
        let by = |by: &Option<Principal>| by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let answers = evidence.answers.iter();
        let answers: Vec<_> =
            answers.map(|answer| format!("step {} {}{}", answer.step, answer.how.as_str(), by(&answer.by))).collect();
        self.out += &format!("{name}: grants {grants:?} answers {answers:?}\n");
    }

    /// The approvals of a job: the rule, the agent, and who approved.
    fn show_approvals(&mut self, name: &str) {
        let id = self.job_id(name);
        let approvals = self.state.job(id).and_then(|job| job.approvals.clone());
        let shown: Vec<_> = approvals
            .iter()
            .flat_map(|approvals| &approvals.all)
            .map(|approval| {
                let by = approval.by.as_ref().map_or("nobody", |by| by.as_str());
                format!("{} for {} by {by}", approval.rule, approval.agent)
            })
            .collect();
        self.out += &format!("{name}: {}\n", shown.join(", "));
    }

    /// The token buckets that are kept, and in how many seconds each is full.
    fn show_buckets(&mut self) {
        let left = |full: ClusterTime| full.since(self.state.clock).0 / 1_000_000;
        let buckets: Vec<_> = self.state.buckets.iter().map(|(_, full)| left(*full)).collect();
        self.out += &format!("buckets full in {buckets:?} s\n");
    }

    pub(crate) fn job_id(&self, name: &str) -> JobId {
        if let Some((run, step)) = name.strip_prefix('r').and_then(|name| name.split_once('/'))
            && let Ok(step) = step.parse()
        {
            return JobId(build::run_id(run).0).derive(!0).derive(step);
        }
        let known = self.names.iter().find(|(_, known)| *known == name).map(|(id, _)| *id);
        known.unwrap_or_else(|| match name.strip_prefix('c') {
            Some(child) => JobId(1_000 + child.parse::<u64>().expect("c and a number")),
            None => JobId(name.trim_start_matches('j').parse().expect("j and a number")),
        })
    }

    fn step(&mut self, words: &Words<'_>) {
        let command = build::command(self, words);
        if let Command::SubmitJob(submit) = &command {
            let name = words.word(if submit.spawner.is_some() { 2 } else { 1 });
            self.names.entry(submit.id).or_insert_with(|| name.to_owned());
        }
        if let Command::AdvanceRun(AdvanceRun { next: RunNext::Step { submit, .. }, .. }) = &command {
            let step = self.state.run(build::run_id(words.word(1))).map_or(0, |run| run.steps.len());
            self.names.entry(submit.id).or_insert_with(|| format!("{}/{step}", words.word(1)));
        }
        if let Command::AdvanceRun(AdvanceRun { next: RunNext::Wave(wave), .. }) = &command {
            let steps = self.state.run(build::run_id(words.word(1))).map_or(0, |run| run.steps.len());
            for (step, record) in wave.start.iter().zip(steps..) {
                self.names.entry(step.submit.id).or_insert_with(|| format!("{}/{record}", words.word(1)));
            }
        }
        if let Command::FireTrigger(FireTrigger { start: Some(TriggerStart::Job(job)), .. }) = &command {
            self.names.entry(job.id).or_insert_with(|| words.word(2).to_owned());
        }
        if let Command::ConsultOrchestrator(consult) = &command {
            self.names.entry(consult.id).or_insert_with(|| words.word(1).to_owned());
        }
        if let Command::RetryJob(retry) = &command {
            self.names.entry(retry.id).or_insert_with(|| words.word(2).to_owned());
        }
        if let Command::ForkJob(fork) = &command {
            self.names.entry(fork.id).or_insert_with(|| words.word(2).to_owned());
        }
        let (outcome, events) = apply(&mut self.state, Request { origin: origin(words), command });
        for record in &events {
            self.print(record);
        }
        let out = &mut self.out;
        match outcome {
            Err(Rejection::UnknownJob { job }) => {
                writeln!(out, "! no such job: {}", self.names.get(&job).map_or("?", |n| n))
            }
            Err(Rejection::RunTaken { job }) => writeln!(out, "! the run already carries {}", self.names[&job]),
            Err(Rejection::DuplicateJob { job }) => writeln!(out, "! the id of {} is taken", self.names[&job]),
            Err(rejection) => writeln!(out, "! {rejection}"),
            Ok(Outcome::Submitted { job, repeated: true }) => writeln!(out, "= {} again", self.names[&job]),
            Ok(Outcome::Cancelled { accepted: false }) => writeln!(out, "= nothing to cancel"),
            Ok(Outcome::NodeRegistered { epoch }) => writeln!(out, "= epoch {epoch}"),
            Ok(Outcome::Parked { ready: true }) => writeln!(out, "= ready"),
            Ok(Outcome::Delivered { repeated: true }) => writeln!(out, "= delivered before"),
            Ok(Outcome::Pruned { jobs }) => writeln!(out, "= pruned {jobs}"),
            Ok(Outcome::MemberJoined { member }) => writeln!(out, "= member {member}"),
            Ok(Outcome::TokenMade { salt, expires }) => {
                writeln!(out, "= a token of salt {salt} until {} s", expires.0 / 1_000_000)
            }
            Ok(_) => Ok(()),
        }
        .expect("writing to a string");
    }

    fn print(&mut self, record: &EventRecord) {
        let line = match &record.event {
            Event::Agent { agent } => {
                let retired = if agent.retired { " retired" } else { "" };
                let why = agent.deprecated.as_ref().map(|why| format!(" deprecated: {why}")).unwrap_or_default();
                format!("agent {} {}{retired}{why}{}", agent.name, agent.version, circuit(&agent.circuit))
            }
            Event::AgentDeleted { agent } => format!("agent {} {} deleted", agent.name, agent.version),
            Event::Node { node } => {
                let marks = [(node.cordoned, " cordoned"), (node.draining, " draining")];
                let marks: String = marks.into_iter().filter(|(set, _)| *set).map(|(_, text)| text).collect();
                let until = node.drain_until.map(|until| format!(" until {} s", until.0 / 1_000_000));
                let labels: String = node.labels().into_iter().map(|(key, value)| format!(" {key}={value}")).collect();
                let until = until.unwrap_or_default();
                let circuit = circuit(&node.circuit);
                let rival = node
                    .rival
                    .as_deref()
                    .map(|rival| format!(" {} asks for the name of {}", rival.address, rival.holder));
                let rival = rival.unwrap_or_default();
                format!("node {} epoch {} {:?}{marks}{until}{labels}{circuit}{rival}", node.id, node.epoch, node.health)
            }
            Event::NodeRemoved { node } => format!("node {node} removed"),
            Event::Configured { .. } => "configured".to_owned(),
            Event::StepsRecorded { job, from, steps } => {
                let kinds: Vec<_> = steps.iter().map(|step| step.kind.as_str()).collect();
                format!("{} steps from {from}: {}", self.names[job], kinds.join(" "))
            }
            Event::Erased { namespace, job } => match job {
                Some(job) => format!("{} erased", self.names.get(job).map_or("a job", String::as_str)),
                None => format!("namespace {namespace} erased"),
            },
            Event::MessageDelivered { job, message, number } => {
                format!("{} message {number}: {message}", self.names[job])
            }
            Event::QuestionAsked { question } => {
                let due = question.due.map(|due| format!(" until {} s", due.0 / 1_000_000)).unwrap_or_default();
                format!(
                    "{} asks at step {}: {}{due}",
                    self.names[&question.job],
                    question.step,
                    question.ask.kind.as_str()
                )
            }
            Event::QuestionEnded { question } => {
                format!("{} question of step {} {}", self.names[&question.job], question.step, ended(question))
            }
            Event::ObjectPut { object } => {
                let labels: String = object.labels.iter().map(|(key, value)| format!(" {key}={value}")).collect();
                let (uid, revision) = (object.uid, object.revision);
                let spec = String::from_utf8_lossy(&object.spec);
                let shown: String = spec.chars().take(60).collect();
                format!("{} {} uid {uid} revision {revision}{labels} {shown}", object.key.kind, object.key.name)
            }
            Event::ObjectDeleted { object } => format!("{} {} deleted", object.key.kind, object.key.name),
            Event::Run { change, run } => {
                let error = run.error();
                let why = if error.is_empty() { error } else { format!(": {error}") };
                format!("r{} {change} {} step {}{why}", run.id.0, run.status.as_str(), run.current_step())
            }
            Event::StepsFolded { job, upto, .. } => format!("{} steps up to {upto} folded", self.names[job]),
            Event::Job { change, old_status, job } => {
                let name = self.name(job.id, job.original, job.retry_count);
                let (old, new) = (old_status.as_str(), job.status.as_str());
                let more = match change {
                    JobChange::Submitted => format!("{:?}", job.reason),
                    JobChange::Carried => job.carried.map_or_else(String::new, |carried| format!("by {}", carried.run)),
                    JobChange::Granted => job.lease.as_ref().map_or("without a lease".to_owned(), |lease| {
                        format!("on {} token {} attempt {}", lease.node, lease.token, lease.attempt)
                    }),
                    JobChange::Ended => {
                        job.failure.as_ref().map_or(String::new(), |f| format!("{:?}: {}", f.kind, f.error))
                    }
                    _ => format!("{:?}", job.reason),
                };
                format!("{name} {change:?} {old}→{new} {more}").trim_end().to_owned()
            }
        };
        writeln!(self.out, "{line}").expect("writing to a string");
    }

    /// Automatic retries get their id from the job that failed; here they are called by the first of the family, `j1'1`.
    fn name(&mut self, id: JobId, original: Option<JobId>, retry_count: u32) -> &str {
        let first = original.and_then(|original| self.names.get(&original)).cloned().unwrap_or_default();
        self.names.entry(id).or_insert_with(|| format!("{first}'{retry_count}"))
    }

    fn show_run(&mut self, name: &str) {
        let line = match self.state.run(build::run_id(name)) {
            None => format!("{name}: gone"),
            Some(run) => {
                let steps: Vec<String> = run.steps.iter().map(|step| shown_step(run, step)).collect();
                let ready = if run.is_ready() { " ready" } else { "" };
                let status = run.status.as_str();
                format!(
                    "{name}: {status}{ready} version {} of {} steps {steps:?} {}",
                    run.version,
                    run.total_steps,
                    run.error()
                )
            }
        };
        writeln!(self.out, "{}", line.trim_end()).expect("writing to a string");
    }

    fn show_status(&mut self, name: &str) {
        let status = self.state.object(&build::object_key("namespace", name)).map(|object| Arc::clone(&object.status));
        let status = status.filter(|status| !status.is_empty());
        let status = status.map_or("none".into(), |status| String::from_utf8_lossy(&status).into_owned());
        writeln!(self.out, "{name}: {status}").expect("writing to a string");
    }

    fn show_trigger(&mut self, name: &str) {
        let found = self.state.object(&build::object_key("trigger", name)).expect("a trigger");
        let TriggerStatus { fire_count, next_fire, last_job_id, missed, .. } = TriggerStatus::of(found);
        writeln!(self.out, "{name}: fired {fire_count} next {next_fire} last {last_job_id} missed {missed}")
            .expect("writing to a string");
    }

    fn show_log(&mut self, name: &str) {
        let id = self.job_id(name);
        let digest = self.state.job(id).and_then(|job| match &job.stream.as_ref()?.body {
            PayloadBody::Artifact { digest, .. } => Some(digest.0[0]),
            PayloadBody::Inline(_) => None,
        });
        writeln!(self.out, "{name}: log {digest:?}").expect("writing to a string");
    }

    fn show_envelope(&mut self, name: &str) {
        let line = match self.state.envelope(self.job_id(name)) {
            None => format!("{name}: no envelope"),
            Some(envelope) => {
                let call = |((job, key), amount): (&(JobId, StepKey), &u64)| {
                    let job = self.names.get(job).cloned().unwrap_or_default();
                    format!("{job} call {} {amount}", key.0[0])
                };
                let calls: Vec<_> = envelope.reserved.iter().map(call).collect();
                format!("{name}: spent {} reserved [{}]", envelope.spent, calls.join(", "))
            }
        };
        writeln!(self.out, "{line}").expect("writing to a string");
    }

    fn show_journal(&mut self, name: &str) {
        let line = match self.state.journal(self.job_id(name)) {
            None => format!("{name}: no journal"),
            Some(journal) => {
                let folds: Vec<_> = journal.folds.iter().map(|fold| fold.upto).collect();
                let kinds: Vec<_> = journal.steps.iter().map(|step| step.kind.as_str()).collect();
                let cost = journal.usage().cost_nanodollars;
                let cost = if cost == 0 { String::new() } else { format!(", cost {cost}") };
                format!("{name}: folds {folds:?} steps {} of {} bytes{cost}", kinds.join(" "), journal.bytes())
            }
        };
        writeln!(self.out, "{line}").expect("writing to a string");
    }

    /// `questions j1 first` shows only the oldest one.
    fn show_questions(&mut self, words: &Words<'_>) {
        let count = if words.rest(2).0.is_empty() { usize::MAX } else { 1 };
        let job = self.job_id(words.word(1));
        let shown: Vec<_> = self.state.questions_of(job).take(count).collect();
        let shown = shown.into_iter().map(|question| format!("step {} {}", question.step, ended(question)));
        let line = format!("{}: {}", words.word(1), shown.collect::<Vec<_>>().join(", "));
        writeln!(self.out, "{}", line.trim_end()).expect("writing to a string");
    }

    fn show_inbox(&mut self, name: &str) {
        let line = match self.state.inbox(self.job_id(name)) {
            None => format!("{name}: no inbox"),
            Some(inbox) => {
                let messages: Vec<_> = inbox.messages.iter().map(|message| message.id.as_str()).collect();
                format!("{name}: read {} {:?} then {messages:?} of {} bytes", inbox.read, inbox.read_ids, inbox.bytes())
            }
        };
        writeln!(self.out, "{line}").expect("writing to a string");
    }

    fn show(&mut self, name: &str) {
        let line = if let Some(node) = self.state.node(&NodeId::new(name).expect("a name")) {
            let free = &node.free;
            let amount =
                |amount: u64, untracked| if amount == untracked { "any".to_owned() } else { amount.to_string() };
            let cores = amount(free.cores.into(), u32::MAX.into());
            let memory = amount(free.memory_bytes, u64::MAX);
            let gpus: Vec<_> = free.gpus.iter().map(|gpu| gpu.free_bytes).collect();
            let warm: Vec<_> = node.node.warm.values().collect();
            let owed = |owed: u32| if owed == 0 { String::new() } else { format!(" owed {owed}") };
            let (places, llm) = (&free.processes, &free.llm);
            let llm = match llm.total {
                0 => String::new(),
                _ => format!(" llm {}{}", llm.free, owed(node.owed[1])),
            };
            let places = format!("places {}{}{llm}", places.free, owed(node.owed[0]));
            format!("{name}: {places} cores {cores} memory {memory} gpus {gpus:?} warm {warm:?}")
        } else {
            let id = self.job_id(name);
            match self.state.job(id) {
                None => format!("{name}: gone"),
                Some(job) => {
                    let reason = match job.reason {
                        _ if job.status.is_terminal() => String::new(),
                        Reason::Backoff { until } | Reason::Delayed { until } => {
                            format!(" back-off {} s", until.since(self.state.clock).0 / 1_000_000)
                        }
                        reason => format!(" {reason:?}"),
                    };
                    let output = job.output.as_ref().map_or(String::new(), |output| format!(" output {output:?}"));
                    let route = job.route.as_ref().map_or(String::new(), |route| {
                        let action = route.action.as_str();
                        let rule = route.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
                        format!(" {action}{rule} under {} as {} priority {}", route.generation, job.agent, job.priority)
                    });
                    format!("{name}: {}{reason} attempt {}{output}{route}", job.status.as_str(), job.attempt)
                }
            }
        };
        writeln!(self.out, "{line}").expect("writing to a string");
    }
}

/// How a question ended, with its answer.
fn ended(question: &Question) -> String {
    let answer = question.answer().map(|answer| format!(" {}", String::from_utf8_lossy(answer).trim()));
    let by = match &question.end {
        Some(QuestionEnd::Answered { by, .. }) => format!(" by {by}"),
        _ => String::new(),
    };
    format!("{}{by}{}", question.status(), answer.unwrap_or_default())
}

fn origin(words: &Words<'_>) -> Origin {
    Origin {
        namespace: Namespace::new(words.text("ns").unwrap_or("default")).expect("a name"),
        principal: words.text("by").map_or_else(Principal::local, |name| Principal::new(name).expect("a name")),
        door: Door::Local,
        request_id: words.text("key").map(|key| RequestId::new(key).expect("a name")),
        body_hash: words.or("body", 0),
        trace: None,
    }
}

/// Applies one request as an entry of its own, in both ways, and checks what must hold whatever the request is.
pub(crate) fn apply(state: &mut State, request: Request) -> (Result<Outcome, Rejection>, Vec<EventRecord>) {
    let before = state.clone();
    let (at, clock) = (Timestamp(state.at.0 + 1_000), state.clock);
    let mut replica = state.clone();
    let parent = Parent { seq: state.seq, chain: state.chain };
    state.begin_entry(at, clock);
    let (outcome, events) = state.apply(&request, at, clock);
    state.end_entry();

    let level = state.level;
    let (cluster_id, requests) = (state.cluster_id, vec![request]);
    let entry = Entry { cluster_id, level, min_reader_level: level, parent, at, clock, requests };
    let done = Applied::Done { outcomes: vec![outcome.clone()], events: events.clone() };
    assert_eq!(replica.apply_entry(&entry), Ok(done), "head and replica differ");
    assert_eq!(replica.to_image(), state.to_image(), "head and replica differ");
    assert_eq!(replica.apply_entry(&entry), Ok(Applied::Stale), "an entry was applied twice");

    if let Err(violation) = state.check_invariants() {
        panic!("after {:?}: {violation}", entry.requests);
    }
    if outcome.is_err() {
        assert_eq!(facts(state), facts(&before), "a refusal left a trace");
        assert!(events.is_empty());
    }
    let numbers = events.iter().map(|record| record.seq.0);
    assert!(numbers.eq(before.event_seq.0 + 1..=state.event_seq.0), "events have gaps");
    (outcome, events)
}

/// The state without what every entry moves on.
fn facts(state: &State) -> StateImage {
    StateImage { seq: Default::default(), at: Timestamp::NOT_YET, ..state.to_image() }
}

/// Names that scripts use for agents.
pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("a name")
}

fn shown_step(run: &atlas_types::Run, step: &atlas_types::RunStep) -> String {
    let number = run.branches.as_ref().map_or(String::new(), |_| format!("{} ", step.number));
    let fault = step.fault.as_ref().map_or(String::new(), |fault| format!(" {}", fault.step_error(&step.agent)));
    format!("{number}{} {:?}{fault}", step.agent, step.output)
}

/// An open circuit.
fn circuit(circuit: &Circuit) -> String {
    let open = circuit.open.map(|_| format!(" circuit open after {} failures", circuit.failures));
    open.unwrap_or_default()
}
