//! The bundled agent that answers questions from the documentation, on its prepared answers.

use std::path::Path;

use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn questions_are_answered_from_the_documentation() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Questions are answered from the documentation");
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/bundled");
    for agent in ["search-docs", "ask-docs"] {
        session.quiet(&format!("atlasctl deploy {}", agents.join(agent).display()));
    }
    session.run("atlasctl run ask-docs question='How do I store a secret?' -o jsonpath={.output_data}");
    session.run("atlasctl run ask-docs question='Who are you?' -o jsonpath={.output_data.pages}");
    session.run("atlasctl run search-docs query='rotate the key that seals secrets' limit=1 -o jsonpath={.output_data.sections[0].page}");
    session.run("atlasctl run ask-docs question=");
    expect_file!["../transcripts/ask-docs.txt"].assert_eq(&session.page());
}
