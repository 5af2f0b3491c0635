//! Formats times, sizes and hardware.

use std::time::Duration;

use atlas_model::{NANODOLLARS_PER_DOLLAR, NanoDollars};
use chrono::{DateTime, Local, Utc};

use crate::failure::Failure;

/// How notes begin that are warnings.
pub(crate) const WARNING: &str = "warning: ";

/// The longest duration of an argument, 100 years: sums of times stay far from the end of their range.
const DURATION_MAX: Duration = Duration::from_secs(36_500 * 86_400);
/// The first moment of the year 10000, which no time of the cluster reaches.
const YEAR_10000: f64 = 253_402_300_800.0;

/// Milliseconds in readable units: `<1 ms`, `38 ms`, `1.9 s`, `3 min 4 s`.
pub(crate) fn milliseconds(ms: f64) -> String {
    let ms = ms.max(0.0);
    if ms < 0.5 {
        "<1 ms".to_owned()
    } else if ms < 999.5 {
        format!("{ms:.0} ms")
    } else if ms < 59_950.0 {
        format!("{:.1} s", ms / 1000.0)
    } else {
        let seconds = (ms / 1000.0).round() as u64;
        let (minutes, hours) = (seconds / 60, seconds / 3600);
        if hours > 0 { format!("{hours} h {} min", minutes % 60) } else { format!("{minutes} min {} s", seconds % 60) }
    }
}

/// A span that somebody chose: `10 minutes`, `1 hour`, `90 seconds`.
pub(crate) fn span(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds >= 3_600 && seconds % 3_600 == 0 => count(seconds / 3_600, "hour"),
        seconds if seconds >= 60 && seconds % 60 == 0 => count(seconds / 60, "minute"),
        seconds => count(seconds, "second"),
    }
}

/// Milliseconds with one decimal below 100 ms: `1.1 ms`.
pub(crate) fn fine_milliseconds(ms: f64) -> String {
    if ms < 99.95 { format!("{:.1} ms", ms.max(0.0)) } else { milliseconds(ms) }
}

/// Seconds, without a fraction if it is zero: `2 s`, `0.5 s`.
pub(crate) fn brief_seconds(seconds: f64) -> String {
    if seconds.fract() == 0.0 && seconds < 60.0 { format!("{seconds:.0} s") } else { milliseconds(seconds * 1000.0) }
}

/// Bytes in readable units: `512 B`, `1.2 KiB`, `24.0 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4);
    if unit == 0 {
        return format!("{bytes} B");
    }
    format!("{:.1} {}", bytes as f64 / f64::from(10 * unit).exp2(), UNITS[unit as usize])
}

/// US dollars with four decimals, `$0.0006`, or with as many as show that it is not nothing: `$0.000042`.
pub(crate) fn dollars(usd: f64) -> String {
    format!("${}", NanoDollars((usd * NANODOLLARS_PER_DOLLAR as f64).round() as u64).rounded(4))
}

/// A count with its noun.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A count of entries.
pub(crate) fn entries(number: u64) -> String {
    if number == 1 { "1 entry".to_owned() } else { format!("{number} entries") }
}

