//! What ships with Atlas, found by its name where no file has it: agents, skills and chains that are embedded in this program.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use atlas_contract::yaml::{Budget, load};
use atlas_package::{CONTRACT_FILE, PackFile, SKILL_FILE};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};
use crate::words::could_not;

/// How one of them is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Agent,
    Skill,
    Chain,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Chain => "chain",
        }
    }
}

/// One of them.
struct Shipped {
    kind: Kind,
    name: String,
    description: String,
    /// The name of its folder, which may be another one.
    dir: String,
    /// Paths begin with the folder; a chain is one file.
    files: Vec<PackFile>,
    /// The agents without which it cannot work.
    needs: Vec<String>,
}

impl Shipped {
    fn is(&self, name: &str) -> bool {
        self.name == name || self.dir == name
    }

    /// Where it is, below the folder that it was written to.
    fn place(&self) -> &str {
        if self.kind == Kind::Chain { self.files.first().map_or("", |file| &file.path) } else { &self.dir }
    }
}

/// All of them, in the order of the list.
fn all() -> Vec<Shipped> {
    let agents = atlas_bundled::bundled().into_iter().map(|agent| {
        let below = |file: PackFile| PackFile { path: format!("{}/{}", agent.dir, file.path), ..file };
        let files = agent.files.into_iter().map(below).collect();
        let needs = atlas_bundled::helpers(agent.dir).iter().map(|&name| name.to_owned()).collect();
        described(Kind::Agent, agent.dir, files, CONTRACT_FILE, needs)
    });
    let skills = atlas_bundled::skills();
    let folder = |file: &PackFile| file.path.split('/').next().unwrap_or_default().to_owned();
    let folders: BTreeSet<String> = skills.iter().map(folder).collect();
    let skills: Vec<_> = folders
        .into_iter()
        .map(|dir| {
            let files = skills.iter().filter(|file| folder(file) == dir).cloned().collect();
            described(Kind::Skill, &dir, files, SKILL_FILE, Vec::new())
        })
        .collect();
    let chains = atlas_bundled::chains().into_iter().map(|(path, bytes)| {
        let dir = path.trim_end_matches(".yaml").to_owned();
        let file = PackFile { path: path.clone(), bytes, executable: false };
        let steps = document(&file)["chain"]["steps"].as_array().cloned().unwrap_or_default();
        let needs = steps.iter().filter_map(|step| step["agent"].as_str().map(str::to_owned)).collect();
        described(Kind::Chain, &dir, vec![file], &path, needs)
    });
    agents.chain(skills).chain(chains).collect()
}

fn described(kind: Kind, dir: &str, files: Vec<PackFile>, definition: &str, needs: Vec<String>) -> Shipped {
    let file = files.iter().find(|file| file.path.rsplit('/').next() == Some(definition));
    let document = file.map(document).unwrap_or_default();
    let inner = document.get(kind.word()).unwrap_or(&document);
    let text = |member: &str| inner[member].as_str().unwrap_or_default().to_owned();
    let (name, description) = (text("name"), text("description"));
    Shipped { kind, name, description, dir: dir.to_owned(), files, needs }
}

fn document(file: &PackFile) -> Value {
    // They are checked by the tests of the crate that embeds them.
    load(&file.bytes, Budget::default()).unwrap_or_default()
}

/// Paths of a command, of which those that were names of what ships lead to folders that exist as long as this.
pub(crate) struct Places {
    pub(crate) paths: Vec<PathBuf>,
    _written: Option<TempDir>,
}

/// Writes what ships and is named instead of a path that exists, after what it needs.
pub(crate) fn places(paths: &[PathBuf]) -> Result<Places, Failure> {
    if paths.iter().all(|path| name_in(path).is_none()) {
        return Ok(Places { paths: paths.to_vec(), _written: None });
    }
    let (all, mut found, mut written) = (all(), Vec::new(), None);
    for path in paths {
        let shipped = name_in(path).and_then(|name| all.iter().find(|shipped| shipped.is(name)));
        let Some(shipped) = shipped else {
            found.push(path.clone());
            continue;
        };
        let folder = match &written {
            Some(folder) => folder,
            None => written.insert(
                TempDir::with_prefix("atlas-shipped-")
                    .map_err(|error| could_not("make", Path::new("a temporary folder"), &error))?,
            ),
        };
        let needed = shipped.needs.iter().filter_map(|name| all.iter().find(|other| other.is(name)));
        for shipped in needed.chain([shipped]) {
            let place = folder.path().join(shipped.place());
            if !found.contains(&place) {
                write(folder.path(), &shipped.files)?;
                found.push(place);
            }
        }
    }
    Ok(Places { paths: found, _written: written })
}

