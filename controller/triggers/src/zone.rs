//! Cron expressions in the local time of a time zone.
//!
//! A local time that a change of the clocks skips fires at the change; one that it repeats fires the first time only. An expression
//! that matches all hours means instants that are evenly apart, so it follows them through a change without either rule.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::Cron;

/// Changes of the clocks that are looked through for the next time: two per year, for as long as an expression may be away.
const CHANGES_MAX: usize = 100;

/// A time zone by its name in the IANA database, which is part of this program.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    /// The zone of a name such as `Europe/Rome`; none if there is no such zone.
    pub fn named(name: &str) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        Some(Self { name: name.to_owned(), zone })
    }

    /// The name of the zone that was probably meant: that of a place, or one that is nearly the same.
    pub fn meant(name: &str) -> Option<String> {
        let all: Vec<String> = TimeZoneDatabase::bundled().available().map(|zone| zone.as_str().to_owned()).collect();
        let place = |zone: &&String| zone.rsplit('/').next().is_some_and(|place| place.eq_ignore_ascii_case(name));
        let found = all.iter().filter(|zone| zone.contains('/')).find(place).map(String::as_str);
        let near = || atlas_contract::nearest(name, all.iter().map(String::as_str));
        found.or_else(near).map(str::to_owned)
    }

    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The local time of a time, with its offset: `2026-11-22 02:00:00 +01:00`.
    pub fn local(&self, time: f64) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates, and the time stamp has narrower limits"
        )]
        let time = Timestamp::from_second(time.floor() as i64).unwrap_or_default();
        time.to_zoned(self.zone.clone()).strftime("%F %T %:z").to_string()
    }

    /// The first time after `after` at which the local time matches, in seconds since 1970. None if there is no such time.
    pub fn next(&self, cron: &Cron, after: f64) -> Option<i64> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates, and the time stamp has narrower limits"
        )]
        let mut from = Timestamp::from_second(after.floor() as i64).ok()?;
        let every_hour = cron.hours().len() == 24;
        // Local times up to this one have fired before the clocks were set back.
        let mut repeated = self.repeated_until(from).filter(|_| !every_hour);
        for _ in 0..CHANGES_MAX {
            let offset = i64::from(self.zone.to_offset(from).seconds());
            let change = self.zone.following(from).next();
            let start = repeated.map_or(from.as_second() + offset, |until| until.max(from.as_second() + offset));
            let found = cron.next(seconds(start))? - offset;
            let Some(change) = change else { return Some(found) };
            let (at, later) = (change.timestamp().as_second(), i64::from(change.offset().seconds()));
            if found < at {
                return Some(found);
            }
            let (old, new) = (at + offset, at + later);
            if new > old && !every_hour && cron.next(seconds(old) - 1.0).is_some_and(|skipped| skipped < new) {
                return Some(at);
            }
            repeated = (new < old && !every_hour).then_some(old - 1);
            // The first minute after the change is looked at as well.
            from = Timestamp::from_second(at).ok()?;
            if repeated.is_none() && cron.next(seconds(new) - 1.0) == Some(new) {
                return Some(at);
            }
        }
        None
    }

    /// The last local time that had already been there before the clocks were set back, if `at` is in the hour that is repeated.
    fn repeated_until(&self, at: Timestamp) -> Option<i64> {
        let change = self.zone.preceding(Timestamp::from_second(at.as_second() + 1).ok()?).next()?;
        let start = change.timestamp();
        let before = Timestamp::from_second(start.as_second() - 1).ok()?;
        let old = start.as_second() + i64::from(self.zone.to_offset(before).seconds());
        let local = at.as_second() + i64::from(change.offset().seconds());
        (local < old).then_some(old - 1)
    }
}

