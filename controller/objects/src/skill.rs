//! Skills: functions of agents. The object names the package; `POST /api/skills` checks a package and writes the object.

use atlas_types::{Digest, Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// What runs a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillProgram {
    /// `skill.py` of the package.
    #[default]
    Python,
    /// The command in `skill.yaml`.
    Exec,
}

/// The document of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillSpec {
    pub version: String,
    /// One sentence.
    pub description: String,
    /// The JSON Schema of the input as text: a canonical document has no fractions, a schema may.
    pub input_schema: String,
    /// The JSON Schema of the output as text.
    pub output_schema: String,
    pub runtime: SkillProgram,
    /// The digest of the package.
    pub package: String,
    pub package_bytes: u64,
}

impl SkillSpec {
    /// Reads the spec of a skill.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.package.is_empty() {
            return Err(Refusal::new("spec.package", "is missing: a skill is deployed with its package"));
        }
        if self.package.parse::<Digest>().is_err() {
            return Err(Refusal::new("spec.package", "is not a digest"));
        }
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if self.version.split('.').count() != 3 || !self.version.split('.').all(is_number) {
            return Err(Refusal::new("spec.version", "is not three numbers with dots between them"));
        }
        for (field, schema) in [("spec.input_schema", &self.input_schema), ("spec.output_schema", &self.output_schema)]
        {
            if !serde_json::from_str::<Value>(schema).is_ok_and(|schema| schema.is_object()) {
                return Err(Refusal::new(field, "is not the text of a JSON object"));
            }
        }
        Ok(())
    }
}

pub(crate) struct SkillKind;

impl Kind for SkillKind {
    fn name(&self) -> &'static str {
        "skill"
    }

    fn about(&self) -> &'static str {
        "A skill: a function that agents call, with its schemas and its package. Its spec comes from the package."
    }

    fn level(&self) -> Level {
        level::SKILLS
    }

    fn right(&self) -> &'static str {
        "agents.publish"
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "additionalProperties": false, "properties": {} })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        SkillSpec::read(spec)?.check()
    }

    fn artifacts(&self, spec: &[u8]) -> Vec<Digest> {
        SkillSpec::read(spec).ok().and_then(|spec| spec.package.parse().ok()).into_iter().collect()
    }

    fn kept(&self) -> &'static [&'static str] {
        &["version", "description", "input_schema", "output_schema", "runtime", "package", "package_bytes"]
    }

    fn shown(&self, spec: &mut Value) {
        for member in ["input_schema", "output_schema"] {
            if let Some(schema) = spec[member].as_str().and_then(|text| serde_json::from_str(text).ok()) {
                spec[member] = schema;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::check;

    #[test]
    fn documents() {
        let spec = |version: &str, schema: &str, package: &str| {
            let schema = json!(schema);
            format!(r#"{{"input_schema":{schema},"output_schema":"{{}}","package":"{package}","version":"{version}"}}"#)
        };
        let digest = "ab".repeat(32);
        check(
            "skill",
            &[
                "{}",
                &spec("1.0.0", r#"{"minimum":0.5}"#, &digest),
                &spec("1.0", "{}", &digest),
                &spec("1.0.", "{}", &digest),
                &spec("1.0.0", "[]", &digest),
                &spec("1.0.0", "{", &digest),
                &spec("1.0.0", "{}", "ab"),
            ],
            &expect![[r#"
                ! `spec.package` is missing: a skill is deployed with its package
                ok {"input_schema":"{\"minimum\":0.5}","output_schema":"{}","package":"abababababababababababababababababababababababababababababababab","version":"1.0.0"}
                ! `spec.version` is not three numbers with dots between them
                ! `spec.version` is not three numbers with dots between them
                ! `spec.input_schema` is not the text of a JSON object
                ! `spec.input_schema` is not the text of a JSON object
                ! `spec.package` is not a digest
            "#]],
        );
    }

    #[test]
    fn the_golden_document_names_its_package_and_shows_its_schemas() {
        let golden = include_bytes!("../golden/skill.json");
        let package = SkillKind.artifacts(golden);
        assert_eq!(package, [Digest([0xab; 32])]);
        let mut shown: Value = serde_json::from_slice(golden).expect("JSON");
        SkillKind.shown(&mut shown);
        assert_eq!(shown["input_schema"], json!({"type": "object", "required": ["text"]}));
        assert!(SkillKind.artifacts(b"{}").is_empty());
    }
}
