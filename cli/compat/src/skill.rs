//! `atlas skill`: the skills of a folder.

use std::path::{Path, PathBuf};

use atlas_contract::Skill;
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::render;

/// Verbs of `atlas skill`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Lists the skills of a folder.
    List(Options),
    /// Shows a skill.
    #[command(alias = "inspect")]
    Describe(Describe),
}

/// Where the skills are.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Folder of skills.
    #[arg(long, default_value = "./skills", value_name = "DIR")]
    skills_path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `atlas skill describe`.
#[derive(Debug, clap::Args)]
pub(super) struct Describe {
    /// Name of the skill.
    skill: String,
    #[command(flatten)]
    options: Options,
}

pub(super) fn run(verb: &Verb) -> Answer {
    match verb {
        Verb::List(options) => Ok(list(&skills(&options.skills_path), options.json)),
        Verb::Describe(describe) => {
            let found = skills(&describe.options.skills_path);
            let skill = found.iter().find(|skill| skill.name == describe.skill);
            let skill = skill.ok_or_else(|| Refusal::new(format!("Skill not found: {}", describe.skill)))?;
            Ok(shown(skill, describe.options.json))
        }
    }
}

/// The valid skills below a folder. Of two with one name, the later one counts, at the place of the first.
fn skills(path: &Path) -> Vec<Skill> {
    let mut found: Vec<Skill> = Vec::new();
    for skill in atlas_package::discover_skills(path).into_iter().filter_map(|folder| folder.skill.ok()) {
        match found.iter_mut().find(|known| known.name == skill.name) {
            Some(known) => *known = skill,
            None => found.push(skill),
        }
    }
    found
}

fn list(found: &[Skill], as_json: bool) -> String {
    if as_json {
        let one =
            |skill: &Skill| json!({"name": skill.name, "version": skill.version, "description": skill.description});
        return render::json(&Value::Array(found.iter().map(one).collect()));
    }
    if found.is_empty() {
        return "No skills found.\n".to_owned();
    }
    let mut text = format!("Found {} skill(s):\n\n", found.len());
    for Skill { name, version, description, .. } in found {
        text += &format!("  {name}  v{version}\n");
        if !description.is_empty() {
            text += &format!("    {description}\n");
        }
    }
    text
}

fn shown(skill: &Skill, as_json: bool) -> String {
    if as_json {
        return render::json(&skill.to_json());
    }
    format!(
        "Skill: {}\nVersion: {}\nDescription: {}\n\nInput Schema:\n{}\nOutput Schema:\n{}",
        skill.name,
        skill.version,
        skill.description,
        render::json(&skill.input_schema),
        render::json(&skill.output_schema),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::expect;

    use super::*;

    fn folder(skills: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in skills {
            let dir = folder.path().join(path);
            fs::create_dir_all(&dir).expect("a folder");
            fs::write(dir.join("skill.yaml"), text).expect("written");
        }
        folder
    }

    fn options(folder: &tempfile::TempDir, json: bool) -> Options {
        Options { skills_path: folder.path().to_owned(), json }
    }

    #[test]
    fn valid_skills_are_listed() {
        let folder = folder(&[
            ("a", "skill: {name: zeta, version: 1.0.0, description: Last letter.}"),
            ("b/deep", "name: alpha\nversion: 0.1.0"),
            ("c", "name: broken\nversion: one"),
            ("d", "name: zeta\nversion: 2.0.0"),
        ]);
        let text = |json| run(&Verb::List(options(&folder, json))).expect("a list");
        expect![[r#"
            Found 2 skill(s):

              zeta  v2.0.0
              alpha  v0.1.0
        "#]]
        .assert_eq(&text(false));
        let value: Value = serde_json::from_str(&text(true)).expect("JSON");
        assert_eq!(value[1], json!({"name": "alpha", "version": "0.1.0", "description": ""}));
        let none = tempfile::tempdir().expect("a folder");
        assert_eq!(run(&Verb::List(options(&none, false))), Ok("No skills found.\n".to_owned()));
    }

    #[test]
    fn a_skill_is_described_with_its_schemas() {
        let folder =
            folder(&[("a", "name: s\nversion: 1.0.0\ndescription: Does it.\ninput: {schema: {required: [x]}}")]);
        let describe = |name: &str, json| {
            run(&Verb::Describe(Describe { skill: name.to_owned(), options: options(&folder, json) }))
        };
        expect![[r#"
            Skill: s
            Version: 1.0.0
            Description: Does it.

            Input Schema:
            {
              "required": [
                "x"
              ]
            }

            Output Schema:
            {
              "type": "object"
            }
        "#]]
        .assert_eq(&describe("s", false).expect("a skill"));
        let value: Value = serde_json::from_str(&describe("s", true).expect("a skill")).expect("JSON");
        assert_eq!(value["output_schema"], json!({"type": "object"}));
        assert_eq!(describe("t", false), Err(Refusal::new("Skill not found: t")));
    }
}
