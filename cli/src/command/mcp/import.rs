//! Reading a file `mcp.json`.

use std::path::Path;

use atlas_mcp_spec::ImportedServer;

use super::document::BYTES_MAX;
use crate::failure::Failure;

/// The servers of a file, or the one of a name. A server that needs a login is refused, because its header would be missing.
pub(super) fn read(file: &Path, only: Option<&str>) -> Result<Vec<ImportedServer>, Failure> {
    let shown = file.display();
    let text = atlas_env::read_text(file, BYTES_MAX)
        .map_err(|error| Failure::usage(format!("{shown} cannot be read: {error}")))?;
    let nearest = |name: &str, known: &[&'static str]| atlas_contract::nearest(name, known.iter().copied());
    let found = atlas_mcp_spec::import(&text, &nearest);
    let found = found.map_err(|error| Failure::usage(format!("{shown} is refused: {error}")))?;
    let wanted: Vec<_> = found.into_iter().filter(|server| only.is_none_or(|name| name == server.name)).collect();
    if wanted.is_empty() {
        return Err(Failure::usage(match only {
            Some(name) => format!("{shown} has no server \"{name}\""),
            None => format!("{shown} has no servers"),
        }));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_whole_or_for_one_server() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("mcp.json");
        let text =
            r#"{"mcpServers": {"a": {"type": "http", "url": "https://a.b"}, "b": {"type": "stdio", "command": "x"}}}"#;
        std::fs::write(&file, text).expect("a file");
        assert_eq!(read(&file, None).expect("servers").len(), 2);
        assert_eq!(read(&file, Some("b")).expect("one")[0].name, "b");
        assert!(read(&file, Some("c")).expect_err("none").message.ends_with("has no server \"c\""));
        std::fs::write(&file, r#"{"mcpServers": {"a": {"type": "http", "url": "https://a.b", "header": {}}}}"#)
            .expect("a file");
        let refused = read(&file, None).expect_err("a typing error").message;
        assert!(
            refused.ends_with("the server \"a\" has an unknown member \"header\"; did you mean \"headers\"?"),
            "{refused}"
        );
    }
}
