//! Programs of the operator that read what this one does not: files of pages, and sources of their own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_http::limited;
use atlas_pages::{Kind, Loader, loaded};
use serde_json::{Map, Value};

use super::handing::{Controllers, Handing, Read, TEXT_BYTES_MAX};
use super::web::{Answer, WebError};
use super::{Fault, STOPS, files};
use crate::agent::Agent;
use crate::folder::Folder;
use crate::provider::command::{self, Ended, Keep, Launch};
use crate::provider::{Shared, elsewhere};

/// How long a program may take.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Most bytes that a program prints or writes.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// How much of what a program complains about is shown.
const SHOWN_CHARS: usize = 300;

/// Types of files that people read, and of which it is said that they need a loader. Others are left out without a word.
const READ_BY_PEOPLE: [&str; 9] = ["pdf", "doc", "docx", "pptx", "xlsx", "odt", "epub", "rtf", "djvu"];

/// Runs the programs.
pub(super) struct Programs<'a> {
    pub(super) shared: &'a Shared,
    pub(super) agent: &'a Arc<Agent>,
    pub(super) loaders: &'a [Loader],
}

impl Programs<'_> {
    fn find(&self, name: &str, reads_sources: bool) -> Option<&Loader> {
        self.loaders.iter().find(|loader| loader.name == name && loader.reads_sources == reads_sources)
    }

    /// Refuses a file that is no text and that no program reads.
    pub(super) fn takes(&self, kind: &Kind) -> Result<(), WebError> {
        match kind {
            Kind::File(name) if self.find(name, false).is_none() => {
                Err(match READ_BY_PEOPLE.contains(&name.as_str()) {
                    true => WebError::NoLoader(name.clone()),
                    false => WebError::NoText(name.clone()),
                })
            }
            _ => Ok(()),
        }
    }

    /// The text of a file that is no page. The error says why there is none.
    pub(super) async fn text(&self, answer: Answer) -> Result<String, String> {
        let Answer { kind, encoding, body, .. } = answer;
        let Kind::File(name) = &kind else { return self.decoded(body, encoding).await };
        let loader = self.find(name, false).ok_or_else(|| format!("no loader reads {name} files"))?;
        let folder = self.folder().await?;
        let input = folder.path().join(format!("input.{name}"));
        let at = input.clone();
        self.blocking(move || std::fs::write(at, body)).await?;
        let printed = self.run(loader, &input.to_string_lossy(), folder.path()).await?;
        self.decoded(printed, None).await
    }

    /// Text in an encoding.
    async fn decoded(&self, bytes: Vec<u8>, encoding: Option<String>) -> Result<String, String> {
        let decode = move || files::text(&bytes, encoding.as_deref());
        elsewhere(&self.shared.env, OUTPUT_BYTES_MAX, decode).await.unwrap_or_else(|| Err(STOPS.to_owned()))
    }

    /// A source that a program reads.
    pub(super) async fn source<C: Controllers>(
        &self,
        (name, resource): (&str, &str),
        source: &str,
        handing: &mut Handing<'_, C>,
    ) -> Result<(), Fault> {
        let printed = match self.find(name, true) {
            Some(loader) => self.resource(loader, resource).await,
            None => Err(format!("no worker's option --loader {name}:='PROGRAM $1' says how such a source is read")),
        };
        let read = match printed {
            Ok(printed) => {
                let source = source.to_owned();
                let read = elsewhere(&self.shared.env, OUTPUT_BYTES_MAX, move || documents(&printed, &source)).await;
                read.unwrap_or_else(|| Err(STOPS.to_owned()))
            }
            Err(why) => Err(why),
        };
        match read {
            Ok(documents) => {
                for document in documents {
                    handing.document(document).await?;
                }
            }
            Err(why) => handing.missing(source, &why),
        }
        Ok(())
    }

    async fn resource(&self, loader: &Loader, resource: &str) -> Result<Vec<u8>, String> {
        let folder = self.folder().await?;
        self.run(loader, resource, folder.path()).await
    }

    /// Runs a loader in a folder of its own, and returns what it printed or wrote.
    async fn run(&self, loader: &Loader, input: &str, folder: &Path) -> Result<Vec<u8>, String> {
        let output = folder.join("output");
        let output_text = output.to_string_lossy().into_owned();
        let command = loaded(loader, input, &output_text);
        let (program, arguments) = command.words.split_first().ok_or("the loader has no program")?;
        let launch = self.launch(program, arguments, folder, OUTPUT_BYTES_MAX);
        let Ended { status, stdout, stderr } = self.ended(&loader.name, launch).await?;
        if !status.success() {
            let said = String::from_utf8_lossy(&stderr);
            let said: String = said.trim().chars().take(SHOWN_CHARS).collect();
            return Err(format!("the loader {} failed ({status}): {said}", loader.name));
        }
        let printed = match command.output {
            None => stdout,
            Some(_) => self.blocking(move || read_file(&output)).await?,
        };
        if printed.len() > OUTPUT_BYTES_MAX {
            return Err(format!("the loader {} gave more than {OUTPUT_BYTES_MAX} bytes", loader.name));
        }
        Ok(printed)
    }

    pub(super) fn launch(&self, program: &str, arguments: &[String], folder: &Path, bytes_max: usize) -> Launch {
        Launch {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            directory: folder.to_owned(),
            environment: self.shared.settings.environment.clone(),
            stdout: Keep::First(bytes_max + 1),
            stderr: Keep::Last(4 << 10),
            writable: vec![folder.to_owned()],
        }
    }

    /// Runs a program to its end. Its tree is killed after some time.
    pub(super) async fn ended(&self, name: &str, launch: Launch) -> Result<Ended, String> {
        let program = launch.program.to_string_lossy().into_owned();
        let clock = &*self.shared.env.clock;
        match limited(clock, TIME_MAX, command::run(self.shared, self.agent, launch)).await {
            None => Err(format!("the program of {name} took longer than {} s", TIME_MAX.as_secs())),
            Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(format!("the program \"{program}\" of {name} is not installed on the worker"))
            }
            Some(Err(error)) => Err(format!("the program \"{program}\" of {name} could not be run: {error}")),
            Some(Ok(ended)) => Ok(ended),
        }
    }

    /// A folder for one program, which goes with it.
    pub(super) async fn folder(&self) -> Result<Folder, String> {
        let under = self.shared.settings.sandboxes.scratch.clone();
        self.blocking(move || Folder::new(&under)).await
    }

    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let done = self.shared.env.spawn_blocking("files of a source", work).join().await;
        done.map_err(|_| STOPS.to_owned())?.map_err(|error| error.to_string())
    }
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    // The program may have made something else of it, which would never end.
    if !path.symlink_metadata()?.is_file() {
        return Err(std::io::Error::other("the loader wrote no file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(OUTPUT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a program printed: a JSON list of documents, each with `path` and `contents` or `text`, or a text.
pub(super) fn documents(printed: &[u8], source: &str) -> Result<Vec<Read>, String> {
    let text = files::text(printed, None)?;
    let Ok(Value::Array(items)) = serde_json::from_str::<Value>(&text) else {
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!("its text has {} bytes, more than {TEXT_BYTES_MAX}", text.len()));
        }
        return Ok(vec![Read { name: source.to_owned(), text, metadata: Map::new() }]);
    };
    if items.len() > files::FILES_MAX {
        return Err(format!("the loader gave more than {} documents", files::FILES_MAX));
    }
    let one = |item: &Value| {
        let word = |name: &str| item[name].as_str().map(str::to_owned);
        let path = word("path").filter(|path| !path.is_empty());
        let text = word("contents").or_else(|| word("text")).filter(|text| !text.trim().is_empty())?;
        let metadata = item["metadata"].as_object().cloned().unwrap_or_default();
        Some(Read { name: path.map_or_else(|| source.to_owned(), |path| format!("{source}/{path}")), text, metadata })
    };
    let read: Vec<Read> = items.iter().filter_map(one).collect();
    match read.is_empty() && !items.is_empty() {
        true => Err("the loader gave a JSON list without documents {\"path\": …, \"contents\": …}".to_owned()),
        false => Ok(read),
    }
}
