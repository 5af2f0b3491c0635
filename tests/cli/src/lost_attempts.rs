//! `atlasctl test` of durable agents: each fixture is repeated with a lost attempt after each recorded step.

use std::process::{Command, Output};

use atlas_cluster_tests::program;

/// It keeps in `self` what a step should have returned, so a process that gets the step from the record does not have it.
const FORGETFUL: &str = "
from atlas.durable import step
from atlas.runtime.base import AgentBase


class Forgetful(AgentBase):
    @step
    def count(self, items):
        self.total = len(items)

    async def execute(self, input_data):
        self.total = 0
        await self.count(input_data['items'])
        return {'charged': await self.context.step('charge', str, self.total)}
";

fn tested(program_text: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    std::fs::create_dir(folder.path().join("tests")).expect("made");
    write("agent.yaml", "agent:\n  name: forgetful\n  version: 0.1.0\n  durable: true\n");
    write("agent.py", program_text);
    write("tests/two.yaml", "name: two items\ninput: { items: [a, b] }\noutput: { charged: \"2\" }\n");
    let mut command = Command::new("timeout");
    command.arg("240").arg(program("atlasctl")).args(["test", "."]).current_dir(folder.path());
    command.env("ATLAS_CONFIG", folder.path().join("no-config.toml")).env("ATLAS_SANDBOX", "off");
    command.env_remove("ATLAS_SERVER").output().expect("it starts")
}

#[test]
fn a_program_that_forgets_what_it_did_not_record_is_found() {
    let output = tested(FORGETFUL);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{stdout}{stderr}");
    // The first lost attempt goes on with another amount, which only the second one can tell from the record.
    assert!(stdout.contains("the same end if the attempt is lost after step"), "{stdout}{stderr}");
    assert!(stdout.contains("'charge'") && stdout.contains("agent.py:14"), "{stdout}{stderr}");
}

#[test]
fn a_program_that_returns_what_it_needs_passes() {
    let sound = FORGETFUL.replace("self.total = len(items)", "return len(items)");
    let sound = sound.replace("        self.total = 0\n        await", "        self.total = await");
    let output = tested(&sound);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("the same after each of 2 lost attempts"), "{stdout}{stderr}");
}
