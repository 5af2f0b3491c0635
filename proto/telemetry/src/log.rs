//! Log lines on stderr: one line per event, with the time as `HH:MM:SS`, filtered by `ATLAS_LOG` or `--log`.

use std::io::{self, IsTerminal};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is malformed.
    #[error("\"{filter}\" is not a log filter")]
    Filter {
        filter: String,
        /// The parser's error.
        source: ParseError,
    },
    /// Another subscriber is set already.
    #[error("logging was already set up")]
    AlreadySet,
}

/// A second place for log lines.
pub type Sink = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging to stderr with a filter such as `info` or `warn,atlas_raft=debug`.
pub fn start(filter: &str) -> Result<(), LogError> {
    start_with(filter, None)
}

/// Like [`start`], with a second place for the lines that the filter lets through.
pub fn start_with(filter: &str, sink: Option<Sink>) -> Result<(), LogError> {
    let parsed = EnvFilter::try_new(complete(filter))
        .map_err(|source| LogError::Filter { filter: filter.chars().take(200).collect(), source })?;
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let stderr = fmt::layer().with_writer(io::stderr).with_ansi(colours).with_target(false).with_timer(Clock);
    tracing_subscriber::registry().with(sink).with(parsed).with(stderr).try_init().map_err(|_| LogError::AlreadySet)
}

/// Libraries that log routine work at `info`, and the limits for them. openraft logs each unanswered heartbeat, twenty per second, at
/// `warn`; rmcp logs three lines for each session.
const LIMITS: [(&str, &str); 2] =
    [("openraft", ",openraft=warn,openraft::core::heartbeat=error"), ("rmcp", ",rmcp=warn")];

/// Adds the limits for libraries that the filter does not name.
fn complete(filter: &str) -> String {
    let limits = LIMITS.iter().filter(|(library, _)| !filter.contains(library)).map(|(_, limits)| *limits);
    std::iter::once(filter).chain(limits).collect()
}

/// Writes the time of day in UTC, without the date, which readers know and system journals add.
struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        // The time of a log line is only displayed and affects no decision, so it does not need the replaceable clock.
        #[expect(clippy::disallowed_methods, reason = "a log line's time is for people and decides nothing")]
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        writer.write_str(&time_of_day(seconds))
    }
}

fn time_of_day(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_has_six_digits() {
        assert_eq!(time_of_day(1_700_000_000), "22:13:20");
        assert_eq!(time_of_day(3_661), "01:01:01");
    }

    #[test]
    fn libraries_are_quiet_unless_they_are_named() {
        assert_eq!(complete("info"), "info,openraft=warn,openraft::core::heartbeat=error,rmcp=warn");
        assert_eq!(complete("openraft=debug"), "openraft=debug,rmcp=warn");
        assert_eq!(complete("info,rmcp=info,openraft=off"), "info,rmcp=info,openraft=off");
    }

    #[test]
    fn a_malformed_filter_is_named() {
        let error = start("a=b=c").expect_err("the filter is malformed");
        assert_eq!(error.to_string(), "\"a=b=c\" is not a log filter");
    }
}
