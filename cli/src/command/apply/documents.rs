//! Reads folders, files and stdin completely before anything is changed, and reports every error.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use atlas_api::types::{Agent, Node};
use serde::Deserialize;
use serde_json::Value;

use super::Wanted;
use super::split::split;
use crate::command::deploy::{pack, skipped};
use crate::command::object;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::words::could_not;

/// Maximum number of document files, and of objects in them.
const FILES_MAX: usize = 1000;
const OBJECTS_MAX: usize = 10_000;

/// Maximum total size of all document files.
const BYTES_MAX: usize = 64 << 20;

/// Maximum depth of nested folders, and maximum number of folders that are searched.
const DEPTH_MAX: usize = 16;
const FOLDERS_MAX: usize = 20_000;

/// Maximum number of reported errors.
const PROBLEMS_MAX: usize = 100;

/// A wanted object and its location.
pub(in crate::command) struct Sourced {
    pub(in crate::command) wanted: Wanted,
    /// `"wishes/nodes.yaml", document 2`
    pub(in crate::command) place: String,
    /// The folder of an agent.
    pub(in crate::command) folder: Option<PathBuf>,
}

/// Why something cannot be applied.
pub(super) struct Problem {
    place: String,
    why: String,
    /// The failure if there is no other problem.
    alone: Failure,
}

impl Problem {
    /// A problem of an object that was read from `place`.
    pub(super) fn about(place: String, mut failure: Failure) -> Self {
        let why = failure.message.clone();
        failure.message = format!("{place}: {why}");
        Self { place, why, alone: failure }
    }

    fn document(place: String, why: String) -> Self {
        let alone = Failure::new("E0125", Exit::Invalid, format!("{place} cannot be applied: {why}"));
        Self { place, why, alone }
    }

    /// A problem of a whole file or folder; the failure already names the path.
    pub(super) fn whole(path: &Path, alone: Failure) -> Self {
        let places = alone.places.iter().map(|(place, what)| format!("; {place} {what}"));
        Self { place: quoted(path), why: places.fold(alone.message.clone(), |text, place| text + &place), alone }
    }
}

/// Combines all problems into one failure; none if there are no problems.
pub(super) fn refusal(mut problems: Vec<Problem>) -> Option<Failure> {
    if problems.len() < 2 {
        return problems.pop().map(|problem| problem.alone);
    }
    let first = &problems.first()?.alone;
    let same_exit = problems.iter().all(|problem| problem.alone.exit == first.exit);
    let same_next = problems.iter().all(|problem| problem.alone.next == first.next);
    let exit = if same_exit { first.exit } else { Exit::Invalid };
    let next = first.next.clone().filter(|_| same_next);
    let message = format!("nothing was changed: {} documents cannot be applied", problems.len());
    let more = problems.len().saturating_sub(PROBLEMS_MAX);
    let told = problems.into_iter().take(PROBLEMS_MAX).map(|problem| (problem.place, problem.why));
    let rest = (more > 0).then(|| ("…".to_owned(), format!("and {more} more")));
    Some(Failure { places: told.chain(rest).collect(), next, ..Failure::new("E0125", exit, message) })
}

/// Reads all wanted objects from folders and documents.
pub(in crate::command) fn read(files: &[PathBuf]) -> Result<Vec<Sourced>, Failure> {
    let mut reading = Reading::default();
    for file in files {
        if file.is_dir() {
            reading.folder(file);
        } else if file.to_str() == Some("-") {
            reading.read(Path::new("stdin"), "stdin", |_| input::read_stdin());
        } else {
            reading.file(file);
        }
    }
    refusal(reading.problems).map_or(Ok(reading.wanted), Err)
}

/// The objects and problems read so far.
#[derive(Default)]
struct Reading {
    wanted: Vec<Sourced>,
    problems: Vec<Problem>,
    /// Objects of documents by name, with the place of each.
    places: BTreeMap<String, String>,
    files: usize,
    folders: usize,
    bytes: usize,
    /// The limit was exceeded and reported; nothing more is read.
    full: bool,
}

impl Reading {
    /// Reads a folder. The folder of an agent is that agent; any other folder stands for every agent and document
    /// inside it.
    fn folder(&mut self, path: &Path) {
        if atlas_package::is_agent(path) {
            return self.package(path);
        }
        let before = self.wanted.len() + self.problems.len();
        let discovery = atlas_package::discover(&[path]);
        for one in discovery.skipped {
            let place = match &one {
                atlas_package::SkippedPath::Contract { path, .. }
                | atlas_package::SkippedPath::Read { path, .. }
                | atlas_package::SkippedPath::TooLarge { path }
                | atlas_package::SkippedPath::Definition { path, .. }
                | atlas_package::SkippedPath::TooMany { path } => path.clone(),
            };
            self.problems.push(Problem::whole(&place, skipped(one)));
        }
        for found in discovery.found {
            self.package(&found.dir);
        }
        let mut documents = Vec::new();
        self.find(path, 0, &mut documents);
        documents.iter().for_each(|document| self.file(document));
        if documents.is_empty() && self.wanted.len() + self.problems.len() == before {
            let problem = Problem::document(quoted(path), "it contains neither an agent nor a document".to_owned());
            self.problems
                .push(Problem { alone: problem.alone.with_next("make an agent: atlasctl init NAME"), ..problem });
        }
    }

    fn package(&mut self, folder: &Path) {
        match pack(folder) {
            Ok(package) => {
                let (place, folder) = (quoted(folder), Some(folder.to_owned()));
                self.wanted.push(Sourced { wanted: Wanted::Package(Box::new(package)), place, folder });
            }
            Err(failure) => self.problems.push(Problem::whole(folder, failure)),
        }
    }

