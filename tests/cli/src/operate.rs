//! Versions, documents, contexts, and diagnosis.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use atlas_cluster_tests::{Agent, LONG, eventually, program, write_agent};
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;
use crate::session::Session;

#[test]
fn versions_and_wishes() {
    let laptop = Laptop::with(&[]);
    let wishes = laptop.folder().join("wishes");
    write_agent(&wishes, &HELLO);
    let mut session = laptop.session("Versions and wishes");
    session.run("atlasctl diff -f wishes");
    session.run("atlasctl apply -f wishes --dry-run");
    session.run("atlasctl apply -f wishes");
    session.run("atlasctl apply -f wishes");
    session.run("atlasctl diff -f wishes");
    session.run("atlasctl get agent -o yaml | atlasctl apply -f -");
    session.run("atlasctl get node/laptop -o yaml > node.yaml; atlasctl apply -f node.yaml");
    session.run("sed -i 's/cordoned: false/cordoned: true/' node.yaml; atlasctl diff -f node.yaml");
    session.run("atlasctl apply -f node.yaml; atlasctl node list --columns node,state");
    session.run("atlasctl node uncordon laptop");
    let newer = HELLO.contract.replace("minLength: 1", "minLength: 2");
    write_agent(&wishes, &Agent { version: "0.2.0", contract: &newer, ..HELLO });
    session.run("atlasctl apply -f wishes");
    session.run("atlasctl agent versions hello");
    session.run("atlasctl agent diff hello@0.1.0 hello");
    session.run("atlasctl agent diff hello wishes/hello");
    session.run("atlasctl delete agent hello");
    session.run("atlasctl delete agent/hello@0.1.0");
    session.run("atlasctl agent versions hello -o name");
    session.run("atlasctl run hello --version 0.1.0 name=Ada");
    session.run("atlasctl run hello --version '^0.2.0' name=Ada -q");
    session.run("atlasctl describe node laptop");
    session.run("atlasctl get job --limit 1 --columns agent,status");
    session.run("atlasctl get pods");
    session.run("atlasctl describe agent nobody");
    session.run("echo '{agent_name: x, input_data: {}}' | atlasctl apply -f -");
    session.run("echo '{name: x, version: 1.0.0, digest: none}' | atlasctl apply -f -");
    expect_file!["../transcripts/wishes.txt"].assert_eq(&session.page());
}

#[test]
fn names_go_through_pipes() {
    let laptop = Laptop::with(&[&HELLO, &Agent { name: "polite", version: "1.2.0", ..HELLO }]);
    let mut session = laptop.session("Names through pipes");
    session.quiet("for n in 1 2; do atlasctl run hello name=$n -q; done");
    for verb in ["show", "result", "explain", "tree", "wait", "-n1 events", "-n1 logs", "-n1 steps", "-n1 watch"] {
        let (flag, verb) = verb.split_once(' ').unwrap_or(("", verb));
        let line = format!("atlasctl job list -o name | xargs {flag} atlasctl job {verb} > /dev/null; echo $?");
        assert_eq!(session.quiet(&line), "0\n", "job {verb}");
    }
    session.run("atlasctl job list -o name | xargs atlasctl job show -o jsonpath=output_data.greeting");
    session.run("atlasctl job list -o name | xargs atlasctl job retry -q -o name | xargs atlasctl job wait -q");
    session.run("atlasctl job list -o name | xargs atlasctl get -o jsonpath=status");
    session.run("atlasctl job list -o name --limit 1 | xargs atlasctl job cancel 2>&1 | grep -c E3005");
    session.run("atlasctl agent list -o name | xargs atlasctl agent show | grep package");
    session.run("atlasctl run agent/hello@0.1.0 name=Ada -q");
    session.run("atlasctl run hello@^0.1.0 name=Ada -q");
    session.run("atlasctl run hello@0.1.0 --version 0.1.0 name=Ada");
    session.run("atlasctl run hello@7 name=Ada");
    session.run("atlasctl node list -o name | xargs atlasctl node cordon");
    session.run("atlasctl node list -o name | xargs atlasctl node uncordon -o name");
    session.run("atlasctl job show node/laptop");
    session.run("atlasctl job show job/job-0000000000000000 job/job-0000000000000001 2>&1");
    session.run("atlasctl agent list --all -o name | xargs atlasctl agent retire");
    session.run("atlasctl agent list -o name | wc -l");
    expect_file!["../transcripts/pipes.txt"].assert_eq(&session.page());
}

