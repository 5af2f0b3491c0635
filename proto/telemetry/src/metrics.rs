//! All instruments of all programs: name, unit and sentence together. The field's doc comment is its sentence.

use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::instrument::{CounterBy, Declaration, GaugeBy, HistogramBy, Instrument, ShareBy, register};
use crate::{
    ByAgent, ByAgentPort, ByAuditDecision, ByCircuit, ByDecision, ByDeliveryResult, ByHealth, ByLlmCall, ByLlmTokens,
    ByLoopEnd, ByMessageOutcome, ByOutcome, ByProvider, ByReason, ByReportResult, ByServer, BySignal, ByStatus,
    ByStatusCode, ByTool, ByToolCall,
};

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

macro_rules! instruments {
    ($( #[doc = $sentence:literal] $field:ident: $kind:ty = $name:literal $unit:literal; )*) => {
        /// The instruments of one process. Clones share the instruments.
        #[derive(Debug, Clone)]
        pub struct Metrics {
            registry: Arc<Registry>,
            $( #[doc = $sentence] pub $field: $kind, )*
        }

        const DECLARATIONS: &[Declaration] = &[
            $( Declaration {
                name: $name, unit: $unit, kind: <$kind as Instrument>::KIND, sentence: $sentence.trim_ascii(),
            }, )*
        ];

        impl Metrics {
            /// Creates all instruments at zero.
            pub fn new() -> Self {
                let mut registry = Registry::default();
                let mut declarations = DECLARATIONS.iter();
                $(
                    let $field = <$kind>::create();
                    if let Some(declaration) = declarations.next() {
                        register(&mut registry, declaration, &$field);
                    }
                )*
                Self { registry: Arc::new(registry), $( $field, )* }
            }
        }

        /// The fields of [`Metrics`], for the test that each is recorded somewhere.
        #[cfg(test)]
        const FIELDS: &[&str] = &[$( stringify!($field), )*];
    };
}

instruments! {
    /// Jobs that were accepted.
    job_submissions: Counter = "atlas.job.submissions" "{job}";
    /// Jobs that ended, by outcome.
    job_ends: CounterBy<ByOutcome> = "atlas.job.ends" "{job}";
    /// Leases granted: each is one attempt at a job.
    job_attempts: Counter = "atlas.job.attempts" "{attempt}";
    /// Leases lost with their node or process.
    lease_losses: Counter = "atlas.lease.losses" "{lease}";
    /// Retries of failed jobs.
    job_retries: Counter = "atlas.job.retries" "{job}";
    /// Time from a job's submission to its first lease.
    job_queue_wait: Histogram = "atlas.job.queue.wait" "s";
    /// Execution time of jobs.
    job_execution_duration: Histogram = "atlas.job.execution.duration" "s";
    /// Start time of slots, for jobs that did not find a warm slot.
    slot_warmup_duration: Histogram = "atlas.slot.warmup.duration" "s";
    /// Jobs that have not ended, by status.
    job_count: GaugeBy<ByStatus> = "atlas.job.count" "{job}";
    /// Waiting jobs, by reason. Jobs of at most 1,000 demands are examined; those of others count as `queued`.
    job_waiting: GaugeBy<ByReason> = "atlas.job.waiting.count" "{job}";
    /// Agent versions and nodes whose circuit is open, because attempts keep failing there.
    circuit_open: GaugeBy<ByCircuit> = "atlas.circuit.open.count" "{circuit}";
    /// Registered nodes, by health.
    node_count: GaugeBy<ByHealth> = "atlas.node.count" "{node}";
    /// Open worker streams of this controller.
    session_count: Gauge = "atlas.session.count" "{session}";
    /// Reports of workers, by result.
    reports: CounterBy<ByReportResult> = "atlas.report.answers" "{report}";
    /// Leader tasks that panicked; such a task is paused for a while, and the others continue.
    leader_task_panics: Counter = "atlas.leader.task.panics" "{panic}";
    /// Entries applied.
    raft_entries: Counter = "atlas.raft.entries" "{entry}";
    /// Events not yet written to the history file.
    history_lag: Gauge = "atlas.history.lag" "{event}";
    /// Duration of a history transaction.
    history_commit_duration: Histogram = "atlas.history.commit.duration" "s";
    /// Duration of a sync of the history to disk.
    history_sync_duration: Histogram = "atlas.history.sync.duration" "s";
    /// Entries since this controller's state digest last agreed with a majority.
    digest_lag: Gauge = "atlas.digest.lag" "{entry}";
    /// 1 while this controller's wall clock is not trusted and entries are stamped by its monotonic clock.
    clock_doubt_count: Gauge = "atlas.clock.doubt.count" "{clock}";
    /// Time of the last complete backup that this controller sent; 0 if it knows none.
    backup_time: Gauge = "atlas.backup.time" "s";
    /// Time at which this controller's certificate should be replaced; 0 without TLS.
    certificate_due: Gauge = "atlas.certificate.due.time" "s";
    /// Free space on the disk of the data directory.
    disk_free: Gauge = "atlas.disk.free" "By";
    /// Open event streams of clients, and webhooks that follow the events.
    subscriber_count: Gauge = "atlas.event.subscriber.count" "{subscriber}";
    /// Event streams closed because their reader was too slow.
    subscriber_drops: Counter = "atlas.event.subscriber.drops" "{subscriber}";
    /// Requests to the receivers of webhooks, and events given up after the last of them, by result.
    webhook_deliveries: CounterBy<ByDeliveryResult> = "atlas.webhook.deliveries" "{delivery}";
    /// Webhooks of this leader that cannot deliver at the moment.
    webhook_failing: Gauge = "atlas.webhook.failing.count" "{webhook}";
    /// Firings of triggers that this controller proposed, times that were skipped included.
    trigger_firings: Counter = "atlas.trigger.firings" "{firing}";
    /// Calls of webhooks that this controller refused.
    trigger_calls_refused: Counter = "atlas.trigger.call.refusals" "{call}";
    /// Decisions about jobs before they run, by action and by who decided; jobs of the default orchestrator are not counted.
    orchestrator_decisions: CounterBy<ByDecision> = "atlas.orchestrator.decisions" "{decision}";
    /// Records that this controller wrote to its audit.
    audit_records: CounterBy<ByAuditDecision> = "atlas.audit.records" "{record}";
    /// Denials beyond the rate that the audit of this controller records one by one; a record has their number.
    audit_dropped: Counter = "atlas.audit.dropped" "{denial}";
    /// Idempotency keys dropped early because of the limit on remembered keys.
    request_forgets: Counter = "atlas.request.forgets" "{request}";
    /// Time to answer an HTTP request, by status; streams count until their headers are sent.
    http_request_duration: HistogramBy<ByStatusCode> = "http.server.request.duration" "s";
    /// Bytes of packages and payloads stored as artifacts since the start.
    artifact_bytes: Counter = "atlas.artifact.stored" "By";
    /// Bytes of unreferenced artifacts removed.
    artifact_collected: Counter = "atlas.artifact.collected" "By";
    /// Referenced artifacts that no other controller could provide at the last check.
    artifact_missing: Gauge = "atlas.artifact.missing.count" "{artifact}";
    /// Missed events that this controller has yet to fetch from another controller's history.
    history_gap: Gauge = "atlas.history.missing.count" "{event}";
    /// Recorded tool calls to MCP servers, by outcome.
    tool_calls: CounterBy<ByToolCall> = "atlas.tool.calls" "{call}";
    /// Time of recorded tool calls to MCP servers.
    tool_call_duration: HistogramBy<ByTool> = "atlas.tool.call.duration" "s";
    /// 1 if the MCP server that an agent names answered the last recorded call of the agent, or was seen to answer since then, also by refusing; otherwise 0.
    downstream_up: GaugeBy<ByServer> = "atlas.downstream.up" "{server}";
    /// Events that the leader has in its history and not yet exported to PostgreSQL.
    history_export_lag: Gauge = "atlas.history.export.lag" "{event}";
    /// 1 while this leader cannot export its history to PostgreSQL.
    history_export_failing: Gauge = "atlas.history.export.failing.count" "{export}";
    /// Rows that this controller exported to PostgreSQL.
    history_exported: Counter = "atlas.history.exported" "{row}";
    /// Spans, log records and sets of metrics that a receiver of OTLP accepted.
    otlp_sent: CounterBy<BySignal> = "atlas.otlp.sent" "{item}";
    /// Spans, log records and sets of metrics that were dropped, because the receiver of OTLP was slow or away, or refused them.
    otlp_dropped: CounterBy<BySignal> = "atlas.otlp.dropped" "{item}";
    /// Recorded model calls.
    llm_turns: CounterBy<ByLlmCall> = "atlas.llm.turns" "{call}";
    /// Tokens of recorded model calls. Tokens from and to the provider's cache are a part of the input, reasoning is a part of the output.
    llm_tokens: CounterBy<ByLlmTokens> = "atlas.llm.tokens" "{token}";
    /// Prices of recorded model calls, in billionths of a US dollar.
    llm_cost: CounterBy<ByLlmCall> = "atlas.llm.cost.nanodollars" "{nanodollar}";
    /// Time of recorded model calls, with their retries.
    llm_call_duration: HistogramBy<ByLlmCall> = "atlas.llm.call.duration" "s";
    /// Jobs of agents with a model that were stopped before the model was done.
    agent_loop_aborted: CounterBy<ByLoopEnd> = "atlas.agent.loop.aborted" "{job}";
    /// 1 as long as the program runs.
    up: Gauge = "atlas.up" "{program}";
    /// Calls of `send_message`, by outcome.
    send_message: CounterBy<ByMessageOutcome> = "atlas.send.message" "{message}";
    /// Time of calls of `send_message`, with everything that they cause.
    send_message_duration: HistogramBy<ByAgent> = "atlas.send.message.duration" "s";
    /// 1 for each agent that was asked for at an MCP server of its own, with the port.
    agent_info: GaugeBy<ByAgentPort> = "atlas.agent.info" "{agent}";
    /// The answer of the latest `get_health` of an agent: 1 is ok, 0.5 degraded, 0 error.
    agent_health_status: ShareBy<ByAgent> = "atlas.agent.health.status" "{share}";
    /// 1 if the models of the provider could be reached when they were last asked, 0 if one of them could not.
    llm_provider_up: GaugeBy<ByProvider> = "atlas.llm.provider.up" "{provider}";
}

impl Metrics {
    /// All instruments in the OpenMetrics text format.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(16 * 1024);
        // Writing to a string cannot fail, but a collector can. The text is then incomplete, which the scraper reports.
        if text::encode(&mut text, &self.registry).is_err() {
            text.push_str("# EOF\n");
        }
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// All declared instruments, for the reference page.
pub fn table() -> &'static [Declaration] {
    DECLARATIONS
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::{fs, io};

    use super::*;
    use crate::instrument::Kind;
    use crate::{
        DeliveryResult, LoopEnd, MessageOutcome, NodeHealth, Outcome, ReportResult, Signal, Status, TokenKind,
    };

    /// Instruments that all have a line in a scrape; a family has no line before its first series.
    pub(crate) fn with_series() -> Metrics {
        let metrics = Metrics::new();
        drop(metrics.job_ends.get_or_create(&ByOutcome { atlas_job_outcome: Outcome::completed }));
        drop(metrics.job_count.get_or_create(&ByStatus { atlas_job_status: Status::running }));
        drop(metrics.job_waiting.get_or_create(&ByReason { atlas_job_reason: "no_room" }));
        drop(metrics.circuit_open.get_or_create(&ByCircuit { atlas_circuit_kind: "node" }));
        drop(metrics.node_count.get_or_create(&ByHealth { atlas_node_health: NodeHealth::ready }));
        drop(metrics.reports.get_or_create(&ByReportResult { atlas_report_result: ReportResult::fenced }));
        let delivered = ByDeliveryResult { atlas_webhook_result: DeliveryResult::delivered };
        drop(metrics.webhook_deliveries.get_or_create(&delivered));
        let decision = ByDecision { atlas_route_action: "execute", atlas_route_decider: "orchestrator" };
        drop(metrics.orchestrator_decisions.get_or_create(&decision));
        let recorded = ByAuditDecision { atlas_audit_decision: "allow" };
        drop(metrics.audit_records.get_or_create(&recorded));
        let (agent, model) = ("summarize".to_owned(), "m".to_owned());
        let call = ByLlmCall { agent: agent.clone(), model: model.clone() };
        drop(metrics.llm_turns.get_or_create(&call));
        drop(metrics.llm_cost.get_or_create(&call));
        drop(metrics.llm_call_duration.get_or_create(&call));
        drop(metrics.llm_tokens.get_or_create(&ByLlmTokens { agent: agent.clone(), model, kind: TokenKind::input }));
        let (server, operation) = ("lab".to_owned(), "add".to_owned());
        drop(metrics.downstream_up.get_or_create(&ByServer { agent: agent.clone(), server: server.clone() }));
        let tool = ByTool { agent: agent.clone(), server: server.clone(), operation: operation.clone() };
        drop(metrics.tool_call_duration.get_or_create(&tool));
        let outcome = "ok".to_owned();
        drop(metrics.tool_calls.get_or_create(&ByToolCall { agent: agent.clone(), server, operation, outcome }));
        drop(metrics.agent_loop_aborted.get_or_create(&ByLoopEnd { agent: agent.clone(), reason: LoopEnd::repeat }));
        let message = ByMessageOutcome { agent: agent.clone(), outcome: MessageOutcome::ok };
        drop(metrics.send_message.get_or_create(&message));
        drop(metrics.send_message_duration.get_or_create(&ByAgent { agent: agent.clone() }));
        drop(metrics.agent_info.get_or_create(&ByAgentPort { agent: agent.clone(), port: 7400 }));
        drop(metrics.agent_health_status.get_or_create(&ByAgent { agent }));
        drop(metrics.llm_provider_up.get_or_create(&ByProvider { provider: "openai".to_owned() }));
        let signal = BySignal { signal: Signal::traces };
        drop(metrics.otlp_sent.get_or_create(&signal));
        drop(metrics.otlp_dropped.get_or_create(&signal));
        drop(metrics.http_request_duration.get_or_create(&ByStatusCode { http_response_status_code: 200 }));
        metrics
    }

    #[test]
    fn every_instrument_is_in_a_scrape() {
        let text = with_series().render();
        for declaration in table() {
            let scrape = declaration.scrape_name();
            let family = scrape.trim_end_matches("_total");
            assert!(text.contains(&format!("# HELP {family} ")), "{family} is missing from\n{text}");
        }
    }

    #[test]
    fn names_follow_the_rules() {
        for declaration in table() {
            let Declaration { name, unit, kind, sentence } = declaration;
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'.'), "{name}");
            assert!(!name.ends_with("total"), "{name}");
            assert!(sentence.ends_with('.'), "{name}: {sentence}");
            assert!(["s", "By"].contains(unit) || (unit.starts_with('{') && unit.ends_with('}')), "{name}: {unit}");
            // These gauges have the names that dashboards of Pallas know; others of theirs end with `up`.
            let known = ["atlas.agent.info", "atlas.agent.health.status"].contains(name);
            if *kind == Kind::Gauge && *unit != "By" && !known {
                assert!(["count", "lag", "up", "time"].iter().any(|end| name.ends_with(end)), "{name}");
            }
        }
    }

    #[test]
    fn attributes_print_as_declared() {
        let metrics = Metrics::new();
        let _ = metrics.job_ends.get_or_create(&ByOutcome { atlas_job_outcome: Outcome::lease_lost }).inc();
        let _ = metrics.job_count.get_or_create(&ByStatus { atlas_job_status: Status::pending }).set(3);
        let text = metrics.render();
        assert!(text.contains("atlas_job_ends_total{atlas_job_outcome=\"lease_lost\"} 1\n"), "{text}");
        assert!(text.contains("atlas_job_count{atlas_job_status=\"pending\"} 3\n"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    /// All Rust sources in `folder` except those of this crate.
    fn sources(folder: &Path, into: &mut String) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("telemetry") && !path.ends_with("target") {
                sources(&path, into)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push_str(&fs::read_to_string(&path)?);
            }
        }
        Ok(())
    }

    #[test]
    fn every_instrument_is_recorded_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut text = String::new();
        for folder in ["controller", "worker", "cli", "proto"] {
            sources(&root.join(folder), &mut text).expect("the sources are readable");
        }
        let missing: Vec<_> = FIELDS.iter().filter(|field| !text.contains(&format!(".{field}"))).collect();
        assert!(missing.is_empty(), "never recorded: {missing:?}");
    }
}
