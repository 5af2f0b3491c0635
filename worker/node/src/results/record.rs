//! One saved result: a line with a checksum, then the report in its wire format.

use std::fmt;
use std::path::Path;

use atlas_types::{BootId, Payload, PayloadBody, Report, ReportKind};
use atlas_wire::ConvertError;
use atlas_wire::convert::{report_from_bytes, report_to_bytes};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The first word; the number is the version of the format.
const MAGIC: &str = "atlas-result-1";

/// The largest size of a record: a report is at most one frame.
pub(super) const BYTES_MAX: u64 = 4 << 20;

const EXTENSION: &str = "result";

/// A record's file name: the boot id and the report number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) boot: BootId,
    pub(super) number: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:020}.{EXTENSION}", self.boot.0, self.number)
    }
}

impl Name {
    /// The name of the record at `path`; none if it is not a record.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let stem = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
        let (boot, number) = stem.split_once('-')?;
        Some(Self { boot: BootId(u128::from_str_radix(boot, 16).ok()?), number: number.parse().ok()? })
    }
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error("it does not begin like a record")]
    Magic,
    #[error("its checksum does not match")]
    Checksum,
    #[error("it contains no report")]
    Report(#[source] ConvertError),
}

pub(super) fn encode(number: u64, report: &Report) -> Vec<u8> {
    let body = report_to_bytes(number, report.clone());
    let mut bytes = format!("{MAGIC} {}\n", atlas_package::digest_of(&body).hex()).into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<(u64, Report), RecordError> {
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or(RecordError::Magic)?;
    let (line, body) = (&bytes[..end], &bytes[end + 1..]);
    let line = std::str::from_utf8(line).map_err(|_| RecordError::Magic)?;
    let sum = line.strip_prefix(MAGIC).ok_or(RecordError::Magic)?.trim_start();
    if sum != atlas_package::digest_of(body).hex() {
        return Err(RecordError::Checksum);
    }
    report_from_bytes(body).map_err(RecordError::Report)
}

/// A result as a line of JSON, for people and scripts.
pub(super) fn readable(report: &Report) -> String {
    let (outcome, output, error) = match &report.kind {
        ReportKind::Completed { output, .. } => ("completed", Some(output), None),
        ReportKind::Failed { failure, output, cancelled, .. } => {
            (if *cancelled { "cancelled" } else { "failed" }, output.as_ref(), Some(&failure.error))
        }
        ReportKind::Started | ReportKind::NotHeld => ("none", None, None),
    };
    let text = |value: Value| value.to_string();
    let (job, outcome) = (text(json!(report.job.to_string())), text(json!(outcome)));
    let mut line = format!("{{\"job\":{job},\"token\":{},\"outcome\":{outcome}", report.token.0);
    if let Some(output) = output {
        line.push_str(&output_member(output));
    }
    if let Some(error) = error {
        line.push_str(&format!(",\"error\":{}", text(json!(error.as_ref()))));
    }
    line.push_str("}\n");
    line
}

fn output_member(output: &Payload) -> String {
    match &output.body {
        PayloadBody::Inline(bytes) => match serde_json::from_slice::<&RawValue>(bytes) {
            Ok(json) => format!(",\"output\":{}", json.get()),
            Err(_) => format!(",\"output_text\":{}", json!(String::from_utf8_lossy(bytes))),
        },
        PayloadBody::Artifact { digest, .. } => format!(",\"output_artifact\":{}", json!(digest.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_others_are_none() {
        let name = Name { boot: BootId(0xab), number: 12 };
        assert_eq!(Name::of(Path::new(&format!("/x/{name}"))), Some(name));
        for other in ["lock", "1-2.result.0011.tmp", "-.result", "not-taken"] {
            assert_eq!(Name::of(Path::new(other)), None, "{other}");
        }
    }
}
