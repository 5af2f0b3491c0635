//! The packaged tools: files that agents can name in `global_tools` without having them.
//!
//! Each is a source in `agents/toolbox/tools`. Packing adds those that a definition names to the package, so that its digest covers
//! them. Agents of Loki name `fs_cat.sh` where the file here is `fs_cat.py`; a tool is therefore found by its name without the ending.
//!
//! ```
//! let files: Vec<&str> = atlas_toolbox::files("fs_cat.sh").iter().map(|file| file.name).collect();
//! assert_eq!(files, ["fs_cat.py", "_atlas.py"]);
//! assert!(atlas_toolbox::files("my_tool.py").is_empty());
//! ```

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder `functions/tools` of an agent.
    pub name: &'static str,
    pub source: &'static str,
}

macro_rules! sources {
    ($($name:literal: $($part:literal)*;)*) => {
        /// The files of all tools: that of the tool, then the parts that it imports.
        const TOOLS: &[&[File]] = &[
            $(&[
                File { name: $name, source: include_str!(concat!("../tools/", $name)) },
                $(File { name: $part, source: include_str!(concat!("../tools/", $part)) },)*
            ],)*
        ];
    };
}

/// The parts.
const PARTS: &[File] = &[
    File { name: "_atlas.py", source: include_str!("../tools/_atlas.py") },
    File { name: "_graph.py", source: include_str!("../tools/_graph.py") },
    File { name: "_project.py", source: include_str!("../tools/_project.py") },
    File { name: "_search.py", source: include_str!("../tools/_search.py") },
    File { name: "_sql.py", source: include_str!("../tools/_sql.py") },
    File { name: "_web.py", source: include_str!("../tools/_web.py") },
];

sources! {
    "demo_py.py":;
    "demo_sh.sh":;
    "demo_ts.ts":;
    "execute_command.py": "_atlas.py";
    "execute_py_code.py": "_atlas.py";
    "execute_sql_code.py": "_sql.py" "_atlas.py";
    "fetch_url_via_curl.py": "_web.py" "_atlas.py";
    "fs_cat.py": "_atlas.py";
    "fs_glob.py": "_atlas.py";
    "fs_grep.py": "_atlas.py";
    "fs_ls.py": "_atlas.py";
    "fs_mkdir.py": "_atlas.py";
    "fs_patch.py": "_atlas.py";
    "fs_read.py": "_atlas.py";
    "fs_rm.py": "_atlas.py";
    "fs_write.py": "_atlas.py";
    "get_current_time.py":;
    "search_arxiv.py": "_web.py" "_atlas.py";
    "search_wikipedia.py": "_web.py" "_atlas.py";
    "web_search_loki.py": "_search.py" "_web.py" "_atlas.py";
    "web_search_perplexity.py": "_search.py" "_web.py" "_atlas.py";
    "web_search_tavily.py": "_search.py" "_web.py" "_atlas.py";
}

/// A part that tools share, by its name as Python imports it. Files of agents can import it too.
pub fn part(module: &str) -> Option<File> {
    PARTS.iter().find(|part| part.name.strip_suffix(".py") == Some(module)).copied()
}

/// The files of a tool that `global_tools` names; none if it is not a packaged one.
pub fn files(name: &str) -> &'static [File] {
    let wanted = stem(name);
    TOOLS.iter().find(|files| files.first().is_some_and(|file| stem(file.name) == wanted)).copied().unwrap_or_default()
}

/// The names of all tools, as models know them.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().filter_map(|files| files.first()).map(|file| stem(file.name))
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_found_by_its_name() {
        for name in ["fs_read", "fs_read.sh", "fs_read.py"] {
            assert_eq!(files(name).first().map(|file| file.name), Some("fs_read.py"), "{name}");
        }
        for name in ["", ".py", "_atlas.py", "fs_read.sh.py", "../fs_read.py", "Fs_read.py"] {
            assert!(files(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn every_file_of_the_folder_belongs_to_a_tool_and_has_what_it_imports() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let mut there: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        there.retain(|name| name != "__pycache__");
        there.sort_unstable();
        let mut known: Vec<&str> = TOOLS.iter().copied().flatten().chain(PARTS).map(|file| file.name).collect();
        known.sort_unstable();
        known.dedup();
        assert_eq!(there, known);
        for files in TOOLS {
            for file in *files {
                for import in file.source.lines().filter_map(|line| line.strip_prefix("import _")) {
                    let wanted = format!("_{import}.py");
                    assert!(files.iter().any(|other| other.name == wanted), "{}: {wanted}", file.name);
                }
            }
        }
    }
}
