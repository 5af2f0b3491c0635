//! Scripts, and calls of their tools.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atlas_tools::{Declaration, Declarations, Language, Scope, declare};
use serde_json::{Value, json};

use crate::environment::{HELPERS, Owner, ScriptSurroundings};
use crate::limits::CallLimits;
use crate::outcome::{self, CallResult};
use crate::process::{Children, Launch, Process};
use crate::{arguments, interpreter, process};

const PYTHON: &str = include_str!("runners/run.py");
const TYPESCRIPT: &str = include_str!("runners/run.mts");
const BASH: &str = include_str!("runners/prompt-utils.sh");

/// How a generated program takes the value out of `--name=value`, and how it should.
const CUT_AT_LAST: &str = "${_argc_item##*=}";
const CUT_AT_FIRST: &str = "${_argc_item#*=}";

/// Numbers results, so that calls at the same time have their own files.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// A file with tools.
#[derive(Debug, Clone)]
pub struct Script {
    path: PathBuf,
    language: Language,
    source: String,
    owner: Owner,
    /// The name of the file without its ending.
    stem: String,
    /// What a model is told of it.
    pub declared: Declarations,
}

/// Why a file has no tools that can be called.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It could not be read or written.
    #[error("could not access \"{path}\"")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Its ending is that of no known language.
    #[error("\"{path}\" is no tool: the ending must be .py, .ts, .js or .sh")]
    Language {
        /// The file.
        path: PathBuf,
    },
    /// Its declarations cannot be read.
    #[error("the declarations of \"{path}\" cannot be read")]
    Declaration {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: atlas_tools::DeclarationError,
    },
    /// Its tags cannot be turned into a program.
    #[error("the tags of \"{path}\" are not usable: {why}")]
    Tags {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        why: String,
    },
}

impl Script {
    /// Reads the declarations of a file.
    pub fn read(path: &Path, owner: Owner) -> Result<Self, PrepareError> {
        let part = |part: Option<&OsStr>| part.and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let (stem, ending) = (part(path.file_stem()), part(path.extension()));
        let language = Language::of_ending(&ending).ok_or_else(|| PrepareError::Language { path: path.to_owned() })?;
        let failed = |source| PrepareError::File { path: path.to_owned(), source };
        let mut source = String::new();
        // One byte more than the limit, so that the parser sees that it is exceeded.
        let most = u64::try_from(atlas_tools::limits::SOURCE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut source)).map_err(failed)?;
        let scope = if owner == Owner::Shared { Scope::File { stem: &stem } } else { Scope::Agent };
        let declared = declare(language, scope, &source);
        let declared = declared.map_err(|source| PrepareError::Declaration { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), language, source, owner, stem, declared })
    }

    /// Whether its tools can be called, as far as that shows without calling them.
    pub fn check(&self) -> Result<(), PrepareError> {
        if self.language == Language::Bash { self.built().map(drop) } else { Ok(()) }
    }

    /// The program that the tags of a Bash script ask for.
    fn built(&self) -> Result<String, PrepareError> {
        let built = argc::build(&self.source, &self.stem, None);
        built.map_err(|error| PrepareError::Tags { path: self.path.clone(), why: error.to_string() })
    }

    /// Writes what is needed to call the tools.
    pub fn prepare(self, surroundings: &Arc<ScriptSurroundings>) -> Result<Vec<Tool>, PrepareError> {
        let scratch = &surroundings.scratch;
        let write = |name: &str, text: &str| {
            let path = scratch.join(name);
            fs::write(&path, text).map(|()| path.clone()).map_err(|source| PrepareError::File { path, source })
        };
        write(HELPERS, BASH)?;
        let program = match self.language {
            Language::Python => write("run.py", PYTHON)?,
            Language::TypeScript => write("run.mts", TYPESCRIPT)?,
            Language::Bash => {
                let built = self.built()?;
                // What `argc` generates cuts a value at its last `=`, and options begin at their first one.
                let built = built.replace(CUT_AT_LAST, CUT_AT_FIRST);
                let owner = if let Owner::Agent { name, .. } = &self.owner { name.as_str() } else { "" };
                write(&format!("{owner}.{}.sh", self.stem), &built)?
            }
        };
        let script = Arc::new(self);
        let tool = |declaration: &Declaration| Tool {
            declaration: declaration.clone(),
            script: Arc::clone(&script),
            program: program.clone(),
            surroundings: Arc::clone(surroundings),
        };
        Ok(script.declared.tools.iter().map(tool).collect())
    }
}