/// Imitates bash when Tab is pressed at the end of a line.
const PRESS: &str = r#"
source <(atlasctl completion bash -q)
COMP_LINE="$1" COMP_POINT=${#1}
read -ra COMP_WORDS <<< "${1//@/ @ }"
[[ $1 == *[\ @] ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_atlasctl_names atlasctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[@]}"
"#;

#[test]
fn a_shell_completes_names() {
    let laptop = Laptop::with(&[&HELLO, &Agent { name: "hello-again", version: "1.2.0", ..HELLO }]);
    let mut session = laptop.session("Names in a shell");
    session.quiet("atlasctl run hello name=Ada --idempotency-key a -q");
    fs::write(laptop.folder().join("press.sh"), PRESS).expect("written");
    for line in [
        "atlasctl run he",
        "atlasctl run hello-",
        "atlasctl agent show agent/hello-",
        "atlasctl agent retire hello-again@",
        "atlasctl agent retire hello@0",
        "atlasctl node drain ",
        "atlasctl node dra",
        "atlasctl job list --agent hello-",
        "atlasctl job show job",
        "atlasctl get no",
        "atlasctl get node l",
        "atlasctl cluster remove ",
        "atlasctl --server http://127.0.0.1:1 node drain lap",
        "atlasctl job list --colu",
    ] {
        session.run(&format!("bash press.sh '{line}'"));
    }
    session.run("atlasctl __complete -- --server http://127.0.0.1:1 node show ''");
    session.run("atlasctl __complete -- context use '' -x");
    session.run("atlasctl __complete");
    expect_file!["../transcripts/completion.txt"].assert_eq(&session.page());
}

#[test]
fn a_file_of_jobs_is_submitted_in_its_order() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("A file of jobs");
    session.quiet("for n in $(seq 1100); do echo \"{\\\"name\\\": \\\"$n\\\"}\"; done > names.jsonl");
    session.run("atlasctl run hello --from names.jsonl --label run=1 -o name > ids; wc -l < ids");
    session.run("atlasctl job list --label run=1 --all -q -o name | tac | cmp - ids && echo same order");
    session.run("atlasctl run hello --from names.jsonl --idempotency-key k -q -o name > a");
    session.run("atlasctl run hello --from names.jsonl --idempotency-key k -q -o name | cmp - a && echo same jobs");
    session.run("printf '{\"agent\":\"hello\",\"input\":{\"name\":\"Ada\"}}\\n\\n{\"agent\":\"hello\",\"input\":{\"nme\":\"Ada\"}}\\n' | atlasctl run --from -");
    // Otherwise jobs of before may be ahead of the next ones for so long that the client says so.
    session.quiet("atlasctl wait job $(tail -1 a) --for ended");
    session.run(
        "printf '{\"name\":\"Ada\"}\\n{\"nme\":\"Ada\"}\\n{\"name\":\"Bob\"}\\n' | atlasctl run hello --wait --from -",
    );
    session.run("printf '{\"name\":\"Ada\"}\\n{\"name\":\"Bob\"}\\n' | atlasctl run hello -qw --from - -o jsonpath='$[*].output_data.greeting'");
    session.run("echo '{}' | atlasctl run --from -");
    session.run("printf '{\"name\":\"Ada\"}\\n\\nnope\\n' | atlasctl run hello --from -");
    session.run("atlasctl run");
    expect_file!["../transcripts/from-file.txt"].assert_eq(&session.page());
}

/// With more jobs than fit in the queue, the rest waits for room, no job is lost, and the order is kept.
#[test]
fn a_file_of_jobs_waits_while_the_queue_is_full() {
    let gate = tempfile::tempdir().expect("a folder");
    let gate = gate.path().join("open");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo '{{}}'", gate.display());
    let gated = Agent { name: "gated", version: "1.0.0", contract: "", script: &script };
    let laptop = Laptop::started(&[&gated], &["--queue-max-size", "50"]);
    let mut session = laptop.session("A file of jobs and a full queue");
    session.quiet("for n in $(seq 500); do echo \"{\\\"n\\\": $n}\"; done > jobs.jsonl");
    let mut submits = Command::new("timeout")
        .args(["300".as_ref(), program("atlasctl").as_os_str()])
        .args(["run", "gated", "--from", "jobs.jsonl", "-o", "name"])
        .env("ATLAS_SERVER", laptop.server())
        .env("ATLAS_CONFIG", laptop.folder().join("no-config.toml"))
        .current_dir(laptop.folder())
        .stdin(Stdio::null())
        .stdout(fs::File::create(laptop.folder().join("ids")).expect("created"))
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    eventually("the queue is full", LONG, || {
        (session.quiet("atlasctl job list --all -q -o name | wc -l").trim() == "50").then_some(())
    });
    session.run("atlasctl run gated --detach");
    fs::write(&gate, "").expect("written");
    assert!(submits.wait().expect("it ends").success(), "all are accepted");
    session.run("wc -l < ids");
    session.run("atlasctl job list --all -q -o name | tac | cmp - ids && echo same order");
    expect_file!["../transcripts/full-queue.txt"].assert_eq(&session.page());
}

#[test]
fn retired_versions_are_deleted() {
    let waits = Agent { name: "waits", version: "1.0.0", contract: "", script: "sleep 600; echo '{}'" };
    let laptop = Laptop::with(&[&waits]);
    let mut session = laptop.session("Retired versions are deleted");
    let id = session.quiet("atlasctl run waits --detach");
    session.quiet(&format!("atlasctl wait job {} --for running", id.trim()));
    session.run("atlasctl agent delete waits@9.9.9");
    session.run("atlasctl run waits@9.9.9");
    session.run("atlasctl agent delete waits@1.0.0");
    session.run("atlasctl agent retire waits 1.0.0");
    session.run("atlasctl agent delete waits --all-retired");
    session.run("atlasctl agent delete waits");
    session.quiet("atlasctl job batch cancel --yes");
    session.quiet(&format!("atlasctl wait job {} --for ended", id.trim()));
    session.run("atlasctl agent delete waits --all-retired -o name");
    session.run("atlasctl agent delete waits@1.0.0");
    session.run("atlasctl job list --columns agent,status");
    session.run(&format!("atlasctl job retry {}", id.trim()));
    expect_file!["../transcripts/agent-delete.txt"].assert_eq(&session.page());
}

#[test]
fn what_waits_is_explained() {
    let waits = Agent { name: "waits", version: "1.0.0", contract: "  concurrency: 1", script: "sleep 60; echo '{}'" };
    let laptop = Laptop::with(&[&waits]);
    let mut session = laptop.session("What waits");
    let first = session.quiet("atlasctl run waits --detach --idempotency-key a");
    assert_eq!(session.quiet("atlasctl run waits --detach --idempotency-key a"), first);
    let first = first.trim();
    let second = session.quiet("atlasctl run waits --detach --label batch=1 --priority 3");
    let second = second.trim();
    eventually("the first runs", LONG, || {
        session.quiet("atlasctl job list --status running -o name").contains(first).then_some(())
    });
    session.run(&format!("atlasctl explain {second}"));
    session.run(&format!("atlasctl explain {first}"));
    session.run("atlasctl run waits --timeout 100ms --label batch=1");
    session.run(&format!("atlasctl job result {second}"));
    session.run("atlasctl job batch cancel --label batch=1 --dry-run --sort age -o 'jsonpath=$[*].gone'");
    session.run("atlasctl job batch cancel --label batch=1 < /dev/null");
    session.run("atlasctl job batch cancel --label batch=1 --yes -o 'template=done'");
    session.run(&format!("atlasctl job wait {second}"));
    session.run(&format!("atlasctl delete job/{first}"));
    session.run(&format!("atlasctl job wait {first}"));
    session.run(&format!("atlasctl job retry {first} -o 'template=again'"));
    session.quiet("atlasctl job batch cancel --yes");
    expect_file!["../transcripts/waits.txt"].assert_eq(&session.page());
}

#[test]
fn a_drain_with_a_deadline() {
    let waits = Agent { name: "waits", version: "1.0.0", contract: "", script: "sleep 600; echo '{}'" };
    let laptop = Laptop::with(&[&waits]);
    let mut session = laptop.session("A drain with a deadline");
    let id = session.quiet("atlasctl run waits --detach");
    session.quiet(&format!("atlasctl wait job {} --for running", id.trim()));
    session.run("atlasctl node drain laptop --deadline 10m");
    session.run("atlasctl node show laptop | grep -o 'still running in [0-9]*' | wc -l");
    session.run("atlasctl node drain laptop --deadline 1s");
    session.run("atlasctl wait node laptop --for drained --timeout 1m -o name");
    session.run("atlasctl job list --columns agent,status,attempt");
    session.run(&format!("atlasctl explain {}", id.trim()));
    session.run("atlasctl node uncordon laptop");
    session.run(&format!("atlasctl wait job {} --for running --timeout 1m -o jsonpath=attempt", id.trim()));
    session.quiet("atlasctl job batch cancel --yes");
    session.run("atlasctl node drain laptop --deadline soon");
    session.run("atlasctl node drain laptop --deadline 1000h");
    expect_file!["../transcripts/drain.txt"].assert_eq(&session.page());
}

#[test]
fn labels_of_a_node() {
    let zoned = Agent { name: "zoned", contract: "  hardware: { node_labels: { zone: b } }", ..HELLO };
    let laptop = Laptop::with(&[&zoned]);
    let mut session = laptop.session("Labels of a node");
    session.run("atlasctl run zoned name=Ada");
    session.run("atlasctl node label laptop zone=b rack=7");
    session.run("atlasctl run zoned name=Ada -q");
    session.run("atlasctl node label laptop zone=c rack- shelf-");
    session.run("atlasctl node list --filter \"labels.zone == 'c'\" -o 'jsonpath=$[*].operator_labels'");
    session.run("atlasctl node show laptop | grep -A 1 labels");
    session.run("atlasctl node label laptop zone- -o name");
    session.run("VISUAL=\"sed -i 's/operator_labels: {}/operator_labels: {zone: b}/'\" atlasctl edit node laptop");
    session.run("atlasctl get node/laptop -o yaml > node.yaml; atlasctl node label laptop zone=c rack=7");
    session.run("atlasctl diff -f node.yaml");
    session.run("atlasctl apply -f node.yaml; atlasctl node list -o 'jsonpath=$[*].labels'");
    session.run("atlasctl node label laptop zone");
    session.run("atlasctl node label laptop zone=a zone-");
    session.run("atlasctl node label nowhere zone=a");
    expect_file!["../transcripts/node-label.txt"].assert_eq(&session.page());
}

#[test]
fn clusters_by_name() {
    let laptop = Laptop::with(&[]);
    let mut session = Session::new("Clusters by name", laptop.folder(), None);
    let config = "ATLAS_CONFIG=./atlas.toml atlasctl";
    session.run(&format!("{config} context list"));
    session.run(&format!("{config} context add here --server {}", laptop.server()));
    session.run(&format!("{config} context add there --server http://127.0.0.1:1"));
    session.run(&format!("{config} context list"));
    session.run("stat -c %a atlas.toml");
    session.run(&format!("{config} node list -o name"));
    session.run(&format!("{config} --context there node list"));
    session.run(&format!("{config} context use ther"));
    session.run(&format!("{config} config set hints off"));
    session.run(&format!("TMPDIR=$PWD VISUAL=\"sed -i 's/hints = false/hints = 7/'\" {config} config edit"));
    session
        .run(&format!("VISUAL=\"sed -i 's/hints/# No hints.\\nhints/'\" {config} config edit && head -n 2 atlas.toml"));
    session.run(&format!("{config} job list"));
    session.run(&format!("{config} context remove here"));
    session.run(&format!("{config} context show"));
    fs::set_permissions(laptop.folder().join("atlas.toml"), fs::Permissions::from_mode(0o644)).expect("set");
    session.run(&format!("{config} context list"));
    session.run(&format!("{config} --server {} node list -o name", laptop.server()));
    session.run(&format!("{config} node list -o name"));
    expect_file!["../transcripts/contexts.txt"].assert_eq(&session.page());
}

#[test]
fn waiting_and_editing() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("Waiting and editing");
    session.run("atlasctl wait node laptop --timeout 1m");
    session.run("atlasctl wait agent/hello@0.1.0 -o name");
    let id = session.quiet("atlasctl run hello name=Ada --detach");
    let id = id.trim();
    session.run(&format!("atlasctl wait job {id} --for completed -o jsonpath=status"));
    session.run(&format!("atlasctl wait job {id} --for cancelled"));
    session.run("atlasctl wait node laptop --for cordoned --timeout 100ms");
    session.run("atlasctl wait node laptop --for happy");
    session.run("atlasctl wait agent hello --for retired");
    session.run("atlasctl wait job job-0000000000000000");
    session.run("VISUAL=\"sed -i 's/cordoned: false/cordoned: true/'\" atlasctl edit node laptop --dry-run");
    session.run("VISUAL=\"sed -i 's/cordoned: false/cordoned: true/'\" atlasctl edit node laptop");
    session.run("atlasctl wait node laptop --for cordoned --timeout 0");
    session.run("VISUAL=true atlasctl edit node laptop");
    session.run("VISUAL=\"sed -i 's/deprecated: null/deprecated: take 0.2.0/'\" atlasctl edit agent hello");
    session.run("atlasctl wait agent hello@0.1.0 --for deprecated -o jsonpath=deprecated");
    session.run("VISUAL=\"sed -i 's/deprecated: .*/deprecated: null/'\" atlasctl edit agent hello -o yaml");
    session.run("TMPDIR=$PWD VISUAL=\"sed -i 's/^name: hello/name: hallo/'\" atlasctl edit agent hello");
    session.run("grep -h name: atlasctl-edit-*.yaml");
    session.run("VISUAL=false atlasctl edit agent hello");
    session.run("atlasctl edit job x");
    expect_file!["../transcripts/wait-and-edit.txt"].assert_eq(&session.page());
}

