//! Pages, one or as many as links and sitemaps lead to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use atlas_pages::{Kind, Page, Robots, Sitemap, decoded, gunzipped};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use url::Url;

use super::Fault;
use super::handing::{Controllers, Handing, Read};
use super::loading::Programs;
use super::web::{Answer, BODY_BYTES_MAX, Web, WebError};

/// Most pages of one source.
const PAGES_MAX: usize = 1_000;

/// Most links between the first page of a website and another one.
const DEPTH_MAX: usize = 10;

/// Pages that are asked for at the same time.
const PARALLEL: usize = 5;

/// Most sitemaps of one source.
const SITEMAPS_MAX: usize = 50;

/// Most bytes of a `robots.txt` that count.
const ROBOTS_BYTES_MAX: usize = 512 << 10;

/// Reads one page. Its own website does not have to allow it: somebody named this page.
pub(super) async fn page<C: Controllers>(
    web: &Web,
    url: &Url,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<bool, Fault> {
    match web.get(url, &|kind| programs.takes(kind)).await {
        Ok(answer) => {
            let read = Read { name: url.to_string(), ..Read::default() };
            hand_over(&answer, read, programs, handing).await?;
            Ok(true)
        }
        Err(error) => {
            handing.error(url.as_str(), &error.to_string());
            Ok(error.is_definite())
        }
    }
}

/// Reads the pages below an address, as far as links lead to them.
pub(super) async fn crawl<C: Controllers>(
    web: &Web,
    start: &Url,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<bool, Fault> {
    let prefix = start.as_str();
    Walk { web, programs, prefix: Some(prefix) }.pages(vec![start.clone()], handing).await
}

/// Reads the pages that sitemaps list.
pub(super) async fn listed<C: Controllers>(
    web: &Web,
    sitemap: &Url,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<bool, Fault> {
    let (mut pages, mut seen, mut is_whole) = (Vec::new(), BTreeSet::from([sitemap.clone()]), true);
    let (mut listed, mut left) = (BTreeSet::new(), VecDeque::from([sitemap.clone()]));
    while let Some(url) = left.pop_front() {
        let read = match web.get(&url, &|_| Ok(())).await {
            Ok(answer) => read_sitemap(answer),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(Sitemap { pages: more, sitemaps, .. }) => {
                pages.extend(more.into_iter().filter(|page| is_safe(sitemap, page) && listed.insert(page.clone())));
                let fresh = sitemaps.into_iter().filter(|one| is_safe(sitemap, one));
                for further in fresh {
                    if seen.len() >= SITEMAPS_MAX {
                        handing.error(further.as_str(), &format!("more than {SITEMAPS_MAX} sitemaps belong together"));
                        is_whole = false;
                        break;
                    }
                    if seen.insert(further.clone()) {
                        left.push_back(further);
                    }
                }
            }
            Err(why) => {
                handing.error(url.as_str(), &why);
                is_whole = false;
            }
        }
    }
    Ok(Walk { web, programs, prefix: None }.pages(pages, handing).await? && is_whole)
}

/// What is read over TLS leads to nothing that is not.
fn is_safe(from: &Url, to: &Url) -> bool {
    from.scheme() == "http" || to.scheme() == "https"
}

fn read_sitemap(answer: Answer) -> Result<Sitemap, String> {
    let body = gunzipped(answer.body, BODY_BYTES_MAX).map_err(|error| error.to_string())?;
    let text = decoded(&body, None, false).map_err(|error| error.to_string())?;
    Sitemap::read(&text, &answer.url)
        .ok_or_else(|| "it is no sitemap, or it lists no page of its own website".to_owned())
}

/// Reads pages, each once and as their websites allow it.
struct Walk<'a> {
    web: &'a Web,
    programs: &'a Programs<'a>,
    /// How the addresses of linked pages begin that are read as well; none if no links are followed.
    prefix: Option<&'a str>,
}

impl Walk<'_> {
    async fn pages<C: Controllers>(&self, first: Vec<Url>, handing: &mut Handing<'_, C>) -> Result<bool, Fault> {
        let mut robots = BTreeMap::new();
        let mut known: BTreeSet<Url> = first.iter().cloned().collect();
        // Pages that were read, under the addresses to which redirects led.
        let mut reached = BTreeSet::new();
        let mut left: VecDeque<(Url, usize)> = first.into_iter().map(|url| (url, 0)).collect();
        let mut open = FuturesUnordered::new();
        let (mut asked, mut is_whole) = (0, true);
        loop {
            while open.len() < PARALLEL && asked < PAGES_MAX {
                let Some((url, depth)) = left.pop_front() else { break };
                if let Err(why) = self.allows(&mut robots, &url).await {
                    if depth == 0 && self.prefix.is_some() {
                        handing.error(url.as_str(), &why);
                        is_whole = false;
                    }
                    continue;
                }
                asked += 1;
                open.push(async move {
                    let got = self.web.get(&url, &|kind| self.programs.takes(kind)).await;
                    (url, depth, got)
                });
            }
            let Some((url, depth, got)) = open.next().await else { break };
            let answer = match got {
                Ok(answer) => answer,
                Err(WebError::NoText(_)) => continue,
                Err(error) => {
                    handing.error(url.as_str(), &error.to_string());
                    // Without its first page, a website is not known to have no others.
                    is_whole &= error.is_definite() && (depth > 0 || self.prefix.is_none());
                    continue;
                }
            };
            let is_inside = self.prefix.is_none_or(|prefix| answer.url.as_str().starts_with(prefix));
            if !is_inside {
                if depth == 0 {
                    handing.error(
                        url.as_str(),
                        &format!("it redirects to {}, which is outside of the source", answer.url),
                    );
                    is_whole = false;
                }
                continue;
            }
            if !reached.insert(answer.url.clone()) {
                continue;
            }
            let name = answer.url.to_string();
            let links = hand_over(&answer, Read { name, ..Read::default() }, self.programs, handing).await?;
            let Some(prefix) = self.prefix.filter(|_| depth < DEPTH_MAX) else { continue };
            let fitting = links.into_iter().filter(|link| link.as_str().starts_with(prefix));
            // What could not be asked for any more need not be kept either.
            for link in fitting {
                if known.len() <= 4 * PAGES_MAX && known.insert(link.clone()) {
                    left.push_back((link, depth + 1));
                }
            }
        }
        if let Some((url, _)) = left.front() {
            let text = format!(
                "it was not read: a source has at most {PAGES_MAX} pages, and nothing is removed from one with more"
            );
            handing.error(url.as_str(), &text);
            is_whole = false;
        }
        Ok(is_whole)
    }

    /// Whether the website of a page lets it be read, or why not. One that does not answer allows nothing, one without rules all.
    async fn allows(&self, known: &mut BTreeMap<String, Result<Robots, String>>, url: &Url) -> Result<(), String> {
        let origin = url.origin().ascii_serialization();
        if !known.contains_key(&origin) {
            let read = match url.join("/robots.txt") {
                Ok(at) => self.robots(&at).await,
                Err(error) => Err(error.to_string()),
            };
            known.insert(origin.clone(), read);
        }
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        match known.get(&origin) {
            Some(Ok(robots)) if robots.allows(&path) => Ok(()),
            Some(Err(why)) => Err(format!("the robots.txt of its website cannot be read: {why}")),
            _ => Err("the robots.txt of its website does not allow it".to_owned()),
        }
    }

    async fn robots(&self, at: &Url) -> Result<Robots, String> {
        match self.web.get(at, &|_| Ok(())).await {
            Ok(answer) => {
                let body = answer.body.get(..ROBOTS_BYTES_MAX).unwrap_or(&answer.body);
                Ok(Robots::read(&String::from_utf8_lossy(body)))
            }
            Err(WebError::Status(status)) if (400..500).contains(&status) && status != 429 => Ok(Robots::default()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Hands a page over under a name, and returns its links.
async fn hand_over<C: Controllers>(
    answer: &Answer,
    mut read: Read,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<Vec<Url>, Fault> {
    let page = (answer.kind == Kind::Html).then(|| decoded(&answer.body, answer.encoding.as_deref(), true));
    let page = page.and_then(Result::ok).map(|html| Page::read(&html, &answer.url));
    let links = page.as_ref().filter(|page| page.is_followed).map(|page| page.links.clone()).unwrap_or_default();
    if page.as_ref().is_some_and(|page| !page.is_indexed) {
        return Ok(links);
    }
    match programs.text(answer).await {
        Ok(text) => {
            read.text = text;
            read.metadata.insert("url".to_owned(), answer.url.as_str().into());
            if let Some(page) = page.filter(|page| !page.title.is_empty()) {
                read.metadata.insert("title".to_owned(), page.title.into());
            }
            handing.document(read).await?;
        }
        Err(why) => handing.error(&read.name, &why),
    }
    Ok(links)
}
