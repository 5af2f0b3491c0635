//! `atlasctl rag add`: reads documents and sends them in batches. What cannot be read or is refused is said, and costs no other document.

use std::io::Read;
use std::path::{Path, PathBuf};

use atlas_api::types::{AddedDocument, AddedDocuments};
use serde_json::{Map, Value, json};

use super::files::{Found, Skipped, find, read, source_of};
use super::{documents_of, listed, read_metadata, wait};
use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// The word for stdin.
const STDIN: &str = "-";

/// Documents of one request.
const BATCH: usize = 500;

/// Most bytes of texts in one request, if it has more than one.
const BATCH_BYTES: usize = 6 << 20;

/// Most bytes of stdin and of a file of JSON lines.
const INPUT_BYTES_MAX: u64 = 512 << 20;

/// How many skipped files are named.
const NAMED: usize = 10;

/// Options of `atlasctl rag add`.
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// The base's name.
    #[arg(value_name = "NAME", value_parser = names::base)]
    pub(super) name: String,
    /// Files, folders, and patterns such as 'docs/**/*.md'; - reads one document from stdin.
    #[arg(value_name = "DOCUMENT")]
    documents: Vec<String>,
    /// A file of JSON lines with `source`, `text` and `metadata`, as `export` writes them; - reads stdin.
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// The source of a document from stdin; stdin without it.
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Metadata of all documents; can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Do not wait until each part has a vector, if the base has a model for them.
    #[arg(long)]
    no_wait: bool,
}

/// What happened to all documents.
#[derive(Debug, Default)]
struct Summary {
    added: u64,
    replaced: u64,
    unchanged: u64,
    refused: Vec<(String, String)>,
}

/// Documents that are sent together.
#[derive(Default)]
struct Batch {
    documents: Vec<Value>,
    bytes: usize,
}

impl Add {
    /// Whether there is anything to add.
    pub(super) fn names_documents(&self) -> bool {
        !self.documents.is_empty() || self.jsonl.is_some()
    }

    /// Whether the command waits for what the cluster does with the documents.
    pub(super) fn waits(&self) -> bool {
        !self.no_wait
    }

    /// Refuses an option that would have no effect.
    fn check(&self) -> Result<(), Failure> {
        if self.source.is_some() && !self.documents.iter().any(|document| document == STDIN) {
            let failure = Failure::usage("--source is for a document from stdin, and the source of a file is its path");
            return Err(failure.with_next("cat FILE | atlasctl rag add NAME - --source SOURCE"));
        }
        Ok(())
    }

    /// Waits for the vectors, if that is wanted.
    pub(super) async fn wait(&self, context: &Context) -> Result<Exit, Failure> {
        if self.no_wait { Ok(Exit::Done) } else { wait::for_vectors(context, &self.name).await }
    }
}

/// Refuses documents of which none can be read, and names that are no files. Reads no more than the first text.
pub(super) fn look(options: &Add) -> Result<(), Failure> {
    options.check()?;
    let named: Vec<&String> = options.documents.iter().filter(|document| *document != STDIN).collect();
    let Found { files, skipped } = find(&named)?;
    let reads_others = options.jsonl.is_some() || named.len() < options.documents.len();
    let mut unread = skipped;
    for path in files {
        match read(&path) {
            Ok(_) => return Ok(()),
            Err(why) => unread.push(Skipped { path, why }),
        }
    }
    if reads_others || named.is_empty() { Ok(()) } else { Err(nothing_in(&named, &unread)) }
}

fn nothing_in(named: &[&String], unread: &[Skipped]) -> Failure {
    let names: Vec<String> = named.iter().map(|name| (*name).clone()).collect();
    let failure = Failure::usage(format!("no file with text in {}", words::some(&names, 5)));
    match unread.first() {
        Some(Skipped { path, why }) if unread.len() == 1 => failure.with_next(format!("{}: {why}", path.display())),
        Some(Skipped { path, why }) => {
            failure.with_next(format!("{}: {why}, and {} more", path.display(), unread.len() - 1))
        }
        None => failure.with_next("hidden files, and links to folders, are not read"),
    }
}

