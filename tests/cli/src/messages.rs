//! Messages to jobs.

use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

#[test]
fn a_message_goes_to_a_job_that_has_not_ended() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("A message goes to a job that has not ended");
    session.run("atlasctl run hello name=Ada --at +60m");
    session.run("atlasctl job message $(atlasctl job list -o name --limit 1) '{\"go\": true}' --id first");
    session.run("atlasctl job message $(atlasctl job list -o name --limit 1) '{\"go\": true}' --id first");
    session.run("echo '[1, 2]' | atlasctl job message $(atlasctl job list -o name --limit 1) - --id second -o json");
    session.run("atlasctl job message $(atlasctl job list -o name --limit 1) --text go --id third");
    session.run("atlasctl job message $(atlasctl job list -o name --limit 1) go");
    session.run("atlasctl job message $(atlasctl job list -o name --limit 1)");
    session.run("atlasctl job message job-00000000 --text go");
    session.run("atlasctl job cancel $(atlasctl job list -o name --limit 1)");
    session.run("atlasctl job message $(atlasctl job list -o name --limit 1) --text go");
    expect_file!["../transcripts/messages.txt"].assert_eq(&session.page());
}
