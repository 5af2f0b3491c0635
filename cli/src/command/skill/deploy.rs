//! `atlasctl skill deploy`.

use std::path::{Path, PathBuf};

use atlas_contract::unquoted;
use atlas_package::{SKILL_FILE, SkillError, SkillPackage, discover_skills, pack_skill};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::shipped;
use crate::words;

/// Options of `atlasctl skill deploy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folders with a skill.yaml, or folders of such folders.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Check and pack, without deploying.
    #[arg(long)]
    dry_run: bool,
    /// Replace the package of a version that is deployed with other files.
    #[arg(long)]
    replace: bool,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let places = shipped::places(&options.paths)?;
    deploy(context, &places.paths, options.dry_run, options.replace).await?;
    Ok(Exit::Done)
}

/// Packs all skills before it uploads the first one, so that a refused skill leaves nothing half deployed.
pub(crate) async fn deploy(context: &Context, paths: &[PathBuf], dry_run: bool, replace: bool) -> Result<(), Failure> {
    let mut packages = Vec::new();
    for path in paths {
        for folder in folders(path)? {
            let text = std::fs::read(folder.join(SKILL_FILE)).unwrap_or_default();
            let package = pack_skill(&folder).map_err(|error| refused(&folder, &error))?;
            packages.push((package, unquoted::warnings(&text, "skill")));
        }
    }
    let client = context.client()?;
    let (mut answers, mut names) = (Vec::new(), Vec::new());
    for (SkillPackage { bytes, digest, skill, runtime, files }, warnings) in packages {
        let label = format!("{} {}", skill.name, skill.version);
        warnings.iter().for_each(|warning| context.note(&format!("{label}   warning    {warning}")));
        let digest = digest.to_string();
        let (count, size) = (words::count(files as u64, "file"), words::bytes(bytes.len() as u64));
        let short = digest.get(..15).unwrap_or(&digest);
        context.note(&format!("{label}   packed     {}, {count}, {size}, {short}", runtime.as_str()));
        names.push(format!("skill/{}", skill.name));
        if dry_run {
            answers.push(json!({"name": skill.name, "version": skill.version, "digest": digest}));
            continue;
        }
        let answer = client.deploy_skill(bytes, replace).await?;
        let what = if answer["changed"] == false { "unchanged" } else { "deployed" };
        context.note(&format!("{label}   {what}"));
        answers.push(answer);
    }
    context.show(&Shown { value: Value::Array(answers), text: String::new(), names })
}

/// The folder itself if it contains a skill, otherwise every skill below it.
fn folders(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.join(SKILL_FILE).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let invalid = |message: String| Failure::new("E1105", Exit::Invalid, message);
    if !path.exists() {
        return Err(invalid(format!("\"{}\" does not exist", path.display())));
    }
    let mut folders = Vec::new();
    for found in discover_skills(path) {
        found.skill.map_err(|error| refused(&found.dir, &error))?;
        folders.push(found.dir);
    }
    if folders.is_empty() {
        let message = format!("\"{}\" contains no skill: no {SKILL_FILE} was found in it", path.display());
        return Err(invalid(message).with_next("what a skill is: atlasctl docs skills"));
    }
    Ok(folders)
}

fn refused(folder: &Path, error: &SkillError) -> Failure {
    let message = format!("\"{}\" is not a skill: {}", folder.display(), atlas_env::chain(error));
    Failure::new("E1105", Exit::Invalid, message).with_next("what a skill is: atlasctl docs skills")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_skills_or_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let failure = folders(dir.path()).expect_err("nothing in it");
        assert!(failure.message.ends_with("no skill.yaml was found in it"), "{failure}");
        assert!(folders(&dir.path().join("gone")).expect_err("gone").message.ends_with("does not exist"));
        let skill = dir.path().join("a/b");
        std::fs::create_dir_all(&skill).expect("made");
        std::fs::write(skill.join("skill.yaml"), "name: s").expect("written");
        let failure = folders(dir.path()).expect_err("no version");
        assert!(failure.message.contains("'version' is a required property"), "{failure}");
        std::fs::write(skill.join("skill.yaml"), "{name: s, version: 1.0.0}").expect("written");
        assert_eq!(folders(dir.path()).expect("one skill"), [skill]);
    }
}
