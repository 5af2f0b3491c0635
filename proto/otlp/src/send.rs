//! What sends: the exporters of `opentelemetry-otlp` for spans and log lines, and one request for metrics, all over connections of the
//! same kind.
//!
//! The SDK lets only its own pipeline make the metrics that its exporter takes, and Atlas counts elsewhere ([`crate::metrics`]). So a
//! message with metrics goes through the generated client or the same HTTP client. It is not repeated after a failure: it has totals,
//! and the next one contains them.

use atlas_http::{ConnectOptions, Connector, Dial, Proxy, Trust, Versions};
use http::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Uri};
use opentelemetry::KeyValue;
use opentelemetry_http::HttpClient;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, Protocol as Encoding, SpanExporter, WithExportConfig, WithHttpConfig,
    WithTonicConfig,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::logs::LogExporter as _;
use opentelemetry_sdk::trace::SpanExporter as _;
use prost::Message;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};

use crate::config::{Config, Protocol, Receiver};

const AGENT: &str = concat!("OTel-OTLP-Exporter-Atlas/", env!("CARGO_PKG_VERSION"));

/// The exporter of spans. It repeats requests by the rules of OTLP within the timeout.
pub(crate) fn spans(config: &Config, receiver: &Receiver) -> Result<SpanExporter, ExporterBuildError> {
    let builder = SpanExporter::builder();
    let mut exporter = match receiver.protocol {
        Protocol::Grpc => grpc(builder.with_tonic(), config, receiver).build()?,
        Protocol::Http => http(builder.with_http(), config, receiver).build()?,
    };
    exporter.set_resource(&resource(config));
    Ok(exporter)
}

/// The exporter of log lines, like [`spans`].
pub(crate) fn logs(config: &Config, receiver: &Receiver) -> Result<LogExporter, ExporterBuildError> {
    let builder = LogExporter::builder();
    let mut exporter = match receiver.protocol {
        Protocol::Grpc => grpc(builder.with_tonic(), config, receiver).build()?,
        Protocol::Http => http(builder.with_http(), config, receiver).build()?,
    };
    exporter.set_resource(&resource(config));
    Ok(exporter)
}

fn grpc<B: WithTonicConfig + WithExportConfig>(builder: B, config: &Config, receiver: &Receiver) -> B {
    let metadata = MetadataMap::from_headers(config.headers.clone());
    builder.with_channel(channel(config, receiver)).with_metadata(metadata).with_timeout(config.timeout)
}

fn http<B: WithHttpConfig + WithExportConfig>(builder: B, config: &Config, receiver: &Receiver) -> B {
    let builder = builder.with_http_client(client(config)).with_headers(headers(config));
    let builder = builder.with_protocol(Encoding::HttpBinary).with_timeout(config.timeout);
    builder.with_endpoint(receiver.uri.to_string())
}

/// Sends messages with metrics.
pub(crate) enum Metrics {
    Grpc { client: MetricsServiceClient<Channel>, metadata: MetadataMap },
    Http { client: Box<Client>, uri: Uri, headers: HeaderMap },
}

type Client = HyperClient<Connector>;

impl Metrics {
    pub(crate) fn new(config: &Config, receiver: &Receiver) -> Self {
        match receiver.protocol {
            Protocol::Grpc => {
                let client = MetricsServiceClient::new(channel(config, receiver));
                Self::Grpc { client, metadata: MetadataMap::from_headers(config.headers.clone()) }
            }
            Protocol::Http => {
                let mut headers = config.headers.clone();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
                headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
                Self::Http { client: Box::new(client(config)), uri: receiver.uri.clone(), headers }
            }
        }
    }

    /// Sends a message once.
    pub(crate) async fn send(&self, message: ExportMetricsServiceRequest) -> OTelSdkResult {
        let failed = |text: String| OTelSdkError::InternalFailure(text);
        let answer = match self {
            Self::Grpc { client, metadata } => {
                let mut request = tonic::Request::new(message);
                *request.metadata_mut() = metadata.clone();
                let answer = client.clone().export(request).await;
                answer.map_err(|status| failed(atlas_env::chain(&status)))?.into_inner()
            }
            Self::Http { client, uri, headers } => {
                let mut request = Request::new(message.encode_to_vec().into());
                (*request.method_mut(), *request.uri_mut()) = (Method::POST, uri.clone());
                *request.headers_mut() = headers.clone();
                let answer =
                    client.send_bytes(request).await.map_err(|error| failed(atlas_env::chain(error.as_ref())))?;
                if !answer.status().is_success() {
                    return Err(failed(format!("the receiver answered {}", answer.status())));
                }
                let answer = ExportMetricsServiceResponse::decode(answer.into_body());
                answer.map_err(|_| failed("the answer cannot be read".to_owned()))?
            }
        };
        match answer.partial_success {
            Some(part) if part.rejected_data_points > 0 => {
                Err(failed(format!("the receiver rejected {} points", part.rejected_data_points)))
            }
            _ => Ok(()),
        }
    }
}

fn channel(config: &Config, receiver: &Receiver) -> Channel {
    let endpoint = Endpoint::from(receiver.uri.clone()).timeout(config.timeout).connect_timeout(config.timeout);
    let endpoint = match endpoint.clone().user_agent(AGENT) {
        Ok(named) => named,
        Err(_) => endpoint,
    };
    endpoint.connect_with_connector_lazy(connector(config, Versions::Two))
}

fn client(config: &Config) -> Client {
    HyperClient::new(connector(config, Versions::One), config.timeout, None)
}

fn headers(config: &Config) -> std::collections::HashMap<String, String> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    config.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// What sends: the program.
fn resource(config: &Config) -> Resource {
    let attributes = config.resource.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty().with_attributes(attributes).build()
}

fn connector(config: &Config, versions: Versions) -> Connector {
    let trust = match &config.roots {
        Some(path) => match CertificateDer::pem_file_iter(path) {
            Ok(found) => Trust::only(found.filter_map(Result::ok)),
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "could not read the certificates for OTLP");
                Trust::only([])
            }
        },
        None => Trust::default(),
    };
    let options =
        ConnectOptions { dial: Dial::machine(None), proxy: &Proxy::Direct, trust: &trust, versions, limit: None };
    Connector::with(options).expect("ring supports the default versions of TLS")
}
