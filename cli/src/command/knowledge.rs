//! `atlasctl knowledge`: entries that agents find and read; one file per verb that works on folders.

mod acl;
mod folder;
mod left_out;

use atlas_api::types::{KnowledgeDomain, KnowledgeEntry};
use serde_json::{Map, Value, json};

use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members, wide};
use crate::words;

/// The path of entries.
const ENTRIES: [&str; 3] = ["api", "knowledge", "entries"];

/// Verbs of `atlasctl knowledge`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Stores an entry. One with the same id is replaced.
    Add(Add),
    /// Shows entries.
    Get(Names),
    /// Lists the entries that contain a text.
    Search(Search),
    /// Lists entries, by domain and id.
    List(Options),
    /// Changes members of an entry.
    Update(Update),
    /// Deletes entries.
    #[command(alias = "remove")]
    Delete(Delete),
    /// Lists domains and how many entries each has.
    Domains(Domains),
    /// Shows which domains agents read and write, and why.
    Acl(acl::Options),
    /// Stores the entries of a folder: DOMAIN/ID.md with YAML in front, as Atlas for Python keeps them.
    Import(folder::Import),
    /// Writes all entries to a folder, as Atlas for Python reads them.
    Export(folder::Export),
}

/// Options of `atlasctl knowledge add`.
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// The content; - reads it from stdin, @FILE from a file.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// More words of the content.
    #[arg(value_name = "TEXT")]
    more: Vec<String>,
    /// Its id; made of the domain and a number if it is left out.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// What it is about.
    #[arg(long, value_name = "DOMAIN", default_value = "general", value_parser = names::domain)]
    domain: String,
    #[command(flatten)]
    words: Words,
}

/// What an entry has besides its content.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// A word to find it by; several with commas between them.
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
    /// Anything else, as JSON.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
}

/// Options of `atlasctl knowledge update`.
#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    /// The entry's id.
    #[arg(value_name = "ID", value_parser = names::entry)]
    id: String,
    /// The new content; - reads it from stdin, @FILE from a file.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    #[command(flatten)]
    words: Words,
}

/// Ids of entries.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The entry's id.
    #[arg(value_name = "ID", required = true, value_parser = names::entry)]
    ids: Vec<String>,
}

/// Options of `atlasctl knowledge delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    names: Names,
    /// Accepted as by other verbs that delete; entries are deleted without a question.
    #[arg(long)]
    yes: bool,
}

/// Options of `atlasctl knowledge search`.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// A part of the content or the tags as it stands there; upper and lower case are the same.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// More words of that part.
    #[arg(value_name = "TEXT")]
    more: Vec<String>,
    /// Only entries of this domain.
    #[arg(long, value_name = "DOMAIN", value_parser = names::domain)]
    domain: Option<String>,
    /// Only entries with this tag; several with commas between them: with one of them.
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
    #[command(flatten)]
    list: ListOptions,
}

/// Options of `atlasctl knowledge list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only entries of this domain.
    #[arg(long, value_name = "DOMAIN", value_parser = names::domain)]
    domain: Option<String>,
    #[command(flatten)]
    list: ListOptions,
}

/// Options of `atlasctl knowledge domains`.
#[derive(Debug, clap::Args)]
pub(crate) struct Domains {
    #[command(flatten)]
    list: ListOptions,
}

const COLUMNS: [Column<KnowledgeEntry>; 6] = [
    column("ID", "id", |entry, _| entry.id.clone()),
    column("DOMAIN", "domain", |entry, _| entry.domain.clone()),
    column("TAGS", "tags", |entry, _| entry.tags.join(",")),
    column("CONTENT", "content", |entry, _| entry.content.lines().next().unwrap_or_default().to_owned()),
    wide("UPDATED", "updated_at", |entry, _| entry.updated_at.clone()),
    wide("BY", "author", |entry, _| entry.agent.clone().unwrap_or_else(|| entry.author.clone())),
];

const DOMAIN_COLUMNS: [Column<KnowledgeDomain>; 2] = [
    column("DOMAIN", "domain", |domain, _| domain.domain.clone()),
    column("ENTRIES", "entries", |domain, _| domain.entries.to_string()),
];

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Add(options) => add(context, options).await,
        Verb::Get(names) => names::each(context, &names.ids, async |id| get(context, id).await).await,
        Verb::Search(options) => search(context, options).await,
        Verb::List(options) => list(context, options).await,
        Verb::Update(options) => update(context, options).await,
        Verb::Delete(Delete { names, yes: _ }) => {
            names::each(context, &names.ids, async |id| delete(context, id).await).await
        }
        Verb::Domains(options) => domains(context, options).await,
        Verb::Acl(options) => acl::run(context, options).await,
        Verb::Import(options) => folder::import(context, options).await,
        Verb::Export(options) => folder::export(context, options).await,
    }
}

async fn add(context: &Context, options: &Add) -> Result<Exit, Failure> {
    let Add { text, more, id, domain, words: Words { tags, metadata } } = options;
    let body = json!({
        "id": id.as_deref().unwrap_or_default(),
        "content": input::words(text, more)?,
        "domain": domain,
        "tags": tags,
        "metadata": read_metadata(metadata.as_deref())?.unwrap_or_default(),
    });
    let value = context.client()?.post(&ENTRIES, &[], &body).await?;
    done(context, value, "stored")
}