pub(super) async fn run(context: &Context, options: &Add) -> Result<Exit, Failure> {
    let Add { name, documents, jsonl, source, metadata, no_wait: _ } = options;
    options.check()?;
    if !options.names_documents() {
        return Err(Failure::usage("nothing to add").with_next("name files, folders or patterns, or --jsonl FILE"));
    }
    let metadata = read_metadata(metadata)?;
    let mut sender = Sender {
        context,
        client: context.client()?,
        name,
        batch: Batch::default(),
        summary: Summary::default(),
        of: None,
    };
    let mut unread = Vec::new();
    if let Some(path) = jsonl {
        let lines = json_lines(path)?;
        unread = lines.skipped;
        for (source, text, of_it) in lines.documents {
            let metadata = metadata.clone().into_iter().chain(of_it).collect();
            sender.push(&source, &text, &metadata).await?;
        }
    }
    let (named, from_stdin): (Vec<&String>, Vec<&String>) = documents.iter().partition(|document| *document != STDIN);
    if !from_stdin.is_empty() {
        let mut text = String::new();
        let read = std::io::stdin().take(INPUT_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("could not read stdin: {error}")))?;
        sender.push(source.as_deref().unwrap_or("stdin"), &text, &metadata).await?;
    }
    let Found { files, mut skipped } = find(&named)?;
    sender.of = Some(files.len()).filter(|files| *files > BATCH);
    for path in &files {
        match read(path) {
            Ok(text) => sender.push(&source_of(path), &text, &metadata).await?,
            Err(why) => skipped.push(Skipped { path: path.clone(), why }),
        }
    }
    sender.flush().await?;
    // Who names a file wants that file, and each line of one.
    let is_named = |skipped: &Skipped| named.iter().any(|named| skipped.path.as_os_str() == named.as_str());
    let mut lacks = !unread.is_empty() || skipped.iter().any(is_named);
    unread.extend(skipped);
    let skipped = unread;
    name_skipped(context, &skipped);
    if sender.summary.count() == 0 && !lacks && !named.is_empty() {
        context.note(&format!("{}{}", words::WARNING, nothing_in(&named, &skipped).message));
        lacks = true;
    }
    let exit = print(context, name, &sender.summary, &skipped, lacks)?;
    Ok(match options.wait(context).await? {
        Exit::Done => exit,
        short => short,
    })
}

/// Sends documents that were read elsewhere: sources and texts. Those that were not are named.
pub(super) async fn send(
    context: &Context,
    name: &str,
    documents: Vec<(String, String)>,
    skipped: Vec<Skipped>,
) -> Result<Exit, Failure> {
    let of = Some(documents.len()).filter(|documents| *documents > BATCH);
    let (client, batch, summary) = (context.client()?, Batch::default(), Summary::default());
    let mut sender = Sender { context, client, name, batch, summary, of };
    for (source, text) in documents {
        sender.push(&source, &text, &Map::new()).await?;
    }
    sender.flush().await?;
    name_skipped(context, &skipped);
    print(context, name, &sender.summary, &skipped, !skipped.is_empty())
}

fn name_skipped(context: &Context, skipped: &[Skipped]) {
    for Skipped { path, why } in skipped.iter().take(NAMED) {
        context.note(&format!("skipped {}: {why}", path.display()));
    }
    if skipped.len() > NAMED {
        context.note(&format!("skipped {} more", words::count((skipped.len() - NAMED) as u64, "file")));
    }
}

fn print(context: &Context, name: &str, summary: &Summary, skipped: &[Skipped], lacks: bool) -> Result<Exit, Failure> {
    let Summary { added, replaced, unchanged, refused } = summary;
    for (source, reason) in refused {
        context.note(&format!("{}refused \"{source}\": {reason}", words::WARNING));
    }
    let value = json!({
        "base": name,
        "added": added,
        "replaced": replaced,
        "unchanged": unchanged,
        "refused": refused.iter().map(|(source, reason)| json!({"source": source, "reason": reason})).collect::<Vec<_>>(),
        "skipped": skipped.iter().map(|skipped| json!({"path": skipped.path.display().to_string(), "reason": skipped.why})).collect::<Vec<_>>(),
    });
    let text = format!("base/{name}  {added} added, {replaced} replaced, {unchanged} unchanged\n");
    context.show(&Shown { value, text, names: vec![format!("base/{name}")] })?;
    Ok(if refused.is_empty() && !lacks { Exit::Done } else { Exit::Short })
}

/// Sends documents in batches.
struct Sender<'a> {
    context: &'a Context,
    client: Client,
    name: &'a str,
    batch: Batch,
    summary: Summary,
    /// How many files there are, if that is worth saying.
    of: Option<usize>,
}

