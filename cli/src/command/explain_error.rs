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
    let code = code_in(&options.code).ok_or_else(|| {
        Failure::new("E0105", Exit::NotFound, format!("\"{}\" is no error code", options.code))
            .with_next("a code is E and four digits: atlasctl explain-error E1102")
    })?;
    show(context, &code)
}

/// Prints the page of a code.
pub(crate) fn show(context: &Context, code: &str) -> Result<Exit, Failure> {
    let page = Pages::get(&format!("{code}.md"));
    let page = page.and_then(|page| String::from_utf8(page.data.into_owned()).ok());
    let page = page.ok_or_else(|| unknown(code))?;
    let value = json!({"code": code, "page": page});
    context.show(&Shown { value, text: page, names: vec![format!("error/{code}")] })?;
    Ok(Exit::Done)
}

/// The code in what a person typed or copied: `E1102`, `e1102`, `1102`, `error[E1102]:`.
pub(crate) fn code_in(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches("error").trim_matches(|c| ['[', ']', ':'].contains(&c));
    let digits = text.strip_prefix(['E', 'e']).unwrap_or(text);
    (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| format!("E{digits}"))
}

/// A code without a page, with those that begin in the same way.
fn unknown(code: &str) -> Failure {
    let mut known: Vec<String> = Pages::iter().map(|name| name.trim_end_matches(".md").to_owned()).collect();
    known.sort();
    let alike = |other: &&String| other.get(..3) == code.get(..3);
    let alike: Vec<&str> = known.iter().filter(alike).map(String::as_str).collect();
    let failure = Failure::new("E0105", Exit::NotFound, format!("no such error code: \"{code}\""));
    if alike.is_empty() {
        return failure.with_next("an error names its code: error[E1102]");
    }
    failure.with_next(format!("similar ones: {}", alike.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_was_typed_or_copied() {
        for text in ["E1102", "e1102", "1102", "error[E1102]", "error[E1102]:", "[E1102]", " E1102 "] {
            assert_eq!(code_in(text).as_deref(), Some("E1102"), "{text}");
        }
        for text in ["contract", "E11021", "E110", "", "E11x2"] {
            assert_eq!(code_in(text), None, "{text}");
        }
        let told = unknown(&format!("E{}", 1199)).to_string();
        assert!(told.starts_with("error[E0105]: no such error code: \"E1199\"\nsimilar ones: E1101 E1102 "), "{told}");
        assert!(unknown(&format!("E{}", 7777)).to_string().ends_with("error[E1102]"));
    }

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
