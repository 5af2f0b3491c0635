//! Query strings. The caller distinguishes absent, empty and malformed members.

use std::time::Duration;

use atlas_api::{LIMIT_MAX, bytes_decoded, percent_decoded};

use super::answer::Problem;

/// The members of a query string.
pub(crate) struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    pub(crate) fn new(text: Option<&'a str>) -> Self {
        Self(text.unwrap_or_default())
    }

    /// The value of a member, the first if there are several. Invalid UTF-8 is replaced, so that it matches nothing.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.split('&').find_map(|member| {
            let (key, value) = member.split_once('=').unwrap_or((member, ""));
            (key == name || percent_decoded(key).is_some_and(|key| key == name)).then(|| value_decoded(value))
        })
    }

    /// All members in order, decoded. Invalid UTF-8 is replaced.
    pub(crate) fn members(&self) -> impl Iterator<Item = (String, String)> + 'a {
        self.0.split('&').filter(|member| !member.is_empty()).map(|member| {
            let (name, value) = member.split_once('=').unwrap_or((member, ""));
            (value_decoded(name), value_decoded(value))
        })
    }

    /// `true` or `false`. A missing member is false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.filled(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Problem::malformed(format!("'{name}' must be true or false"))),
        }
    }

    /// The value of a member, if it is not empty.
    pub(crate) fn filled(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// `limit`: 50 if it is missing or not a number, otherwise clamped to its range (compatibility §15).
    pub(crate) fn limit(&self) -> usize {
        match self.filled("limit").and_then(|text| text.trim().parse::<i128>().ok()) {
            Some(limit) => usize::try_from(limit.clamp(1, i128::from(LIMIT_MAX))).unwrap_or(1),
            None => 50,
        }
    }

    /// A number that is not negative.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.filled(name) else { return Ok(None) };
        let number = text.parse().map_err(|_| Problem::malformed(format!("'{name}' must be a whole number")))?;
        Ok(Some(number))
    }

    /// `offset`: how many entries to skip, at most a million.
    pub(crate) fn offset(&self) -> Result<usize, Problem> {
        Ok(usize::try_from(self.count("offset")?.unwrap_or(0).min(1_000_000)).unwrap_or(0))
    }

    /// `limit` and `offset` of a list: how many entries to skip, and the most to return. Without `limit` all entries
    /// are returned.
    pub(crate) fn page(&self) -> Result<(usize, usize), Problem> {
        let limit = self.filled("limit").map_or(usize::MAX, |_| self.limit());
        Ok((self.offset()?, limit))
    }

    /// A time in seconds, at most `max`.
    pub(crate) fn seconds(&self, name: &str, max: Duration) -> Result<Option<Duration>, Problem> {
        let Some(text) = self.filled(name) else { return Ok(None) };
        let seconds: f64 = text.trim().parse().unwrap_or(f64::NAN);
        if seconds.is_nan() {
            return Err(Problem::malformed(format!("'{name}' must be a number of seconds")));
        }
        Ok(Some(Duration::from_secs_f64(seconds.clamp(0.0, max.as_secs_f64()))))
    }
}

fn value_decoded(text: &str) -> String {
    String::from_utf8_lossy(&bytes_decoded(&text.replace('+', " "))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_decoded() {
        let query = Query::new(Some("a=1&b=x+y%26z&c&%64=4&bad=%ff"));
        assert_eq!(query.get("b").as_deref(), Some("x y&z"));
        assert_eq!(query.get("c").as_deref(), Some(""));
        assert_eq!(query.get("d").as_deref(), Some("4"));
        assert_eq!(query.get("bad").as_deref(), Some("\u{fffd}"));
        assert_eq!(percent_decoded("100%").as_deref(), Some("100%"));
    }

    #[test]
    fn limits_are_clamped() {
        for (text, limit) in [
            ("", 50),
            ("limit=abc", 50),
            ("limit=0", 1),
            ("limit=-5", 1),
            ("limit=99999999999999999999", 1_000),
            ("limit=7", 7),
        ] {
            assert_eq!(Query::new(Some(text)).limit(), limit, "{text}");
        }
    }

    #[test]
    fn a_page_is_all_unless_it_is_limited() {
        let page = |text| Query::new(Some(text)).page().ok();
        assert_eq!(page(""), Some((0, usize::MAX)));
        assert_eq!(page("limit=2&offset=3"), Some((3, 2)));
        assert_eq!(page("limit=x"), Some((0, 50)));
        assert_eq!(page("offset=-1"), None);
    }

    #[test]
    fn seconds_are_bounded() {
        let max = Duration::from_secs(10);
        let seconds = |text| Query::new(Some(text)).seconds("t", max).ok().flatten();
        assert_eq!(seconds("t=1.5"), Some(Duration::from_millis(1_500)));
        assert_eq!(seconds("t=-1"), Some(Duration::ZERO));
        assert_eq!(seconds("t=inf"), Some(max));
        assert!(Query::new(Some("t=soon")).seconds("t", max).is_err());
    }
}
