//! Pages, one or as many as links and sitemaps lead to.

use std::collections::{BTreeSet, VecDeque};

use atlas_pages::{Kind, Page, Sitemap, decoded, gunzipped, markdown};
use url::Url;

use super::handing::{Controllers, Handing, Read};
use super::loading::Programs;
use super::walk::{KNOWN_MAX, Queue, Scope, Walk};
use super::web::{Answer, BODY_BYTES_MAX, Web};
use super::{Fault, STOPS};
use crate::provider::elsewhere;

/// Most sitemaps of one source.
const SITEMAPS_MAX: usize = 50;

/// Reads one page. Its own website does not have to allow it: somebody named this page.
pub(super) async fn page<C: Controllers>(
    web: &Web,
    url: &Url,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<(), Fault> {
    match web.get(url, &|kind| programs.takes(kind)).await {
        Ok(answer) => {
            let read = Read { name: url.to_string(), ..Read::default() };
            hand_over(answer, read, programs, handing).await?;
        }
        Err(error) if error.is_gone() => handing.gone(url.as_str(), &error.to_string()),
        Err(error) => handing.missing(url.as_str(), &error.to_string()),
    }
    Ok(())
}

/// Reads the pages below an address, as far as links lead to them.
pub(super) async fn crawl<C: Controllers>(
    web: &Web,
    start: &Url,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<(), Fault> {
    let scope = Scope::Below(start.to_string());
    Walk { web, programs, scope }.pages(Queue::of([start.clone()]), handing).await
}

/// Reads the pages that sitemaps list.
pub(super) async fn listed<C: Controllers>(
    web: &Web,
    sitemap: &Url,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<(), Fault> {
    let (mut pages, mut seen) = (BTreeSet::new(), BTreeSet::from([sitemap.clone()]));
    // In the order of the sitemaps: the first pages are read if there are too many.
    let (mut listed, mut left) = (Vec::new(), VecDeque::from([sitemap.clone()]));
    while let Some(url) = left.pop_front() {
        let read = match web.get(&url, &|_| Ok(())).await {
            Ok(answer) => {
                let read = elsewhere(&programs.shared.env, BODY_BYTES_MAX, move || read_sitemap(answer)).await;
                read.unwrap_or_else(|| Err(STOPS.to_owned()))
            }
            Err(error) => Err(error.to_string()),
        };
        let Sitemap { pages: more, sitemaps, has_more } = match read {
            Ok(read) => read,
            Err(why) => {
                handing.missing(url.as_str(), &why);
                continue;
            }
        };
        if has_more {
            handing.missing(url.as_str(), "it lists so many pages that not all of them were read");
        }
        for page in more.into_iter().filter(|page| is_safe(sitemap, page)) {
            if listed.len() >= KNOWN_MAX {
                handing.incomplete();
                break;
            }
            if pages.insert(page.clone()) {
                listed.push(page);
            }
        }
        if listed.len() >= KNOWN_MAX {
            // Far more than can be read. The walk says so.
            break;
        }
        for further in sitemaps.into_iter().filter(|one| is_safe(sitemap, one)) {
            if seen.contains(&further) {
                continue;
            }
            if seen.len() >= SITEMAPS_MAX {
                handing.missing(further.as_str(), &format!("more than {SITEMAPS_MAX} sitemaps belong together"));
                break;
            }
            seen.insert(further.clone());
            left.push_back(further);
        }
    }
    let scope = Scope::Of(sitemap.host().map(|host| host.to_owned()));
    Walk { web, programs, scope }.pages(Queue::of(listed), handing).await
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

/// The links of a page.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) to: Vec<Url>,
    /// Whether there are more.
    pub(super) has_more: bool,
}

/// Hands a page over under a name, and returns its links.
pub(super) async fn hand_over<C: Controllers>(
    answer: Answer,
    mut read: Read,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<Links, Fault> {
    let url = answer.url.clone();
    let (text, links) = if answer.kind == Kind::Html {
        let html = elsewhere(&programs.shared.env, answer.body.len(), move || read_html(&answer)).await;
        let (page, text) = match html.unwrap_or_else(|| Err(STOPS.to_owned())) {
            Ok(html) => html,
            // Nobody knows where its links lead.
            Err(why) => {
                handing.missing(&read.name, &why);
                return Ok(Links::default());
            }
        };
        let links = Links { to: page.links, has_more: page.has_more_links };
        let links = if page.is_followed { links } else { Links::default() };
        if !page.is_indexed {
            return Ok(links);
        }
        if !page.title.is_empty() {
            read.metadata.insert("title".to_owned(), page.title.into());
        }
        let text = if text.trim().is_empty() { Err("it has no text".to_owned()) } else { Ok(text) };
        (text, links)
    } else {
        (programs.text(answer).await, Links::default())
    };
    match text {
        Ok(text) => {
            read.text = text;
            read.metadata.insert("url".to_owned(), url.as_str().into());
            handing.document(read).await?;
        }
        Err(why) => handing.unread(&read.name, &why),
    }
    Ok(links)
}

/// A page of HTML with its text.
fn read_html(answer: &Answer) -> Result<(Page, String), String> {
    let html = decoded(&answer.body, answer.encoding.as_deref(), true).map_err(|error| error.to_string())?;
    Ok((Page::read(&html, &answer.url), markdown(&html)))
}