#[expect(clippy::cast_precision_loss, reason = "the times of the next centuries are far below 2^53")]
fn seconds(time: i64) -> f64 {
    time as f64
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// The next times after a local time, as local times with their offset.
    #[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
    fn check(zone: &str, expression: &str, after: &str, count: usize, expected: Expect) {
        let zone = Zone::named(zone).expect("a zone");
        let cron = Cron::parse(expression).expect("an expression");
        let after: Timestamp = after.parse().expect("a time");
        let (mut after, mut out) = (seconds(after.as_second()), String::new());
        for _ in 0..count {
            let next = zone.next(&cron, after).expect("a time");
            assert!(seconds(next) > after, "times go forwards");
            let local = Timestamp::from_second(next).expect("a time").to_zoned(zone.zone.clone());
            writeln!(out, "{}", local.strftime("%F %H:%M %:z")).expect("a string takes all");
            after = seconds(next);
        }
        expected.assert_eq(&out);
    }

    #[test]
    fn a_time_that_the_north_skips_fires_at_the_change() {
        let skipped = expect![[r#"
            2026-03-28 02:30 +01:00
            2026-03-29 03:00 +02:00
            2026-03-30 02:30 +02:00
        "#]];
        check("Europe/Rome", "30 2 * * *", "2026-03-27T12:00:00Z", 3, skipped);
    }

    #[test]
    fn a_time_that_the_north_repeats_fires_once() {
        let repeated = expect![[r#"
            2026-10-24 02:30 +02:00
            2026-10-25 02:30 +02:00
            2026-10-26 02:30 +01:00
        "#]];
        check("Europe/Rome", "30 2 * * *", "2026-10-23T12:00:00Z", 3, repeated);
        // Planned while the hour is repeated.
        check(
            "Europe/Rome",
            "30 2 * * *",
            "2026-10-25T01:10:00Z",
            1,
            expect![[r#"
            2026-10-26 02:30 +01:00
        "#]],
        );
    }

    #[test]
    fn the_south_changes_in_other_months() {
        check(
            "Australia/Sydney",
            "30 2 * * *",
            "2026-04-04T00:00:00Z",
            2,
            expect![[r#"
            2026-04-05 02:30 +11:00
            2026-04-06 02:30 +10:00
        "#]],
        );
        check(
            "Australia/Sydney",
            "30 2 * * *",
            "2026-10-03T00:00:00Z",
            2,
            expect![[r#"
            2026-10-04 03:00 +11:00
            2026-10-05 02:30 +11:00
        "#]],
        );
    }

    #[test]
    fn every_hour_follows_the_instants() {
        check(
            "Europe/Rome",
            "*/30 * * * *",
            "2026-10-25T00:20:00Z",
            5,
            expect![[r#"
            2026-10-25 02:30 +02:00
            2026-10-25 02:00 +01:00
            2026-10-25 02:30 +01:00
            2026-10-25 03:00 +01:00
            2026-10-25 03:30 +01:00
        "#]],
        );
        check(
            "Europe/Rome",
            "*/30 * * * *",
            "2026-03-29T00:20:00Z",
            3,
            expect![[r#"
            2026-03-29 01:30 +01:00
            2026-03-29 03:00 +02:00
            2026-03-29 03:30 +02:00
        "#]],
        );
    }

    #[test]
    fn changes_by_half_an_hour_and_zones_without_changes() {
        check(
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T00:00:00Z",
            2,
            expect![[r#"
            2026-10-04 02:30 +11:00
            2026-10-05 02:15 +11:00
        "#]],
        );
        check(
            "Asia/Kolkata",
            "0 2 * * *",
            "2026-03-28T00:00:00Z",
            1,
            expect![[r#"
            2026-03-29 02:00 +05:30
        "#]],
        );
    }

    #[test]
    fn the_change_itself_fires_once() {
        check(
            "Europe/Rome",
            "0,30 2,3 * * *",
            "2026-03-29T00:00:00Z",
            3,
            expect![[r#"
            2026-03-29 03:00 +02:00
            2026-03-29 03:30 +02:00
            2026-03-30 02:00 +02:00
        "#]],
        );
    }

    #[test]
    fn a_zone_that_changes_its_offset_for_good() {
        // Samoa left out 30 December 2011.
        check(
            "Pacific/Apia",
            "0 12 * * *",
            "2011-12-29T00:00:00Z",
            3,
            expect![[r#"
            2011-12-29 12:00 -10:00
            2011-12-31 00:00 +14:00
            2011-12-31 12:00 +14:00
        "#]],
        );
    }

    #[test]
    fn names_are_those_of_the_database() {
        assert_eq!(Zone::named("Europe/Rome").map(|zone| zone.name().to_owned()), Some("Europe/Rome".to_owned()));
        for name in ["", "Rome", "../etc/passwd", "Europe/Atlantis"] {
            assert_eq!(Zone::named(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn utc_is_the_expression_itself(after in 0.0_f64..4e9, minute in 0..60_u8, hour in 0..24_u8) {
            let cron = Cron::parse(&format!("{minute} {hour} * * *")).expect("an expression");
            let utc = Zone::named("UTC").expect("a zone");
            prop_assert_eq!(utc.next(&cron, after), cron.next(after));
        }

        #[test]
        fn each_day_has_one_time(day in 0..4_000_i64, minute in 0..60_u8, hour in 0..24_u8) {
            let cron = Cron::parse(&format!("{minute} {hour} * * *")).expect("an expression");
            let rome = Zone::named("Europe/Rome").expect("a zone");
            let first = rome.next(&cron, seconds(1_600_000_000 + day * 86_400)).expect("a time");
            let second = rome.next(&cron, seconds(first)).expect("a time");
            prop_assert!((22 * 3_600..=26 * 3_600).contains(&(second - first)), "{} s", second - first);
        }
    }
}
