//! The file of registries: which ones there are, in the order in which they are asked (compatibility §24.4).

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use atlas_contract::yaml::{self, Budget};
use serde_json::{Map, Value, json};

use super::super::answer::Refusal;
use super::super::file;

/// Where a registry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Location {
    Folder(String),
    Http(String),
}

/// A registry of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Registry {
    pub(super) name: String,
    pub(super) location: Location,
    /// All members as they are in the file. A token may be `${VARIABLE}`, which is kept as written.
    members: Map<String, Value>,
}

impl Registry {
    pub(super) fn new(name: &str, location: Location, token: Option<&str>) -> Self {
        let mut members = Map::new();
        let (kind, key, place) = match &location {
            Location::Folder(path) => ("file", "path", path),
            Location::Http(url) => ("http", "url", url),
        };
        members.insert("name".to_owned(), name.into());
        members.insert("type".to_owned(), kind.into());
        members.insert(key.to_owned(), place.as_str().into());
        members.extend(token.map(|token| ("auth_token".to_owned(), token.into())));
        Self { name: name.to_owned(), location, members }
    }

    fn read(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("a registry is a mapping")?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("name").ok_or("a registry has no name")?;
        let missing = |member: &str| format!("registry \"{name}\" has no {member}");
        let location = match text("type") {
            Some("file") => Location::Folder(text("path").ok_or_else(|| missing("path"))?.to_owned()),
            Some("http") => Location::Http(text("url").ok_or_else(|| missing("url"))?.to_owned()),
            _ => return Err(format!("the type of registry \"{name}\" is neither file nor http")),
        };
        Ok(Self { name: name.to_owned(), location, members: members.clone() })
    }

    /// `  name (type) -> location`.
    pub(super) fn line(&self) -> String {
        let (kind, place) = match &self.location {
            Location::Folder(path) => ("file", path),
            Location::Http(url) => ("http", url),
        };
        format!("  {} ({kind}) -> {place}\n", self.name)
    }
}

/// The file that a command uses: the one it names, that of the working folder if it exists, or that of the user.
pub(super) fn path(named: Option<&Path>) -> PathBuf {
    let local = Path::new(".atlas/registries.yaml");
    match named {
        Some(named) => named.to_owned(),
        None if local.exists() => local.to_owned(),
        None => PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(local),
    }
}

/// The registries of a file; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Vec<Registry>, Refusal> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let wrong = |problem: &str| Refusal::new(format!("Invalid registries file {}: {problem}", path.display()));
    let document =
        yaml::load_strictly(&file::read(path)?, Budget::default()).map_err(|error| wrong(&error.to_string()))?;
    let registries = match document.get("registries") {
        None | Some(Value::Null) if document.is_object() || document.is_null() => return Ok(Vec::new()),
        Some(Value::Array(registries)) => registries,
        _ => return Err(wrong("it has no list of registries")),
    };
    registries.iter().map(|registry| Registry::read(registry).map_err(|problem| wrong(&problem))).collect()
}

/// Writes the file. It may contain tokens, so only its owner may read it.
pub(super) fn write(path: &Path, registries: &[Registry]) -> Result<(), Refusal> {
    let members: Vec<&Map<String, Value>> = registries.iter().map(|registry| &registry.members).collect();
    // JSON is valid YAML.
    let text = format!("{:#}\n", json!({ "registries": members }));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let done = fs::create_dir_all(folder).and_then(|()| replace(path, &text));
    done.map_err(|error| Refusal::new(format!("Error: could not write {}: {error}", path.display())))
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let fresh = path.with_extension(format!("{}.partial", std::process::id()));
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("registries.yaml");
        fs::write(&path, text).expect("written");
        let shown = read(&path).map(|registries| registries.iter().map(Registry::line).collect::<String>());
        let place = format!("Invalid registries file {}: ", path.display());
        let shown = shown.map_err(|Refusal(text)| text.replace(&place, ""));
        assert_eq!(shown.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn files_are_read() {
        check("", Ok(""));
        check("registries:", Ok(""));
        check("other: 1", Ok(""));
        check(
            "registries:\n- {name: a, type: file, path: /r}\n- name: b\n  type: http\n  url: https://h\n  auth_token: ${T}\n",
            Ok("  a (file) -> /r\n  b (http) -> https://h\n"),
        );
    }

    #[test]
    fn other_files_are_refused() {
        check("[a]", Err("it has no list of registries"));
        check("registries: a", Err("it has no list of registries"));
        check("registries: [a]", Err("a registry is a mapping"));
        check("registries: [{type: file}]", Err("a registry has no name"));
        check("registries: [{name: a, type: file}]", Err("registry \"a\" has no path"));
        check("registries: [{name: a, type: ftp}]", Err("the type of registry \"a\" is neither file nor http"));
        check("a: [", Err("line 1, column 4: unclosed bracket '['"));
    }

    #[test]
    fn what_is_written_is_read_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/registries.yaml");
        assert_eq!(read(&path), Ok(Vec::new()));
        let registries = [
            Registry::new("a", Location::Folder("/r".to_owned()), None),
            Registry::new("b", Location::Http("https://h".to_owned()), Some("${TOKEN}")),
        ];
        write(&path, &registries).expect("written");
        assert_eq!(read(&path).as_deref(), Ok(&registries[..]));
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    }
}
