//! Lists and objects in every output format, sorted and filtered.

use atlas_cluster_tests::Agent;
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

#[test]
fn every_form_of_output() {
    let fails = Agent { name: "fails", version: "2.0.0", contract: "", script: "echo 'no luck' >&2; exit 3" };
    let laptop = Laptop::with(&[&HELLO, &fails]);
    let mut session = laptop.session("Forms of output");
    session.run("atlasctl agent list -o wide");
    session.run("atlasctl agent list --columns agent,version --no-headers --sort -agent");
    session.run("atlasctl agent list --filter 'provider == \"exec\" && name.startsWith(\"f\")' -o name");
    session.run("atlasctl agent list -o csv --columns name,version,capabilities");
    session.run("atlasctl agent list -o 'template={name}@{version}'");
    session.run("atlasctl agent list -o 'jsonpath=$[*].name'");
    session.run("atlasctl agent list -o jsonl | cut -c 1-32");
    session.run("atlasctl agent show hello -o yaml | head -n 2");
    session.run("atlasctl agent show hello -o 'jsonpath={.contract.output_schema.required[0]}'");
    session.run("atlasctl agent show hello -o csv");
    session.run("atlasctl agent list -o xml");
    session.run("atlasctl agent list --sort colour");
    session.run("atlasctl agent list --filter 'name ='");
    session.run("atlasctl agent list --filter 'name < 1'");
    session.run("atlasctl run hello name=Ada -o json | grep output_data -A 2");
    session.run("atlasctl run fails");
    session.run("atlasctl run fails -q -o json > failed.json; echo $?; grep error failed.json");
    session.run("atlasctl run hello nme=Ada -o json");
    session.run("atlasctl job list --columns agent,status,error --sort agent --filter 'status != \"running\"'");
    session.run("atlasctl job list --label nobody=has");
    session.run("atlasctl node list -o 'template={id} {health}' --verbose 2>/dev/null");
    session.run("atlasctl node show laptop -o 'jsonpath=health' --trace 2>&1");
    expect_file!["../transcripts/forms.txt"].assert_eq(&session.page());
}

#[test]
fn a_name_that_means_nothing_is_an_error() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("Names that mean nothing");
    session.run("atlasctl job list --filter 'stauts == \"failed\"'");
    session.run("atlasctl job list --sort tookk");
    session.run("atlasctl job list --columns job,colour");
    session.run("atlasctl node list --filter 'has(zone)'");
    session.run("atlasctl agent versions hello --sort agee");
    session.run("atlasctl job list -o 'jsonpath=$[*].id'");
    session.run("atlasctl job batch cancel --filter 'labels.a == \"b\" && agent == \"hello\"' --yes");
    // These commands are refused before they submit a job; the list afterwards shows none.
    session.run("atlasctl run hello name=Ada -o csv");
    session.run("atlasctl run hello name=Ada -o jsonpath=outptu_data.greeting");
    session.run("atlasctl run hello name=Ada --detach -o template={status}");
    session.run("atlasctl job list");
    session.run("atlasctl run hello name=Ada -q -o jsonpath=output_data.greeting");
    session.run("atlasctl run hello name=Ada -q -o jsonpath=output_data.greting");
    session.run("atlasctl job list --columns agent -o 'jsonpath=$[*].output_data.greting'");
    expect_file!["../transcripts/names.txt"].assert_eq(&session.page());
}

#[test]
fn a_list_of_jobs_says_that_there_are_more() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("Lists that are cut off");
    session.quiet("for n in $(seq 53); do atlasctl run hello name=$n --detach -q --label n=$n; done");
    session.run("atlasctl job list -o name | sort -u | wc -l");
    session.run("atlasctl job list --limit 53 -o name | sort -u | wc -l");
    session.run("atlasctl job list --limit 2 --filter 'labels.n != \"53\"' --columns labels.n");
    session.run("atlasctl job list --limit 1 --sort created_at --columns labels.n");
    session.run("atlasctl job list --all -o name | sort -u | wc -l");
    session.run("atlasctl job list --all -o json | grep -c '\"id\"'");
    session.run("atlasctl job list --all --limit 5");
    session.run("atlasctl job batch retry --dry-run");
    expect_file!["../transcripts/more-jobs.txt"].assert_eq(&session.page());
}
