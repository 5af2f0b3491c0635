//! Tests at the boundary that lasts: commands in, events out. [`check`] alone touches the API; the tests are data.

mod build;
mod edges;
mod entry;
mod image;
mod model;
mod reads;
pub(crate) mod script;
mod timers;

use expect_test::Expect;

/// Runs a script and compares what it printed. What comes before `--` only prepares: it must be accepted and prints nothing.
#[expect(clippy::needless_pass_by_value, reason = "callers write `expect![…]` in place")]
pub(crate) fn check(script: &str, expected: Expect) {
    let mut run = script::Run::new();
    let (setup, rest) = script.split_once("--").unwrap_or(("", script));
    run.prepare(setup);
    expected.assert_eq(&run.play(rest));
}
