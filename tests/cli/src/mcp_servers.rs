//! MCP servers: adding, listing and removing them, and reading a file of another program.

use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn servers_are_added_listed_and_removed() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("MCP servers are added, listed and removed");
    session.run("atlasctl mcp add fetch --command 'uvx mcp-server-fetch' --tool fetch");
    session.run("atlasctl mcp add github --url https://mcp.example.com/mcp --header 'Authorization=Bearer {{github}}'");
    session
        .run("atlasctl mcp add github --url https://mcp.example.com/mcp --header 'Authorization=Bearer sk-live-4711'");
    session.run("atlasctl mcp add github --url https://mcp.example.com/v2");
    session.run("atlasctl mcp add wrong --url ftp://example.com");
    session.run("atlasctl mcp add wrong");
    session.run(r#"echo '{"mcpServers": {"docs": {"type": "http", "url": "https://docs.example.com", "header": {}}}}' > mcp.json"#);
    session.run("atlasctl mcp add --from mcp.json");
    session.run(r#"echo '{"mcpServers": {"docs": {"type": "http", "url": "https://docs.example.com"}}}' > mcp.json"#);
    session.run("atlasctl mcp add --from mcp.json");
    session.run("atlasctl mcp list");
    session.run("atlasctl mcp show fetch | grep -v -e uid -e created -e updated -e revision");
    session.run("atlasctl mcp remove docs");
    session.run("atlasctl peer add 'lab=http://127.0.0.1:8400/mcp@sekret'");
    session.run("atlasctl peer remove fetch");
    session.run("atlasctl peer list");
    expect_file!["../transcripts/mcp-servers.txt"].assert_eq(&session.page());
}
