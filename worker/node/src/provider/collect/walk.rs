//! Reading the pages of a website, each once and as it allows it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use url::{Host, Url};

use super::Fault;
use super::handing::{Controllers, Handing, Read};
use super::loading::Programs;
use super::rules::{Rules, Verdict};
use super::site::hand_over;
use super::web::{Answer, Hop, REDIRECTS_MAX, Redirect, Web, WebError};

/// Most pages of one source.
pub(super) const PAGES_MAX: usize = 1_000;

/// Most addresses that are kept of one source. They take twice 4 MiB at most, as none has more than 1,024 bytes.
pub(super) const KNOWN_MAX: usize = 4 * PAGES_MAX;

/// Most links between the first page of a website and another one.
const DEPTH_MAX: usize = 10;

/// Pages that are asked for at the same time.
const PARALLEL: usize = 5;

/// Which pages belong to a source.
#[derive(Debug)]
pub(super) enum Scope {
    /// Those whose addresses begin like this; links between them are followed.
    Below(String),
    /// Those of this host.
    Of(Option<Host<String>>),
}

impl Scope {
    fn has(&self, url: &Url) -> bool {
        match self {
            Self::Below(prefix) => url.as_str().starts_with(prefix),
            Self::Of(host) => url.host().map(|host| host.to_owned()) == *host,
        }
    }
}

/// A page that is to be read.
#[derive(Debug)]
struct Next {
    url: Url,
    /// How many links lead to it.
    depth: usize,
    /// How many redirects led to it.
    redirects: usize,
}

/// The pages that are to be read, and those that were.
#[derive(Debug, Default)]
pub(super) struct Queue {
    known: BTreeSet<Url>,
    waiting: VecDeque<Next>,
    /// Whether there are more than are kept.
    has_more: bool,
}

impl Queue {
    pub(super) fn of(first: impl IntoIterator<Item = Url>) -> Self {
        let mut left = Self::default();
        for url in first {
            left.add(url, 0);
        }
        left
    }

    fn add(&mut self, url: Url, depth: usize) {
        if self.known.contains(&url) {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.has_more = true;
            return;
        }
        self.known.insert(url.clone());
        self.waiting.push_back(Next { url, depth, redirects: 0 });
    }

    /// Adds the page to which another one redirects, as the next one. At most a few do, and each leads to one.
    fn add_moved(&mut self, url: Url, (depth, redirects): (usize, usize)) {
        if self.known.insert(url.clone()) {
            self.waiting.push_front(Next { url, depth, redirects });
        }
    }
}

/// Reads pages.
pub(super) struct Walk<'a> {
    pub(super) web: &'a Web,
    pub(super) programs: &'a Programs<'a>,
    pub(super) scope: Scope,
}

/// What happened to the pages that were read.
#[derive(Debug, Default)]
struct Track {
    reached: BTreeSet<Url>,
    moved: BTreeMap<Url, Redirect>,
    has_first: bool,
    is_deeper: bool,
}

