//! `atlasctl docs`: chapters of the documentation, offline.

use std::collections::BTreeMap;

use rust_embed::Embed;
use serde_json::json;

use crate::command::explain_error;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};

/// How to write agents.
#[derive(Embed)]
#[folder = "../docs/agents"]
struct Agents;

/// How to run a cluster.
#[derive(Embed)]
#[folder = "../docs/operating"]
struct Operating;

/// The concepts.
#[derive(Embed)]
#[folder = "../docs/concepts"]
struct Concepts;

const START: &str = include_str!("../../../docs/start.md");
const CLI: &str = include_str!("../../../docs/reference/cli.md");
const HTTP: &str = include_str!("../../../docs/reference/http.md");
const CONTROLLER: &str = include_str!("../../../docs/reference/controller-options.md");
const WORKER: &str = include_str!("../../../docs/reference/worker-options.md");

/// Options of `atlasctl docs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Name of the chapter, or the code of an error; lists all chapters if not given.
    topic: Option<String>,
}

pub(crate) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let chapters = chapters();
    let Some(topic) = &options.topic else {
        let mut table = Table::new(&["TOPIC", "CHAPTER"]);
        for (topic, page) in &chapters {
            table.row([topic.clone(), title(page).to_owned()]);
        }
        let value = chapters.iter().map(|(topic, page)| json!({"topic": topic, "title": title(page)})).collect();
        let names = chapters.keys().map(|topic| format!("docs/{topic}")).collect();
        context.show(&Shown { value, text: table.text(), names })?;
        context.next("next: atlasctl docs TOPIC");
        return Ok(Exit::Done);
    };
    if let Some(code) = explain_error::code_in(topic) {
        return explain_error::show(context, &code);
    }
    let page = chapters.get(&topic.to_lowercase()).ok_or_else(|| {
        let near = atlas_contract::nearest(topic, chapters.keys().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        let failure = Failure::new("E0105", Exit::NotFound, format!("no such chapter: \"{topic}\"{hint}"));
        failure.with_next("list them: atlasctl docs")
    })?;
    let value = json!({"topic": topic, "page": page});
    context.show(&Shown { value, text: page.clone(), names: vec![format!("docs/{topic}")] })?;
    Ok(Exit::Done)
}

fn chapters() -> BTreeMap<String, String> {
    let mut chapters: BTreeMap<String, String> = [
        ("start", START),
        ("cli", CLI),
        ("http", HTTP),
        ("controller-options", CONTROLLER),
        ("worker-options", WORKER),
    ]
    .map(|(topic, page)| (topic.to_owned(), page.to_owned()))
    .into();
    add::<Agents>(&mut chapters, "agents");
    add::<Operating>(&mut chapters, "operating");
    add::<Concepts>(&mut chapters, "concepts");
    chapters
}

/// Adds every page of a folder under its file name, and README.md under the folder's name.
fn add<Folder: Embed>(chapters: &mut BTreeMap<String, String>, folder: &str) {
    for name in Folder::iter() {
        let page = Folder::get(&name).and_then(|page| String::from_utf8(page.data.into_owned()).ok());
        if let (Some(topic), Some(page)) = (name.strip_suffix(".md"), page) {
            let topic = if topic == "README" { folder } else { topic };
            chapters.insert(topic.to_lowercase(), page);
        }
    }
}

fn title(page: &str) -> &str {
    page.lines().next().unwrap_or_default().trim_start_matches("# ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_that_the_program_names_are_on_board() {
        let chapters = chapters();
        for topic in ["start", "cli", "http", "contract", "exec", "python", "fixtures", "operating", "backup"] {
            assert!(chapters.get(topic).is_some_and(|page| page.starts_with("# ")), "{topic}");
        }
    }
}
