//! Objects: documents that configure the cluster, through the verbs that work on every kind.

use std::fs;

use expect_test::expect_file;

use crate::laptop::Laptop;

const NAMESPACE: &str = "kind: namespace
metadata: { name: default, labels: { team: a } }
spec: { description: Everything, jobs_pending_max: 1 }
";

const WEBHOOK: &str = "kind: webhook
metadata: { name: ci }
spec: { url: 'http://127.0.0.1:9/hook', events: [job.ended], secret_env: ATLAS_WEBHOOK_CI }
";

#[test]
fn objects_are_applied_read_and_deleted() {
    let laptop = Laptop::with(&[]);
    fs::create_dir_all(laptop.folder().join("objects")).expect("a folder");
    fs::write(laptop.folder().join("objects/namespace.yaml"), NAMESPACE).expect("written");
    fs::write(laptop.folder().join("objects/webhook.yaml"), WEBHOOK).expect("written");
    let mut session = laptop.session("Objects are applied, read and deleted");
    session.run("atlasctl diff -f objects");
    session.run("atlasctl apply -f objects");
    session.run("atlasctl apply -f objects");
    session.run("atlasctl get webhook --columns name,namespace,labels");
    session.run("atlasctl get namespace/default -o name");
    session.run(
        "until atlasctl get webhook | grep -q blocked; do :; done; atlasctl get webhook --columns name,state,reason",
    );
    session.run("atlasctl get webhook ci -o yaml | sed -n '/^spec/,/^status/p'");
    session.run("sed -i s/job.ended/node/ objects/webhook.yaml && atlasctl diff -f objects");
    session.run("atlasctl apply -f objects/webhook.yaml && atlasctl get webhook ci -o jsonpath=.spec.events");
    session.run("sed -i s/events/evnts/ objects/webhook.yaml && atlasctl apply -f objects/webhook.yaml");
    session.run("atlasctl delete webhook ci");
    session.run("atlasctl get webhook ci");
    session.run("atlasctl get weather");
    expect_file!["../transcripts/objects.txt"].assert_eq(&session.page());
}