impl Walk<'_> {
    pub(super) async fn pages<C: Controllers>(
        &self,
        mut left: Queue,
        handing: &mut Handing<'_, C>,
    ) -> Result<(), Fault> {
        let mut rules = Rules::new(self.web, &self.programs.shared.env);
        let mut track = Track::default();
        let (mut open, mut asked) = (FuturesUnordered::new(), 0);
        loop {
            while open.len() < PARALLEL && asked < PAGES_MAX {
                let Some(next) = left.waiting.pop_front() else { break };
                match rules.verdict(&next.url).await {
                    Verdict::Allowed => {}
                    Verdict::Forbidden => {
                        if next.depth == 0 && matches!(self.scope, Scope::Below(_)) {
                            handing.missing(next.url.as_str(), "the robots.txt of its website does not allow it");
                        }
                        continue;
                    }
                    Verdict::Unknown(why) => {
                        handing.incomplete();
                        if let Some(why) = why {
                            handing.missing(next.url.as_str(), &why);
                        }
                        continue;
                    }
                }
                asked += usize::from(next.redirects == 0);
                open.push(async move {
                    let got = self.web.hop(&next.url, &|kind| self.programs.takes(kind)).await;
                    (next, got)
                });
            }
            let Some((next, got)) = open.next().await else { break };
            match got {
                Ok(Hop::Answer(answer)) => self.read(&next, answer, (&mut left, &mut track), handing).await?,
                Ok(Hop::To(redirect)) => self.moved(&next, redirect, (&mut left, &mut track), handing),
                Err(error) => failed(&next.url, &error, handing),
            }
        }
        self.close(&left, &track, handing);
        Ok(())
    }

    /// Hands a page over, and notes its links.
    async fn read<C: Controllers>(
        &self,
        next: &Next,
        answer: Answer,
        (left, track): (&mut Queue, &mut Track),
        handing: &mut Handing<'_, C>,
    ) -> Result<(), Fault> {
        track.has_first |= next.depth == 0;
        track.reached.insert(next.url.clone());
        let name = next.url.to_string();
        let links = hand_over(answer, Read { name, ..Read::default() }, self.programs, handing).await?;
        if !matches!(self.scope, Scope::Below(_)) {
            return Ok(());
        }
        if links.has_more {
            handing.missing(next.url.as_str(), "it has so many links that not all of them were followed");
        }
        for link in links.to.into_iter().filter(|link| self.scope.has(link)) {
            if next.depth < DEPTH_MAX {
                left.add(link, next.depth + 1);
            } else if !left.known.contains(&link) && !track.is_deeper {
                track.is_deeper = true;
                handing.missing(link.as_str(), &format!("it was not read: more than {DEPTH_MAX} links lead to it"));
            }
        }
        Ok(())
    }

    /// Follows a redirect, if it leads to a page of the source.
    fn moved<C: Controllers>(
        &self,
        next: &Next,
        redirect: Redirect,
        (left, track): (&mut Queue, &mut Track),
        handing: &mut Handing<'_, C>,
    ) {
        let from = next.url.as_str();
        if !self.scope.has(&redirect.to) {
            let why = format!("it redirects to {}, which is outside of the source", redirect.to);
            match &self.scope {
                Scope::Below(_) if next.depth == 0 => handing.missing(from, &why),
                Scope::Of(_) => handing.unread(from, &why),
                // Many pages lead to a login, for example, which is none of them.
                Scope::Below(_) => handing.keep(from),
            }
            return;
        }
        if next.redirects >= REDIRECTS_MAX {
            handing.missing(from, &WebError::Redirects.to_string());
            return;
        }
        left.add_moved(redirect.to.clone(), (next.depth, next.redirects + 1));
        track.moved.insert(next.url.clone(), redirect);
    }

    /// Decides what happens to pages that have moved, and notes what was left out.
    fn close<C: Controllers>(&self, left: &Queue, track: &Track, handing: &mut Handing<'_, C>) {
        for url in track.moved.keys() {
            match track.end_of(url) {
                Moved::Read => {}
                Moved::Elsewhere => handing.keep(url.as_str()),
                Moved::Nowhere => handing.unread(url.as_str(), &WebError::Redirects.to_string()),
            }
        }
        // Without its first page, a website is not known to have no others.
        if matches!(self.scope, Scope::Below(_)) && !track.has_first {
            handing.incomplete();
        }
        if let Some(next) = left.waiting.front() {
            let text = format!(
                "it was not read: a source has at most {PAGES_MAX} pages, and nothing is removed from one with more"
            );
            handing.missing(next.url.as_str(), &text);
        } else if left.has_more {
            handing.incomplete();
        }
    }
}

/// Where a page has moved.
#[derive(Debug, PartialEq, Eq)]
enum Moved {
    /// For good, to a page that was read.
    Read,
    /// For a while, or to a page that was not read.
    Elsewhere,
    /// In a circle.
    Nowhere,
}

impl Track {
    fn end_of(&self, url: &Url) -> Moved {
        let (mut at, mut is_permanent) = (url, true);
        for _ in 0..=REDIRECTS_MAX {
            let Some(redirect) = self.moved.get(at) else {
                return if is_permanent && self.reached.contains(at) { Moved::Read } else { Moved::Elsewhere };
            };
            is_permanent &= redirect.is_permanent;
            at = &redirect.to;
        }
        Moved::Nowhere
    }
}

/// Notes why a page was not read.
fn failed<C: Controllers>(url: &Url, error: &WebError, handing: &mut Handing<'_, C>) {
    let (url, why) = (url.as_str(), error.to_string());
    match error {
        WebError::NoText(_) => handing.keep(url),
        // Files have no links, so no other page is missing.
        WebError::NoLoader(_) => handing.unread(url, &why),
        error if error.is_gone() => handing.gone(url, &why),
        _ => handing.missing(url, &why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse("http://h/").and_then(|root| root.join(path)).expect("an address")
    }

    #[test]
    fn addresses_that_are_kept_have_a_bound() {
        let long = "a".repeat(atlas_pages::ADDRESS_BYTES_MAX - "http://h/".len() - 8);
        let mut left = Queue::of([url("/")]);
        for number in 0..20_000 {
            left.add(url(&format!("/{number:08}{long}")), 1);
        }
        let bytes = |url: &Url| url.as_str().len();
        let kept: usize = left.known.iter().map(bytes).chain(left.waiting.iter().map(|next| bytes(&next.url))).sum();
        assert!(kept <= 2 * KNOWN_MAX * 1_024, "{kept} bytes");
        assert!(left.has_more);
    }

    #[test]
    fn a_page_is_gone_if_it_has_moved_for_good_to_one_that_was_read() {
        let mut track = Track { reached: BTreeSet::from([url("read")]), ..Track::default() };
        for (from, to, is_permanent) in [
            ("a", "read", true),
            ("b", "a", true),
            ("c", "read", false),
            ("d", "c", true),
            ("e", "failed", true),
            ("f", "g", true),
            ("g", "f", true),
            ("h", "h", false),
        ] {
            track.moved.insert(url(from), Redirect { to: url(to), is_permanent });
        }
        for (from, expected) in [
            ("a", Moved::Read),
            ("b", Moved::Read),
            ("c", Moved::Elsewhere),
            ("d", Moved::Elsewhere),
            ("e", Moved::Elsewhere),
            ("f", Moved::Nowhere),
            ("h", Moved::Nowhere),
        ] {
            assert_eq!(track.end_of(&url(from)), expected, "{from}");
        }
    }
}
