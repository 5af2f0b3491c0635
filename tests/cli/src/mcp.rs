//! Connecting clients of the Model Context Protocol.

use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn clients_are_connected_and_disconnected() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Clients are connected over MCP");
    session.run("atlasctl mcp check");
    session.run("atlasctl mcp connect vscode");
    session.run("atlasctl mcp connect vscode --yes");
    session.run("atlasctl mcp connect vscode --yes");
    session.run("cat .vscode/mcp.json");
    session.run("atlasctl mcp disconnect vscode --yes");
    session.run("atlasctl mcp disconnect vscode");
    session.run("mkdir -p .cursor && echo '{ // mine\n}' > .cursor/mcp.json && atlasctl mcp connect cursor --yes");
    session.run("atlasctl mcp connect claude-code --dry-run");
    session.run("atlasctl mcp connect emacs");
    session.run("atlasctl mcp connect --print json");
    session.run(r#"echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | atlasctl mcp stdio"#);
    session.run("echo nonsense | atlasctl mcp stdio");
    session.run("atlasctl --server http://127.0.0.1:9 mcp check");
    expect_file!["../transcripts/mcp.txt"].assert_eq(&session.page());
}
