//! The configuration: an address, and the variables of OpenTelemetry.

use std::path::PathBuf;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

/// The most items that wait to be sent, for each signal.
const QUEUE_MAX: usize = 1 << 20;

/// Why the configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{value}\" is not a valid {name}: expected {expected}")]
pub struct ConfigError {
    /// The variable.
    pub name: &'static str,
    /// Its value, shortened.
    pub value: String,
    /// What it should be.
    pub expected: &'static str,
}

fn wrong(name: &'static str, value: &str, expected: &'static str) -> ConfigError {
    ConfigError { name, value: value.chars().take(200).collect(), expected }
}

/// The protocol of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    Http,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    Metrics,
    Logs,
}

/// A signal's receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receiver {
    pub(crate) uri: Uri,
    pub(crate) protocol: Protocol,
}

/// Where telemetry goes, and how much of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// None for signals that are not sent.
    pub(crate) traces: Option<Receiver>,
    pub(crate) metrics: Option<Receiver>,
    pub(crate) logs: Option<Receiver>,
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    /// The file with the certificates of authorities; none for those of the system.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) sampler: Sampler,
    /// How often metrics are sent.
    pub(crate) interval: Duration,
    /// How long spans and logs gather.
    pub(crate) gather: Duration,
    pub(crate) queue_max: usize,
    pub(crate) batch_max: usize,
}

/// Headers can contain credentials, so they are not shown.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("traces", &self.traces).finish_non_exhaustive()
    }
}

/// Which traces are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampler {
    /// Of 2^63 traces, so many are sent.
    pub(crate) of_2_63: u64,
    /// Whether a caller that has decided about its trace has decided for the job as well.
    pub(crate) by_parent: bool,
}

impl Config {
    /// Reads the configuration of a program; none if it sends nothing. `endpoint` is the address of the option and goes over that of
    /// the environment, `variable` looks up a variable.
    pub fn read(
        service: &str,
        endpoint: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let variable =
            |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let endpoint = endpoint.map(str::to_owned).or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let receiver = |exporter: &'static str, own: &'static str, protocol: &'static str, path: &str| {
            if variable(exporter).is_some_and(|value| value == "none") {
                return Ok(None);
            }
            let (name, address, path) = match (variable(own), &endpoint) {
                (Some(address), _) => (own, address, ""),
                (None, Some(address)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", address.clone(), path),
                (None, None) => return Ok(None),
            };
            let protocol = variable(protocol).or_else(|| variable("OTEL_EXPORTER_OTLP_PROTOCOL"));
            receiver(name, &address, protocol.as_deref(), path).map(Some)
        };
        let traces = receiver(
            "OTEL_TRACES_EXPORTER",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "/v1/traces",
        )?;
        let metrics = receiver(
            "OTEL_METRICS_EXPORTER",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
            "/v1/metrics",
        )?;
        let logs = receiver(
            "OTEL_LOGS_EXPORTER",
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
            "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
            "/v1/logs",
        )?;
        if traces.is_none() && metrics.is_none() && logs.is_none() {
            return Ok(None);
        }
        let number = |name: &'static str, default: u64| match variable(name) {
            Some(value) => value.parse().map_err(|_| wrong(name, &value, "a whole number")),
            None => Ok(default),
        };
        let millis = |name, default| number(name, default).map(|millis| Duration::from_millis(millis.max(1)));
        let bounded = |number: u64| usize::try_from(number).unwrap_or(QUEUE_MAX).clamp(1, QUEUE_MAX);
        let queue_max = bounded(number("OTEL_BSP_MAX_QUEUE_SIZE", 8_192)?);
        Ok(Some(Self {
            traces,
            metrics,
            logs,
            headers: headers(variable("OTEL_EXPORTER_OTLP_HEADERS").as_deref().unwrap_or_default())?,
            timeout: millis("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)?,
            roots: variable("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from),
            resource: resource(service, &variable)?,
            sampler: sampler(&variable)?,
            interval: millis("OTEL_METRIC_EXPORT_INTERVAL", 60_000)?,
            gather: millis("OTEL_BSP_SCHEDULE_DELAY", 1_000)?,
            queue_max,
            batch_max: bounded(number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?).min(queue_max),
        }))
    }
}

impl Config {
    /// The same for a program that only sends log lines.
    #[must_use]
    pub fn only_logs(self) -> Self {
        Self { traces: None, metrics: None, ..self }
    }
}

fn receiver(name: &'static str, address: &str, protocol: Option<&str>, path: &str) -> Result<Receiver, ConfigError> {
    // Users of gRPC often leave out the scheme.
    let address = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let expected = "an address such as http://127.0.0.1:4317";
    let uri: Uri = address.parse().map_err(|_| wrong(name, &address, expected))?;
    let known = uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"));
    if !known {
        return Err(wrong(name, &address, expected));
    }
    let protocol = match protocol {
        Some("grpc") => Protocol::Grpc,
        Some("http/protobuf") => Protocol::Http,
        None if uri.port_u16() == Some(4318) => Protocol::Http,
        None => Protocol::Grpc,
        Some(other) => return Err(wrong("OTEL_EXPORTER_OTLP_PROTOCOL", other, "grpc or http/protobuf")),
    };
    let whole = match protocol {
        Protocol::Grpc => address,
        Protocol::Http => format!("{}{path}", address.trim_end_matches('/')),
    };
    Ok(Receiver { uri: whole.parse().map_err(|_| wrong(name, &whole, expected))?, protocol })
}

/// `name=value` pairs, separated by commas, with values that can contain percent signs.
fn pairs(name: &'static str, text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some((key.trim().to_owned(), decoded(value.trim())?)).filter(|(key, _)| !key.is_empty())
    };
    // The value can contain credentials.
    parts.map(|part| pair(part).ok_or_else(|| wrong(name, "…", "name=value pairs, separated by commas"))).collect()
}

