//! Three controllers on a laptop, and a kill of the leader.

use std::fs;

use atlas_cluster_tests::{Dev, LONG, eventually, write_agent};
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::session::Session;

/// Sleeps for the time in its input, so that there are leases to renew.
const WAITS: &str = r#"seconds=$(sed -n 's/.*"seconds": *\([0-9]*\).*/\1/p')
sleep "$seconds"
printf '{"waited":%s}' "$seconds""#;

#[test]
fn three_controllers_and_the_death_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &HELLO);
    let contract = "  input: { schema: { type: object, properties: { seconds: { type: integer } } } }";
    let waits = atlas_cluster_tests::Agent { name: "waits", version: "0.1.0", contract, script: WAITS };
    write_agent(&folder.path().join("agents"), &waits);
    let dev = Dev::start(folder.path(), ["--controllers", "3", "--workers", "2", "--agents", "./agents"]);
    // The address list from the suggested command in the first lines.
    let list =
        dev.text().split_once("ATLAS_SERVER=").map(|(_, list)| list.trim().to_owned()).expect("the next command");
    assert_eq!(list.split(',').count(), 3, "{list}");
    let first = crate::mask::mask(&dev.text());
    // Log lines before the banner are removed.
    let first = first.find("Atlas 0").and_then(|at| first.get(at..)).unwrap_or_default();
    let mut session = Session::new("Three controllers, still on the laptop", folder.path(), Some(&list));
    session.told("atlasctl dev --controllers 3 --workers 2", first);
    // The followers' figures take a second or two, and on a loaded machine an election may have moved the leadership.
    eventually("c1 leads and every controller has told its figures", LONG, || {
        let status = session.quiet("atlasctl cluster status -o json");
        let leads = status.contains("\"leader\": \"c1\"");
        if !leads {
            session.quiet("atlasctl cluster transfer-leader c1");
        }
        (leads && !status.contains("\"applied\": null")).then_some(())
    });
    session.run("atlasctl cluster status");
    session.quiet("atlasctl run waits seconds=60 --detach");
    session.quiet("atlasctl run waits seconds=60 --detach");
    eventually("both run", LONG, || {
        let jobs = session.quiet("atlasctl job list -o jsonl");
        (jobs.matches("\"status\":\"running\"").count() == 2).then_some(())
    });
    session.run("atlasctl dev kill c1");
    session.run("atlasctl run hello name=Ada");
    session.run("atlasctl dev kill c9");
    session.run("atlasctl dev kill c1");
    // A client that knows the killed one alone is told of the others, and can bring it back.
    let mut session = Session::continued(session.page(), folder.path(), list.split(',').next());
    session.run("atlasctl job list -o name");
    session.run("atlasctl dev start c1");
    expect_file!["../transcripts/three-controllers.txt"].assert_eq(&session.page());
    let (code, words) = dev.interrupt_with_words();
    assert_eq!(code, Some(0));
    let last = words.rsplit_once("stopping\n").map_or(&*words, |(_, last)| last);
    assert!(!last.contains("WARN") && !last.contains("ERROR"), "it ends without complaints: {last}");
}

#[test]
fn the_end_of_the_quorum_is_told_and_a_start_brings_it_back() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &HELLO);
    let dev = Dev::start(folder.path(), ["--controllers", "3", "--agents", "./agents", "--http-body-max", "4KiB"]);
    let list = dev.text().split_once("ATLAS_SERVER=").map(|(_, list)| list.trim().to_owned()).expect("a list");
    let mut session = Session::new("The end of the quorum", folder.path(), Some(&list));
    session.quiet("atlasctl dev kill c3");
    session.run("atlasctl dev kill c2");
    session.run("atlasctl dev start c2");
    session.run("atlasctl run hello name=Ada");
    session.run("atlasctl dev start c2");
    session.run("atlasctl dev start c9");
    session.run("atlasctl dev kill w1");
    session.run("atlasctl dev start w1");
    expect_file!["../transcripts/quorum.txt"].assert_eq(&session.page());
    // Controller options apply to every controller process.
    let large = format!("atlasctl run hello name={} 2>&1", "x".repeat(8_000));
    assert!(session_of(&folder, &list).quiet(&large).contains("E3006"));
    assert_eq!(dev.interrupt(), Some(0));
}

