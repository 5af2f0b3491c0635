//! `atlasctl rag`: document bases; one file per verb that reads or writes files.

mod add;
mod create;
mod eval;
mod export;
mod files;
mod import;
mod readers;
mod rebuild;
mod refresh;
mod search;
mod show;
mod wait;

use atlas_api::types::{Base, BaseDocument, DocumentPage, RemovedDocuments};
use serde_json::{Map, Value, json};

use crate::answers;
use crate::client::Client;
use crate::confirm;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members, wide};
use crate::words;

/// The path of bases.
const BASES: [&str; 2] = ["api", "bases"];

/// Documents of one page.
const PAGE: &str = "1000";

/// Verbs of `atlasctl rag`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Makes a base, and adds documents.
    Create(Box<create::Create>),
    /// Adds documents: files, folders and patterns. One with the same source is replaced.
    Add(add::Add),
    /// Lists bases, or the documents of one.
    List(Options),
    /// Shows bases.
    Show(Names),
    /// Finds the parts of documents that fit a question.
    Search(search::Search),
    /// Finds the parts of documents that fit a question, and shows why each came.
    Explain(search::Search),
    /// Compares how good the answers are by words, with vectors and with a model that ranks.
    Eval(eval::Eval),
    /// Removes documents.
    Remove(Remove),
    /// Lets the cluster read the sources of a base again.
    Refresh(refresh::Refresh),
    /// Writes the documents of a base anew, so that removed ones leave its segments.
    Rebuild(rebuild::Rebuild),
    /// Deletes bases with their documents.
    Delete(Delete),
    /// Writes the documents to files, or as JSON lines.
    Export(export::Export),
    /// Takes over bases of Loki.
    Import(import::Import),
}

/// Names of bases.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The base's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::base)]
    names: Vec<String>,
}

/// Options of `atlasctl rag list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The base whose documents are listed.
    #[arg(value_name = "NAME", value_parser = names::base)]
    name: Option<String>,
    /// Only documents whose sources begin with it.
    #[arg(long, value_name = "SOURCE", requires = "name")]
    source: Option<String>,
    #[command(flatten)]
    list: ListOptions,
}

/// Options of `atlasctl rag remove`.
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// The base's name.
    #[arg(value_name = "NAME", value_parser = names::base)]
    name: String,
    /// Sources, or patterns in which * is any text.
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<String>,
    /// Write the base anew, so that no segment has them: they leave the disks within about an hour. Reaches documents that were removed before.
    #[arg(long)]
    erase: bool,
}

/// Options of `atlasctl rag delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    names: Names,
    /// Skip the confirmation.
    #[arg(long)]
    yes: bool,
}

const COLUMNS: [Column<Base>; 6] = [
    column("NAME", "name", |base, _| base.name.clone()),
    column("DOCUMENTS", "documents", |base, _| base.documents.to_string()),
    column("SIZE", "bytes", |base, _| words::bytes(base.bytes)),
    column("DESCRIPTION", "description", |base, _| base.description.clone()),
    wide("CHANGED", "updated_at", |base, context| context.when(base.updated_at as f64)),
    wide("BY", "author", |base, _| base.author.clone()),
];

const DOCUMENT_COLUMNS: [Column<BaseDocument>; 4] = [
    column("SOURCE", "source", |document, _| document.source.clone()),
    column("SIZE", "bytes", |document, _| words::bytes(document.bytes)),
    column("METADATA", "metadata", |document, _| metadata(&document.metadata)),
    wide("ID", "id", |document, _| document.id.clone()),
];

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Create(options) => create::run(context, options).await,
        Verb::Add(options) => add::run(context, options).await,
        Verb::List(options) => list(context, options).await,
        Verb::Show(names) => names::each(context, &names.names, async |name| show::run(context, name).await).await,
        Verb::Search(options) => search::run(context, options, false).await,
        Verb::Explain(options) => search::run(context, options, true).await,
        Verb::Eval(options) => eval::run(context, options).await,
        Verb::Remove(options) => remove(context, options).await,
        Verb::Refresh(options) => refresh::run(context, options).await,
        Verb::Rebuild(options) => rebuild::run(context, options).await,
        Verb::Delete(options) => delete(context, options).await,
        Verb::Export(options) => export::run(context, options).await,
        Verb::Import(options) => import::run(context, options).await,
    }
}

async fn list(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let Some(name) = &options.name else {
        let bases = context.client()?.get(&BASES, &[]).await?;
        let name = |base: &Base| format!("base/{}", base.name);
        let list = List { columns: &COLUMNS, members: members::BASE, name };
        if context.list(bases, &options.list, &list)? == 0 {
            context.note("no document bases: atlasctl rag create NAME FOLDER");
        }
        return Ok(Exit::Done);
    };
    let mut documents = Vec::new();
    let exit = pages(context, name, options.source.as_deref().unwrap_or_default(), false, |page| {
        for document in page {
            documents.push(serde_json::to_value(document).map_err(|error| Failure::usage(error.to_string()))?);
        }
        Ok(())
    })
    .await?;
    let shown = |document: &BaseDocument| document.source.clone();
    let list = List { columns: &DOCUMENT_COLUMNS, members: members::DOCUMENT, name: shown };
    if context.list(Value::Array(documents), &options.list, &list)? == 0 {
        context.note(&format!("no documents: atlasctl rag add {name} FOLDER"));
    }
    Ok(exit)
}