/// The first texts of a list, and how many more there are.
pub(crate) fn some(texts: &[String], most: usize) -> String {
    let more = texts.len().saturating_sub(most);
    let shown = texts[..texts.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// The time of day (UTC) of a Unix time.
pub(crate) fn time_of_day(unix_seconds: f64) -> String {
    utc(unix_seconds).format("%H:%M:%S%.3f").to_string()
}

/// The date and time (UTC) of a Unix time: `2026-11-22 12:01:07 UTC`.
pub(crate) fn date_and_time(unix_seconds: f64) -> String {
    utc(unix_seconds).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A Unix time for names of files: `20261122T120107Z`.
pub(crate) fn compact_time(unix_seconds: f64) -> String {
    utc(unix_seconds).format("%Y%m%dT%H%M%SZ").to_string()
}

/// The date and time in the local time zone, with its offset: `2026-11-22 13:01:07 +01:00`.
pub(crate) fn local_date_and_time(unix_seconds: f64) -> String {
    utc(unix_seconds).with_timezone(&Local).format("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// A Unix time as RFC 3339: `2026-11-22T12:01:07.204Z`.
pub(crate) fn rfc3339(unix_seconds: f64) -> String {
    utc(unix_seconds).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Converts a Unix time with millisecond precision; a time out of range becomes the epoch.
fn utc(unix_seconds: f64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis((unix_seconds.max(0.0) * 1000.0).round() as i64).unwrap_or_default()
}

/// An age: `3 s`, `12 min`, `5 h`, `3 d`.
pub(crate) fn age(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Parses a time argument to Unix seconds: `in 5m` or `+5m` from now, `@1795348867` or `2026-11-22T12:01:07Z`.
pub(crate) fn parse_moment(text: &str, now: f64) -> Result<f64, String> {
    let later = text.strip_prefix('+').or_else(|| text.strip_prefix("in "));
    if let Some(later) = later {
        return parse_duration(later.trim()).map(|later| now + later.as_secs_f64());
    }
    let wrong = || format!("\"{text}\" is not a time; write +5m, @1795348867 or 2026-11-22T12:01:07Z");
    if let Some(unix) = text.strip_prefix('@') {
        let unix = unix.parse().ok().filter(|unix: &f64| unix.is_finite() && *unix >= 0.0).ok_or_else(wrong)?;
        return match unix < YEAR_10000 {
            true => Ok(unix),
            false => {
                Err(format!("\"{text}\" is after the year 9999; the number after @ is in seconds, not milliseconds"))
            }
        };
    }
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| wrong())?;
    Ok(time.timestamp_micros() as f64 / 1e6)
}

/// Parses a duration argument: `500ms`, `30s`, `5m`, `2h`; a bare number is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    not_negative(text)?;
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 =
        number.parse().map_err(|_| format!("\"{text}\" is not a duration; write 500ms, 30s, 5m or 2h"))?;
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("\"{unit}\" is not a unit of time; one of ms, s, m, h, d")),
    };
    let duration = Duration::try_from_secs_f64(number * scale);
    let short = duration.ok().filter(|duration| *duration <= DURATION_MAX);
    short.ok_or_else(|| format!("\"{text}\" is longer than 100 years"))
}

/// Parses a duration argument of which only whole seconds count, at least one.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    match duration.as_secs() > 0 && duration.subsec_nanos() == 0 {
        true => Ok(duration),
        false => Err(format!("\"{text}\" is not a number of whole seconds, at least 1s")),
    }
}

/// Parses a whole number that is not negative.
pub(crate) fn parse_number(text: &str) -> Result<u64, String> {
    not_negative(text)?;
    text.parse().map_err(|_| format!("\"{text}\" is not a whole number"))
}

fn not_negative(text: &str) -> Result<(), String> {
    match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            Err("must not be negative".to_owned())
        }
        _ => Ok(()),
    }
}

/// What to write instead of an unknown word: the known one that was probably meant, otherwise all of them.
pub(crate) fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match atlas_contract::nearest(word, known.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("one of {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// Splits `key=value`.
pub(crate) fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("\"{text}\" is not of the form key=value")),
    }
}

/// Labels as the text of one cell.
pub(crate) fn labels(labels: &std::collections::BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// The first line of a text, shortened to `max` characters.
pub(crate) fn short(text: &str, max: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= max && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    line.chars().take(max - 1).collect::<String>() + "…"
}

/// A text in a column: at most `width` characters, the last of which says that more was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).collect::<String>() + "…"
}