async fn update(context: &Context, options: &Update) -> Result<Exit, Failure> {
    let Update { id, text, words: Words { tags, metadata } } = options;
    let mut body = Map::new();
    if let Some(text) = text {
        body.insert("content".to_owned(), input::text(text)?.into());
    }
    if !tags.is_empty() {
        body.insert("tags".to_owned(), json!(tags));
    }
    if let Some(metadata) = read_metadata(metadata.as_deref())? {
        body.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if body.is_empty() {
        return Err(Failure::usage("nothing to change").with_next("give a text, --tag or --metadata"));
    }
    let client = context.client()?;
    let value = client.put(&[&ENTRIES[..], &[id]].concat(), &[], &Value::Object(body)).await.map_err(listed)?;
    done(context, value, "changed")
}

fn done(context: &Context, value: Value, done: &str) -> Result<Exit, Failure> {
    let entry: KnowledgeEntry = answers::read(&value)?;
    let name = format!("knowledge/{}", entry.id);
    let text = format!("{name}  {done}  in {}\n", entry.domain);
    context.show(&Shown { value, text, names: vec![name] })?;
    Ok(Exit::Done)
}

async fn get(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = context.client()?.get(&[&ENTRIES[..], &[id]].concat(), &[]).await.map_err(listed)?;
    let entry: KnowledgeEntry = answers::read(&value)?;
    let names = vec![format!("knowledge/{}", entry.id)];
    context.show(&Shown { text: text(&entry), value, names })?;
    Ok(Exit::Done)
}

fn text(entry: &KnowledgeEntry) -> String {
    let KnowledgeEntry { id, content, domain, tags, metadata, updated_at, author, agent, job, .. } = entry;
    let mut text = format!("{id}  in {domain}");
    if !tags.is_empty() {
        text += &format!("  {}", tags.join(","));
    }
    let by = agent.as_ref().map_or_else(|| author.clone(), |agent| format!("{agent} for {author}"));
    text += &format!("\nwritten by {by} at {updated_at}");
    if let Some(job) = job {
        text += &format!(" in {job}");
    }
    text.push('\n');
    if !metadata.is_empty() {
        text += &format!("{}\n", Value::Object(metadata.clone()));
    }
    text += &format!("\n{}", content);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

async fn search(context: &Context, options: &Search) -> Result<Exit, Failure> {
    let (tags, text) = (options.tags.join(","), input::joined(&options.text, &options.more));
    let mut query = vec![("q", text.as_str()), ("limit", "1000")];
    query.extend(options.domain.as_deref().map(|domain| ("domain", domain)));
    query.extend((!tags.is_empty()).then_some(("tags", tags.as_str())));
    let found = context.client()?.get(&["api", "knowledge", "search"], &query).await?;
    let none = match text.contains(char::is_whitespace) {
        true => {
            format!("no entry contains \"{text}\" as it stands; words are not compared one by one: try a single one")
        }
        false => format!("no entry contains \"{text}\""),
    };
    print(context, found, &options.list, &none)
}

async fn list(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let entries = folder::all(&context.client()?, options.domain.as_deref()).await?;
    print(context, Value::Array(entries), &options.list, "no entries: atlasctl knowledge add TEXT")
}

fn print(context: &Context, entries: Value, options: &ListOptions, none: &str) -> Result<Exit, Failure> {
    let name = |entry: &KnowledgeEntry| format!("knowledge/{}", entry.id);
    let list = List { columns: &COLUMNS, members: members::KNOWLEDGE, name };
    if context.list(entries, options, &list)? == 0 {
        context.note(none);
    }
    Ok(Exit::Done)
}

async fn domains(context: &Context, options: &Domains) -> Result<Exit, Failure> {
    let domains = context.client()?.get(&["api", "knowledge", "domains"], &[]).await?;
    let name = |domain: &KnowledgeDomain| format!("domain/{}", domain.domain);
    let list = List { columns: &DOMAIN_COLUMNS, members: members::KNOWLEDGE_DOMAIN, name };
    if context.list(domains, &options.list, &list)? == 0 {
        context.note("no entries: atlasctl knowledge add TEXT");
    }
    Ok(Exit::Done)
}

async fn delete(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&[&ENTRIES[..], &[id]].concat()).await.map_err(listed)?;
    let name = format!("knowledge/{id}");
    context.show(&Shown { value, text: format!("{name}  deleted\n"), names: vec![name] })?;
    Ok(Exit::Done)
}

/// Who looks for an entry that is not there gets the command that lists them.
fn listed(failure: Failure) -> Failure {
    if failure.exit == Exit::NotFound { failure.with_next("list them: atlasctl knowledge list") } else { failure }
}

fn read_metadata(text: Option<&str>) -> Result<Option<Map<String, Value>>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let read: Result<Map<String, Value>, _> = serde_json::from_str(text);
    read.map(Some).map_err(|error| Failure::usage(format!("--metadata is not a JSON object: {error}")))
}

/// What was done with how many entries.
fn counted(done: &str, count: usize) -> String {
    format!("{done} {}\n", words::entries(count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_like_a_note() {
        let entry = KnowledgeEntry {
            id: "tea".to_owned(),
            content: "Ada prefers tea.".to_owned(),
            domain: "people".to_owned(),
            tags: vec!["ada".to_owned()],
            updated_at: "2026-11-30T12:00:00Z".to_owned(),
            author: "ops".to_owned(),
            agent: Some("scribe".to_owned()),
            job: Some("job-1".to_owned()),
            ..KnowledgeEntry::default()
        };
        expect_test::expect![[r#"
            tea  in people  ada
            written by scribe for ops at 2026-11-30T12:00:00Z in job-1

            Ada prefers tea.
        "#]]
        .assert_eq(&text(&entry));
    }
}