/// All documents of a base, page by page.
async fn pages(
    context: &Context,
    name: &str,
    source: &str,
    with_text: bool,
    mut each: impl FnMut(Vec<BaseDocument>) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let client: Client = context.client()?;
    let mut after = String::new();
    loop {
        let mut query = vec![("limit", PAGE), ("after", after.as_str()), ("source", source)];
        query.extend(with_text.then_some(("text", "true")));
        query.retain(|(_, value)| !value.is_empty());
        let value = client.get(&documents_of(name), &query).await.map_err(listed)?;
        let DocumentPage { documents, next, unreadable } = answers::read(&value)?;
        each(documents)?;
        let Some(next) = next else {
            return Ok(search::warn_of(context, name, &unreadable));
        };
        after = next;
    }
}

async fn remove(context: &Context, options: &Remove) -> Result<Exit, Failure> {
    let Remove { name, sources, erase } = options;
    let client = context.client()?;
    let (mut removed, mut exit) = (0, Exit::Done);
    for (place, source) in sources.iter().enumerate() {
        let mut query = vec![("source", source.as_str())];
        // Once, after the last one.
        query.extend((*erase && place + 1 == sources.len()).then_some(("erase", "true")));
        let value = client.delete_with(&documents_of(name), &query).await.map_err(listed)?;
        let answer: RemovedDocuments = answers::read(&value)?;
        if answer.removed == 0 {
            let below = is_folder(&client, name, source).await?;
            let below =
                if below { format!("; those below it: '{}/*'", source.trim_end_matches('/')) } else { String::new() };
            context.note(&format!("no document of {name} has the source \"{source}\"{below}"));
            exit = Exit::Short;
        }
        removed += answer.removed;
    }
    let erased = if *erase { ", and erased what was removed" } else { "" };
    let text = format!("removed {} from base/{name}{erased}\n", words::count(removed, "document"));
    context.show(&Shown { value: json!({ "removed": removed }), text, names: vec![format!("base/{name}")] })?;
    Ok(exit)
}

/// Whether documents are below a source, as files are below a folder.
async fn is_folder(client: &Client, name: &str, source: &str) -> Result<bool, Failure> {
    let below = format!("{}/", source.trim_end_matches('/'));
    let value = client.get(&documents_of(name), &[("limit", "1"), ("source", &below)]).await.map_err(listed)?;
    let page: DocumentPage = answers::read(&value)?;
    Ok(!page.documents.is_empty())
}

async fn delete(context: &Context, options: &Delete) -> Result<Exit, Failure> {
    let names = &options.names.names;
    let question = format!("delete {} with all documents? [y/N] ", names.join(", "));
    if !options.yes && !confirm::agreed(&question)? {
        return Err(Failure::usage("nothing was deleted").with_next("confirm: --yes"));
    }
    names::each(context, names, async |name| {
        let value = context.client()?.delete(&at(name)).await.map_err(listed)?;
        let name = format!("base/{name}");
        context.show(&Shown { value, text: format!("{name}  deleted\n"), names: vec![name] })?;
        Ok(Exit::Done)
    })
    .await
}

/// The path of a base.
fn at(name: &str) -> [&str; 3] {
    [BASES[0], BASES[1], name]
}

fn documents_of(name: &str) -> [&str; 4] {
    [BASES[0], BASES[1], name, "documents"]
}

/// Who looks for a base that is not there gets the command that lists them, and whose base names a model that is gone learns how to go on.
fn listed(failure: Failure) -> Failure {
    match failure.exit {
        Exit::NotFound if failure.message.starts_with("no such base") => {
            failure.with_next("list them: atlasctl rag list")
        }
        Exit::NotFound if failure.message.starts_with("no such model") => failure.with_next(
            "search by words: --words   or name another model, '' for none: atlasctl rag create NAME --embedding MODEL --reranker MODEL --replace   \
             or see which there are: atlasctl model list",
        ),
        _ => failure,
    }
}

/// `team=ops, year=2026`
fn metadata(members: &Map<String, Value>) -> String {
    let shown = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    members.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Reads `KEY=VALUE` words. A value is JSON if it reads like it, otherwise a text.
fn read_metadata(words: &[String]) -> Result<Map<String, Value>, Failure> {
    let read = |word: &String| {
        let (name, value) = word.split_once('=').filter(|(name, _)| !name.is_empty())?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        Some((name.to_owned(), value))
    };
    let refused = |word: &String| Failure::usage(format!("--metadata {word} is not KEY=VALUE"));
    words.iter().map(|word| read(word).ok_or_else(|| refused(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_pairs() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let read = read_metadata(&words(&["team=ops", "year=2026", "open=true", "a=b=c"])).expect("pairs");
        assert_eq!(Value::Object(read.clone()), json!({"team": "ops", "year": 2026, "open": true, "a": "b=c"}));
        assert_eq!(metadata(&read), "team=ops, year=2026, open=true, a=b=c");
        assert!(read_metadata(&words(&["team"])).is_err() && read_metadata(&words(&["=x"])).is_err());
    }
}
