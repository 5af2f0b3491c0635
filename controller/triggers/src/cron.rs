//! Cron expressions of five fields, in UTC (compatibility §14.2).

mod hint;
mod remark;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// The longest expression that is read.
const BYTES_MAX: usize = 4 << 10;

/// The fields in their order, with their least and their greatest value. The weekdays 0 and 7 are Sunday.
const FIELDS: [(&str, u64, u64); 5] =
    [("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7)];

/// How many days the next time may be away. 40 years contain each weekday of 29 February, even around 2100.
const DAYS_MAX: usize = 41 * 366;

/// An expression. A time matches if all five fields match; other programs take either of the two fields of days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    /// Bit n: minute n.
    minutes: u64,
    /// Bit n: hour n.
    hours: u64,
    /// Bit n: day n of the month, from 1.
    days: u64,
    /// Bit n: month n, from 1.
    months: u64,
    /// Bit n: n days after Monday.
    weekdays: u64,
}

/// Why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("Cron expression must have 5 fields, got {got}: '{expression}'{hint}")]
    Fields { got: usize, expression: String, hint: String },
    /// All values are outside the range of the field.
    #[error("Cron field '{field}' produced no valid values: '{expression}'")]
    Empty { field: &'static str, expression: String },
    #[error("Cron field '{field}' has the invalid item '{item}': '{expression}'{hint}")]
    Item { field: &'static str, item: String, expression: String, hint: String },
    #[error("Cron expression has {0} bytes, the limit is {BYTES_MAX}")]
    TooLong(usize),
    /// There is no such time, for example no 31 February.
    #[error("Cron expression matches no time: '{0}'")]
    Never(String),
}

impl Cron {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        if text.len() > BYTES_MAX {
            return Err(CronError::TooLong(text.len()));
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            let hint = hint::of_fields(&fields);
            return Err(CronError::Fields { got: fields.len(), expression: text.to_owned(), hint });
        };
        let set = |place: usize, field| {
            let (name, least, most) = FIELDS[place];
            Range { name, least, most, expression: text }.set(field)
        };
        let from_sunday = set(4, weekday)?;
        // 0 and 7 are Sunday.
        let weekdays = (0..=7).filter(|day| from_sunday >> day & 1 == 1).fold(0, |set, day| set | 1 << ((day + 6) % 7));
        Ok(Self {
            minutes: set(0, minute)?,
            hours: set(1, hour)?,
            days: set(2, day)?,
            months: set(3, month)?,
            weekdays,
        })
    }

    /// What is odd about an expression that can be read: parts of it never match, or match more than they seem to.
    pub fn remarks(text: &str) -> Vec<String> {
        remark::of(text)
    }

    /// All that decides when it matches, in one word: two expressions with the same word match at the same times.
    pub(crate) fn word(&self) -> String {
        let Self { minutes, hours, days, months, weekdays } = self;
        format!("{minutes:x}-{hours:x}-{days:x}-{months:x}-{weekdays:x}")
    }

    /// The minutes that match, ascending.
    pub fn minutes(&self) -> Vec<u8> {
        members(self.minutes)
    }

    /// The hours that match, ascending.
    pub fn hours(&self) -> Vec<u8> {
        members(self.hours)
    }

    /// The days of the month that match, ascending.
    pub fn days(&self) -> Vec<u8> {
        members(self.days)
    }

    /// The months that match, ascending, January is 1.
    pub fn months(&self) -> Vec<u8> {
        members(self.months)
    }

    /// The days of the week that match, ascending, Monday is 0.
    pub fn weekdays(&self) -> Vec<u8> {
        members(self.weekdays)
    }

    /// The first whole minute after `after` that matches, in seconds since 1970. None if there is no such time.
    pub fn next(&self, after: f64) -> Option<i64> {
        if !after.is_finite() {
            return None;
        }
        let first = (after / 60.0).floor() * 60.0 + 60.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates, and the timestamp has narrower limits"
        )]
        let start = Timestamp::from_second(first as i64).ok()?.to_zoned(TimeZone::UTC).datetime();
        let mut date = start.date();
        // A first day that matches may have no time left, so the days after it are searched as well.
        for _ in 0..=DAYS_MAX {
            if self.matches(date) {
                let from = if date == start.date() { (start.hour(), start.minute()) } else { (0, 0) };
                if let Some((hour, minute)) = self.time_from(from) {
                    return TimeZone::UTC.to_timestamp(date.at(hour, minute, 0, 0)).ok().map(Timestamp::as_second);
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn matches(&self, date: Date) -> bool {
        has(self.months, date.month())
            && has(self.days, date.day())
            && has(self.weekdays, date.weekday().to_monday_zero_offset())
    }

    /// The first time of a day that matches, not before `hour` and `minute`.
    fn time_from(&self, (hour, minute): (i8, i8)) -> Option<(i8, i8)> {
        let in_hour =
            |hour: i8, from: i8| (from..60).find(|minute| has(self.minutes, *minute)).map(|found| (hour, found));
        let this_hour = has(self.hours, hour).then(|| in_hour(hour, minute)).flatten();
        this_hour.or_else(|| (hour + 1..24).find(|hour| has(self.hours, *hour)).and_then(|hour| in_hour(hour, 0)))
    }
}

fn has(set: u64, member: i8) -> bool {
    set >> member & 1 == 1
}

fn members(set: u64) -> Vec<u8> {
    (0..64).filter(|member| set >> member & 1 == 1).collect()
}

/// The range of a field.
struct Range<'a> {
    name: &'static str,
    least: u64,
    most: u64,
    /// For errors.
    expression: &'a str,
}

impl Range<'_> {
    fn set(&self, field: &str) -> Result<u64, CronError> {
        let mut set = 0;
        for item in field.split(',') {
            let (first, last, step) = self.item(item).ok_or_else(|| CronError::Item {
                field: self.name,
                item: item.to_owned(),
                expression: self.expression.to_owned(),
                hint: hint::of_item(self.name, self.least, self.most, item),
            })?;
            // Values outside the range are ignored, and those far outside must not cost time.
            let mut value = match first < self.least {
                true => first + (self.least - first).div_ceil(step) * step,
                false => first,
            };
            while value <= last.min(self.most) {
                set |= 1 << value;
                value += step.min(self.most + 1);
            }
        }
        match set {
            0 => Err(CronError::Empty { field: self.name, expression: self.expression.to_owned() }),
            set => Ok(set),
        }
    }

    /// The first value of an item, its last, and the step between values.
    fn item(&self, item: &str) -> Option<(u64, u64, u64)> {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, number(step).filter(|step| *step > 0)?),
            None => (item, 1),
        };
        let (first, last) = match base.split_once('-') {
            _ if base == "*" => (self.least, self.most),
            Some((first, last)) => (number(first)?, number(last)?),
            None if item.contains('/') => (number(base)?, self.most.max(number(base)?)),
            None => (number(base)?, number(base)?),
        };
        (first <= last).then_some((first, last, step))
    }
}

