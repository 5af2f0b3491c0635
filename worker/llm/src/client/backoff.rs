//! How long to wait before the next try. Pure.

use std::time::{Duration, UNIX_EPOCH};

use http::HeaderMap;

/// The pause after the first failure, before jitter.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause that is not asked for by the provider, before jitter.
const LONGEST: Duration = Duration::from_secs(30);
/// Waits of more than this are not meant for a client that waits.
const ASKED_MAX: Duration = Duration::from_secs(24 * 3600);

/// The pause after failure `failures` (from 0): it doubles, and `random` takes up to half of it away, so that clients that failed
/// together do not return together.
pub(super) fn pause(failures: u32, random: u64) -> Duration {
    let full = FIRST.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(LONGEST);
    let nanoseconds = u64::try_from(full.as_nanos() / 2).unwrap_or(u64::MAX);
    full - Duration::from_nanos(random % nanoseconds.saturating_add(1))
}

/// How long the provider asks to wait: milliseconds or seconds as a number, or a date. `now` is the time since 1970.
pub(super) fn asked(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str, unit: f64| text.parse::<f64>().ok().and_then(|number| seconds(number * unit));
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 0.001)) {
        return Some(wait);
    }
    let after = text("retry-after")?;
    let date = || {
        let at = httpdate::parse_http_date(after).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(at.saturating_sub(now).min(ASKED_MAX))
    };
    number(after, 1.0).or_else(date)
}

fn seconds(number: f64) -> Option<Duration> {
    // Infinity is no number that a provider means.
    let number = Some(number).filter(|number| number.is_finite())?;
    Duration::try_from_secs_f64(number.min(ASKED_MAX.as_secs_f64())).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(headers: &[(&'static str, &'static str)], expected: Option<u64>) {
        let map = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)));
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = Duration::from_secs(784_111_777);
        assert_eq!(asked(&map.collect(), now), expected.map(Duration::from_millis), "{headers:?}");
    }

    #[test]
    fn what_providers_ask() {
        check(&[("retry-after", "3")], Some(3000));
        check(&[("retry-after", " 1.5 ")], Some(1500));
        check(&[("retry-after", "9"), ("retry-after-ms", "250")], Some(250));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")], Some(60_000));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0));
        check(&[("retry-after", "99999999999999999999")], Some(86_400_000));
        for nonsense in ["-1", "NaN", "inf", "soon", ""] {
            check(&[("retry-after", nonsense)], None);
        }
        check(&[], None);
    }

    proptest! {
        #[test]
        fn pauses_grow_within_bounds(failures in 0_u32..100, random: u64) {
            let pause = pause(failures, random);
            prop_assert!(pause >= FIRST / 2 && pause <= LONGEST);
            prop_assert!(failures > 0 || pause <= FIRST);
            prop_assert!(failures < 6 || pause >= LONGEST / 2);
        }
    }
}