/// The files of an agent that ships, by paths below its folder.
pub(crate) fn agent(name: &str) -> Result<Vec<PackFile>, Failure> {
    let all = all();
    let agents = || all.iter().filter(|shipped| shipped.kind == Kind::Agent);
    let Some(agent) = agents().find(|agent| agent.is(name)) else {
        let meant = crate::words::meant(name, agents().map(|agent| agent.name.as_str()).collect::<Vec<_>>());
        return Err(Failure::usage(format!("no agent \"{name}\" ships with Atlas; {meant}")).with_next(LIST));
    };
    let below = |file: &PackFile| PackFile { path: file.path[agent.dir.len() + 1..].to_owned(), ..file.clone() };
    Ok(agent.files.iter().map(below).collect())
}

const LIST: &str = "what ships with Atlas: atlasctl deploy --list";

/// What to do about a path that does not exist and is no name either.
pub(crate) fn instead_of(path: &Path) -> String {
    let all = all();
    let near =
        name_in(path).and_then(|name| atlas_contract::nearest(name, all.iter().map(|shipped| shipped.name.as_str())));
    near.map_or_else(
        || format!("{LIST}   or make an agent: atlasctl init NAME"),
        |near| format!("did you mean {near}, which ships with Atlas? atlasctl deploy {near}"),
    )
}

/// The name that a path can be: one plain part, and no file.
fn name_in(path: &Path) -> Option<&str> {
    let mut parts = path.components();
    let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else { return None };
    if path.as_os_str() == name && !path.exists() { name.to_str() } else { None }
}

fn write(folder: &Path, files: &[PackFile]) -> Result<(), Failure> {
    for file in files {
        let path = folder.join(&file.path);
        let failed = |error: std::io::Error| could_not("write", &path, &error);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, &file.bytes).map_err(failed)?;
        if file.executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Lists all of them.
pub(crate) fn list(context: &Context) -> Result<Exit, Failure> {
    let mut table = Table::new(&["NAME", "KIND", "DESCRIPTION"]);
    let (mut values, mut names) = (Vec::new(), Vec::new());
    for Shipped { kind, name, description, needs, .. } in all() {
        values.push(json!({"kind": kind.word(), "name": name, "description": description, "needs": needs}));
        names.push(format!("{}/{name}", kind.word()));
        table.row([name, kind.word().to_owned(), description]);
    }
    context.show(&Shown { value: Value::Array(values), text: table.text(), names })?;
    context.next("next: atlasctl deploy NAME   or a copy to change: atlasctl init FOLDER --from NAME");
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(names: &[&str]) -> Vec<String> {
        let paths: Vec<_> = names.iter().map(PathBuf::from).collect();
        let places = places(&paths).expect("written");
        let last = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(places.paths.iter().all(|path| path.exists() || path.ends_with("unknown")));
        places.paths.iter().map(last).collect()
    }

    #[test]
    fn names_become_folders_after_what_they_need() {
        assert_eq!(written(&["echo", "unknown"]), ["echo", "unknown"]);
        assert_eq!(written(&["batch-processor"]), ["batch-processor"]);
        assert_eq!(written(&["sisyphus", "oracle"]), ["coder", "explore", "oracle", "sisyphus"]);
        assert_eq!(written(&["digest", "reverse"]), ["extract", "formatter", "digest.yaml", "reverse"]);
        assert_eq!(name_in(Path::new("./echo")), None);
        assert_eq!(name_in(Path::new("src")), None);
    }

    #[test]
    fn all_have_a_name_of_their_own_and_a_description() {
        let all = all();
        for shipped in &all {
            assert!(!shipped.name.is_empty() && !shipped.description.is_empty(), "{}", shipped.dir);
            for name in &shipped.needs {
                assert!(all.iter().any(|other| other.kind == Kind::Agent && other.is(name)), "{name}");
            }
        }
        let names: BTreeSet<_> = all.iter().map(|shipped| &shipped.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(instead_of(Path::new("codr")).starts_with("did you mean coder"));
    }
}
