//! Times, durations and trace contexts.

use atlas_types::{Micros, Timestamp, TraceContext};

use super::ConvertError;

const MICROS_PER_SECOND: u64 = 1_000_000;
/// The largest duration that the format allows: 10,000 years, as in its own documentation.
const SECONDS_MAX: i64 = 315_576_000_000;

pub(super) fn duration_out(duration: Micros) -> prost_types::Duration {
    let seconds = i64::try_from(duration.0 / MICROS_PER_SECOND).unwrap_or(i64::MAX).min(SECONDS_MAX);
    let nanos = i32::try_from(duration.0 % MICROS_PER_SECOND * 1_000).unwrap_or(0);
    prost_types::Duration { seconds, nanos }
}

pub(super) fn duration_in(
    field: &'static str,
    duration: Option<prost_types::Duration>,
) -> Result<Micros, ConvertError> {
    let duration = super::required(field, duration)?;
    let wrong = |found| ConvertError::Value { field, found };
    if !(0..=SECONDS_MAX).contains(&duration.seconds) {
        return Err(wrong(duration.seconds));
    }
    if !(0..1_000_000_000).contains(&duration.nanos) {
        return Err(wrong(duration.nanos.into()));
    }
    let seconds = duration.seconds.unsigned_abs();
    Ok(Micros(seconds * MICROS_PER_SECOND + u64::from(duration.nanos.unsigned_abs()) / 1_000))
}

/// A time beyond what the format allows becomes the last that it allows.
pub(super) fn timestamp_out(at: Timestamp) -> prost_types::Timestamp {
    let nanos = i32::try_from(at.0.rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    let seconds = at.0.div_euclid(1_000_000).clamp(-SECONDS_MAX, SECONDS_MAX);
    prost_types::Timestamp { seconds, nanos }
}

pub(super) fn timestamp_in(field: &'static str, at: Option<prost_types::Timestamp>) -> Result<Timestamp, ConvertError> {
    let at = super::required(field, at)?;
    if at.seconds.unsigned_abs() > SECONDS_MAX.unsigned_abs() {
        return Err(ConvertError::Value { field, found: at.seconds });
    }
    if !(0..1_000_000_000).contains(&at.nanos) {
        return Err(ConvertError::Value { field, found: at.nanos.into() });
    }
    Ok(Timestamp(at.seconds * 1_000_000 + i64::from(at.nanos) / 1_000))
}

/// A W3C `traceparent`; empty when there is no trace.
pub(super) fn trace_out(trace: Option<TraceContext>) -> String {
    trace.map_or_else(String::new, |t| format!("00-{:032x}-{:016x}-{:02x}", t.trace_id, t.span_id, t.flags))
}

pub(super) fn trace_in(field: &'static str, text: &str) -> Result<Option<TraceContext>, ConvertError> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_trace(text).map(Some).ok_or(ConvertError::Form { field })
}

fn parse_trace(text: &str) -> Option<TraceContext> {
    let well_formed = |part: &str, len| part.len() == len && part.bytes().all(|b| b"0123456789abcdef".contains(&b));
    let mut parts = text.split('-');
    let (version, trace_id) = (parts.next()?, parts.next()?);
    let (span_id, flags) = (parts.next()?, parts.next()?);
    let all = version == "00" && well_formed(trace_id, 32) && well_formed(span_id, 16) && well_formed(flags, 2);
    if !all || parts.next().is_some() {
        return None;
    }
    let trace_id = u128::from_str_radix(trace_id, 16).ok().filter(|&id| id != 0)?;
    let span_id = u64::from_str_radix(span_id, 16).ok().filter(|&id| id != 0)?;
    Some(TraceContext { trace_id, span_id, flags: u8::from_str_radix(flags, 16).ok()? })
}
