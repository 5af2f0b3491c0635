//! `atlasctl rag`: document bases; one file per verb that reads or writes files.

mod add;
mod export;
mod files;
mod html;
mod search;

use atlas_api::types::{Base, BaseDocument, DocumentPage, RebuiltBase, RemovedDocuments};
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
    Create(Create),
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
    /// Removes documents.
    Remove(Remove),
    /// Writes the documents of a base anew, so that removed ones leave its segments.
    Rebuild(Rebuild),
    /// Deletes bases with their documents.
    Delete(Delete),
    /// Writes the documents to files, or as JSON lines.
    Export(export::Export),
}

/// Options of `atlasctl rag create`.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    #[command(flatten)]
    documents: add::Add,
    /// What the documents are about.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Most bytes of a chunk, 64 to 65536; 2000 if it is left out.
    #[arg(long, value_name = "BYTES")]
    chunk_size: Option<u64>,
    /// How much of the chunk before a chunk repeats, 0 to 50 percent of its size; 5 if it is left out.
    #[arg(long, value_name = "PERCENT")]
    chunk_overlap: Option<u64>,
    /// Parts that a search finds if it does not say how many, 1 to 100; 5 if it is left out.
    #[arg(long, value_name = "COUNT")]
    top_k: Option<u64>,
    /// Change the settings of a base that is there.
    #[arg(long)]
    replace: bool,
}

/// Names of bases.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The base's name.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// Options of `atlasctl rag list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The base whose documents are listed.
    #[arg(value_name = "NAME")]
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
    #[arg(value_name = "NAME")]
    name: String,
    /// Sources, or patterns in which * is any text.
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<String>,
}

/// Options of `atlasctl rag rebuild`.
#[derive(Debug, clap::Args)]
pub(crate) struct Rebuild {
    /// The base's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Leave out documents that no controller can read.
    #[arg(long)]
    drop_unreadable: bool,
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
        Verb::Create(options) => create(context, options).await,
        Verb::Add(options) => add::run(context, options).await,
        Verb::List(options) => list(context, options).await,
        Verb::Show(names) => names::each(context, &names.names, async |name| show(context, name).await).await,
        Verb::Search(options) => search::run(context, options, false).await,
        Verb::Explain(options) => search::run(context, options, true).await,
        Verb::Remove(options) => remove(context, options).await,
        Verb::Rebuild(options) => rebuild(context, options).await,
        Verb::Delete(options) => delete(context, options).await,
        Verb::Export(options) => export::run(context, options).await,
    }
}

async fn create(context: &Context, options: &Create) -> Result<Exit, Failure> {
    let Create { documents, description, chunk_size, chunk_overlap, top_k, replace } = options;
    let mut settings = Map::new();
    for (name, value) in [
        ("description", description.as_ref().map(|text| json!(text))),
        ("chunk_size", chunk_size.map(|size| json!(size))),
        ("chunk_overlap", chunk_overlap.map(|percent| json!(percent))),
        ("top_k", top_k.map(|count| json!(count))),
    ] {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    }
    let client = context.client()?;
    let mut draft = settings.clone();
    draft.insert("name".to_owned(), documents.name.as_str().into());
    let value = match client.post(&BASES, &[], &Value::Object(draft)).await {
        Err(failure) if failure.exit == Exit::Conflict && *replace => {
            client.put(&at(&documents.name), &[], &Value::Object(settings)).await?
        }
        Err(failure) if failure.exit == Exit::Conflict => {
            return Err(failure.with_next("the base is there with other settings; change them: --replace"));
        }
        answer => answer?,
    };
    if !documents.names_documents() {
        return print(context, value);
    }
    add::run(context, documents).await
}

async fn show(context: &Context, name: &str) -> Result<Exit, Failure> {
    print(context, context.client()?.get(&at(name), &[]).await.map_err(listed)?)
}

fn print(context: &Context, value: Value) -> Result<Exit, Failure> {
    let base: Base = answers::read(&value)?;
    context.show(&Shown { text: text(&base), names: vec![format!("base/{}", base.name)], value })?;
    Ok(Exit::Done)
}

fn text(base: &Base) -> String {
    let Base { name, description, chunk_size, chunk_overlap, top_k, documents, bytes, segments, .. } = base;
    let (documents, segments) = (words::count(*documents, "document"), words::count(*segments, "segment"));
    let mut text = format!("base/{name}  {documents}, {} in {segments}\n", words::bytes(*bytes));
    if !description.is_empty() {
        text += &format!("{description}\n");
    }
    text + &format!("chunks of {chunk_size} bytes that overlap by {chunk_overlap} %; a search finds {top_k}\n")
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
    let Remove { name, sources } = options;
    let client = context.client()?;
    let (mut removed, mut exit) = (0, Exit::Done);
    for source in sources {
        let value = client.delete_with(&documents_of(name), &[("source", source)]).await.map_err(listed)?;
        let answer: RemovedDocuments = answers::read(&value)?;
        if answer.removed == 0 {
            context.note(&format!("no document of {name} has the source \"{source}\""));
            exit = Exit::Short;
        }
        removed += answer.removed;
    }
    let text = format!("removed {} from base/{name}\n", words::count(removed, "document"));
    context.show(&Shown { value: json!({ "removed": removed }), text, names: vec![format!("base/{name}")] })?;
    Ok(exit)
}

async fn rebuild(context: &Context, options: &Rebuild) -> Result<Exit, Failure> {
    let Rebuild { name, drop_unreadable } = options;
    let path = [BASES[0], BASES[1], name, "rebuild"];
    let body = json!({ "drop_unreadable": drop_unreadable });
    let value = context.client()?.post(&path, &[], &body).await.map_err(listed)?;
    let RebuiltBase { documents, segments, lost } = answers::read(&value)?;
    let (documents, segments) = (words::count(documents, "document"), words::count(segments, "segment"));
    context.show(&Shown {
        text: format!("base/{name}  rebuilt  {documents} in {segments}\n"),
        names: vec![format!("base/{name}")],
        value,
    })?;
    if lost == 0 {
        return Ok(Exit::Done);
    }
    let lost = words::count(lost, "document");
    context.note(&format!("{}{lost} could not be read and left the base; add them again", words::WARNING));
    Ok(Exit::Short)
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

/// Who looks for a base that is not there gets the command that lists them.
fn listed(failure: Failure) -> Failure {
    let is_unknown = failure.exit == Exit::NotFound && failure.message.starts_with("no such base");
    if is_unknown { failure.with_next("list them: atlasctl rag list") } else { failure }
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
    fn a_base_reads_like_a_note() {
        let base = Base {
            name: "handbook".to_owned(),
            description: "How we work.".to_owned(),
            chunk_size: 2_000,
            chunk_overlap: 5,
            top_k: 5,
            documents: 2,
            bytes: 2_048,
            segments: 1,
            ..Base::default()
        };
        expect_test::expect![[r#"
            base/handbook  2 documents, 2.0 KiB in 1 segment
            How we work.
            chunks of 2000 bytes that overlap by 5 %; a search finds 5
        "#]]
        .assert_eq(&text(&base));
    }

    #[test]
    fn metadata_are_pairs() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let read = read_metadata(&words(&["team=ops", "year=2026", "open=true", "a=b=c"])).expect("pairs");
        assert_eq!(Value::Object(read.clone()), json!({"team": "ops", "year": 2026, "open": true, "a": "b=c"}));
        assert_eq!(metadata(&read), "team=ops, year=2026, open=true, a=b=c");
        assert!(read_metadata(&words(&["team"])).is_err() && read_metadata(&words(&["=x"])).is_err());
    }
}
