//! What websites let programs read.

use std::collections::BTreeMap;

use atlas_env::Env;
use atlas_pages::Robots;
use url::Url;

use super::STOPS;
use super::web::{Web, WebError};
use crate::provider::elsewhere;

/// Most bytes of a `robots.txt` that count.
const ROBOTS_BYTES_MAX: usize = 512 << 10;

/// Most websites of one source. The rules of each take about 1 MiB at most.
const WEBSITES_MAX: usize = 16;

/// Whether a page may be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Forbidden,
    /// Nobody knows now. The reason is there when a website is asked for the first time.
    Unknown(Option<String>),
}

/// The rules of websites, as far as they were asked.
pub(super) struct Rules<'a> {
    web: &'a Web,
    env: &'a Env,
    /// By the origins of the websites; none of one that did not say.
    known: BTreeMap<String, Option<Robots>>,
}

impl<'a> Rules<'a> {
    pub(super) fn new(web: &'a Web, env: &'a Env) -> Self {
        Self { web, env, known: BTreeMap::new() }
    }

    /// Whether the website of a page lets it be read. One without rules allows all.
    pub(super) async fn verdict(&mut self, url: &Url) -> Verdict {
        let origin = url.origin().ascii_serialization();
        if !self.known.contains_key(&origin) {
            if self.known.len() >= WEBSITES_MAX {
                return Verdict::Unknown(Some(format!("a source has at most {WEBSITES_MAX} websites")));
            }
            let read = match url.join("/robots.txt") {
                Ok(at) => self.read(&at).await,
                Err(error) => Err(error.to_string()),
            };
            match read {
                Ok(robots) => drop(self.known.insert(origin.clone(), Some(robots))),
                Err(why) => {
                    self.known.insert(origin, None);
                    return Verdict::Unknown(Some(format!("the robots.txt of its website cannot be read: {why}")));
                }
            }
        }
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        match self.known.get(&origin) {
            Some(Some(robots)) if robots.allows(&path) => Verdict::Allowed,
            Some(Some(_)) => Verdict::Forbidden,
            _ => Verdict::Unknown(None),
        }
    }

    async fn read(&self, at: &Url) -> Result<Robots, String> {
        match self.web.get(at, &|_| Ok(())).await {
            Ok(answer) => {
                let mut body = answer.body;
                body.truncate(ROBOTS_BYTES_MAX);
                let read = move || Robots::read(&String::from_utf8_lossy(&body));
                elsewhere(self.env, ROBOTS_BYTES_MAX, read).await.ok_or_else(|| STOPS.to_owned())
            }
            Err(WebError::Status(status)) if (400..500).contains(&status) && status != 429 => Ok(Robots::default()),
            Err(error) => Err(error.to_string()),
        }
    }
}
