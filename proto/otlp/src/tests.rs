//! Tests with a receiver that is as strict as the protocol.

mod job;
mod receiver;

use std::time::{Duration, SystemTime};

use atlas_env::Env;
use atlas_telemetry::{BySignal, Metrics, Signal};
use atlas_types::{Failure, FailureKind, TraceContext};
use expect_test::expect;
use opentelemetry::trace::{SpanId, Status, TraceId};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_sdk::trace::SpanData;
use tracing_subscriber::layer::SubscriberExt;

use crate::{Config, Otlp, execution, job_spans};
use job::job;
use receiver::Receiver;

fn otlp(receiver: &Receiver, variables: &[(&str, &str)]) -> Otlp {
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let config = Config::read("atlas-test", Some(&receiver.address()), variable).expect("valid");
    Otlp::new(config.expect("an address"))
}

fn counted(family: impl Fn(&BySignal) -> u64) -> u64 {
    family(&BySignal { signal: Signal::traces })
}

fn dropped(metrics: &Metrics) -> u64 {
    counted(|by| metrics.otlp_dropped.get_or_create(by).get())
}

fn sent(metrics: &Metrics) -> u64 {
    counted(|by| metrics.otlp_sent.get_or_create(by).get())
}

/// All three signals arrive by a protocol.
async fn check_protocol(protocol: &str) {
    let receiver = Receiver::start(Vec::new()).await;
    let (env, metrics) = (Env::system(), Metrics::new());
    let headers = "authorization=Bearer%20token";
    let otlp = otlp(&receiver, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol), ("OTEL_EXPORTER_OTLP_HEADERS", headers)]);
    let subscriber = tracing_subscriber::registry().with(otlp.logs(&env));
    let running = otlp.start(&metrics, &env);
    otlp.record(job_spans(&job(1)), None);
    tracing::subscriber::with_default(
        subscriber,
        || tracing::warn!(target: "atlas_raft", answer = 42, "something happened"),
    );
    metrics.job_submissions.inc_by(7);
    running.stop().await;
    let got = receiver.got();
    let names: Vec<_> = got.spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "job summarize",
            "queue",
            "attempt 1",
            "warm-up",
            "execute summarize",
            "chat m-1",
            "execute_tool",
            "output check"
        ]
    );
    let Some(Value::StringValue(body)) = got.logs[0].body.clone().and_then(|body| body.value) else { panic!("a text") };
    assert_eq!((body.as_str(), got.logs[0].severity_text.as_str(), got.logs.len()), ("something happened", "WARN", 1));
    assert!(got.metrics.iter().any(|metric| metric.name == "atlas.job.submissions"));
    assert!(got.authorized, "the headers of the configuration are sent");
    assert_eq!((sent(&metrics), dropped(&metrics)), (8, 0));
}

#[tokio::test]
async fn traces_metrics_and_logs_arrive_by_grpc() {
    check_protocol("grpc").await;
}

#[tokio::test]
async fn traces_metrics_and_logs_arrive_by_http() {
    check_protocol("http/protobuf").await;
}

#[tokio::test]
async fn a_receiver_with_tls_gets_telemetry_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("receiver.pem");
    let path = path.to_str().expect("text");
    for protocol in ["grpc", "http/protobuf"] {
        let (receiver, certificate) = Receiver::secure().await;
        std::fs::write(path, certificate).expect("written");
        let trusting = [("OTEL_EXPORTER_OTLP_PROTOCOL", protocol), ("OTEL_EXPORTER_OTLP_CERTIFICATE", path)];
        for (variables, arrives) in [(&trusting[..], true), (&trusting[..1], false)] {
            let (env, metrics) = (Env::system(), Metrics::new());
            let running = {
                // A short timeout, because a failed handshake is tried again until then.
                let limits = [("OTEL_EXPORTER_OTLP_TIMEOUT", if arrives { "60000" } else { "500" })];
                let otlp = otlp(&receiver, &[variables, &limits].concat());
                otlp.record(job_spans(&job(1)), None);
                otlp.start(&metrics, &env)
            };
            while sent(&metrics) + dropped(&metrics) < 8 {
                env.clock.sleep(Duration::from_millis(10)).await;
            }
            running.stop().await;
            assert_eq!((sent(&metrics), dropped(&metrics)), if arrives { (8, 0) } else { (0, 8) }, "{protocol}");
        }
        let got = receiver.got();
        assert_eq!(got.spans.len(), 8, "{protocol}");
        assert!(got.metrics.iter().any(|metric| metric.name == "atlas.job.submissions"), "{protocol}");
    }
}

