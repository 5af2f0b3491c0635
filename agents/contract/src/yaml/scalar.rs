//! The values of scalars: the implicit and explicit types of YAML 1.1, with PyYAML's patterns.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Number, Value};

use super::Foreign;

/// The value of a scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Json(Value),
    Foreign(Foreign),
    /// A plain `<<`: a merge if it is a key, an error if it is a value.
    Merge,
    /// A plain `=`: text if it is a key, an error if it is a value.
    Default,
}

/// The core types a scalar can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Bool,
    Int,
    Float,
    Timestamp,
    Str,
    Binary,
}

struct Patterns {
    bool: Regex,
    float: Regex,
    int: Regex,
    timestamp: Regex,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    // The patterns are constants; a mistake in them fails every test of this module.
    let compile = |text: &str| Regex::new(&format!("^(?:{text})$")).expect("a valid pattern");
    Patterns {
        bool: compile("yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"),
        // A float needs a point, and an exponent needs a sign: `1e3` and `1.0e3` are text.
        float: compile(concat!(
            r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?",
            r"|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?",
            r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*",
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        )),
        int: compile(concat!(
            r"[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)",
            r"|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+",
        )),
        timestamp: compile(concat!(
            r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})",
            r"|(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[Tt]|[ \t]+)",
            r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]*))?",
            r"(?:[ \t]*(?P<zone>Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?",
        )),
    }
});

/// The type of a plain scalar without a tag.
fn implicit(text: &str) -> Type {
    match text.as_bytes().first() {
        None => return Type::Null,
        Some(b'~' | b'n' | b'N') if matches!(text, "~" | "null" | "Null" | "NULL") => return Type::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') if PATTERNS.bool.is_match(text) => {
            return Type::Bool;
        }
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => {}
        Some(_) => return Type::Str,
    }
    let patterns = &*PATTERNS;
    if patterns.float.is_match(text) {
        Type::Float
    } else if patterns.int.is_match(text) {
        Type::Int
    } else if patterns.timestamp.is_match(text) {
        Type::Timestamp
    } else {
        Type::Str
    }
}

/// Resolves a plain scalar.
pub(super) fn plain(text: &str) -> Result<Scalar, String> {
    match text {
        "<<" => Ok(Scalar::Merge),
        "=" => Ok(Scalar::Default),
        _ => typed(implicit(text), text),
    }
}

/// A plain scalar as its word.
pub(super) fn word(text: &str) -> Scalar {
    match text {
        "<<" => Scalar::Merge,
        "=" => Scalar::Default,
        "" => Scalar::Json(Value::Null),
        _ => Scalar::Json(Value::from(text)),
    }
}

/// Parses `text` as a value of the type that its form or its tag determines.
pub(super) fn typed(kind: Type, text: &str) -> Result<Scalar, String> {
    let wrong = |what: &str| format!("\"{}\" is not {what}", text.chars().take(40).collect::<String>());
    Ok(Scalar::Json(match kind {
        Type::Null => Value::Null,
        Type::Str => Value::from(text),
        Type::Bool => match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => Value::Bool(true),
            "no" | "false" | "off" => Value::Bool(false),
            _ => return Err(wrong("a boolean")),
        },
        Type::Int => int(text).ok_or_else(|| wrong("an integer in the supported range"))?,
        Type::Float => {
            if let Ok(number) = text.parse() {
                return Ok(Scalar::Json(Value::Number(number)));
            }
            let number = float(text).ok_or_else(|| wrong("a number"))?;
            match Number::from_f64(number) {
                Some(number) => Value::Number(number),
                None => return Ok(Scalar::Foreign(Foreign::NonFinite(text.to_owned()))),
            }
        }
        Type::Timestamp => {
            let iso = timestamp(text).ok_or_else(|| wrong("a date that exists"))?;
            return Ok(Scalar::Foreign(Foreign::Date(iso)));
        }
        Type::Binary => return Ok(Scalar::Foreign(Foreign::Tagged("!!binary"))),
    }))
}

fn int(text: &str) -> Option<Value> {
    let digits = text.replace('_', "");
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let plain =
        |digits: &str, radix| (!digits.starts_with(['+', '-'])).then(|| u128::from_str_radix(digits, radix).ok());
    if digits.starts_with(|c: char| matches!(c, '1'..='9')) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let sign = if negative { "-" } else { "" };
        return format!("{sign}{digits}").parse().ok().map(Value::Number);
    }
    let magnitude = if digits == "0" {
        Some(0)
    } else if let Some(digits) = digits.strip_prefix("0b") {
        plain(digits, 2)?
    } else if let Some(digits) = digits.strip_prefix("0x") {
        plain(digits, 16)?
    } else if digits.starts_with('0') {
        plain(digits, 8)?
    } else if digits.contains(':') {
        let mut value = 0u128;
        for part in digits.split(':') {
            value = value.checked_mul(60)?.checked_add(plain(part, 10)??)?;
        }
        Some(value)
    } else {
        None
    }?;
    integer(negative, magnitude)
}

/// An integer as JSON.
fn integer(negative: bool, magnitude: u128) -> Option<Value> {
    let number = match negative {
        true => Number::from_i128(i128::try_from(magnitude).ok()?.checked_neg()?),
        false => Number::from_u128(magnitude),
    };
    number.map(Value::Number)
}

fn float(text: &str) -> Option<f64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(&text)),
    };
    match digits {
        ".inf" => return Some(sign * f64::INFINITY),
        ".nan" => return Some(f64::NAN),
        _ => {}
    }
    let mut value = 0.0;
    for part in digits.split(':') {
        value = value * 60.0 + part.parse::<f64>().ok()?;
    }
    Some(sign * value)
}

/// The ISO 8601 form of a timestamp; none if the day or time does not exist.
fn timestamp(text: &str) -> Option<String> {
    let parts = PATTERNS.timestamp.captures(text)?;
    let number = |name| parts.name(name).and_then(|m| m.as_str().parse::<u32>().ok());
    let (year, month, day) = match parts.name("date") {
        Some(date) => {
            let date = date.as_str();
            (date[..4].parse().ok()?, date[5..7].parse().ok()?, date[8..].parse().ok()?)
        }
        None => (number("year")?, number("month")?, number("day")?),
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year == 0 || day == 0 || day > days {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    let Some(hour) = number("hour") else { return Some(date) };
    let (minute, second) = (number("minute")?, number("second")?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = parts.name("fraction").map_or("", |m| m.as_str());
    let fraction = if fraction.is_empty() { String::new() } else { format!(".{:0<6.6}", fraction) };
    let zone = match parts.name("zone").map(|m| m.as_str()) {
        None => String::new(),
        Some("Z") => "+00:00".to_owned(),
        Some(zone) => {
            let (hours, minutes) = zone[1..].split_once(':').unwrap_or((&zone[1..], "00"));
            format!("{}{hours:0>2}:{minutes}", &zone[..1])
        }
    };
    Some(format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
}
