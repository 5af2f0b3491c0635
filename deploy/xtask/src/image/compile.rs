//! Tests of `compile.sh`, the script of the Dockerfile: what it calls for which processor. The tools are stand-ins that write their calls down.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

const SCRIPT: &str = include_str!("../../../images/compile.sh");

/// It writes its call down with the linkers it is told. As `cargo`, it makes the programs it is asked for.
const TOOL: &str = r#"#!/bin/sh
set -e
echo "${0##*/} $*" >> calls
test "${0##*/}" = cargo || exit 0
env | grep '^CARGO_TARGET_.*_LINKER=' >> calls || true
mkdir -p "target/$6/dist"
while [ $# -gt 0 ]; do
    if [ "$1" = --bin ]; then echo "$2" > "$(echo target/*/dist)/$2"; fi
    shift
done
"#;

/// Runs the script in a folder on a machine of the processor `build`.
fn compile(folder: &Path, target: &str, build: &str) -> Output {
    let tools = folder.join("tools");
    fs::create_dir(&tools).expect("the folder is writable");
    fs::write(tools.join("tool"), TOOL).expect("written");
    fs::set_permissions(tools.join("tool"), fs::Permissions::from_mode(0o755)).expect("its own file");
    for name in ["apt-get", "cargo", "rustup"] {
        symlink("tool", tools.join(name)).expect("a link");
    }
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("there is a shell"));
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, "compile.sh"]).arg(folder.join("out")).current_dir(folder);
    shell.env("PATH", path).env("TARGETARCH", target).env("BUILDARCH", build);
    shell.output().expect("a shell")
}

#[test]
fn compilers_of_the_other_processor_are_installed_if_it_is_another() {
    let cases = [
        ("amd64", "amd64", "x86_64", None),
        ("arm64", "arm64", "aarch64", None),
        ("arm64", "amd64", "aarch64", Some(("gcc-aarch64-linux-gnu libc6-dev-arm64-cross", "aarch64-linux-gnu-gcc"))),
        ("amd64", "arm64", "x86_64", Some(("gcc-x86-64-linux-gnu libc6-dev-amd64-cross", "x86_64-linux-gnu-gcc"))),
    ];
    for (target, build, processor, installed) in cases {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = compile(folder.path(), target, build);
        assert!(output.status.success(), "{target} on {build}: {}", String::from_utf8_lossy(&output.stderr));
        let cargo = format!(
            "cargo build --locked --profile dist --target {processor}-unknown-linux-gnu --bin atlas-controller --bin atlas-worker --bin atlas-operator --bin atlasctl\n"
        );
        let expected = installed.map_or_else(
            || cargo.clone(),
            |(packages, linker)| {
                let upper = processor.to_uppercase();
                format!(
                    "apt-get update\napt-get install --yes --no-install-recommends {packages}\nrustup target add {processor}-unknown-linux-gnu\n{cargo}CARGO_TARGET_{upper}_UNKNOWN_LINUX_GNU_LINKER={linker}\n"
                )
            },
        );
        let calls = fs::read_to_string(folder.path().join("calls")).expect("calls");
        assert_eq!(calls, expected, "{target} on {build}");
        for program in ["atlas-controller", "atlas-worker", "atlas-operator", "atlasctl"] {
            assert!(folder.path().join("out").join(program).exists(), "{target} on {build}: {program}");
        }
    }
}

#[test]
fn another_processor_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = compile(folder.path(), "riscv64", "amd64");
    assert_eq!(output.status.code(), Some(2));
    let said = "there are no images for the processor riscv64: choose amd64 or arm64\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    assert!(!folder.path().join("calls").exists(), "nothing is called");
}
