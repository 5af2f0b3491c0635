//! `atlasctl init`: creates a folder with a working agent: contract, program and one test.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use atlas_package::{CONTRACT_FILE, PackFile};
use atlas_types::AgentName;
use serde_json::json;

use crate::command::types::of_own;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::program::on_path;
use crate::shipped;
use crate::types::Language;
use crate::words::{self, could_not};

/// Options of `atlasctl init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder to create; its last part is the agent's name.
    #[arg(value_name = "NAME", default_value = "hello")]
    folder: PathBuf,
    /// Language of the program.
    #[arg(long, value_enum, default_value_t = Template::Exec)]
    template: Template,
    /// Copy an agent that ships with Atlas instead: `atlasctl deploy --list` shows them.
    #[arg(long, value_name = "NAME", conflicts_with = "template")]
    from: Option<String>,
}

/// A template for a new agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Template {
    /// Any program: JSON on stdin, JSON on stdout.
    Exec,
    /// A class in Python.
    Python,
    /// A class in TypeScript, for Node.js.
    Typescript,
    /// A model in a loop, with answers for tests.
    Llm,
}

/// A file of a template: its path, description and text, and whether it is executable.
#[derive(Debug, Clone, Copy)]
struct File {
    path: &'static str,
    what: &'static str,
    text: &'static str,
    program: bool,
}

const fn file(path: &'static str, what: &'static str, text: &'static str) -> File {
    File { path, what, text, program: false }
}

/// Placeholder for the agent's name in a template.
const NAME: &str = "name: NAME\n";

const CONTRACT: &str = "contract: in {name}, out {greeting}";
const TEST: File = file("tests/ok.yaml", "one test", include_str!("../../templates/ok.yaml"));
const EXEC: [File; 3] = [
    file("agent.yaml", CONTRACT, include_str!("../../templates/exec/agent.yaml")),
    File {
        program: true,
        ..file("agent.sh", "the program: JSON on stdin, JSON on stdout", include_str!("../../templates/exec/agent.sh"))
    },
    TEST,
];
const PYTHON: [File; 3] = [
    file("agent.yaml", CONTRACT, include_str!("../../templates/python/agent.yaml")),
    file("agent.py", "the program: a class with execute", include_str!("../../templates/python/agent.py")),
    TEST,
];
const TYPESCRIPT: [File; 7] = [
    file("agent.yaml", CONTRACT, include_str!("../../templates/typescript/agent.yaml")),
    file("agent.ts", "the program: a class with execute", include_str!("../../templates/typescript/agent.ts")),
    file("atlas.d.ts", "types of @atlas/agent", include_str!("../../../agents/sdk/typescript/index.d.ts")),
    file("package.json", "npm run build makes agent.mjs", include_str!("../../templates/typescript/package.json")),
    file("tsconfig.json", "settings of the compiler", include_str!("../../templates/typescript/tsconfig.json")),
    file("build.mjs", "settings of the bundler", include_str!("../../templates/typescript/build.mjs")),
    TEST,
];
/// The types of a contract, made when its folder is.
const TYPES: File = file("types.ts", "types of the contract: npm run types", "");
const LLM: [File; 3] = [
    file("agent.yaml", "contract: in {text}, out {summary}", include_str!("../../templates/llm/agent.yaml")),
    file("mock.yaml", "answers while no model is configured", include_str!("../../templates/llm/mock.yaml")),
    file("tests/ok.yaml", "one test", include_str!("../../templates/llm/ok.yaml")),
];