#[tokio::test]
async fn a_receiver_that_is_away_costs_telemetry_and_nothing_else() {
    let receiver = Receiver::start(Vec::new()).await;
    let (env, metrics) = (Env::system(), Metrics::new());
    receiver.hold();
    let limits =
        [("OTEL_BSP_MAX_QUEUE_SIZE", "16"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8"), ("OTEL_METRICS_EXPORTER", "none")];
    let otlp = otlp(&receiver, &limits);
    let running = otlp.start(&metrics, &env);
    for id in 0..100 {
        otlp.record(job_spans(&job(id)), None);
    }
    receiver.release();
    running.stop().await;
    let (sent, dropped) = (sent(&metrics), dropped(&metrics));
    assert!(dropped > 700, "{dropped}");
    assert_eq!(sent + dropped, 800, "each span is counted once");
    assert_eq!(receiver.got().spans.len() as u64, sent);
}

#[tokio::test]
async fn what_is_busy_is_asked_again_and_what_refuses_is_not() {
    for (protocol, statuses, arrives) in [
        ("http/protobuf", vec![503, 429], true),
        ("http/protobuf", vec![400], false),
        ("grpc", vec![14], true),
        ("grpc", vec![3], false),
    ] {
        let receiver = Receiver::start(statuses).await;
        let (env, metrics) = (Env::system(), Metrics::new());
        let variables = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8"),
        ];
        let otlp = otlp(&receiver, &variables);
        let running = otlp.start(&metrics, &env);
        otlp.record(job_spans(&job(1)), None);
        while sent(&metrics) + dropped(&metrics) < 8 {
            env.clock.sleep(Duration::from_millis(10)).await;
        }
        running.stop().await;
        assert_eq!((sent(&metrics), dropped(&metrics)), if arrives { (8, 0) } else { (0, 8) }, "{protocol}");
    }
}

#[tokio::test]
async fn a_caller_that_is_not_sampled_is_not_sent() {
    let receiver = Receiver::start(Vec::new()).await;
    let (env, metrics) = (Env::system(), Metrics::new());
    let otlp = otlp(&receiver, &[]);
    let running = otlp.start(&metrics, &env);
    let mut job = job(1);
    job.trace = Some(TraceContext { trace_id: 7, span_id: 8, flags: 0 });
    otlp.record(job_spans(&job), job.trace);
    running.stop().await;
    assert_eq!((receiver.got().spans.len(), dropped(&metrics)), (0, 0));
}

/// The tree of spans, with times in milliseconds from the first one's begin.
fn drawn(spans: &[SpanData]) -> String {
    fn draw(spans: &[SpanData], of: &SpanData, depth: usize, begin: SystemTime, text: &mut String) {
        let millis = |at: SystemTime| at.duration_since(begin).expect("after the beginning").as_millis();
        let (start, end) = (millis(of.start_time), millis(of.end_time));
        let status = match &of.status {
            Status::Error { description } => format!(" error {description}"),
            _ => String::new(),
        };
        text.push_str(&format!("{}{} {start}..{end}{status}\n", "  ".repeat(depth), of.name));
        for below in spans.iter().filter(|span| span.parent_span_id == of.span_context.span_id()) {
            draw(spans, below, depth + 1, begin, text);
        }
    }
    let mut text = String::new();
    draw(spans, &spans[0], 0, spans[0].start_time, &mut text);
    text
}

#[test]
fn the_spans_of_a_job_are_those_of_its_record() {
    expect![[r#"
        job summarize 0..5000
          queue 0..1000
          attempt 1 1000..5000
            warm-up 1000..1500
            execute summarize 1500..4500
              chat m-1 1500..3500
              execute_tool 3500..4000
            output check 4500..4500
    "#]]
    .assert_eq(&drawn(&job_spans(&job(1))));
    let mut failed = job(1);
    failed.failure = Some(Failure { kind: FailureKind::OutputInvalid, error: "secret text".into() });
    failed.warm = true;
    failed.journal = None;
    let spans = job_spans(&failed);
    assert!(!format!("{spans:?}").contains("secret text"), "texts can repeat contents");
    expect![[r#"
        job summarize 0..5000 error output_invalid
          queue 0..1000
          attempt 1 1000..5000 error output_invalid
            execute summarize 1000..4000
            output check 4000..4000 error output_invalid
    "#]]
    .assert_eq(&drawn(&spans));
}

#[test]
fn a_trace_goes_from_the_caller_to_the_job_and_from_a_job_to_its_children() {
    let context = TraceContext { trace_id: 0xabc, span_id: 0xdef, flags: 1 };
    let mut called = job(1);
    called.trace = Some(context);
    let spans = job_spans(&called);
    assert_eq!(spans[0].span_context.trace_id(), TraceId::from(0xabc_u128));
    assert_eq!(spans[0].parent_span_id, SpanId::from(0xdef_u64));
    // A child without a context of its own is in the trace of its parent, below the parent's execution.
    let (parent, mut child) = (job(2), job(3));
    child.spawned = Some(atlas_types::Spawned { by: parent.id, depth: 1, awaited: false });
    let (above, below) = (job_spans(&parent), job_spans(&child));
    let execution = above.iter().find(|span| span.name == "execute summarize").expect("it ran");
    let trace = |span: &SpanData| span.span_context.trace_id();
    assert_eq!((trace(&below[0]), below[0].parent_span_id), (trace(&above[0]), execution.span_context.span_id()));
    assert_eq!(below[0].links[0].span_context.span_id(), execution.span_context.span_id());
    // A retry is in the trace of the first job.
    let mut retry = job(4);
    retry.original = Some(parent.id);
    assert_eq!(trace(&job_spans(&retry)[0]), trace(&above[0]));
}

#[test]
fn an_agent_continues_the_trace_of_its_execution() {
    let mut called = job(1);
    assert_eq!(execution(&called), None, "the sampler decides on it when the job ends");
    called.trace = Some(TraceContext { trace_id: 0xabc, span_id: 0xdef, flags: 1 });
    let spans = job_spans(&called);
    let executed = spans.iter().find(|span| span.name == "execute summarize").expect("it ran");
    let context = execution(&called).expect("the caller's trace");
    assert_eq!((context.trace_id, context.flags), (0xabc, 1));
    assert_eq!(SpanId::from(context.span_id), executed.span_context.span_id());
}

#[test]
fn damaged_times_give_spans_that_end_after_they_begin() {
    let mut job = job(1);
    job.completed_at = atlas_types::Timestamp(i64::MIN);
    job.started_at = atlas_types::Timestamp(i64::MAX);
    job.warmup.0 = u64::MAX;
    let spans = job_spans(&job);
    assert!(spans.iter().all(|span| span.start_time <= span.end_time));
}
