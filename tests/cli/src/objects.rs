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

/// An editor that first misspells a member, and corrects it once it is told.
const CLUMSY: &str = r##"#!/bin/sh
if grep -q '^# error' "$1"; then
  sed 's/^/saw: /' "$1" | head -n 3 >> told.txt
  sed -i -e 's/evnts/events/' -e '/^#/d' "$1"
else
  sed -i -e 's/events/evnts/' -e 's/job.ended/node/' "$1"
fi
"##;

/// An editor during which somebody else labels the object, and that then insists.
const SLOW: &str = r##"#!/bin/sh
if grep -q '^# Since' "$1"; then
  grep '^#' "$1" >> told.txt
  sed -i '/^#/d' "$1"
else
  atlasctl label webhook ci team=b >/dev/null
  sed -i 's/- node/- agent/' "$1"
fi
"##;

#[test]
fn objects_are_edited_and_labelled() {
    let laptop = Laptop::with(&[]);
    fs::write(laptop.folder().join("webhook.yaml"), WEBHOOK).expect("written");
    for (name, script) in [("clumsy", CLUMSY), ("slow", SLOW)] {
        fs::write(laptop.folder().join(name), script).expect("written");
    }
    let mut session = laptop.session("Objects are edited and labelled");
    session.run("chmod +x clumsy slow && atlasctl apply -f webhook.yaml");
    session.run("VISUAL=true atlasctl edit webhook ci");
    session.run("VISUAL=./clumsy atlasctl edit webhook ci");
    session.run("cat told.txt && rm told.txt");
    session.run("VISUAL=./slow atlasctl edit webhook/ci");
    session.run("cat told.txt");
    session.run("atlasctl get webhook --columns name,labels");
    session.run("VISUAL=\"sed -i 's/^kind: .*/kind: model/'\" TMPDIR=$PWD atlasctl edit webhook ci");
    session.run("atlasctl label webhook ci team=a stage=test");
    session.run("atlasctl label webhook/ci team-");
    session.run("atlasctl label webhook ci");
    session.run("atlasctl label node laptop zone=b && atlasctl label node laptop zone-");
    session.run("atlasctl label job job-1 a=b");
    expect_file!["../transcripts/objects-edited.txt"].assert_eq(&session.page());
}

#[test]
fn a_namespace_has_its_own_objects_and_jobs() {
    let laptop = Laptop::with(&[]);
    fs::write(laptop.folder().join("webhook.yaml"), WEBHOOK).expect("written");
    let mut session = laptop.session("A namespace has its own objects and jobs");
    session.run("atlasctl apply -f webhook.yaml --namespace team");
    session.run("atlasctl get webhook");
    session.run("atlasctl get webhook -n team --columns name,namespace");
    session.run("atlasctl label webhook ci a=b -n team");
    session.run("atlasctl get webhook ci -n team -o yaml > copy.yaml; atlasctl apply -f copy.yaml");
    session.run("atlasctl apply -f copy.yaml -n other");
    session.run("ATLAS_NAMESPACE=team atlasctl delete webhook ci");
    session.run("atlasctl get agent -n team");
    session.run("atlasctl run hello -n team");
    expect_file!["../transcripts/namespaces.txt"].assert_eq(&session.page());
}
