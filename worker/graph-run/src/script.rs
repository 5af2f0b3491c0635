//! Script nodes: a process that gets the state and prints changes to it.
//!
//! The state is in `GRAPH_STATE`, or, if it is larger than [`STATE_INLINE_MAX`], in the file that `GRAPH_STATE_FILE` names; the other
//! variable is not set. The process has no input, and prints one JSON object. Everything that it started is killed with it.

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

/// Runs a script, and returns the object that it prints.
pub async fn run(env: &Env, script: Script<'_>) -> Result<Value, Fault> {
    let (path, interpreter) = interpreter(script)?;
    let mut command = Command::new(interpreter[0]);
    command.args(&interpreter[1..]).arg(&path).current_dir(script.workspace);
    if !script.inherits {
        command.env_clear();
    }
    command.env_remove(STATE).env_remove(STATE_FILE).env("AUTO_CONFIRM", "true");
    command.envs(script.variables.iter().map(|(name, value)| (name, value)));
    let state = serde_json::to_string(script.state).unwrap_or_default();
    // Lives until the script has ended.
    let _file = match state.len() > STATE_INLINE_MAX {
        false => {
            command.env(STATE, state);
            None
        }
        true => {
            let file = state_file(&state).map_err(|error| start(script, &error))?;
            command.env(STATE_FILE, file.path());
            Some(file)
        }
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| start(script, &error))?;
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()));
    let limit = env.clock.sleep(Duration::from_secs(script.timeout));
    let ended = tokio::select! {
        biased;
        ended = output(&mut child) => ended.map_err(|error| start(script, &error))?,
        () = limit => {
            let text = format!("script \"{}\" timed out after {} s", script.path, script.timeout);
            return Err(Fault::new(FaultKind::ScriptTimeout, text));
        }
    };
    drop(group);
    read(script, &ended)
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

/// What a process left.
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

async fn output(child: &mut Child) -> io::Result<Ended> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) =
        tokio::join!(beginning(stdout, OUTPUT_MAX + 1), beginning(stderr, COMPLAINT_MAX), child.wait());
    Ok(Ended { status: status?, stdout: stdout?, stderr: stderr? })
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

fn read(script: Script<'_>, ended: &Ended) -> Result<Value, Fault> {
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
