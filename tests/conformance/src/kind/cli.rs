//! Command lines of Atlas for Python, run with Atlas's `atlas`.

use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::bench::Bench;
use crate::matcher::{Captures, fill};
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items};
use crate::setup::only;

/// Verbs of features that Atlas does not have yet.
const LATER: [&str; 3] = ["security", "registry", "chain"];

pub(super) fn judge(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["args"])?;
    let folder = bench.workplace()?.path();
    let dir = Captures::from([("dir".to_owned(), json!(folder.to_string_lossy()))]);
    let args: Vec<String> = items(&row.input, "args").filter_map(Value::as_str).map(|arg| fill(arg, &dir)).collect();
    let verbs: Vec<&str> = args.iter().map(String::as_str).take(2).collect();
    match verbs[..] {
        [verb, ..] if LATER.contains(&verb) => return Err(Stop::skip(format!("the verb \"{verb}\""))),
        _ => {}
    }
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