impl Sender<'_> {
    async fn push(&mut self, source: &str, text: &str, metadata: &Map<String, Value>) -> Result<(), Failure> {
        let bytes = source.len() + text.len();
        if self.batch.documents.len() >= BATCH || (self.batch.bytes + bytes > BATCH_BYTES && self.batch.bytes > 0) {
            self.flush().await?;
            if let Some(of) = self.of {
                self.context.note(&format!("{} of {of} files", self.summary.count()));
            }
        }
        self.batch.bytes += bytes;
        self.batch.documents.push(json!({"source": source, "text": text, "metadata": metadata}));
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        let Batch { documents, .. } = std::mem::take(&mut self.batch);
        if documents.is_empty() {
            return Ok(());
        }
        let body = json!({ "documents": documents });
        let answer = self.client.post(&documents_of(self.name), &[], &body).await;
        let Summary { added, replaced, unchanged, .. } = self.summary;
        if answer.is_err() && self.summary.count() > 0 {
            self.context.note(&format!(
                "{added} added, {replaced} replaced, {unchanged} unchanged before it failed; run the same command again for the rest"
            ));
        }
        let AddedDocuments { documents } = answers::read(&answer.map_err(listed)?)?;
        for AddedDocument { source, status, reason, .. } in documents {
            match status.as_str() {
                "added" => self.summary.added += 1,
                "replaced" => self.summary.replaced += 1,
                "unchanged" => self.summary.unchanged += 1,
                _ => self.summary.refused.push((source, reason.unwrap_or(status))),
            }
        }
        Ok(())
    }
}

impl Summary {
    fn count(&self) -> u64 {
        self.added + self.replaced + self.unchanged + self.refused.len() as u64
    }
}

/// Source, text and metadata.
type Line = (String, String, Map<String, Value>);

/// The documents of a file, and the lines that are none.
#[derive(Debug, Default)]
struct Lines {
    documents: Vec<Line>,
    skipped: Vec<Skipped>,
}

/// The documents of a file of JSON lines.
fn json_lines(path: &Path) -> Result<Lines, Failure> {
    let mut text = String::new();
    let read = if path.as_os_str() == STDIN {
        std::io::stdin().take(INPUT_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX).read_to_string(&mut text))
    };
    read.map_err(|error| words::could_not("read", path, &error))?;
    Ok(lines_of(&text, &path.display().to_string()))
}

fn lines_of(text: &str, name: &str) -> Lines {
    let mut lines = Lines::default();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match document(line) {
            Ok(document) => lines.documents.push(document),
            Err(why) => lines.skipped.push(Skipped { path: format!("{name} line {}", at + 1).into(), why }),
        }
    }
    lines
}

fn document(line: &str) -> Result<Line, String> {
    let document: Value = serde_json::from_str(line).map_err(|_| "it is not JSON".to_owned())?;
    let text = |name: &str| {
        let text = document.get(name).and_then(Value::as_str);
        text.map(str::to_owned).ok_or_else(|| format!("it has no text `{name}`"))
    };
    let metadata = match document.get("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(members)) => members.clone(),
        Some(_) => return Err("its `metadata` is no object".to_owned()),
    };
    Ok((text("source")?, text("text")?, metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_costs_no_other() {
        let text = "{\"source\": \"a\", \"text\": \"A\"}\n\n{\n[]\n{\"source\": \"b\", \"text\": 1}\n{\"source\": \"c\", \"text\": \"C\", \"metadata\": 1}\n\
                    {\"source\": \"d\", \"text\": \"D\", \"metadata\": {\"team\": \"ops\"}}\n";
        let Lines { documents, skipped } = lines_of(text, "x.jsonl");
        let sources: Vec<&str> = documents.iter().map(|(source, ..)| source.as_str()).collect();
        assert_eq!(sources, ["a", "d"]);
        let skipped: String =
            skipped.iter().map(|skipped| format!("{}: {}\n", skipped.path.display(), skipped.why)).collect();
        expect_test::expect![[r"
            x.jsonl line 3: it is not JSON
            x.jsonl line 4: it has no text `source`
            x.jsonl line 5: it has no text `text`
            x.jsonl line 6: its `metadata` is no object
        "]]
        .assert_eq(&skipped);
    }
}
