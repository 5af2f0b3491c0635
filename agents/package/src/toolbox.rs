//! The packaged tools of an agent. A definition names them in `global_tools`; packing adds their files, unless the agent has its own.

use std::path::{Path, PathBuf};

use atlas_toolbox::File;
use serde_json::Value;

use crate::PackFile;
use crate::graph::{CONFIG_FILE, GRAPH_FILE, Reading};
use crate::overrides::{self, OVERRIDES_FILE};

/// The folder with the files that `global_tools` names.
pub const TOOLS_FOLDER: &str = "functions/tools";

/// Adds the packaged tools that a definition names and that the files lack, and the parts of tools that Python files of the agent import. A
/// definition that cannot be read names none: who reads it next says what is wrong with it.
pub(crate) fn complete(files: &mut Vec<PackFile>) {
    let definition = files.iter().find(|file| file.path == GRAPH_FILE || file.path == CONFIG_FILE);
    let Some(definition) = definition else { return };
    let Ok(mut marked) = Reading::WithNulls.load(&definition.bytes) else { return };
    let replaced = files.iter().find(|file| file.path == OVERRIDES_FILE).map(|file| overrides::read(&file.bytes));
    if let Some(Ok(replaced)) = replaced {
        replaced.apply(&mut marked.value);
    }
    let named = marked.value.get("global_tools").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in named.iter().filter_map(Value::as_str) {
        if !has_tool(files, name) {
            atlas_toolbox::files(name).iter().for_each(|file| add(files, *file));
        }
    }
    // A part can import another one.
    let mut seen = 0;
    while seen < files.len() {
        let imported = imports(&files[seen]);
        imported.into_iter().for_each(|part| add(files, part));
        seen += 1;
    }
}

fn has_tool(files: &[PackFile], name: &str) -> bool {
    files.iter().any(|file| file.path.strip_prefix(TOOLS_FOLDER) == Some(&format!("/{name}")))
}

fn add(files: &mut Vec<PackFile>, File { name, source }: File) {
    if !has_tool(files, name) {
        let (path, executable) = (format!("{TOOLS_FOLDER}/{name}"), source.starts_with("#!"));
        files.push(PackFile { path, bytes: source.as_bytes().to_vec(), executable });
    }
}

/// The parts of tools that a file imports, in lines such as `import _atlas`.
fn imports(file: &PackFile) -> Vec<File> {
    if !file.path.ends_with(".py") {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&file.bytes);
    text.lines().filter_map(|line| atlas_toolbox::part(line.strip_prefix("import ")?.trim_end())).collect()
}

/// Whether `global_tools` can name a tool without the agent having it.
pub fn is_packaged_tool(name: &str) -> bool {
    !atlas_toolbox::files(name).is_empty()
}

/// The file of a tool that `global_tools` names, in the folder of an agent: its own, or else the packaged one.
pub(crate) fn tool_file(folder: &Path, name: &str) -> PathBuf {
    let folder = folder.join(TOOLS_FOLDER);
    let own = folder.join(name);
    match atlas_toolbox::files(name).first() {
        Some(file) if !own.is_file() => folder.join(file.name),
        _ => own,
    }
}

/// The files that can have tools of an agent's own. The first one counts.
const OWN_TOOLS: [&str; 4] = ["tools.sh", "tools.py", "tools.ts", "tools.js"];

/// The files with tools of an agent's own; the first one counts, and the others have no effect.
pub fn own_tools(folder: &Path) -> Vec<PathBuf> {
    OWN_TOOLS.iter().map(|file| folder.join(file)).filter(|path| path.is_file()).collect()
}

/// Why a name in `global_tools` is no tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobalToolError {
    #[error("\"{name}\" in global_tools is no file name")]
    Name { name: String },
    #[error("\"{name}\" in global_tools is no file of {TOOLS_FOLDER}{}", .meant.as_ref().map(|file| format!("; did you mean \"{file}\"?")).unwrap_or_default())]
    Missing {
        name: String,
        /// The file that was probably meant.
        meant: Option<String>,
    },
}

