//! Tokens, roles and who is granted what, on a cluster that checks nobody.

use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn tokens_are_made_granted_roles_and_revoked() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Tokens are made, granted roles and revoked");
    session.run("atlasctl auth whoami");
    session.run("atlasctl auth roles");
    session.run("atlasctl auth root-token root.token");
    session.run("atlasctl auth root-token root.token");
    session.run("stat -c %a root.token; cut -c 1-9 root.token");
    session.run("atlasctl auth token list");
    session.run("atlasctl auth token create ci --expires 90d --description deploys --to ci.token");
    session.run("atlasctl auth token create ci --to again.token");
    session.run("atlasctl auth token create lasting --expires never --to lasting.token");
    session.run("atlasctl auth token create brief --expires 0s");
    session.run("atlasctl auth token create 'a b'");
    session.run("atlasctl auth token list | cut -c 1-21");
    session.run("atlasctl auth bind ci operator");
    session.run("atlasctl auth bind ci operator -n team-a");
    session.run("atlasctl auth bind ci viewer --cluster");
    session.run("atlasctl auth bind ci nobody --cluster");
    session.run("atlasctl auth bindings");
    session.run("atlasctl audit query");
    session.run("atlasctl auth unbind ci viewer --cluster");
    session.run("atlasctl auth unbind ci viewer --cluster");
    session.run("atlasctl auth token revoke ci");
    session.run("atlasctl auth token revoke ci");
    session.run("atlasctl context add prod --server http://127.0.0.1:7400 --token-file root.token");
    session.run(
        "echo secret > wrong.token; atlasctl context add other --server http://127.0.0.1:7400 --token-file wrong.token",
    );
    session.run("atlasctl context list");
    expect_file!["../transcripts/access.txt"].assert_eq(&session.page());
}
