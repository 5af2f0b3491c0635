//! Triggers: minute 6:00 of the first ten minutes, and the verbs around it.

use atlas_cluster_tests::Agent;
use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn triggers_are_created_tested_fired_and_deleted() {
    let hello = Agent { name: "hello", version: "0.1.0", contract: "", script: "cat" };
    let laptop = Laptop::with(&[&hello]);
    let mut session = laptop.session("Triggers are created, tested, fired and deleted");
    session.run("atlasctl trigger list");
    session.run(
        "atlasctl trigger create nightly --cron '0 2 * * *' --tz Europe/Rome --overlap skip --agent hello --input '{\"name\":\"Ada\"}'",
    );
    session.run("atlasctl trigger create deploys --webhook --hmac secret://hook --agent hello --map name=body.actor");
    session.run("atlasctl trigger test deploys --body '{\"actor\":\"Ada\"}'");
    session.run("atlasctl trigger test deploys --body '{\"sender\":\"Ada\"}'");
    session.run("atlasctl trigger create nightly --cron '0 3 * * *' --agent hello");
    session.run("atlasctl trigger create other --cron '0 25 * * *' --agent hello");
    session.run("atlasctl trigger create other --cron '0 2 * * *' --tz Europe/Atlantis --agent hello");
    session.run("atlasctl trigger create other --agent hello");
    session.run("atlasctl trigger create other --every 1ms --agent hello");
    session.run("atlasctl trigger create other --every 99999999d --agent hello");
    session.run("atlasctl trigger create other --every 5m --jitter 500ms --agent hello");
    session.run("atlasctl trigger create other --at @1795348867000 --agent hello");
    session.run("atlasctl trigger create other --at @253399999999 --agent hello");
    session.run("atlasctl trigger create other --every 5m --agent helo");
    session.run("atlasctl trigger create other --every 5m --chain gone");
    session.run("atlasctl trigger pause nightly");
    session.run("atlasctl trigger next nightly");
    session.run("atlasctl trigger resume nightly");
    session.run("atlasctl trigger next nightly --count 2");
    session.run("atlasctl trigger backfill nightly --from 2026-03-28T00:00:00Z --to 2026-03-30T00:00:00Z");
    session.run("atlasctl trigger backfill nightly --from 2026-03-28T00:00:00Z --to 2026-03-30T00:00:00Z --yes");
    session.run("atlasctl trigger show nightly | sed 's/ [0-9]* s / <age> /'");
    session.run("atlasctl trigger list | sed 's/ [0-9]* s$/ <age>/'");
    session.run("atlasctl trigger fire gone");
    session.run("atlasctl trigger delete deploys");
    session.run("atlasctl trigger list -o name");
    expect_file!["../transcripts/triggers.txt"].assert_eq(&session.page());
}