/// Digits. Numbers that are too large for any field stay too large.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::from(u32::MAX)).min(u64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
    fn check(expression: &str, expected: Expect) {
        let cron = match Cron::parse(expression) {
            Ok(cron) => cron,
            Err(error) => return expected.assert_eq(&error.to_string()),
        };
        let mut at = 1_772_366_430.0; // 2026-03-01 12:00:30
        let mut times = Vec::new();
        while let (Some(next), true) = (cron.next(at), times.len() < 3) {
            times.push(Timestamp::from_second(next).expect("in range").strftime("%a %F %R").to_string());
            #[expect(clippy::cast_precision_loss, reason = "a time of this century")]
            let next = next as f64;
            at = next;
        }
        expected.assert_eq(&times.join(", "));
    }

    #[test]
    fn fields_select_times() {
        check("* * * * *", expect!["Sun 2026-03-01 12:01, Sun 2026-03-01 12:02, Sun 2026-03-01 12:03"]);
        check("*/25 9-17/4 * * *", expect!["Sun 2026-03-01 13:00, Sun 2026-03-01 13:25, Sun 2026-03-01 13:50"]);
        check("50/4,7 0 * * *", expect!["Mon 2026-03-02 00:07, Mon 2026-03-02 00:50, Mon 2026-03-02 00:54"]);
        check("0 0 29 2 *", expect!["Tue 2028-02-29 00:00, Sun 2032-02-29 00:00, Fri 2036-02-29 00:00"]);
    }

    #[test]
    fn both_fields_of_days_have_to_match() {
        check("0 0 13 * 5", expect!["Fri 2026-03-13 00:00, Fri 2026-11-13 00:00, Fri 2027-08-13 00:00"]);
        check("0 0 * * 7", expect!["Sun 2026-03-08 00:00, Sun 2026-03-15 00:00, Sun 2026-03-22 00:00"]);
        check("0 0 * * */3", expect!["Wed 2026-03-04 00:00, Sat 2026-03-07 00:00, Sun 2026-03-08 00:00"]);
    }

    #[test]
    fn values_outside_the_range_are_ignored() {
        check("0,99 0 1 1 *", expect!["Fri 2027-01-01 00:00, Sat 2028-01-01 00:00, Mon 2029-01-01 00:00"]);
        check("0 0 0-2 1 *", expect!["Fri 2027-01-01 00:00, Sat 2027-01-02 00:00, Sat 2028-01-01 00:00"]);
        check("61 * * * *", expect!["Cron field 'minute' produced no valid values: '61 * * * *'"]);
        check(
            "99999999999999999999 * * * *",
            expect![[r#"
            Cron field 'minute' produced no valid values: '99999999999999999999 * * * *'"#]],
        );
        check("* * 99/5 * *", expect!["Cron field 'day' produced no valid values: '* * 99/5 * *'"]);
        check("0 0 31 2 *", expect![""]);
        check("0 0 29 2 1", expect!["Mon 2044-02-29 00:00, Mon 2072-02-29 00:00, Mon 2112-02-29 00:00"]);
    }

    #[test]
    fn other_texts_are_refused() {
        check("", expect!["Cron expression must have 5 fields, got 0: ''"]);
        check("@daily", expect!["Cron expression must have 5 fields, got 1: '@daily'; write 0 0 * * *"]);
        check(
            "* * * * * *",
            expect![[
                r#"Cron expression must have 5 fields, got 6: '* * * * * *'; the fields are minute, hour, day, month and weekday, without seconds and years"#
            ]],
        );
        for item in ["a", "-5", "?", "1,,2", "*/0", "9-3", "1-2-3", "1/2/3", "*/", "/2", "MON", "+1", "*-3", "٣"] {
            assert!(matches!(Cron::parse(&format!("{item} * * * *")), Err(CronError::Item { .. })), "{item}");
        }
        assert_eq!(Cron::parse(&"1,".repeat(4 << 10)), Err(CronError::TooLong(8 << 10)));
    }

    /// The field of an expression whose other fields are stars, and what its error says after the expression.
    #[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
    fn hints(place: usize, items: &[&str], expected: Expect) {
        let hint = |item: &&str| {
            let mut fields = ["*"; 5];
            fields[place] = *item;
            let error = Cron::parse(&fields.join(" ")).expect_err(item).to_string();
            format!("{item}{}\n", error.rsplit('\'').next().unwrap_or_default())
        };
        expected.assert_eq(&items.iter().map(hint).collect::<String>());
    }

    #[test]
    fn a_refusal_says_what_to_write() {
        let weekdays =
            ["MON-FRI", "sunday", "SAT-SUN", "FRI-MON", "mon-fri/2", "5-1", "FRI#2", "6#5", "L", "5L", "xyz"];
        hints(
            4,
            &weekdays,
            expect![[r#"
            MON-FRI; write 1-5
            sunday; write 0
            SAT-SUN; write 6-7
            FRI-MON; write 5-7,1
            mon-fri/2; write 1-5/2
            5-1; write 5-7,1
            FRI#2; write 5, and 8-14 in the field day: both have to match
            6#5; write 6, and 29-31 in the field day: both have to match
            L; write 6 for Saturday, or 0 for Sunday
            5L; L, W and # are not understood, only numbers
            xyz
        "#]],
        );
        hints(
            3,
            &["JAN", "Oct-March", "DEC/2", "13-JAN", "MON"],
            expect![[r#"
            JAN; write 1
            Oct-March; write 10-12,1-3
            DEC/2; write 12/2
            13-JAN
            MON
        "#]],
        );
        hints(
            2,
            &["L", "LW", "15W", "?", "31-1"],
            expect![[r#"
            L; no expression means the last day of each month; write a day that every month has, such as 28
            LW; no expression means the last day of each month; write a day that every month has, such as 28
            15W; L, W and # are not understood, only numbers
            ?; write *
            31-1; write 31,1
        "#]],
        );
        hints(
            1,
            &["22-4", "*/0", "1,,2", "a"],
            expect![[r#"
            22-4; write 22-23,0-4
            */0; a step is at least 1
            1,,2; there is a comma too many
            a
        "#]],
        );
        let words = ["@yearly", "@Monthly", "@weekly", "@midnight", "@hourly", "@reboot", "@every 5m", "* * *"];
        let told = |word: &&str| format!("{}\n", Cron::parse(word).expect_err(word));
        expect![[r#"
            Cron expression must have 5 fields, got 1: '@yearly'; write 0 0 1 1 *
            Cron expression must have 5 fields, got 1: '@Monthly'; write 0 0 1 * *
            Cron expression must have 5 fields, got 1: '@weekly'; write 0 0 * * 0
            Cron expression must have 5 fields, got 1: '@midnight'; write 0 0 * * *
            Cron expression must have 5 fields, got 1: '@hourly'; write 0 * * * *
            Cron expression must have 5 fields, got 1: '@reboot'; words with @ are not understood
            Cron expression must have 5 fields, got 2: '@every 5m'; make a trigger of the type interval for that
            Cron expression must have 5 fields, got 3: '* * *'
        "#]]
        .assert_eq(&words.iter().map(told).collect::<String>());
    }

    #[test]
    fn what_is_odd_is_named() {
        let expressions = [
            "0,60 * * * *",
            "60 0,24 0,32 0,13 8,1",
            "50-70/5 20-25 0-2 10-13 5-9",
            "*/90 */24 * * *",
            "0 0 * * 1/2",
            "0 0 * * 5/2",
            "0 0 * * 1/4",
            "0 0 * * 0/7",
            "0 0 * * */2",
            "0 0 * * 1-7/2",
            "*/60 0-23/6 1-31 1-12 0-7",
            "0 0 0-9/4 * *",
            "0 0 0-1/2,3 * *",
            "99/5,1 * * * *",
        ];
        let told = |expression: &&str| {
            let remarks = Cron::remarks(expression);
            let remarks: Vec<String> = remarks.iter().map(|remark| format!("  {remark}\n")).collect();
            format!("{expression}\n{}", remarks.concat())
        };
        expect![[r#"
            0,60 * * * *
              '60' in the field minute is outside 0-59 and never matches; leave it out
            60 0,24 0,32 0,13 8,1
              '60' in the field minute is outside 0-59 and never matches; leave it out
              '24' in the field hour is outside 0-23 and never matches; leave it out
              '0' in the field day is outside 1-31 and never matches; leave it out
              '32' in the field day is outside 1-31 and never matches; leave it out
              '0' in the field month is outside 1-12 and never matches; leave it out
              '13' in the field month is outside 1-12 and never matches; leave it out
              '8' in the field weekday is outside 0-7 and never matches; leave it out
            50-70/5 20-25 0-2 10-13 5-9
              '50-70/5' in the field minute goes beyond 0-59; write 50-59/5
              '20-25' in the field hour goes beyond 0-23; write 20-23
              '0-2' in the field day goes beyond 1-31; write 1-2
              '10-13' in the field month goes beyond 1-12; write 10-12
              '5-9' in the field weekday goes beyond 0-7; write 5-7
            */90 */24 * * *
              '*/90' in the field minute has a step that is longer than the field, so only 0 matches; write 0, or make a trigger of the type interval
            0 0 * * 1/2
              '1/2' in the field weekday goes up to 7, which is Sunday; write 1-6/2, or 1-7/2 for that
            0 0 * * 5/2
              '5/2' in the field weekday goes up to 7, which is Sunday; write 5-6/2, or 5-7/2 for that
            0 0 * * 1/4
            0 0 * * 0/7
            0 0 * * */2
            0 0 * * 1-7/2
            */60 0-23/6 1-31 1-12 0-7
            0 0 0-9/4 * *
              '0-9/4' in the field day goes beyond 1-31; write 4-9/4
            0 0 0-1/2,3 * *
              '0-1/2' in the field day is outside 1-31 and never matches; leave it out
            99/5,1 * * * *
              '99/5' in the field minute is outside 0-59 and never matches; leave it out
        "#]].assert_eq(&expressions.iter().map(told).collect::<String>());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-0-9*/, aMON#@L]{0,40}", after in proptest::num::f64::ANY) {
            if let Ok(cron) = Cron::parse(&text) {
                cron.next(after);
            }
            Cron::remarks(&text);
        }

        /// An expression without a remark has no value outside of its fields.
        #[test]
        fn what_has_no_remark_loses_nothing(first in 0_u64..70, more in 0_u64..70, hour in 0_u64..30) {
            let expression = format!("{first}-{} {hour} * * *", first + more);
            let all_within = first + more < 60 && hour < 24;
            if Cron::parse(&expression).is_ok() {
                prop_assert_eq!(Cron::remarks(&expression).is_empty(), all_within);
            }
        }

        /// Compared with a search that tries every minute.
        #[test]
        fn the_next_time_is_the_first_that_matches(
            (minute, hour, day, weekday) in (0_u8..60, 0_u8..24, 1_u8..28, 0_u8..7), after in 0_i64..4_000_000_000,
        ) {
            let cron = Cron::parse(&format!("{minute}/7 {hour},3 {day}-30 * {weekday},6")).expect("an expression");
            #[expect(clippy::cast_precision_loss, reason = "a time of this century")]
            let next = cron.next(after as f64).expect("a time");
            let matches = |second: i64| {
                let time = Timestamp::from_second(second).expect("in range").to_zoned(TimeZone::UTC).datetime();
                cron.matches(time.date()) && has(cron.hours, time.hour()) && has(cron.minutes, time.minute())
            };
            let first = (after / 60 + 1..).map(|minute| minute * 60).find(|second| matches(*second));
            prop_assert_eq!(Some(next), first);
        }
    }
}
