//! What to write instead of what other programs understand: names, `@daily`, `L`, `W`, `#` and `?`.

use std::fmt::Write as _;

/// The first letters of the months and of the days of the week, in the order of their numbers.
const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The rest of an error about an expression with another number of fields.
pub(super) fn of_fields(fields: &[&str]) -> String {
    let instead = match fields.first().map(|word| word.to_ascii_lowercase()).as_deref() {
        Some("@yearly" | "@annually") => "0 0 1 1 *",
        Some("@monthly") => "0 0 1 * *",
        Some("@weekly") => "0 0 * * 0",
        Some("@daily" | "@midnight") => "0 0 * * *",
        Some("@hourly") => "0 * * * *",
        Some("@every") => return "; make a trigger of the type interval for that".to_owned(),
        Some(word) if word.starts_with('@') => return "; words with @ are not understood".to_owned(),
        _ if fields.len() > 5 => {
            return "; the fields are minute, hour, day, month and weekday, without seconds and years".to_owned();
        }
        _ => return String::new(),
    };
    format!("; write {instead}")
}

/// The rest of an error about an item of a field with values from `least` to `most`.
pub(super) fn of_item(field: &str, least: u64, most: u64, item: &str) -> String {
    let upper = item.to_ascii_uppercase();
    let (base, step) = upper.split_once('/').map_or((upper.as_str(), None), |(base, step)| (base, Some(step)));
    if item.is_empty() {
        return "; there is a comma too many".to_owned();
    }
    if base == "?" {
        return "; write *".to_owned();
    }
    if step == Some("0") {
        return "; a step is at least 1".to_owned();
    }
    if let Some(hint) = of_nth(field, base).or_else(|| of_special(field, base)) {
        return hint;
    }
    let Some(mut instead) = in_numbers(field, least, most, base) else { return String::new() };
    if let Some(step) = step {
        if instead.contains(',') {
            return String::new();
        }
        let _ = write!(instead, "/{step}");
    }
    format!("; write {instead}")
}

/// `FRI#2`: the second Friday.
fn of_nth(field: &str, base: &str) -> Option<String> {
    let (day, nth) = base.split_once('#').filter(|_| field == "weekday")?;
    let day = number(field, day)?;
    let nth = nth.parse::<u64>().ok().filter(|nth| (1..=5).contains(nth))?;
    let (first, last) = (7 * (nth - 1) + 1, (7 * nth).min(31));
    Some(format!("; write {day}, and {first}-{last} in the field day: both have to match"))
}

fn of_special(field: &str, base: &str) -> Option<String> {
    let names_no_number = number(field, base).is_none();
    match base {
        "L" | "LW" if field == "day" => Some(
            "; no expression means the last day of each month; write a day that every month has, such as 28".to_owned(),
        ),
        "L" if field == "weekday" => Some("; write 6 for Saturday, or 0 for Sunday".to_owned()),
        _ if base.contains(['L', 'W', '#']) && names_no_number && !base.contains('-') => {
            Some("; L, W and # are not understood, only numbers".to_owned())
        }
        _ => None,
    }
}

/// Names and ranges that go down, as numbers.
fn in_numbers(field: &str, least: u64, most: u64, base: &str) -> Option<String> {
    let Some((first, last)) = base.split_once('-') else { return number(field, base).map(|number| number.to_string()) };
    let (first, mut last) = (number(field, first)?, number(field, last)?);
    if first > most || last > most {
        return None;
    }
    if field == "weekday" && last == 0 {
        last = 7;
    }
    if first <= last {
        return Some(format!("{first}-{last}"));
    }
    // Sunday has two numbers, and one is enough.
    let least = if field == "weekday" { 1 } else { least };
    let part = |from: u64, to: u64| if from == to { from.to_string() } else { format!("{from}-{to}") };
    Some(format!("{},{}", part(first, most), part(least, last)))
}

/// The number of a name such as `MON` or `Monday`, or digits.
fn number(field: &str, word: &str) -> Option<u64> {
    if let Some(number) = super::number(word) {
        return Some(number);
    }
    let (names, first): (&[&str], u64) = match field {
        "month" => (&MONTHS, 1),
        "weekday" => (&DAYS, 0),
        _ => return None,
    };
    let is_word = word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    names.iter().zip(first..).find(|(name, _)| is_word && word.starts_with(**name)).map(|(_, number)| number)
}
