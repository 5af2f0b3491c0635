//! Metrics of model calls and tool calls, from the recorded steps. Names of models come from providers and names of tools from servers, so
//! the number of series is bounded here.

use std::collections::BTreeSet;
use std::sync::Arc;

use atlas_jobs::passes_on;
use atlas_state::State;
use atlas_telemetry::{ByLlmCall, ByLlmTokens, ByLoopEnd, ByServer, ByTool, ByToolCall, LoopEnd, Metrics, TokenKind};
use atlas_types::{
    AgentVersion, Event, EventRecord, JobChange, JobId, ObjectKey, Payload, PayloadBody, Step, StepKind, StepUsage,
};
use atlas_vault::Asks;
use serde::Deserialize;

use crate::needs::{answered, server_asked};
use crate::series::{OTHER, PAIRS_MAX, Series, TOOLS_MAX};

/// Longest name of a model that is shown.
const NAME_BYTES_MAX: usize = 128;

/// Records model calls and tool calls. It remembers which of them have series.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    pairs: Series<2>,
    tools: Series<3>,
    /// The agents and servers with a series that says whether the server answers.
    up: BTreeSet<[String; 2]>,
}

impl Default for ModelMetrics {
    fn default() -> Self {
        Self { pairs: Series::new(PAIRS_MAX), tools: Series::new(TOOLS_MAX), up: BTreeSet::new() }
    }
}

/// The part of a round of tools that is counted.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Round {
    mcp: Vec<ToolCall>,
}

/// A tool call to an MCP server.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ToolCall {
    server: String,
    tool: String,
    outcome: String,
    duration_us: u64,
}

/// The part of an answer that is counted.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Counted {
    model: String,
    usage: Tokens,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Tokens {
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
}