pub(crate) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let folder = &options.folder;
    let name = name(folder)?;
    match fs::read_dir(folder).map(|entries| entries.take(1).count()) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Ok(0) => {}
        Ok(_) => {
            let message = format!("\"{}\" already exists and is not empty", folder.display());
            return Err(Failure::new("E0121", Exit::Conflict, message)
                .with_next("use another name: atlasctl init NAME   or deploy the folder: atlasctl deploy DIR"));
        }
        Err(error) => return Err(could_not("make", folder, &error)),
    }
    if let Some(shipped) = &options.from {
        return copy(context, folder, &name, shipped::agent(shipped)?);
    }
    let mut files: Vec<File> = files(options.template).to_vec();
    for file in &files {
        fill(folder, file, name.as_str())?;
    }
    if options.template == Template::Typescript {
        write(folder, TYPES.path, types(files[0].text).as_bytes(), false)?;
        files.push(TYPES);
    }
    let path = |file: &File| folder.join(file.path).display().to_string();
    let width = files.iter().map(|file| path(file).chars().count()).max().unwrap_or(0);
    let text = files.iter().map(|file| format!("{:width$}   {}\n", path(file), file.what)).collect();
    let value = files.iter().map(|file| json!({"path": path(file), "what": file.what})).collect();
    context.show(&Shown { value, text, names: files.iter().map(path).collect() })?;
    if options.template == Template::Exec && !["jq", "python3"].into_iter().any(on_path) {
        context.note("agent.sh reads JSON with jq or python3, and neither is in PATH; install one, or write the program in another language");
    }
    let path = words::shell(&as_path(folder));
    let next = match options.template {
        Template::Typescript if !runs_typescript() => {
            format!("next: (cd {path} && npm install && npm run build) && atlasctl deploy {path}")
        }
        _ => format!("next: atlasctl deploy {path}"),
    };
    context.next(&next);
    Ok(Exit::Done)
}

fn files(template: Template) -> &'static [File] {
    match template {
        Template::Exec => &EXEC,
        Template::Python => &PYTHON,
        Template::Typescript => &TYPESCRIPT,
        Template::Llm => &LLM,
    }
}

/// The types of the contract of a template, in TypeScript.
fn types(contract: &str) -> String {
    let contract = contract.replace(NAME, "name: x\n");
    let Ok(contract) = atlas_contract::parse(contract.as_bytes()) else { return String::new() };
    of_own(Language::Ts, &contract.input_schema, &contract.output_schema)
}

/// Whether the Node.js of this machine runs TypeScript as it is.
fn runs_typescript() -> bool {
    let since = |(major, minor, _): (u32, u32, u32)| (major, minor) >= (23, 6) || (major == 22 && minor >= 18);
    atlas_dev::NodeJs::find(None).is_ok_and(|found| since(found.version))
}

/// The agent's name: the last part of the folder's path.
fn name(folder: &Path) -> Result<AgentName, Failure> {
    let last = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    AgentName::new(last).map_err(|error| {
        let message = format!("\"{}\" cannot be an agent's name: {}", folder.display(), atlas_env::chain(&error));
        Failure::usage(message).with_next("write: atlasctl init NAME")
    })
}

/// Writes one file of a template.
fn fill(folder: &Path, file: &File, name: &str) -> Result<(), Failure> {
    let text = file.text.replace(NAME, &format!("name: {}\n", quoted(name)));
    write(folder, file.path, text.as_bytes(), file.program)
}

/// Copies an agent that ships with Atlas, under the name of the folder.
fn copy(context: &Context, folder: &Path, name: &AgentName, files: Vec<PackFile>) -> Result<Exit, Failure> {
    let paths: Vec<String> = files.iter().map(|file| folder.join(&file.path).display().to_string()).collect();
    for file in files {
        let bytes = if file.path == CONTRACT_FILE { renamed(file.bytes, name.as_str()) } else { file.bytes };
        write(folder, &file.path, &bytes, file.executable)?;
    }
    let value = paths.iter().map(|path| json!({ "path": path })).collect();
    let text = paths.iter().map(|path| format!("{path}\n")).collect();
    context.show(&Shown { value, text, names: paths })?;
    context.next(&format!("next: atlasctl deploy {}", words::shell(&as_path(folder))));
    Ok(Exit::Done)
}

/// A contract with another name: that of its first line with one, which is the agent's.
fn renamed(contract: Vec<u8>, name: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(&contract);
    let line = text.lines().find(|line| line.trim_start().starts_with("name:"));
    let Some(line) = line else { return contract };
    let indent = &line[..line.len() - line.trim_start().len()];
    text.replacen(line, &format!("{indent}name: {}", quoted(name)), 1).into_bytes()
}

