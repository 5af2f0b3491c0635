//! Days of the calendar, in UTC.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SECONDS_PER_DAY: u64 = 86_400;

/// A day in UTC.
///
/// ```
/// use atlas_model::Day;
///
/// let day = Day::of(1_732_406_400);
/// assert_eq!(day.to_string(), "2024-11-24");
/// assert_eq!("2024-11-24".parse(), Ok(day));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

/// A text that is no day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a day is written as 2026-01-31")]
pub struct DayError;

impl Day {
    /// The day of a time in seconds since 1970, up to the year 9999.
    pub fn of(unix_seconds: u64) -> Self {
        let mut days = unix_seconds / SECONDS_PER_DAY;
        let mut year = 1970;
        while days >= days_of_year(year) && year < 9999 {
            days -= days_of_year(year);
            year += 1;
        }
        let mut month = 1;
        while month < 12 && days >= u64::from(days_of_month(year, month)) {
            days -= u64::from(days_of_month(year, month));
            month += 1;
        }
        let last = days_of_month(year, month);
        Self { year, month, day: u8::try_from(days + 1).unwrap_or(last).min(last) }
    }
}

fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u16) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let bytes = text.as_bytes();
        let is_shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !is_shaped {
            return Err(DayError);
        }
        let year = text[..4].parse().map_err(|_| DayError)?;
        let month = text[5..7].parse().map_err(|_| DayError)?;
        let day = text[8..].parse().map_err(|_| DayError)?;
        let exists = (1..=12).contains(&month) && day >= 1 && day <= days_of_month(year, month);
        if exists { Ok(Self { year, month, day }) } else { Err(DayError) }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_of_times() {
        let day = |seconds| Day::of(seconds).to_string();
        assert_eq!(
            [day(0), day(86_399), day(86_400), day(951_782_400), day(1_709_164_800), day(4_102_444_800), day(u64::MAX)],
            ["1970-01-01", "1970-01-01", "1970-01-02", "2000-02-29", "2024-02-29", "2100-01-01", "9999-12-31"]
        );
    }

    #[test]
    fn texts() {
        for text in ["2026-01-31", "2024-02-29", "0000-01-01"] {
            assert_eq!(text.parse::<Day>().expect("a day").to_string(), text);
        }
        for text in [
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-1-1",
            "26-01-01",
            "2026-01-01 ",
            "",
            "٢٠٢٦-٠١",
        ] {
            assert_eq!(text.parse::<Day>(), Err(DayError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn later_times_have_later_days(a in 0..250_000_000_000_u64, b in 0..250_000_000_000_u64) {
            let (a, b) = (a.min(b), a.max(b));
            prop_assert!(Day::of(a) <= Day::of(b));
            prop_assert_eq!(Day::of(a) == Day::of(b), a / SECONDS_PER_DAY == b / SECONDS_PER_DAY);
            prop_assert_eq!(Day::of(a).to_string().parse(), Ok(Day::of(a)));
        }
    }
}