fn decoded(value: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first == b'%' {
            let (digits, others) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = others;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

fn headers(text: &str) -> Result<HeaderMap, ConfigError> {
    const NAME: &str = "OTEL_EXPORTER_OTLP_HEADERS";
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(NAME, text)? {
        let name: HeaderName =
            name.to_ascii_lowercase().parse().map_err(|_| wrong(NAME, &name, "names of HTTP headers"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong(NAME, name.as_str(), "values of HTTP headers"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn resource(service: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, ConfigError> {
    const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
    let mut attributes = vec![
        ("service.name".to_owned(), service.to_owned()),
        ("service.namespace".to_owned(), "atlas".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let given = pairs(NAME, variable(NAME).as_deref().unwrap_or_default())?;
    let name = variable("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name));
    for (key, value) in given.into_iter().chain(name) {
        attributes.retain(|(known, _)| *known != key);
        attributes.push((key, value));
    }
    Ok(attributes)
}

fn sampler(variable: &impl Fn(&str) -> Option<String>) -> Result<Sampler, ConfigError> {
    const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
    let name = variable("OTEL_TRACES_SAMPLER").unwrap_or_else(|| "parentbased_always_on".to_owned());
    let (by_parent, kind) = match name.strip_prefix("parentbased_") {
        Some(kind) => (true, kind),
        None => (false, &*name),
    };
    let all = 1 << 63;
    let of_2_63 = match kind {
        "always_on" => all,
        "always_off" => 0,
        "traceidratio" => {
            let share = variable(ARGUMENT).unwrap_or_else(|| "1".to_owned());
            let parsed: Option<f64> = share.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            let parsed = parsed.ok_or_else(|| wrong(ARGUMENT, &share, "a number from 0 to 1"))?;
            (parsed * all as f64) as u64
        }
        _ => {
            let expected = "always_on, always_off or traceidratio, or one of them after parentbased_";
            return Err(wrong("OTEL_TRACES_SAMPLER", &name, expected));
        }
    };
    Ok(Sampler { of_2_63, by_parent })
}

impl Sampler {
    /// Whether a trace is sent. All programs that use the same share decide alike.
    pub(crate) fn takes(self, trace_id: u128, parent_sampled: Option<bool>) -> bool {
        match parent_sampled {
            Some(sampled) if self.by_parent => sampled,
            _ => (trace_id as u64 >> 1) < self.of_2_63,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(endpoint: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<Config>, ConfigError> {
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        Config::read("atlas-controller", endpoint, |name| variables.get(name).map(|value| (*value).to_owned()))
    }

    #[test]
    fn nothing_is_sent_without_an_address() {
        assert_eq!(read(None, &[("OTEL_SERVICE_NAME", "x")]), Ok(None));
        assert_eq!(read(Some("http://h:4317"), &[("OTEL_SDK_DISABLED", "true")]), Ok(None));
        let none = ["OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"].map(|name| (name, "none"));
        assert_eq!(read(Some("http://h:4317"), &none), Ok(None));
    }

    #[test]
    fn the_option_goes_over_the_variable_and_the_port_tells_the_protocol() {
        let config = read(Some("h:4317"), &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://other:4318")]);
        let config = config.expect("valid").expect("an address");
        let grpc = Receiver { uri: "http://h:4317".parse().expect("a URI"), protocol: Protocol::Grpc };
        assert_eq!(config.traces, Some(grpc));
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://other:4318/"),
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs/own"),
            ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/protobuf"),
            ("OTEL_METRICS_EXPORTER", "none"),
        ];
        let config = read(None, &variables).expect("valid").expect("an address");
        let uri = |receiver: &Option<Receiver>| receiver.as_ref().map(|receiver| receiver.uri.to_string());
        assert_eq!(uri(&config.traces).as_deref(), Some("https://other:4318/v1/traces"));
        assert_eq!(uri(&config.logs).as_deref(), Some("http://logs/own"));
        assert_eq!(uri(&config.metrics), None);
    }

    #[test]
    fn wrong_values_are_refused_and_credentials_not_repeated() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=a%0Ab"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=%z"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_TRACES_SAMPLER", "some"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=x"),
        ] {
            let error = read(Some("http://h:4317"), &[(name, value)]).expect_err("refused");
            assert_eq!(error.name, name);
        }
        let error = read(Some("http://h:4317"), &[("OTEL_EXPORTER_OTLP_HEADERS", "a=%geheim")]).expect_err("refused");
        assert!(!error.to_string().contains("geheim"));
        for address in ["ftp://h", "http://", "::"] {
            assert!(read(Some(address), &[]).is_err(), "{address}");
        }
    }

    #[test]
    fn a_share_of_the_traces_is_taken_and_a_caller_decides_first() {
        let of = |name: &str, share: &str| {
            let variables = [("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", share)];
            read(Some("http://h:4317"), &variables).expect("valid").expect("an address").sampler
        };
        let half = of("parentbased_traceidratio", "0.5");
        let ids = (0..1_000_u64).map(|n| u128::from(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let taken = ids.filter(|id| half.takes(*id, None)).count();
        assert!((400..600).contains(&taken), "{taken}");
        assert!(half.takes(u128::MAX, Some(true)) && !half.takes(0, Some(false)));
        assert!(!of("always_off", "").takes(0, Some(true)));
        assert!(of("always_on", "").takes(u128::MAX, Some(false)));
    }
}
