//! Document bases: rules on who finds which documents, how good the answers are, and erasing.

use std::fs;

use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn rules_are_given_and_answers_are_compared() {
    let laptop = Laptop::with(&[]);
    let write = |name: &str, text: &str| {
        let path = laptop.folder().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("wiki/leave.md", "# Leave\n\nEveryone has thirty days of leave a year.\n");
    write("wiki/meals.md", "# Meals\n\nMeals are paid up to 40 euros a day.\n");
    write("hr/pay.md", "# Pay\n\nLeave is paid in full.\n");
    write("rules.yaml", "- source: wiki/\n- principals: [ann, 'corp:*']\n  metadata: {team: caller.team}\n");
    write("wrong.yaml", "source: wiki/\n");
    write(
        "questions.jsonl",
        "{\"question\": \"how many days of leave\", \"sources\": [\"wiki/leave.md\"]}\n\
         {\"question\": \"what is paid\", \"sources\": {\"wiki/meals.md\": 1, \"hr/pay.md\": 3}}\n",
    );
    write("broken.jsonl", "{\"question\": \"x\", \"sources\": []}\n");
    let mut session = laptop.session("Who finds which documents");
    session.run("atlasctl rag create handbook wiki hr");
    session.run("atlasctl rag eval handbook questions.jsonl");
    session.run("atlasctl rag eval handbook questions.jsonl -o jsonpath={.settings[0].ndcg_at_10}");
    session.run("atlasctl rag eval handbook broken.jsonl");
    session.run("atlasctl rag eval handbook nothing.jsonl");
    session.run("atlasctl rag create handbook --replace --readers rules.yaml");
    session.run("atlasctl rag list handbook");
    session.run("atlasctl rag search handbook leave paid -o name");
    session.run("atlasctl rag eval handbook questions.jsonl");
    session.run("atlasctl rag remove handbook 'hr/*'");
    session.run("echo Other | atlasctl rag add handbook - --source hr/pay.md");
    session.run("atlasctl rag create handbook --replace --readers wrong.yaml");
    session.run("atlasctl rag create handbook --replace --reader ''");
    session.run("atlasctl rag create handbook --replace --reader 'team=people'");
    session.run("atlasctl rag create handbook --replace --reader 'metadata.team=caller.a b'");
    session.run("atlasctl rag create handbook --replace --reader source=wiki/ --reader principal=local,source=hr/");
    session.run("atlasctl rag remove handbook hr/pay.md --erase");
    session.run("atlasctl rag create handbook --replace --no-readers");
    session.run("atlasctl auth bind ann viewer --cluster --attribute team=people --attribute team=law");
    session.run("atlasctl auth bind ann submitter --cluster");
    session.run("atlasctl auth bind ann viewer --cluster --attribute team=");
    session.run("atlasctl auth bind ann viewer --cluster --attribute people");
    session.run("atlasctl auth bindings");
    expect_file!["../transcripts/document-readers.txt"].assert_eq(&session.page());
}
