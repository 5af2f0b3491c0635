//! What `atlasctl` says when it is used wrongly or nothing answers.

use expect_test::expect_file;

use crate::session::Session;

#[test]
fn nothing_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    // Port 1 is reserved and nobody listens there.
    let mut session = Session::new("Nothing answers", folder.path(), Some("http://127.0.0.1:1"));
    session.run("atlasctl job list");
    session.run("atlasctl run hello name=Ada");
    session.run("atlasctl version");
    expect_file!["../transcripts/no-server.txt"].assert_eq(&session.page());
}

#[test]
fn wrong_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = Session::new("Wrong use", folder.path(), None);
    session.run("atlasctl");
    session.run("atlasctl jobs");
    session.run("atlasctl run");
    session.run("atlasctl run hello --input '{'");
    session.run("atlasctl run hello name=Ada --input '{}'");
    session.run("atlasctl job wait x --timeout soon");
    session.run("atlasctl --server 'http://a b' job list");
    session.run("atlasctl --version");
    session.run("echo '{\"input\": {\"text\": \"one two\"}, \"context\": {}}' | atlasctl agent-exec wordcount");
    expect_file!["../transcripts/wrong-use.txt"].assert_eq(&session.page());
}