/// A tool that can be called.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What a model is told of it.
    pub declaration: Declaration,
    script: Arc<Script>,
    /// What the interpreter runs.
    program: PathBuf,
    surroundings: Arc<ScriptSurroundings>,
}

impl Tool {
    /// Calls the tool. Whatever happens, the model gets a value.
    pub async fn call(&self, arguments: &Value, limits: &CallLimits) -> CallResult {
        self.call_by(&Children, arguments, limits).await
    }

    /// Calls the tool in a process that `launch` starts.
    pub async fn call_by(&self, launch: &dyn Launch, arguments: &Value, limits: &CallLimits) -> CallResult {
        let name = &self.declaration.name;
        let Some(members) = arguments::object(arguments) else {
            let shown: String =
                arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned).chars().take(200).collect();
            return CallResult::error(format!("The call '{name}' has invalid arguments: {shown}"));
        };
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        let output = self.surroundings.scratch.join(format!("result-{}-{number}", std::process::id()));
        let called = self.run(launch, &members, &output, limits).await;
        // A tool that wrote no result has no file.
        let _ = fs::remove_file(&output);
        called
    }

    async fn run(
        &self,
        launch: &dyn Launch,
        arguments: &serde_json::Map<String, Value>,
        output: &Path,
        limits: &CallLimits,
    ) -> CallResult {
        let (name, function) = (&self.declaration.name, &self.declaration.function);
        let environment = self.surroundings.variables(name, function, &self.script.owner, output);
        let interpreter = interpreter::of(self.script.language, &self.script.source, |program| {
            let path = environment.get(OsStr::new("PATH"));
            path.is_some_and(|path| std::env::split_paths(path).any(|folder| folder.join(program).is_file()))
        });
        let Some((program, words)) = interpreter.split_first() else {
            return CallResult::error("there is no interpreter");
        };
        let mut command: Vec<OsString> =
            words.iter().map(OsString::from).chain([self.program.clone().into()]).collect();
        match self.script.language {
            Language::Bash => {
                if self.script.owner != Owner::Shared && *function != self.script.stem {
                    command.push(function.into());
                }
                command.extend(arguments::options(arguments).into_iter().map(OsString::from));
            }
            Language::Python | Language::TypeScript => {
                let order: Vec<&str> =
                    self.declaration.parameters.iter().map(|parameter| &parameter.name[..]).collect();
                let (order, arguments) = (json!(order).to_string(), json!(arguments).to_string());
                command.extend([self.script.path.clone().into(), function.into(), order.into(), arguments.into()]);
            }
        }
        let process = Process {
            program: program.into(),
            arguments: command,
            directory: self.surroundings.workspace.clone(),
            environment,
            stream_bytes: limits.stream_bytes,
        };
        let ended = match process::run(launch, process, limits).await {
            Ok(ended) => ended,
            Err(error) => {
                let needs_node = ["tsx", "npx"].contains(&program.as_str());
                let hint = if needs_node { "; tools in TypeScript need Node.js, or the program tsx" } else { "" };
                let text = format!("could not start '{program}', which runs the tool '{name}': {error}{hint}");
                return CallResult { value: json!({"output": text}), failed: true, log: String::new() };
            }
        };
        let log = format!("{}{}", ended.stdout, ended.stderr);
        let Some(status) = ended.status else {
            let seconds = limits.time.as_secs_f64();
            return CallResult {
                log,
                ..CallResult::error(format!("Tool call '{name}' took longer than {seconds} s and was ended"))
            };
        };
        if let Some(value) = outcome::failure(name, status, &ended.stderr) {
            return CallResult { value, failed: true, log };
        }
        match read(output, limits.result_bytes) {
            Ok(text) => CallResult { value: outcome::result(&text), failed: false, log },
            Err(why) => CallResult { log, ..CallResult::error(format!("Tool call '{name}': {why}")) },
        }
    }
}

/// The text of a result; empty if there is none.
fn read(path: &Path, most: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    match fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(format!("the result could not be read: {error}")),
        Ok(count) if count > most => return Err(format!("the result is larger than {most} bytes")),
        Ok(_) => {}
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