impl ModelMetrics {
    /// Updates the metrics for the events of an entry. `state` is the one after it.
    pub(crate) fn record(&mut self, metrics: &Metrics, state: &State, events: &[EventRecord]) {
        // The steps of a job that has no lease yet are copies of those of another one, which were counted there.
        let mut begun: BTreeSet<JobId> = BTreeSet::new();
        for event in events {
            match &event.event {
                Event::Job { change: JobChange::Submitted, job, .. } => drop(begun.insert(job.id)),
                Event::Job { change: JobChange::Granted, job, .. } => drop(begun.remove(&job.id)),
                Event::StepsRecorded { job, .. } if begun.contains(job) => {}
                Event::StepsRecorded { job, steps, .. } => self.steps(metrics, state, *job, steps),
                Event::Job { change: JobChange::Ended, job, .. } => {
                    if let Some((server, is_up)) = server_asked(state, job) {
                        self.server(metrics, state, &server, is_up);
                    }
                    let repeats = || String::from_utf8_lossy(&job.metadata).contains(r#""_halted":"repeat""#);
                    if !job.metadata.is_empty() && repeats() {
                        let [agent, _] = self.pair(job.agent.as_str(), "");
                        metrics.agent_loop_aborted.get_or_create(&ByLoopEnd { agent, reason: LoopEnd::repeat }).inc();
                    }
                }
                Event::ObjectDeleted { object } if object.key.kind.as_str() == "mcp-server" => {
                    self.gone(metrics, state, |[_, server]| server == object.key.name.as_str());
                }
                Event::Agent { agent } | Event::AgentDeleted { agent } if agent.retired => {
                    self.gone(metrics, state, |[name, _]| name == agent.name.as_str());
                }
                _ => {}
            }
        }
    }

    fn steps(&mut self, metrics: &Metrics, state: &State, job: JobId, steps: &[Arc<Step>]) {
        for step in steps.iter().filter(|step| step.kind == StepKind::Model) {
            let agent = state.job(job).map_or(OTHER, |job| job.agent.as_str());
            let counted = counted(&step.outcome);
            let [agent, model] = self.pair(agent, &counted.model);
            call(metrics, &ByLlmCall { agent, model }, &step.usage, counted.usage);
        }
        for step in steps.iter().filter(|step| matches!(step.kind, StepKind::Tools | StepKind::Effect)) {
            let job = state.job(job);
            let forwards = |server: &str| {
                let key = Asks { namespace: &job?.namespace, input: None }.server(server)?;
                Some(passes_on(state.object(&key)?))
            };
            let agent = job.map_or(OTHER, |job| job.agent.as_str());
            self.round(metrics, agent, &step.outcome, |server| forwards(server).unwrap_or(false));
        }
    }

    /// Counts the calls of a round. A larger round is in an artifact, and its calls are recorded once more by themselves.
    /// `forwards` tells which servers get the credentials of callers.
    fn round(&mut self, metrics: &Metrics, agent: &str, outcome: &Payload, forwards: impl Fn(&str) -> bool) {
        let PayloadBody::Inline(bytes) = &outcome.body else { return };
        // Rounds of other tools are lists.
        let Ok(Round { mcp }) = serde_json::from_slice(bytes) else { return };
        for call in mcp {
            let [agent, server, operation] = self.triple(agent, &call);
            self.set_up(metrics, &agent, &server, answered(&call.outcome, forwards(&call.server)));
            let by_tool = ByTool { agent: agent.clone(), server: server.clone(), operation: operation.clone() };
            metrics.tool_call_duration.get_or_create(&by_tool).observe(call.duration_us as f64 / 1e6);
            let outcome = if call.outcome.len() > NAME_BYTES_MAX { OTHER.to_owned() } else { call.outcome };
            metrics.tool_calls.get_or_create(&ByToolCall { agent, server, operation, outcome }).inc();
        }
    }

    /// Notes for all agents that name a server whether it answers.
    fn server(&mut self, metrics: &Metrics, state: &State, server: &ObjectKey, is_up: bool) {
        if state.object(server).is_none() {
            return;
        }
        let names = |agent: &&Arc<AgentVersion>| {
            !agent.retired && agent.spec.servers.iter().any(|named| named == server.name.as_str())
        };
        for agent in state.agents(&server.namespace).filter(names) {
            let call = ToolCall { server: server.name.to_string(), ..ToolCall::default() };
            let [agent, server, _] = self.triple(agent.name.as_str(), &call);
            self.set_up(metrics, &agent, &server, is_up);
        }
    }

    fn set_up(&mut self, metrics: &Metrics, agent: &str, server: &str, is_up: bool) {
        let [agent, server] = [agent, server].map(str::to_owned);
        self.up.insert([agent.clone(), server.clone()]);
        metrics.downstream_up.get_or_create(&ByServer { agent, server }).set(is_up.into());
    }

    /// Removes series of servers that no agent names any more, so that nobody is alarmed about them.
    fn gone(&mut self, metrics: &Metrics, state: &State, may_be_gone: impl Fn(&[String; 2]) -> bool) {
        self.up.retain(|pair| {
            let stays = !may_be_gone(pair) || is_named(state, pair);
            if !stays {
                let [agent, server] = pair.clone();
                metrics.downstream_up.remove(&ByServer { agent, server });
            }
            stays
        });
    }

    /// The labels for a tool call.
    fn triple(&mut self, agent: &str, call: &ToolCall) -> [String; 3] {
        self.tools.labels([agent.to_owned(), short(&call.server), short(&call.tool)])
    }

    /// The labels for a call.
    fn pair(&mut self, agent: &str, model: &str) -> [String; 2] {
        self.pairs.labels([agent.to_owned(), short(model)])
    }
}

/// Whether an agent in service names a server that exists. Names of namespaces are not in the series.
fn is_named(state: &State, [agent, server]: &[String; 2]) -> bool {
    state.agents_everywhere().any(|version| {
        let is_so = |named: &String| named == server || named.starts_with("{input.");
        let names = !version.retired && version.name.as_str() == agent && version.spec.servers.iter().any(is_so);
        let key = || Asks { namespace: &version.namespace, input: None }.server(server);
        names && key().is_some_and(|key| state.object(&key).is_some())
    })
}

fn short(name: &str) -> String {
    if name.len() > NAME_BYTES_MAX { OTHER.to_owned() } else { name.to_owned() }
}

fn counted(outcome: &Payload) -> Counted {
    match &outcome.body {
        PayloadBody::Inline(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
        // The answer is in an artifact, which is not fetched for a metric.
        PayloadBody::Artifact { .. } => Counted { model: OTHER.to_owned(), ..Counted::default() },
    }
}

fn call(metrics: &Metrics, labels: &ByLlmCall, usage: &StepUsage, tokens: Tokens) {
    metrics.llm_turns.get_or_create(labels).inc();
    metrics.llm_cost.get_or_create(labels).inc_by(usage.cost_nanodollars);
    metrics.llm_call_duration.get_or_create(labels).observe(usage.duration.0 as f64 / 1e6);
    for (kind, count) in [
        (TokenKind::input, usage.tokens_input),
        (TokenKind::output, usage.tokens_output),
        (TokenKind::cache_read, tokens.cache_read),
        (TokenKind::cache_write, tokens.cache_write),
        (TokenKind::reasoning, tokens.reasoning),
    ] {
        if count > 0 {
            let ByLlmCall { agent, model } = labels.clone();
            metrics.llm_tokens.get_or_create(&ByLlmTokens { agent, model, kind }).inc_by(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_telemetry::{ByAgent, ByMessageOutcome, MessageOutcome};
    use atlas_types::Micros;

    use crate::series::AGENTS_MAX;

    use super::*;

    /// Most bytes of a scrape.
    const SCRAPE_BYTES_MAX: usize = 2 * 1024 * 1024;

    #[test]
    fn a_call_counts_by_agent_and_model() {
        let (metrics, mut models) = (Metrics::new(), ModelMetrics::default());
        let outcome = Payload::inline(br#"{"parts":[],"model":"m-1","usage":{"input":10,"output":5,"reasoning":2}}"#);
        let usage = StepUsage { duration: Micros(2_000), tokens_input: 10, tokens_output: 5, cost_nanodollars: 20_000 };
        let counted = counted(&outcome);
        let [agent, model] = models.pair("thinker", &counted.model);
        call(&metrics, &ByLlmCall { agent, model }, &usage, counted.usage);
        let text = metrics.render();
        for line in [
            r#"atlas_llm_turns_total{agent="thinker",model="m-1"} 1"#,
            r#"atlas_llm_tokens_total{agent="thinker",model="m-1",kind="input"} 10"#,
            r#"atlas_llm_tokens_total{agent="thinker",model="m-1",kind="reasoning"} 2"#,
            r#"atlas_llm_cost_nanodollars_total{agent="thinker",model="m-1"} 20000"#,
            r#"atlas_llm_call_duration_seconds_count{agent="thinker",model="m-1"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is missing from\n{text}");
        }
        assert!(!text.contains(r#"kind="cache_read""#), "{text}");
    }

    #[test]
    fn a_call_of_a_tool_counts_by_agent_server_and_tool() {
        let (metrics, mut models) = (Metrics::new(), ModelMetrics::default());
        let round = br#"{"mcp":[{"server":"lab","tool":"add","outcome":"ok","duration_us":2000}],"returned":[]}"#;
        models.round(&metrics, "thinker", &Payload::inline(round), |_| false);
        let down = br#"{"mcp":[{"server":"lab","tool":"add","outcome":"timeout","duration_us":1}]}"#;
        models.round(&metrics, "thinker", &Payload::inline(down), |_| false);
        models.round(&metrics, "thinker", &Payload::inline(br#"[{"call":"1"}]"#), |_| false);
        let text = metrics.render();
        for line in [
            r#"atlas_tool_calls_total{agent="thinker",server="lab",operation="add",outcome="ok"} 1"#,
            r#"atlas_tool_calls_total{agent="thinker",server="lab",operation="add",outcome="timeout"} 1"#,
            r#"atlas_tool_call_duration_seconds_count{agent="thinker",server="lab",operation="add"} 2"#,
            r#"atlas_downstream_up{agent="thinker",server="lab"} 0"#,
        ] {
            assert!(text.contains(line), "{line} is missing from\n{text}");
        }
    }

    #[test]
    fn servers_that_are_gone_have_no_series() {
        let (metrics, mut models) = (Metrics::new(), ModelMetrics::default());
        for server in ["lab", "shop"] {
            models.set_up(&metrics, "thinker", server, false);
        }
        models.gone(&metrics, &State::new(1), |[_, server]| server == "lab");
        let text = metrics.render();
        assert!(text.contains(r#"atlas_downstream_up{agent="thinker",server="shop"} 0"#), "{text}");
        assert!(!text.contains(r#"server="lab""#), "{text}");
        // What a credential may not do is refused by a server that answers.
        let round = br#"{"mcp":[{"server":"shop","tool":"buy","outcome":"forbidden","duration_us":1}]}"#;
        models.round(&metrics, "thinker", &Payload::inline(round), |_| false);
        assert!(metrics.render().contains(r#"atlas_downstream_up{agent="thinker",server="shop"} 1"#));
    }

    /// Names of agents, models, servers and tools are longer here than most are.
    #[test]
    fn a_scrape_is_small_however_many_agents_there_are() {
        let (metrics, mut models) = (Metrics::new(), ModelMetrics::default());
        let mut agents = Series::new(AGENTS_MAX);
        let tokens = Tokens { cache_read: 1, cache_write: 1, reasoning: 1 };
        let usage = StepUsage { duration: Micros(2_000), tokens_input: 10, tokens_output: 5, cost_nanodollars: 20_000 };
        for number in 0..10_000 {
            let agent = format!("reviewer-of-reports-{number}");
            let round = format!(
                r#"{{"mcp":[{{"server":"server-{number}","tool":"read_a_page","outcome":"ok","duration_us":2000}}]}}"#
            );
            models.round(&metrics, &agent, &Payload::inline(round.as_bytes()), |_| false);
            let [by_agent, model] = models.pair(&agent, "claude-sonnet-4-5");
            call(&metrics, &ByLlmCall { agent: by_agent, model }, &usage, tokens);
            let [agent] = agents.labels([agent]);
            metrics
                .send_message
                .get_or_create(&ByMessageOutcome { agent: agent.clone(), outcome: MessageOutcome::ok })
                .inc();
            metrics.send_message_duration.get_or_create(&ByAgent { agent: agent.clone() }).observe(0.1);
            metrics.agent_health_status.get_or_create(&ByAgent { agent }).set(1.0);
        }
        let text = metrics.render();
        assert!(text.len() <= SCRAPE_BYTES_MAX, "{} bytes", text.len());
        assert_eq!(models.pair("a", &"x".repeat(NAME_BYTES_MAX + 1)), [OTHER, OTHER]);
    }
}