#[test]
fn the_only_controller_of_a_cluster_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &HELLO);
    let dev = Dev::start(folder.path(), ["--workers", "2", "--agents", "./agents", "--data-dir", "data"]);
    let mut session = Session::new("The only controller", folder.path(), Some(dev.server()));
    session.run("atlasctl dev kill c1 --data-dir data");
    session.run("atlasctl dev start w1");
    session.run("atlasctl dev start c1");
    session.run("atlasctl run hello name=Ada");
    session.quiet("atlasctl dev kill c1");
    let down = session.quiet("atlasctl job list 2>&1");
    assert!(down.contains("start it again: atlasctl dev start c1"), "{down}");
    session.run("atlasctl dev start c1 --data-dir data");
    session.run("atlasctl dev kill w2 --data-dir data");
    expect_file!["../transcripts/only-controller.txt"].assert_eq(&session.page());
    assert_eq!(dev.interrupt(), Some(0));
    // Its addresses were stored with its data, and another port is taken all the same.
    let again = Dev::start(folder.path(), ["--workers", "2", "--agents", "./agents", "--data-dir", "data"]);
    let mut session = Session::new("", folder.path(), Some(again.server()));
    assert!(session.quiet("atlasctl run hello name=Ada").contains("Hello, Ada"));
    assert_eq!(again.interrupt(), Some(0));
}

fn session_of<'a>(folder: &'a tempfile::TempDir, list: &'a str) -> Session<'a> {
    Session::new("", folder.path(), Some(list))
}

#[test]
fn from_one_controller_to_two_and_what_is_said_on_the_way_back() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &HELLO);
    let one = Dev::start(folder.path(), ["--agents", "./agents"]);
    let mut session = Session::new("From one controller to two", folder.path(), Some(one.server()));
    let id = session.run("atlasctl run hello name=Ada --detach");
    session.run("atlasctl job wait $(atlasctl job list -o name | head -n 1 | cut -d/ -f2)");
    session.run("atlasctl dev kill c1");
    let page = session.page();
    assert_eq!(one.interrupt(), Some(0));
    let two = Dev::start(folder.path(), ["--controllers", "2", "--agents", "./agents"]);
    let mut session = Session::continued(page, folder.path(), Some(two.server()));
    session.run(&format!("atlasctl job show {} -o name", id.trim()));
    session.run("atlasctl cluster members -o name");
    let page = session.page();
    assert_eq!(two.interrupt(), Some(0));
    let mut session = Session::continued(page, folder.path(), None);
    session.run("atlasctl dev --controllers 1 --port 0");
    let page = session.page();
    // Without --controllers, the number in the data folder is used.
    let again = Dev::start(folder.path(), ["--agents", "./agents"]);
    let mut session = Session::continued(page, folder.path(), Some(again.server()));
    session.run("atlasctl cluster members -o name");
    session.run("atlasctl cluster remove c2 --yes");
    eventually("the removed one is forgotten", LONG, || again.text().contains("c2 was removed").then_some(()));
    let page = session.page();
    assert_eq!(again.interrupt(), Some(0));
    assert!(!fs::exists(folder.path().join(".atlas/controllers/c2")).expect("readable"));
    let one = Dev::start(folder.path(), ["--agents", "./agents"]);
    let mut session = Session::continued(page, folder.path(), Some(one.server()));
    session.run(&format!("atlasctl job show {} -o name", id.trim()));
    session.run("atlasctl cluster members -o name");
    expect_file!["../transcripts/one-two-one.txt"].assert_eq(&session.page());
    assert_eq!(one.interrupt(), Some(0));
}
