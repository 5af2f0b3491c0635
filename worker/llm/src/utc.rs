//! Times as texts, in UTC.

use crate::UnixSeconds;

const DAY: u64 = 24 * 3600;

/// The basic form of ISO 8601, for example `20150830T123600Z`. Years after 9999 are written as 9999.
pub(crate) fn basic(time: UnixSeconds) -> String {
    // The last second of the year 9999.
    let time = time.min(253_402_300_799);
    let (mut year, mut day) = (1970, time / DAY);
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let second = time % DAY;
    format!("{year:04}{month:02}{:02}T{:02}{:02}{:02}Z", day + 1, second / 3600, second / 60 % 60, second % 60)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written() {
        let check = |time, expected: &str| assert_eq!(basic(time), expected);
        check(0, "19700101T000000Z");
        check(951_782_399, "20000228T235959Z");
        check(951_782_400, "20000229T000000Z");
        check(1_440_938_160, "20150830T123600Z");
        check(1_795_456_800, "20261123T180000Z");
        check(4_107_542_400, "21000301T000000Z");
        check(u64::MAX, "99991231T235959Z");
    }
}
