//! `cargo xtask fix`: applies automatic fixes.

use anyhow::Result;

use crate::command::{cargo, run};

pub(crate) fn run_all() -> Result<()> {
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"]))?;
    run(&mut cargo(&["fmt", "--all"]))?;
    let mut generated = cargo(&["test", "--workspace", "--lib", "--quiet", "--", "generated_"]);
    run(generated.env("UPDATE_EXPECT", "1"))
}
