//! Command lines of Atlas for Python, run with Atlas's `atlas`.

use std::fs;
use std::path::{Component, Path};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::bench::Bench;
use crate::matcher::{Captures, fill};
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items};
use crate::setup::only;

pub(super) fn judge(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["args", "files"])?;
    let folder = bench.workplace()?.path();
    put(folder, &row.input["files"])?;
    let dir = Captures::from([("dir".to_owned(), json!(folder.to_string_lossy()))]);
    let args: Vec<String> = items(&row.input, "args").filter_map(Value::as_str).map(|arg| fill(arg, &dir)).collect();
    let verbs: Vec<&str> = args.iter().map(String::as_str).take(2).collect();
    // Atlas for Python reads a file; `atlas` asks a cluster.
    let asks = matches!(verbs[..], ["pool", "status" | "list"] | ["trigger", ..]);
    let mut command = Command::new(&bench.programs()?.atlas);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"ATLAS_")) {
        command.env_remove(name);
    }
    if asks {
        command.env("ATLAS_SERVER", format!("http://{}", bench.cluster()?.address()));
    }
    let run = command.args(&args).current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null()).output();
    let run = run.map_err(|error| Stop::system("run the program", error))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let mut answer = Map::new();
    for member in row.expect.as_object().into_iter().flat_map(Map::keys) {
        let value = match member.as_str() {
            "exit" => json!(run.status.code()),
            "stdout" => json!(stdout),
            "stdout_json" => serde_json::from_str(&stdout).map_err(|error| Stop::fail(format!("stdout: {error}")))?,
            // The line break at the end is not compared.
            "stderr" => json!(stderr.trim_end()),
            "usage_error" => json!(run.status.code() == Some(2) && !stderr.is_empty()),
            other => return Err(Stop::skip(format!("what is expected of \"{other}\""))),
        };
        answer.insert(member.clone(), value);
    }
    compare(&row.expect, &Value::Object(answer), &Captures::new())
}

/// Writes the files of a row into the folder of the command line. They stay for the rows after it.
fn put(folder: &Path, files: &Value) -> Judged {
    for (name, text) in files.as_object().into_iter().flatten() {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let (true, Some(text)) = (inside, text.as_str()) else {
            return Err(Stop::fail(format!("the file \"{name}\" is not a text inside the folder")));
        };
        let path = folder.join(name);
        let write = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&path, text)
        };
        write().map_err(|error| Stop::system("write a file of the row", error))?;
    }
    Ok(())
}