#[test]
fn a_folder_is_deployed_whenever_it_changes() {
    let laptop = Laptop::with(&[]);
    let folder = laptop.folder();
    write_agent(folder, &HELLO);
    let mut session = laptop.session("Watch");
    let log = folder.join("watch.log");
    let mut watch = Command::new(program("atlasctl"));
    watch.args(["deploy", "hello", "--watch"]).current_dir(folder).env("ATLAS_SERVER", laptop.server());
    watch.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log).expect("made"));
    let mut watch = watch.spawn().expect("it starts");
    let mut deployed = |version: &str| {
        let name = format!("agent/hello@{version}");
        eventually(&name, LONG, || {
            session.quiet("atlasctl agent versions hello -o name").lines().any(|line| line == name).then_some(())
        });
    };
    deployed("0.1.0");
    write_agent(folder, &Agent { version: "0.2.0", ..HELLO });
    deployed("0.2.0");
    // An invalid contract is reported, and the next valid version is deployed.
    fs::write(folder.join("hello/agent.yaml"), "agent: {name: hello}").expect("written");
    let told = || fs::read_to_string(&log).expect("readable");
    eventually("the mistake is told", LONG, || told().contains("error[E1103]").then_some(()));
    write_agent(folder, &Agent { version: "0.3.0", ..HELLO });
    deployed("0.3.0");
    session.quiet(&format!("kill -INT {}", watch.id()));
    assert_eq!(watch.wait().expect("it ends").code(), Some(0), "{}", told());
    assert_eq!(told().matches("watching; press Ctrl-C to stop").count(), 4, "{}", told());
}

