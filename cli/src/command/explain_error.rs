//! `atlasctl explain-error`: the page of an error code, offline.

use rust_embed::Embed;
use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// The error pages, embedded at build time.
#[derive(Embed)]
#[folder = "../docs/reference/errors"]
struct Pages;

/// Options of `atlasctl explain-error`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Error code, such as E1102.
    code: String,
}

pub(crate) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let code = options.code.to_uppercase();
    let page = Pages::get(&format!("{code}.md"));
    let page = page.and_then(|page| String::from_utf8(page.data.into_owned()).ok());
    let page = page.ok_or_else(|| {
        let known: Vec<String> = Pages::iter().map(|name| name.trim_end_matches(".md").to_owned()).collect();
        let failure = Failure::new("E0105", Exit::NotFound, format!("no such error code: \"{}\"", options.code));
        failure.with_next(format!("one of: {}", known.join(" ")))
    })?;
    let value = json!({"code": code, "page": page});
    context.show(&Shown { value, text: page, names: vec![format!("error/{code}")] })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_on_board() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/errors");
        let pages = std::fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with('E')));
        assert_eq!(pages.count(), Pages::iter().count());
    }
}