/// Writes one file; an existing file is not overwritten, even if it appeared after the first check.
fn write(folder: &Path, path: &str, bytes: &[u8], program: bool) -> Result<(), Failure> {
    let path = folder.join(path);
    let failed = |error: std::io::Error| could_not("write", &path, &error);
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
    let mut opened = fs::File::create_new(&path).map_err(failed)?;
    std::io::Write::write_all(&mut opened, bytes).map_err(failed)?;
    if program {
        opened.set_permissions(fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    Ok(())
}

/// A name as YAML; most need no quotes.
fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"].contains(&name.to_lowercase().as_str());
    if plain { name.to_owned() } else { json!(name).to_string() }
}

/// The folder as an argument for `deploy`, with a leading `./` so that it is clearly a path.
fn as_path(folder: &Path) -> String {
    if folder.is_absolute() || folder.starts_with(".") || folder.starts_with("..") {
        return folder.display().to_string();
    }
    format!("./{}", folder.display())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_template_keeps_its_contract_whatever_its_name() {
        for template in Template::value_variants().iter().map(|template| files(*template)) {
            for name in ["hello", "no", "1", "a: b", "größe"] {
                let dir = tempfile::tempdir().expect("a folder");
                for file in template {
                    fill(dir.path(), file, name).expect("written");
                }
                let package = atlas_package::pack(dir.path()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
                assert_eq!(package.contract.name.as_str(), name);
                assert_eq!(package.contract.warnings, []);
                assert_eq!(package.files, template.len());
                assert!(fill(dir.path(), &template[0], name).is_err(), "nothing is overwritten");
            }
        }
    }

    #[test]
    fn the_types_of_a_template_are_those_of_its_contract() {
        let text = types(TYPESCRIPT[0].text);
        assert!(text.contains("export interface Input {\n  name: string;\n}"), "{text}");
        assert!(text.contains("export interface Output {\n  greeting: string;\n"), "{text}");
    }

    #[test]
    fn a_copy_has_the_name_of_its_folder() {
        let files = shipped::agent("batch-processor").expect("it ships");
        let contract = files.into_iter().find(|file| file.path == CONTRACT_FILE).expect("a contract").bytes;
        let copied = atlas_contract::parse(&renamed(contract, "no")).expect("a contract");
        assert_eq!(copied.name.as_str(), "no");
        let unknown = shipped::agent("codr").expect_err("unknown").message;
        assert_eq!(unknown, "no agent \"codr\" ships with Atlas; did you mean coder?");
    }

    #[test]
    fn the_exec_template_takes_any_name() {
        let name = r#"O'Brien "x" \ $HOME"#;
        let input = json!({"input": {"name": name}, "context": {}}).to_string();
        let script = EXEC[1].text;
        let (all, none) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        fs::write(all.path().join("input.json"), &input).expect("written");
        fs::write(none.path().join("input.json"), &input).expect("written");
        let run = |path: &Path, folder: &Path| {
            let input = fs::File::open(folder.join("input.json")).expect("there");
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", script]).env("PATH", path).stdin(input);
            shell.output().expect("a shell starts")
        };
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let jq = std::env::split_paths(&paths).map(|dir| dir.join("jq")).find(|path| path.is_file());
        // The path of the real interpreter. Version managers put wrapper scripts on the PATH, which need other
        // programs.
        let python = atlas_dev::Python::find(None).ok().map(|python| python.program);
        for (program, found) in [("jq", jq), ("python3", python)] {
            let Some(found) = found else {
                atlas_notice::skip(format_args!("no {program}"));
                continue;
            };
            let only = tempfile::tempdir().expect("a folder");
            std::os::unix::fs::symlink(found, only.path().join(program)).expect("linked");
            let output = run(only.path(), all.path());
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(answer, json!({"greeting": format!("Hello, {name}")}), "{program}");
        }
        let output = run(none.path(), none.path());
        assert!(!output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "agent.sh needs jq or python3 to read JSON\n");
    }

    #[test]
    fn folders_name_agents() {
        assert_eq!(name(Path::new("agents/hello")).expect("a name").as_str(), "hello");
        assert!(name(Path::new("..")).is_err());
        assert_eq!(as_path(Path::new("hello")), "./hello");
        assert_eq!(as_path(Path::new("../hello")), "../hello");
    }
}
