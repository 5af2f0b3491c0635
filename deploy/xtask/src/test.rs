//! `cargo xtask test`: runs the doc tests, then all other tests of the workspace, and then lists the skipped tests and
//! the slow tests without a reason.
//!
//! Tests that start programs find them in the folder `ATLAS_TEST_BIN_DIR`. The programs are built first, so that tests
//! never run old ones. No test needs a browser or the network. Tools that some tests use are installed
//! first if possible: iproute2, PostgreSQL, promtool and a container engine on the machine, Python programs in `target/`.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command::{cargo, has_cargo, run, target_dir};
use crate::notices::Notices;
use crate::slow;
use crate::tools;

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Passed on to the runner, e.g. a part of a test's name.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    filter: Vec<String>,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    require_python()?;
    tools::want("ip", "iproute2");
    tools::want("initdb", "postgresql");
    tools::want("pgbouncer", "pgbouncer");
    tools::want("promtool", "prometheus");
    tools::want("dockerd", "docker.io");
    tools::want("podman", "podman");
    tools::want("busybox", "busybox-static");
    let schemathesis = tools::want_python("schemathesis", "4.32.5");
    let oteltap = tools::want_python("oteltap", "1.0.0");
    let model = tools::want_model();
    let mcp = tools::want_mcp();
    let conformance = tools::want_mcp_conformance();
    let tsx = if tools::is_there("tsx") { None } else { tools::want_tsx() };
    let (helm, kubernetes) = (tools::want_helm(), tools::want_kubernetes());
    // Programs and tests are built together, so that they share one set of features and each crate is compiled once.
    run(&mut cargo(&["build", "--workspace", "--bins", "--tests", "--locked"]))?;
    if options.filter.is_empty() {
        run(&mut cargo(&["test", "--workspace", "--locked", "--doc"]))?;
    }
    let mut tests = if has_cargo("nextest") {
        cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"])
    } else {
        eprintln!("xtask: cargo-nextest is not installed: using cargo test");
        cargo(&["test", "--workspace", "--locked", "--lib", "--bins", "--tests", "--no-fail-fast"])
    };
    if let Some(program) = schemathesis {
        tests.env("ATLAS_TEST_SCHEMATHESIS", program);
    }
    if let Some(program) = oteltap {
        tests.env("ATLAS_TEST_OTELTAP", program);
    }
    if let Some(python) = model {
        tests.env("ATLAS_TEST_MODEL_PYTHON", python);
    }
    if let Some(python) = mcp {
        tests.env("ATLAS_TEST_MCP_PYTHON", python);
    }
    if let Some(program) = helm {
        tests.env("ATLAS_TEST_HELM", program);
    }
    if let Some(python) = kubernetes {
        tests.env("ATLAS_TEST_KUBERNETES_PYTHON", python);
    }
    if let Some(folder) = conformance {
        tests.env("ATLAS_TEST_MCP_CONFORMANCE", folder);
    }
    if let Some(folder) = tsx {
        let path = std::env::var_os("PATH").unwrap_or_default();
        tests.env("PATH", std::env::join_paths(std::env::split_paths(&path).chain([folder]))?);
    }
    let notices = Notices::begin()?;
    slow::begin();
    notices.pass_to(&mut tests);
    let outcome = run(tests.args(&options.filter).env("ATLAS_TEST_BIN_DIR", target_dir().join("debug")));
    // Printed even after a failure, because a notice may explain it.
    notices.print()?;
    slow::print()?;
    outcome
}

/// Checks for Python, because agents in the tests are Python programs; everything else that tests need is built here.
fn require_python() -> Result<()> {
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    match Command::new("python3").args(["-c", new_enough]).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("the tests need Python 3.11 or newer as \"python3\"; this one is older"),
        Err(_) => bail!("the tests need Python 3.11 or newer as \"python3\"; none was found on PATH"),
    }
}
