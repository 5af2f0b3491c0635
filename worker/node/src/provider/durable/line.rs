//! What a program says that has no host of ours: lines of JSON, with times in seconds.

use serde::Deserialize;

use super::Said;
use super::frame::{CallFrame, SaidKind};

/// What tells the kinds of lines apart, and what frames have no word for.
#[derive(Debug, Deserialize)]
struct Line {
    made: Option<u64>,
    forget: Option<u64>,
    #[serde(rename = "for")]
    seconds: Option<f64>,
    until: Option<String>,
}

impl Said {
    /// Reads a line: `{"made": …}`, `{"forget": …}`, or a call. The error says what is wrong with it.
    pub(in crate::provider) fn of_line(line: &[u8]) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| error.to_string();
        if !line.starts_with(b"{") {
            return Err(
                "each line is an object of JSON, such as {\"call\": 1, \"kind\": \"step\", \"name\": \"load\"}"
                    .to_owned(),
            );
        }
        let Line { made, forget, seconds, until } = serde_json::from_slice(line).map_err(wrong)?;
        if let Some(call) = forget {
            return Ok(Self::Forget(call));
        }
        if made.is_some() {
            return Self::read(SaidKind::Made, line).map_err(wrong);
        }
        let until = until.map(|text| text.parse::<jiff::Timestamp>()).transpose();
        let until = until.map_err(|error| format!("until: {error}"))?;
        let mut frame: CallFrame = serde_json::from_slice(line).map_err(wrong)?;
        // A number that is none, or too large, becomes the nearest one.
        frame.for_us = frame.for_us.or(seconds.map(|seconds| (seconds * 1e6) as i64));
        frame.until_us = frame.until_us.or(until.map(jiff::Timestamp::as_microsecond));
        Ok(Self::Call(Box::new(frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_told_what_a_line_is() {
        for line in ["step a", "[1]", "3", "null"] {
            let why = Said::of_line(line.as_bytes()).expect_err("no line");
            assert!(why.starts_with("each line is an object of JSON, such as {\"call\": 1"), "{line}: {why}");
        }
        assert!(Said::of_line(br#"{"call": 1, "kind": "sleep", "for": 0.5}"#).is_ok());
    }
}
