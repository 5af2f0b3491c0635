//! Lists and objects in every form of output, ordered and filtered.

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