/// A word for a shell, quoted if necessary.
pub(crate) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./@:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Adds the failed operation and the path to an I/O error.
pub(crate) fn could_not(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("could not {doing} \"{}\": {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn durations_read_well() {
        let all = [-1.0, 0.2, 1.4, 999.0, 1000.0, 59_000.0, 61_000.0, 3_600_000.0].map(milliseconds);
        expect!["<1 ms, <1 ms, 1 ms, 999 ms, 1.0 s, 59.0 s, 1 min 1 s, 1 h 0 min"].assert_eq(&all.join(", "));
    }

    #[test]
    fn spans_are_as_they_were_chosen() {
        let all = [1, 60, 600, 3_600, 90, 7_200].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(all, ["1 second", "1 minute", "10 minutes", "1 hour", "90 seconds", "2 hours"]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.0, 2.0, 0.25, 2.5, 128.0].map(brief_seconds), ["0 s", "2 s", "250 ms", "2.5 s", "2 min 8 s"]);
        let all = [0.04, 1.149, 12.0, 250.0].map(fine_milliseconds);
        expect!["0.0 ms, 1.1 ms, 12.0 ms, 250 ms"].assert_eq(&all.join(", "));
    }

    #[test]
    fn sizes_read_well() {
        let all = [0, 1, 1023, 1024, 1229, 34_359_738_368].map(bytes);
        expect!["0 B, 1 B, 1023 B, 1.0 KiB, 1.2 KiB, 32.0 GiB"].assert_eq(&all.join(", "));
    }

    #[test]
    fn what_costs_something_is_not_shown_as_nothing() {
        let all = [0.0, 0.000_635_2, 0.000_042, 0.000_000_001, 12.5].map(dollars);
        assert_eq!(all, ["$0.0000", "$0.0006", "$0.000042", "$0.000000001", "$12.5000"]);
    }

    #[test]
    fn arguments_say_durations() {
        let ms = |text| parse_duration(text).map(|duration| duration.as_millis());
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("90"), Ok(90_000));
        assert_eq!(ms("1.5m"), Ok(90_000));
        assert_eq!(ms("2h"), Ok(7_200_000));
        assert_eq!(ms("90d"), Ok(7_776_000_000));
        assert_eq!(ms("36500d"), Ok(3_153_600_000_000));
        for wrong in ["", "s", "5w", "-3s", "1e400s", "99999999999999999999999h", "36501d", "18446744073709549568s"] {
            assert!(ms(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_whole_seconds_count_where_the_cluster_has_no_others() {
        assert_eq!(parse_seconds("1m"), Ok(Duration::from_secs(60)));
        for wrong in ["0s", "500ms", "1.5s", "1500ms"] {
            assert_eq!(parse_seconds(wrong), Err(format!("\"{wrong}\" is not a number of whole seconds, at least 1s")));
        }
    }

    #[test]
    fn ages_read_well() {
        let all = [-1.0, 3.9, 60.0, 3_600.0, 100_000.0, 180_000.0].map(age);
        expect!["0 s, 3 s, 1 min, 1 h, 27 h, 2 d"].assert_eq(&all.join(", "));
    }

    #[test]
    fn arguments_say_moments() {
        let moment = |text| parse_moment(text, 1000.0);
        assert_eq!(moment("+5m"), Ok(1300.0));
        assert_eq!(moment("in 1h"), Ok(4600.0));
        assert_eq!(moment("@12.5"), Ok(12.5));
        for unix in [0.0, 951_782_399.0, 951_782_400.0, 1_795_348_867.204, 4_107_542_400.0] {
            let text = rfc3339(unix);
            assert_eq!(parse_moment(&text, 1000.0), Ok(unix));
        }
        assert_eq!(moment("2026-11-22T13:01:07+01:00"), moment("2026-11-22 12:01:07Z"));
        for wrong in [
            "",
            "soon",
            "+",
            "@x",
            "@-1",
            "@99999999999999",
            "@1795348867000",
            "@1e300",
            "+40000d",
            "2026-11-22",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-22T24:00:00Z",
            "2026-11-22T12:01:07",
            "2026-11-22T12:01:61Z",
            "2026-11-22T12:01:07+25:00",
            "äää2026-11-22T12:01:07Z",
        ] {
            assert!(moment(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn times_of_day_are_utc() {
        expect!["12:01:07.204"].assert_eq(&time_of_day(1_795_348_867.204));
        let all = [0.0, 951_782_399.0, 951_782_400.0, 1_795_348_867.0, 4_107_542_400.0].map(date_and_time);
        let expected = expect![[r#"
            1970-01-01 00:00:00 UTC
            2000-02-28 23:59:59 UTC
            2000-02-29 00:00:00 UTC
            2026-11-22 12:01:07 UTC
            2100-03-01 00:00:00 UTC"#]];
        expected.assert_eq(&all.join("\n"));
    }
}
