//! Packages of skills: a directory with `skill.yaml` and what runs it (compatibility §18.1).

use std::fs;
use std::path::{Path, PathBuf};

use atlas_contract::Skill;
use atlas_types::Digest;

use crate::discover::{CONTRACT_BYTES_MAX, DEPTH_MAX, DIRECTORIES_MAX, children};
use crate::{ArchiveError, Limits, PackError, PackFile, pack, unpack};

/// The file that marks a directory as a skill.
pub const SKILL_FILE: &str = "skill.yaml";

/// The program of a skill in Python.
pub const SKILL_CODE: &str = "skill.py";

/// What the names of the tools of the platform begin with.
const PLATFORM_PREFIX: &str = "atlas.";

/// Most words in the command of an exec skill.
const WORDS_MAX: usize = 64;

/// What runs a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillRuntime {
    /// `skill.py`.
    Python,
    /// A program that reads the input from stdin and writes the output to stdout, both JSON.
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
    },
}

impl SkillRuntime {
    /// Its word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Exec { .. } => "exec",
        }
    }
}

/// A skill as one archive.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillPackage {
    /// The archive, a gzip-compressed tar.
    pub bytes: Vec<u8>,
    /// The digest of the archive.
    pub digest: Digest,
    /// What `skill.yaml` says.
    pub skill: Skill,
    pub runtime: SkillRuntime,
    /// The number of files.
    pub files: usize,
}

/// Why a package or a directory is no skill.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// The archive is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The directory cannot be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("it has no {SKILL_FILE} at its root")]
    NoFile,
    #[error("{SKILL_FILE} has more than {CONTRACT_BYTES_MAX} bytes")]
    TooLarge,
    /// A description that breaks a rule.
    #[error(transparent)]
    Description(#[from] atlas_contract::SkillError),
    /// The name of a tool of the platform.
    #[error("the name \"{0}\" is not free: names of the platform's tools begin with {PLATFORM_PREFIX}")]
    Reserved(String),
    #[error("Skill '{0}' has no implementation (missing {SKILL_CODE})")]
    NoCode(String),
    #[error(
        "the provider is not understood; it is `{{type: python}}` or `{{type: exec, command: [PROGRAM, ARGUMENT]}}` \
         with 1 to {WORDS_MAX} words"
    )]
    Provider,
    /// A schema that cannot be used.
    #[error("the schema of the {place} is not valid: {why}")]
    Schema {
        /// `input` or `output`.
        place: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

/// A directory with a `skill.yaml`.
#[derive(Debug)]
pub struct SkillFolder {
    /// The directory.
    pub dir: PathBuf,
    /// What the file says, or why it cannot be used.
    pub skill: Result<Skill, SkillError>,
}

/// Packs the directory of a skill; the same directory always gives the same bytes.
pub fn pack_skill(dir: &Path) -> Result<SkillPackage, SkillError> {
    let files = pack::files_of(dir)?;
    let (skill, runtime) = described(&files)?;
    let bytes = pack::archive(&files)?;
    Ok(SkillPackage { digest: crate::digest_of(&bytes), bytes, skill, runtime, files: files.len() })
}

/// The skill of an archive, after all checks.
pub fn skill_of(archive: &[u8]) -> Result<(Skill, SkillRuntime), SkillError> {
    described(&unpack::files(archive, &Limits::default())?)
}

/// Searches for `skill.yaml` at any depth below a path, in sorted order, like [`crate::discover`] for agents. Directories that cannot be
/// read are left out.
pub fn discover_skills(path: &Path) -> Vec<SkillFolder> {
    let (mut found, mut directories) = (Vec::new(), 0);
    search(path, 0, &mut directories, &mut found);
    found
}

fn search(dir: &Path, depth: usize, directories: &mut usize, found: &mut Vec<SkillFolder>) {
    *directories += 1;
    if *directories > DIRECTORIES_MAX {
        return;
    }
    for (path, is_dir) in children(dir).unwrap_or_default() {
        if is_dir && depth < DEPTH_MAX {
            search(&path, depth + 1, directories, found);
        } else if !is_dir && path.file_name().is_some_and(|name| name == SKILL_FILE) {
            found.push(SkillFolder { dir: dir.to_owned(), skill: read(&path) });
        }
    }
}

fn read(path: &Path) -> Result<Skill, SkillError> {
    let failed = |source| PackError::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > CONTRACT_BYTES_MAX {
        return Err(SkillError::TooLarge);
    }
    Ok(Skill::parse(&fs::read(path).map_err(failed)?)?)
}

pub(crate) fn described(files: &[PackFile]) -> Result<(Skill, SkillRuntime), SkillError> {
    let file = files.iter().find(|file| file.path == SKILL_FILE).ok_or(SkillError::NoFile)?;
    if file.bytes.len() as u64 > CONTRACT_BYTES_MAX {
        return Err(SkillError::TooLarge);
    }
    let skill = Skill::parse(&file.bytes)?;
    if skill.name.starts_with(PLATFORM_PREFIX) {
        return Err(SkillError::Reserved(skill.name));
    }
    for (place, schema) in [("input", &skill.input_schema), ("output", &skill.output_schema)] {
        let compiled = atlas_contract::schema::Validator::compile(schema);
        compiled.map_err(|error| SkillError::Schema { place, why: error.to_string() })?;
    }
    let runtime = runtime(&skill)?;
    if runtime == SkillRuntime::Python && !files.iter().any(|file| file.path == SKILL_CODE) {
        return Err(SkillError::NoCode(skill.name));
    }
    Ok((skill, runtime))
}

fn runtime(skill: &Skill) -> Result<SkillRuntime, SkillError> {
    let Some(provider) = &skill.provider else { return Ok(SkillRuntime::Python) };
    match provider["type"].as_str() {
        Some("python") => Ok(SkillRuntime::Python),
        Some("exec") => {
            let words = provider["command"].as_array().ok_or(SkillError::Provider)?;
            let command: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            let fits = |command: &Vec<String>| {
                (1..=WORDS_MAX).contains(&command.len())
                    && !command[0].is_empty()
                    && command.iter().all(|word| !word.contains('\0'))
            };
            command.filter(fits).map(|command| SkillRuntime::Exec { command }).ok_or(SkillError::Provider)
        }
        _ => Err(SkillError::Provider),
    }
}

#[cfg(test)]
mod tests;