    /// Finds the document files in a folder and its subfolders, sorted by name. The files in an agent's folder belong
    /// to the agent and are skipped.
    fn find(&mut self, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
        self.folders += 1;
        if self.folders > FOLDERS_MAX {
            self.too_much(&quoted(folder), format!("there are more than {FOLDERS_MAX} folders"));
        }
        if depth > DEPTH_MAX {
            let why = format!("folders are nested more than {DEPTH_MAX}");
            return self.problems.push(Problem::document(quoted(folder), why));
        }
        let children = match children(folder) {
            Ok(children) => children,
            Err(error) => return self.problems.push(Problem::whole(folder, could_not("read", folder, &error))),
        };
        for (path, is_folder) in children {
            // One file above the limit is enough to report that the limit is exceeded.
            if self.full || found.len() > FILES_MAX {
                return;
            }
            if !is_folder {
                found.push(path);
            } else if !atlas_package::is_agent(&path) {
                self.find(&path, depth + 1, found);
            }
        }
    }

    fn file(&mut self, path: &Path) {
        self.read(path, &quoted(path), input::read_file);
    }

    fn read(&mut self, path: &Path, what: &str, read: impl Fn(&Path) -> Result<String, Failure>) {
        self.files += 1;
        if self.files > FILES_MAX {
            self.too_much(what, format!("there are more than {FILES_MAX} files of documents"));
        }
        if self.full {
            return;
        }
        match read(path) {
            Ok(text) => self.text(what, &text),
            Err(failure) => self.problems.push(Problem::whole(path, failure)),
        }
    }

    fn too_much(&mut self, place: &str, why: String) {
        if !self.full {
            self.problems.push(Problem::document(place.to_owned(), why));
        }
        self.full = true;
    }

    fn text(&mut self, what: &str, text: &str) {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > BYTES_MAX {
            return self.too_much(what, format!("all documents together have more than {BYTES_MAX} bytes"));
        }
        let parts = split(text);
        let (count, mut empty) = (parts.len(), true);
        for (index, part) in parts.into_iter().enumerate() {
            if self.full {
                return;
            }
            let place = if count > 1 { format!("{what}, document {}", index + 1) } else { what.to_owned() };
            match part.load() {
                // An empty document: a line `---` with nothing after it.
                Ok(Value::Null) => continue,
                Ok(Value::Array(objects)) => {
                    for (index, object) in objects.iter().enumerate() {
                        self.object(format!("{place}, item {}", index + 1), object);
                    }
                }
                Ok(object) => self.object(place, &object),
                Err(error) => self.problems.push(Problem::document(place, atlas_env::chain(&error))),
            }
            empty = false;
        }
        if empty {
            self.problems.push(Problem::document(what.to_owned(), "it contains no document".to_owned()));
        }
    }

    fn object(&mut self, place: String, object: &Value) {
        if self.wanted.len() >= OBJECTS_MAX {
            self.too_much(&place, format!("there are more than {OBJECTS_MAX} objects"));
        }
        if self.full {
            return;
        }
        let wanted = match object_of(object) {
            Ok(wanted) => wanted,
            Err(why) => {
                let problem = Problem::document(place, why);
                let next = "what can be applied: atlasctl get agent -o yaml   or: atlasctl get node -o yaml";
                return self.problems.push(Problem { alone: problem.alone.with_next(next), ..problem });
            }
        };
        let name = wanted.name();
        if let Some(other) = self.places.get(&name) {
            let why = format!("{name} is also in {other}");
            return self.problems.push(Problem::document(place, why));
        }
        self.places.insert(name, place.clone());
        self.wanted.push(Sourced { wanted, place, folder: None });
    }
}

/// Subfolders and document files of a folder, sorted, without links and hidden entries.
fn children(folder: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut children = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".") || entry.file_name() == "__pycache__";
        let document = ["yaml", "yml", "json"].iter().any(|end| path.extension().is_some_and(|found| found == *end));
        if !hidden && (kind.is_dir() || (kind.is_file() && document)) {
            children.push((path, kind.is_dir()));
        }
    }
    children.sort_unstable();
    Ok(children)
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

/// Recognizes the kind of an object by the members that only this kind has.
pub(in crate::command) fn object_of(object: &Value) -> Result<Wanted, String> {
    let has = |names: &[&str]| names.iter().all(|name| object.get(name).is_some());
    let wrong = |error: serde_json::Error| error.to_string();
    if has(&["kind", "metadata", "spec"]) {
        return object::Wanted::read(object).map(Wanted::Object);
    }
    if has(&["name", "version", "digest"]) {
        let deprecation = has(&["deprecated"]);
        return Agent::deserialize(object).map(|agent| Wanted::Agent { agent, deprecation }).map_err(wrong);
    }
    if has(&["id", "health", "cordoned"]) {
        let labels = object.get("operator_labels").and_then(Value::as_object).into_iter().flatten();
        if let Some((key, value)) = labels.clone().find(|(_, value)| !value.is_string()) {
            return Err(format!("/operator_labels/{key} must be text: write '{value}'"));
        }
        // A member without a value says nothing.
        let labels = object.get("operator_labels").is_some_and(|labels| !labels.is_null());
        let mut object = object.clone();
        if let Some(members) = object.as_object_mut().filter(|_| !labels) {
            members.remove("operator_labels");
        }
        return Node::deserialize(object).map(|node| Wanted::Node { node, labels }).map_err(wrong);
    }
    if has(&["agent_name", "input_data"]) {
        return Err("jobs cannot be applied: run them with atlasctl run".to_owned());
    }
    if has(&["agent"]) {
        return Err("a contract without its program cannot be applied: apply its folder".to_owned());
    }
    Err("it is neither an agent, a node nor an object with kind, metadata and spec".to_owned())
}

#[cfg(test)]
mod tests;
