//! A receiver of OTLP by gRPC and HTTP that refuses what the protocol does not allow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use atlas_env::Env;
use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// What arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct Got {
    pub(super) spans: Vec<Span>,
    pub(super) metrics: Vec<Metric>,
    pub(super) logs: Vec<LogRecord>,
    /// Whether all requests had the header of the test.
    pub(super) authorized: bool,
    /// Answers before the first good one: statuses of HTTP or gRPC.
    refusals: VecDeque<u16>,
}

type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

pub(super) struct Receiver {
    address: String,
    got: Arc<Mutex<Got>>,
    open: watch::Sender<bool>,
}

impl Receiver {
    pub(super) async fn start(refusals: Vec<u16>) -> Self {
        Self::start_with(refusals, None).await
    }

    /// A receiver with TLS for `localhost`, and its certificate in PEM.
    pub(super) async fn secure() -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth();
        let mut config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("a key");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let text = base64::engine::general_purpose::STANDARD.encode(made.cert.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        (Self::start_with(Vec::new(), Some(TlsAcceptor::from(Arc::new(config)))).await, pem)
    }

    async fn start_with(refusals: Vec<u16>, tls: Option<TlsAcceptor>) -> Self {
        let scheme = if tls.is_some() { "https://localhost" } else { "http://127.0.0.1" };
        let env = Env::system();
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let got = Arc::new(Mutex::new(Got { authorized: true, refusals: refusals.into(), ..Got::default() }));
        let (open, opened) = watch::channel(true);
        let shared = got.clone();
        let spawner = env.clone();
        let _accepting = env.spawn("receiver", async move {
            while let Ok(connection) = listener.accept().await {
                let (got, opened) = (shared.clone(), opened.clone());
                let service = service_fn(move |request| answer(request, got.clone(), opened.clone()));
                let tls = tls.clone();
                let _serving = spawner.spawn("connection", async move {
                    let builder = Builder::new(TokioExecutor::new());
                    let Some(tls) = tls else {
                        return drop(builder.serve_connection(TokioIo::new(connection), service).await);
                    };
                    if let Ok(connection) = tls.accept(connection).await {
                        drop(builder.serve_connection(TokioIo::new(connection), service).await);
                    }
                });
            }
        });
        Self { address: format!("{scheme}:{}", address.port()), got, open }
    }

    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    pub(super) fn got(&self) -> Got {
        self.got.lock().expect("not poisoned").clone()
    }

    /// Answers nothing from here on.
    pub(super) fn hold(&self) {
        self.open.send_replace(false);
    }

    /// Answers again.
    pub(super) fn release(&self) {
        self.open.send_replace(true);
    }
}

async fn answer(
    request: Request<Incoming>,
    got: Arc<Mutex<Got>>,
    mut opened: watch::Receiver<bool>,
) -> Result<Answer, std::convert::Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    drop(opened.wait_for(|open| *open).await);
    assert_eq!(head.method, "POST");
    let kind = head.headers.get("content-type").expect("a content type").to_str().expect("text").to_owned();
    let mut got = got.lock().expect("not poisoned");
    got.authorized &= head.headers.get("authorization").is_some_and(|value| value == "Bearer token");
    let refusal = got.refusals.pop_front();
    match kind.as_str() {
        "application/grpc" => {
            assert_eq!(head.version, http::Version::HTTP_2);
            assert_eq!(head.headers.get("te").expect("it accepts trailers"), "trailers");
            let (prefix, message) = body.split_at(5);
            assert_eq!(prefix[0], 0, "it is not compressed");
            assert_eq!(u32::from_be_bytes(prefix[1..].try_into().expect("four bytes")) as usize, message.len());
            let path = head.uri.path();
            let name = path.strip_prefix("/opentelemetry.proto.collector.").expect("the package");
            if refusal.is_none() {
                take(&mut got, name.split('.').next().expect("a signal"), message);
            }
            let known =
                ["trace.v1.TraceService/Export", "metrics.v1.MetricsService/Export", "logs.v1.LogsService/Export"];
            assert!(known.contains(&name), "{path}");
            Ok(grpc(refusal.unwrap_or(0)))
        }
        "application/x-protobuf" => {
            if let Some(status) = refusal {
                return Ok(Response::builder().status(status).body(Full::default().boxed()).expect("an answer"));
            }
            let signal = head.uri.path().strip_prefix("/v1/").expect("the path of a signal");
            take(
                &mut got,
                signal.trim_end_matches('s').replace("metric", "metrics").replace("log", "logs").as_str(),
                &body,
            );
            let answer = Response::builder().header("content-type", "application/x-protobuf");
            Ok(answer.body(Full::default().boxed()).expect("an answer"))
        }
        other => panic!("{other} is no content type of OTLP"),
    }
}

fn grpc(status: u16) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status));
    let frames = [Ok(Frame::data(BytesMut::zeroed(5).freeze())), Ok(Frame::trailers(trailers))];
    let body = BodyExt::boxed(StreamBody::new(futures::stream::iter(frames)));
    Response::builder().header("content-type", "application/grpc").body(body).expect("an answer")
}

fn take(got: &mut Got, signal: &str, bytes: &[u8]) {
    match signal {
        "trace" => {
            for of in ExportTraceServiceRequest::decode(bytes).expect("spans").resource_spans {
                check_resource(of.resource.as_ref());
                for span in of.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                    check_span(&span);
                    got.spans.push(span);
                }
            }
        }
        "metrics" => {
            for of in ExportMetricsServiceRequest::decode(bytes).expect("metrics").resource_metrics {
                check_resource(of.resource.as_ref());
                got.metrics.extend(of.scope_metrics.into_iter().flat_map(|scope| scope.metrics));
            }
        }
        "logs" => {
            for of in ExportLogsServiceRequest::decode(bytes).expect("logs").resource_logs {
                check_resource(of.resource.as_ref());
                got.logs.extend(of.scope_logs.into_iter().flat_map(|scope| scope.log_records));
            }
        }
        other => panic!("{other} is no signal"),
    }
}

fn check_resource(resource: Option<&Resource>) {
    let attributes = &resource.expect("a resource").attributes;
    assert!(attributes.iter().any(|attribute| attribute.key == "service.name"));
}

fn check_span(span: &Span) {
    let is_id = |id: &[u8], len| id.len() == len && id.iter().any(|byte| *byte != 0);
    assert!(is_id(&span.trace_id, 16) && is_id(&span.span_id, 8), "{span:?}");
    assert!(span.parent_span_id.is_empty() || is_id(&span.parent_span_id, 8), "{span:?}");
    assert!(!span.name.is_empty() && span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
    assert!(span.attributes.iter().all(|attribute| attribute.value.is_some()), "{span:?}");
}
