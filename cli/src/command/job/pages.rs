//! Reads jobs page by page; the server returns at most a thousand jobs per request.

use std::collections::BTreeSet;

use atlas_api::types::Job;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::failure::Failure;

/// Maximum number of jobs in one answer.
pub(super) const PAGE: usize = 1000;

/// A reader of jobs, newest first. A page starts at the time of the previous page's last job and not at a fixed offset,
/// so that jobs which are added or removed between two requests make the reader skip no other job.
pub(super) struct Pages<'a> {
    client: &'a Client,
    query: Vec<(&'static str, String)>,
    /// The time of the last job so far, and the number of jobs at that time to skip.
    until: Option<f64>,
    skip: usize,
    /// The ids of all jobs so far, because the pages overlap.
    seen: BTreeSet<String>,
    over: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(client: &'a Client, query: Vec<(&'static str, String)>) -> Self {
        Self { client, query, until: None, skip: 0, seen: BTreeSet::new(), over: false }
    }

    /// Whether the last page was the last one.
    pub(super) fn over(&self) -> bool {
        self.over
    }

    /// The next jobs, at most a thousand; none if there are no more.
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<Value>, Failure> {
        while !self.over {
            let limit = if self.until.is_none() { most.clamp(1, PAGE) } else { PAGE };
            let mut query = vec![("view", "full".to_owned()), ("limit", limit.to_string())];
            query.extend(self.query.iter().cloned());
            // Rounded up, because the server truncates times to microseconds.
            query.extend(self.until.map(|until| ("until", format!("{:.6}", until + 1.5e-6))));
            query.extend((self.skip > 0).then(|| ("offset", self.skip.to_string())));
            let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let Value::Array(page) = self.client.get(&["api", "jobs"], &query).await? else {
                return Err(Failure::answer("a list is expected"));
            };
            self.over = page.len() < limit;
            let fresh = self.take(page)?;
            if !fresh.is_empty() {
                return Ok(fresh);
            }
        }
        Ok(Vec::new())
    }

    /// Adds a page; returns its new jobs.
    fn take(&mut self, page: Vec<Value>) -> Result<Vec<Value>, Failure> {
        let (length, was) = (page.len(), self.until);
        let mut fresh = Vec::new();
        for value in page {
            let Job { id, created_at, .. } = answers::read(&value)?;
            if self.seen.insert(id) {
                self.until = Some(self.until.map_or(created_at, |until| until.min(created_at)));
                fresh.push(value);
            }
        }
        // More jobs can have the same time than fit in one page.
        self.skip = if self.until == was { self.skip + length } else { 0 };
        Ok(fresh)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_begins_where_the_last_one_ended() {
        let client = Client::new("127.0.0.1:1").expect("an address");
        let mut pages = Pages::new(&client, Vec::new());
        let mut take = |jobs: &[(&str, f64)]| {
            let page = jobs.iter().map(|(id, at)| json!({"id": id, "created_at": at})).collect();
            let fresh = pages.take(page).expect("jobs");
            let ids: Vec<_> = fresh.iter().filter_map(|job| job["id"].as_str()).collect();
            format!("{} until {:?} skip {}", ids.concat(), pages.until.expect("a time"), pages.skip)
        };
        assert_eq!(take(&[("e", 3.0), ("d", 2.0)]), "ed until 2.0 skip 0");
        assert_eq!(take(&[("d", 2.0), ("c", 2.0)]), "c until 2.0 skip 2");
        assert_eq!(take(&[("b", 2.0), ("a", 1.0)]), "ba until 1.0 skip 0");
        assert_eq!(take(&[("a", 1.0)]), " until 1.0 skip 1");
    }
}