/// The file of a tool that `global_tools` names, in the folder of a package.
pub fn global_tool(folder: &Path, name: &str) -> Result<PathBuf, GlobalToolError> {
    if Path::new(name).file_name().is_none_or(|file| file != name) {
        return Err(GlobalToolError::Name { name: name.to_owned() });
    }
    let path = tool_file(folder, name);
    if path.is_file() {
        return Ok(path);
    }
    let entries = std::fs::read_dir(folder.join(TOOLS_FOLDER)).into_iter().flatten().flatten();
    let mut files: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    files.sort_unstable();
    let stem = |file: &str| file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned();
    let same = files.iter().find(|file| stem(file) == stem(name)).map(String::as_str);
    let meant = same.or_else(|| atlas_contract::nearest(name, files.iter().map(String::as_str)));
    Err(GlobalToolError::Missing { name: name.to_owned(), meant: meant.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, pack, unpack};

    /// Packs an agent with these files, and lists the files of the package.
    fn packed(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("a");
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let package = pack(&folder).expect("it packs");
        let unpacked = root.path().join("out");
        unpack(&package.bytes, &unpacked, &Limits::default()).expect("it unpacks");
        let tools = std::fs::read_dir(unpacked.join(TOOLS_FOLDER)).into_iter().flatten().flatten();
        let mut names: Vec<String> = tools.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn named_tools_are_added() {
        let config = "name: A\nglobal_tools: [fs_cat.sh, fs_ls, execute_sql_code.sh, mine.py, ../fs_rm.sh]\n";
        let expected = ["_atlas.py", "_sql.py", "execute_sql_code.py", "fs_cat.py", "fs_ls.py"];
        assert_eq!(packed(&[("config.yaml", config)]), expected);
        let graph = "name: g\nstart: e\nglobal_tools: [demo_sh.sh]\nnodes:\n  e: {type: end}\n";
        assert_eq!(packed(&[("graph.yaml", graph)]), ["demo_sh.sh"]);
        // Also beside a contract of the author.
        let contract = "agent: {name: a, version: 1.0.0, provider: normal}";
        assert_eq!(packed(&[("config.yaml", config), ("agent.yaml", contract)]), expected);
    }

    #[test]
    fn a_file_of_the_author_wins() {
        let config = "name: A\nglobal_tools: [fs_cat.sh, fs_ls.sh]\n";
        let own = ("functions/tools/fs_cat.sh", "# own");
        let part = ("functions/tools/_atlas.py", "# own");
        assert_eq!(packed(&[("config.yaml", config), own, part]), ["_atlas.py", "fs_cat.sh", "fs_ls.py"]);
    }

    #[test]
    fn parts_that_files_import_are_added() {
        let files =
            [("config.yaml", "name: A\n"), ("tools.py", "import os\nimport _sql\n"), ("notes.txt", "import _search")];
        assert_eq!(packed(&files), ["_atlas.py", "_sql.py"]);
    }

    #[test]
    fn agents_that_name_none_have_none() {
        assert_eq!(packed(&[("config.yaml", "name: A\n")]), [""; 0]);
        assert_eq!(
            packed(&[
                ("config.yaml", "name: A\nglobal_tools: fs_cat.sh\n"),
                ("agent.yaml", "agent: {name: a, version: 1.0.0}")
            ]),
            [""; 0]
        );
    }

    #[test]
    fn a_name_that_is_no_tool_is_told_with_the_one_that_was_meant() {
        let folder = tempfile::tempdir().expect("a folder");
        let tools = folder.path().join(TOOLS_FOLDER);
        std::fs::create_dir_all(&tools).expect("a folder");
        std::fs::write(tools.join("add.py"), "").expect("a file");
        let told = |name: &str| global_tool(folder.path(), name).map(drop).map_err(|error| error.to_string());
        assert_eq!(told("add.py"), Ok(()));
        let missing = |name: &str| format!("\"{name}\" in global_tools is no file of functions/tools");
        for name in ["add", "add.sh", "ad.py"] {
            assert_eq!(told(name), Err(missing(name) + "; did you mean \"add.py\"?"));
        }
        assert_eq!(told("other.sh"), Err(missing("other.sh")));
        assert_eq!(told("../add.py"), Err("\"../add.py\" in global_tools is no file name".to_owned()));
    }

    #[test]
    fn of_several_own_files_the_first_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["tools.py", "tools.sh", "tools.rb"] {
            std::fs::write(folder.path().join(file), "").expect("a file");
        }
        let found = own_tools(folder.path());
        assert_eq!(found, [folder.path().join("tools.sh"), folder.path().join("tools.py")]);
    }

    #[test]
    fn the_own_file_is_used_before_the_packaged_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let name =
            |name: &str| tool_file(folder.path(), name).file_name().map(|name| name.to_string_lossy().into_owned());
        assert_eq!(name("fs_cat.sh").as_deref(), Some("fs_cat.py"));
        assert_eq!(name("mine.sh").as_deref(), Some("mine.sh"));
        std::fs::create_dir_all(folder.path().join(TOOLS_FOLDER)).expect("a folder");
        std::fs::write(folder.path().join(TOOLS_FOLDER).join("fs_cat.sh"), "").expect("a file");
        assert_eq!(name("fs_cat.sh").as_deref(), Some("fs_cat.sh"));
    }
}
