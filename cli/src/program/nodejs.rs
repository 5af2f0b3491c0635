//! Node.js agents: the file and its syntax, by parsing.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use atlas_contract::Warning;
use atlas_dev::NodeJs;
use atlas_env::Env;
use tokio::process::Command;

use super::{Findings, RunsOn, shown};

/// The files of which the first that is there is the agent's program.
const FILES: [&str; 3] = ["agent.mjs", "agent.js", "agent.ts"];

/// The first versions that run TypeScript without an option, of two lines of versions.
const TYPESCRIPT: [(u32, u32); 2] = [(22, 18), (23, 6)];

/// Longest duration of a check.
const CHECK_MAX: Duration = Duration::from_secs(10);

pub(super) async fn check(place: RunsOn, folder: &Path, findings: &mut Findings) {
    let Some(name) = FILES.into_iter().find(|name| folder.join(name).is_file()) else {
        let what = format!("the file is missing; provider node requires {} or {}", FILES[..2].join(", "), FILES[2]);
        findings.problem(shown(folder, FILES[0]), what);
        return;
    };
    if name != "agent.ts" && is_newer(folder, "agent.ts", name) {
        let warning = Warning::new(shown(folder, name), "agent.ts is newer, and this file is what runs");
        findings.warn(warning.with_hint("build it again"));
    }
    let nodejs = match find().await {
        Ok(nodejs) => nodejs,
        Err(why) => {
            findings.warn(Warning::new("", format!("could not check its JavaScript code: {why}")));
            return;
        }
    };
    if name == "agent.ts" {
        if !runs_typescript(nodejs.version) {
            typescript(place, shown(folder, name), &nodejs, findings);
        }
        return;
    }
    match syntax(&nodejs, folder, name).await {
        Ok(None) => {}
        Ok(Some((line, text))) if name == "agent.js" && is_about_modules(&text) => {
            let warning = Warning::new(format!("{}, line {line}", shown(folder, name)), text);
            findings.warn(warning.with_hint("call it agent.mjs, or add a package.json with \"type\": \"module\""));
        }
        Ok(Some((line, text))) => findings.problem(format!("{}, line {line}", shown(folder, name)), text),
        Err(why) => findings.warn(Warning::new("", format!("could not check its JavaScript code: {why}"))),
    }
}

fn typescript(place: RunsOn, at: String, nodejs: &NodeJs, findings: &mut Findings) {
    let (major, minor, patch) = nodejs.version;
    let [(major_22, minor_22), (major_23, minor_23)] = TYPESCRIPT;
    let needs = format!("TypeScript needs Node.js {major_22}.{minor_22}, {major_23}.{minor_23} or later");
    let what = format!("{needs}, and this machine has {major}.{minor}.{patch}; or build agent.mjs from it");
    match place {
        RunsOn::Here => findings.problem(at, what),
        RunsOn::Workers { tested: true } => {
            findings.problem(at, format!("{what}; deploy with --no-test if every worker has it"));
        }
        RunsOn::Workers { tested: false } => findings.warn(Warning::new(at, what).with_hint("every worker needs it")),
    }
}

fn runs_typescript((major, minor, _): (u32, u32, u32)) -> bool {
    let [old, new] = TYPESCRIPT;
    (major, minor) >= new || major == old.0 && minor >= old.1
}

/// Whether one file of the agent changed after another.
fn is_newer(folder: &Path, one: &str, other: &str) -> bool {
    let changed = |name: &str| folder.join(name).metadata().and_then(|metadata| metadata.modified()).ok();
    changed(one).zip(changed(other)).is_some_and(|(one, other)| one > other)
}

/// Whether an error is that a file is not a module. Later versions of Node.js find out by themselves.
fn is_about_modules(error: &str) -> bool {
    error.contains("outside a module") || error.contains("Unexpected token 'export'")
}

/// The line and the text of a syntax error.
async fn syntax(nodejs: &NodeJs, folder: &Path, name: &str) -> Result<Option<(u64, String)>, String> {
    let mut command = Command::new(&nodejs.program);
    command.arg("--check").arg(folder.join(name)).env_remove("NODE_OPTIONS");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(CHECK_MAX, command.output()).await;
    let output = output.map_err(|_| format!("not done after {} s", CHECK_MAX.as_secs()))?;
    let output = output.map_err(|error| format!("\"{}\" did not start: {error}", nodejs.program.display()))?;
    if output.status.success() {
        return Ok(None);
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    read(&printed, name).map(Some).ok_or_else(|| format!("the check ended with {}", output.status))
}

/// Reads what Node.js prints of a syntax error: `PATH:LINE` in one line, and the error in another.
fn read(printed: &str, name: &str) -> Option<(u64, String)> {
    let place = format!("{name}:");
    let line = printed.lines().find_map(|line| line.rsplit_once(place.as_str())?.1.trim().parse().ok())?;
    let error = printed.lines().find(|line| line.starts_with("SyntaxError: "))?;
    Some((line, error.to_owned()))
}

async fn find() -> Result<NodeJs, String> {
    let looked = Env::system().spawn_blocking("find Node.js", || NodeJs::find(None)).join().await;
    let found = looked.unwrap_or_else(|_| Err(String::new()));
    found.map_err(|_| "this machine has no Node.js 20 or later".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typescript_needs_a_later_version() {
        let runs = [(22, 18, 0), (23, 6, 0), (24, 0, 0)].map(runs_typescript);
        let does_not = [(20, 20, 2), (22, 17, 9), (23, 5, 0)].map(runs_typescript);
        assert_eq!((runs, does_not), ([true; 3], [false; 3]));
    }

    #[test]
    fn a_syntax_error_is_read() {
        let printed =
            "/tmp/a b/agent.mjs:3\nconst x = ;\n          ^\n\nSyntaxError: Unexpected token ';'\n    at a (b:1)\n";
        assert_eq!(read(printed, "agent.mjs"), Some((3, "SyntaxError: Unexpected token ';'".to_owned())));
        assert_eq!(read("killed\n", "agent.mjs"), None);
    }
}
