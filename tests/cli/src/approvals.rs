//! A policy asks before a job runs: what people see who wait for it, and who decide.

use expect_test::expect_file;

use crate::laptop::Laptop;

const POLICY: &str = "\
kind: policy
metadata: { name: spending }
spec:
  rules:
    - name: models
      on: [submit]
      when: agent.provider.type == 'llm'
      effect: ask
      message: models cost money
      ask: { self: true }
";

#[test]
fn a_policy_asks_before_a_job_runs() {
    let laptop = Laptop::with(&[]);
    std::fs::write(laptop.folder().join("policy.yaml"), POLICY).expect("written");
    let mut session = laptop.session("A policy asks before a job runs");
    session.run("atlasctl init summarize --template llm && atlasctl deploy ./summarize");
    session.run("atlasctl apply -f policy.yaml");
    session.run("atlasctl policy why summarize");
    session.run("atlasctl run summarize text='Atlas runs agents.'");
    let question = session.quiet("atlasctl question list -o name");
    let question = question.trim();
    session.run(&format!("atlasctl question show {question}"));
    session.run(&format!("atlasctl question answer {question} yes"));
    session.run(&format!("atlasctl question answer {question} approve"));
    let job = session.quiet("atlasctl job list --filter 'agent_name==\"summarize\"' -o name | head -1");
    let job = job.trim();
    session.run(&format!("atlasctl job wait {job}"));
    // The approval is for this work, and not for what another model makes of it.
    session
        .run(&format!("atlasctl job fork {job} --from-step 1 -o name > fork.txt && atlasctl job wait $(cat fork.txt)"));
    session.run(&format!("atlasctl job fork {job} --from-step 1 --model other"));
    session.run("atlasctl run summarize text=again --detach > late.txt; atlasctl job show $(cat late.txt) | grep -e status -e waiting -e approval");
    session.run("atlasctl question answer $(atlasctl question list -o name) 'reject: not today'; atlasctl job wait $(cat late.txt)");
    expect_file!["../transcripts/approvals.txt"].assert_eq(&session.page());
}