#[test]
fn a_bundle_tells_how_things_stand_and_nothing_that_is_secret() {
    let fails = Agent { name: "fails", version: "2.0.0", contract: "", script: "echo canary-1 >&2; exit 3" };
    let echo = Agent { name: "echo", version: "1.0.0", contract: "", script: "echo '{\"key\": \"canary-2\"}'" };
    let laptop = Laptop::with(&[&fails, &echo]);
    let mut session = laptop.session("A bundle");
    session.quiet("atlasctl run fails key=canary-3 --label canary-4=canary-5 --idempotency-key canary-6");
    session.quiet("atlasctl run echo key=canary-7");
    // On a slow disk, stderr also contains a warning, which grep removes.
    session.run("atlasctl doctor --bundle bundle.tgz 2>&1 > /dev/null | grep bundle");
    session.run("tar -tzf bundle.tgz");
    session.run("tar -xzf bundle.tgz && grep -r canary atlas-bundle");
    session.run("grep -h '\"status\"' atlas-bundle/jobs.json; stat -c %a bundle.tgz");
    session.run("atlasctl doctor --bundle bundle.tgz -q");
    expect_file!["../transcripts/bundle.txt"].assert_eq(&session.page());
}

#[test]
fn doctor_finds_nothing_and_something() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Doctor");
    // The storage check depends on the machine's disk.
    session.run("atlasctl doctor 2> /dev/null | grep -v storage");
    session.quiet("atlasctl node cordon laptop");
    session.run("atlasctl doctor -q > warnings.txt; echo $?; grep workers warnings.txt");
    session.run("atlasctl docs | head -n 4");
    session.run("atlasctl docs fixtures | head -n 1");
    session.run("atlasctl docs fixture");
    session.run("atlasctl completion bash | head -n 1");
    session.run("atlasctl completion tcsh");
    expect_file!["../transcripts/doctor.txt"].assert_eq(&session.page());
}
