//! Script nodes: a process that gets the state and prints changes to it.
//!
//! The state is in `GRAPH_STATE`, or, if it is larger than [`STATE_INLINE_MAX`], in the file that `GRAPH_STATE_FILE` names; the other
//! variable is not set. The process has no input, and prints one JSON object. Everything that it started is killed with it.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use atlas_env::Env;
use atlas_graph::inside;
use atlas_graph::run::{Fault, FaultKind};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Map, Value};
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::host::Host;

/// The largest state that is passed in a variable.
pub const STATE_INLINE_MAX: usize = 32_768;
/// Most bytes that a script may print.
const OUTPUT_MAX: usize = 8 << 20;
/// Most bytes of what it says on stderr that an error repeats.
const COMPLAINT_MAX: usize = 4 << 10;

/// The variable with the state, and that with the file of a large state.
const STATE: &str = "GRAPH_STATE";
const STATE_FILE: &str = "GRAPH_STATE_FILE";

/// A script to run.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// The folder of the agent.
    pub folder: &'a Path,
    /// The script, relative to it.
    pub path: &'a str,
    /// Seconds that it may take.
    pub timeout: u64,
    pub state: &'a Map<String, Value>,
    /// The folder in which it runs.
    pub workspace: &'a Path,
    pub variables: &'a [(String, String)],
    /// Whether it also has the variables of this process.
    pub inherits: bool,
}

/// A process to run, without input.
#[derive(Debug, Clone)]
pub struct Process {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    pub variables: Vec<(OsString, OsString)>,
    /// Whether it also has the variables of this process, except those of the protocol.
    pub inherits: bool,
    /// How many bytes of its streams are kept: the first ones.
    pub stdout_max: usize,
    pub stderr_max: usize,
}

/// What a process left.
#[derive(Debug, Clone)]
pub struct ProcessEnd {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a script, and returns the object that it prints.
pub async fn run(env: &Env, host: &dyn Host, script: Script<'_>) -> Result<Value, Fault> {
    let (path, interpreter) = interpreter(script)?;
    let words = interpreter[1..].iter().map(OsString::from);
    let mut variables: Vec<(OsString, OsString)> = vec![("AUTO_CONFIRM".into(), "true".into())];
    variables.extend(script.variables.iter().map(|(name, value)| (name.into(), value.into())));
    let state = serde_json::to_string(script.state).unwrap_or_default();
    // Lives until the script has ended.
    let _file = match state.len() > STATE_INLINE_MAX {
        false => {
            variables.push((STATE.into(), state.into()));
            None
        }
        true => {
            let file = state_file(&state).map_err(|error| start(script, &error))?;
            variables.push((STATE_FILE.into(), file.path().into()));
            Some(file)
        }
    };
    let process = Process {
        program: interpreter[0].into(),
        arguments: words.chain([path.into()]).collect(),
        directory: script.workspace.to_owned(),
        variables,
        inherits: script.inherits,
        stdout_max: OUTPUT_MAX + 1,
        stderr_max: COMPLAINT_MAX,
    };
    let limit = env.clock.sleep(Duration::from_secs(script.timeout));
    let ended = tokio::select! {
        biased;
        ended = host.process(process) => ended.map_err(|error| start(script, &error))?,
        () = limit => {
            let text = format!("script \"{}\" timed out after {} s", script.path, script.timeout);
            return Err(Fault::new(FaultKind::ScriptTimeout, text));
        }
    };
    read(script, &ended)
}

/// Runs a process as a child of this one.
pub(crate) async fn local(process: Process) -> io::Result<ProcessEnd> {
    let mut command = Command::new(&process.program);
    command.args(&process.arguments).current_dir(&process.directory);
    if !process.inherits {
        command.env_clear();
    }
    command.env_remove(STATE).env_remove(STATE_FILE).envs(process.variables);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()));
    let ended = output(&mut child, process.stdout_max, process.stderr_max).await;
    drop(group);
    ended
}

/// The path of a script, and the command that runs it.
fn interpreter(script: Script<'_>) -> Result<(PathBuf, &'static [&'static str]), Fault> {
    let missing = || Fault::new(FaultKind::ScriptNotFound, format!("script \"{}\" was not found", script.path));
    let path = script.folder.join(inside(script.path).ok_or_else(missing)?);
    if !path.is_file() {
        return Err(missing());
    }
    // The script runs in another folder.
    let path = path.canonicalize().map_err(|error| start(script, &error))?;
    let interpreter: &[&str] = match path.extension().and_then(|extension| extension.to_str()) {
        Some("sh") => &["bash"],
        Some("py") => &["python3"],
        Some("ts") => &["npx", "tsx"],
        _ => {
            let text = format!("script \"{}\" has an extension that is not .sh, .py or .ts", script.path);
            return Err(Fault::new(FaultKind::ScriptExtension, text));
        }
    };
    Ok((path, interpreter))
}

fn state_file(state: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("graph-state-").suffix(".json").tempfile()?;
    file.write_all(state.as_bytes())?;
    file.flush()?;
    Ok(file)
}

fn start(script: Script<'_>, error: &io::Error) -> Fault {
    Fault::new(FaultKind::ScriptStart, format!("script \"{}\" could not be run: {error}", script.path))
}

async fn output(child: &mut Child, stdout_max: usize, stderr_max: usize) -> io::Result<ProcessEnd> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) =
        tokio::join!(beginning(stdout, stdout_max), beginning(stderr, stderr_max), child.wait());
    Ok(ProcessEnd { status: status?, stdout: stdout?, stderr: stderr? })
}

/// The first bytes of a pipe, which is read to its end.
async fn beginning(pipe: Option<impl AsyncRead + Unpin>, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else { return Ok(kept) };
    let mut piece = vec![0; 16 << 10];
    loop {
        let count = pipe.read(&mut piece).await?;
        if count == 0 {
            return Ok(kept);
        }
        let room = bytes_max.saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..count.min(room)]);
    }
}

fn read(script: Script<'_>, ended: &ProcessEnd) -> Result<Value, Fault> {
    let fault = |kind, text: &str| Err(Fault::new(kind, format!("script \"{}\" {text}", script.path)));
    if !ended.status.success() {
        let complaint = String::from_utf8_lossy(&ended.stderr);
        return fault(FaultKind::ScriptExit, &format!("ended with {}: {}", ended.status, complaint.trim()));
    }
    if ended.stdout.len() > OUTPUT_MAX {
        return fault(FaultKind::ScriptOutput, &format!("printed more than {OUTPUT_MAX} bytes"));
    }
    if ended.stdout.trim_ascii().is_empty() {
        return fault(FaultKind::ScriptEmpty, "printed nothing");
    }
    match serde_json::from_slice::<Value>(&ended.stdout) {
        Ok(Value::Object(printed)) => Ok(Value::Object(printed)),
        Ok(other) => {
            let got = atlas_graph::type_name(&other);
            fault(FaultKind::ScriptObject, &format!("printed a JSON {got} instead of an object"))
        }
        Err(error) => fault(FaultKind::ScriptJson, &format!("printed something that is not JSON: {error}")),
    }
}

/// A process group, which is killed with this value.
struct Group(Option<i32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            // The group may have ended already.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}
