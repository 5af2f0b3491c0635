//! The process of a local model. It has neither the environment of the worker nor secrets, no network, and no files but its own.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_http::limited;
use atlas_llm::local::Embeddings;
use atlas_model::{CallError, CallErrorKind};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::batches::{TEXT_BYTES_MAX, batches};
use super::lines::{self, ANSWER_BYTES_MAX, Asked, Said};
use crate::cgroup::Limits;
use crate::environment::Environments;
use crate::piped::{self, Keeper, Piped, Start};
use crate::python::Environment;

/// The program, in the folder of our Python package.
const PROGRAM: &str = "atlas/_embed.py";
/// Longest time until a process is ready.
const START_MAX: Duration = Duration::from_secs(60);
/// Longest time until it answers a line.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Most memory of a process.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Variables of the worker that a process gets: they say how programs are found and written, and nothing else.
const PASSED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// Why there are no vectors.
#[derive(Debug, PartialEq)]
pub(super) enum EngineError {
    /// The process is of no use any more.
    Ended(String),
    /// The model could not do it.
    Refused(String),
    /// A text is too long.
    TooLong(String),
}

impl EngineError {
    /// The error of the call.
    pub(super) fn told(self, model: &str) -> CallError {
        let (kind, why) = match self {
            Self::Ended(why) => (CallErrorKind::Provider, why),
            Self::Refused(why) => (CallErrorKind::Answer, why),
            Self::TooLong(why) => (CallErrorKind::TooLong, why),
        };
        CallError::new(kind, format!("the local model {model}: {why}"))
    }
}

/// A process that is ready. It ends with this value.
pub(super) struct Engine {
    env: Env,
    stdin: Sender,
    stdout: BufReader<Receiver>,
    keeper: Keeper,
    /// Its packages stay while it runs.
    _environment: Environment,
    /// The number of the last question.
    number: u64,
}

impl Engine {
    /// Starts a process with the packages of an environment. An error says why it is not ready.
    pub(super) async fn start(
        environments: &Environments,
        environment: Environment,
        model: &str,
    ) -> Result<Self, String> {
        let settings = Arc::clone(&environments.settings);
        let program = environment.python.clone();
        // An environment's interpreter is a link to that of the machine, which has the standard library.
        let linked = program.canonicalize().unwrap_or_else(|_| program.clone());
        let seen: Vec<PathBuf> =
            [root_of(&program), root_of(&linked), settings.sdk.as_path()].map(Path::to_owned).into();
        let directory = settings.sandboxes.work.clone();
        let own = settings.environment.iter().filter(|(name, _)| PASSED.iter().any(|passed| name == passed));
        // One core is enough for many texts, and each thread would have memory of its own.
        let more = [
            ("HF_HUB_OFFLINE", "1"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("OPENBLAS_NUM_THREADS", "1"),
            ("OMP_NUM_THREADS", "1"),
        ];
        let more = more.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let script = settings.sdk.join(PROGRAM).into_os_string();
        let start = Start {
            program: program.into_os_string(),
            arguments: ["-I".into(), "-B".into(), script, model.into()].into(),
            environment: own.cloned().chain(more).collect(),
            directory,
            is_own: true,
            is_home: true,
            limits: Limits { memory_bytes: Some(MEMORY_BYTES_MAX), ..Limits::default() },
            confine: Box::new(move |directory: &Path| {
                let seen: Vec<&Path> = seen.iter().map(PathBuf::as_path).collect();
                settings.sandboxes.of_model(directory, &seen)
            }),
        };
        let env = environments.env.clone();
        let started = piped::start(&env, &environments.supervisor, "start local model", start).await;
        let Piped { stdin, stdout, keeper } = started.map_err(|error| error.to_string())?;
        let stdout = BufReader::new(stdout);
        let mut engine = Self { env, stdin, stdout, keeper, _environment: environment, number: 0 };
        let clock = Arc::clone(&engine.env.clock);
        match limited(&*clock, START_MAX, engine.line()).await {
            Some(Ok(line)) => lines::ready(&line)?,
            Some(Err(error)) => return Err(engine.complaint(&error)),
            None => return Err(format!("it was not ready within {} s", START_MAX.as_secs())),
        }
        Ok(engine)
    }

    /// A vector for each text.
    pub(super) async fn embed(&mut self, texts: &[String], dimensions: u32) -> Result<Embeddings, EngineError> {
        let lengths: Vec<usize> = texts.iter().map(String::len).collect();
        if let Some(place) = lengths.iter().position(|length| *length > TEXT_BYTES_MAX) {
            let length = lengths.get(place).copied().unwrap_or_default();
            let text = format!("text {place} has {length} bytes, more than {TEXT_BYTES_MAX}; make smaller chunks");
            return Err(EngineError::TooLong(text));
        }
        let mut all = Embeddings { vectors: Vec::with_capacity(texts.len()), tokens: 0 };
        for range in batches(&lengths) {
            let some = texts.get(range).unwrap_or_default();
            let clock = Arc::clone(&self.env.clock);
            let late = || EngineError::Ended(format!("it did not answer within {} s", ANSWER_MAX.as_secs()));
            let Embeddings { vectors, tokens } =
                limited(&*clock, ANSWER_MAX, self.ask(some, dimensions)).await.unwrap_or_else(|| Err(late()))?;
            all.vectors.extend(vectors);
            all.tokens = all.tokens.saturating_add(tokens);
        }
        Ok(all)
    }

    async fn ask(&mut self, texts: &[String], dimensions: u32) -> Result<Embeddings, EngineError> {
        self.number += 1;
        let asked = Asked { id: self.number, dimensions, texts };
        let mut line = serde_json::to_vec(&asked).map_err(|error| EngineError::Refused(error.to_string()))?;
        line.push(b'\n');
        let ended = |engine: &Self, error: io::Error| EngineError::Ended(engine.complaint(&error));
        self.stdin.write_all(&line).await.map_err(|error| ended(self, error))?;
        let line = self.line().await.map_err(|error| ended(self, error))?;
        match lines::answer(&line, self.number, texts.len()) {
            Ok(Said::Made { tokens, vectors }) => Ok(Embeddings { vectors, tokens }),
            Ok(Said::Refused(why)) => Err(EngineError::Refused(why)),
            Err(why) => Err(EngineError::Ended(why)),
        }
    }

    /// Waits until the process ends, or says something unasked.
    pub(super) async fn ended(&mut self) {
        // Whatever comes, nothing is expected.
        let _ = self.stdout.fill_buf().await;
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        (&mut self.stdout).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line).await?;
        match line.pop() {
            Some(b'\n') => Ok(line),
            Some(_) if line.len() as u64 + 1 >= ANSWER_BYTES_MAX => {
                Err(io::Error::other(format!("it said more than {ANSWER_BYTES_MAX} bytes at once")))
            }
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Why the process ended, in its own words if it said something.
    fn complaint(&self, error: &io::Error) -> String {
        self.keeper.complaint().unwrap_or_else(|| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => "it said nothing about it".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// The folder with an interpreter's libraries: that above its folder `bin`.
fn root_of(program: &Path) -> &Path {
    program.parent().and_then(Path::parent).unwrap_or(program)
}
