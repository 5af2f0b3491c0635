//! A skill as an agent: what runs agents then runs skills as well, with the same limits and the same warm slots.

use atlas_types::Digest;
use serde_json::json;

use crate::skill::described;
use crate::{CONTRACT_FILE, Limits, PackFile, Package, SkillError, SkillRuntime, pack_files, unpack};

/// The longest run of a skill, in seconds. Atlas for Python has no limit here.
const TIMEOUT_SECONDS: u32 = 300;

/// The program of the agent of a Python skill, whose files are in a folder beside it.
const PROGRAM: &str = r#""""Runs the skill in the folder beside this file."""

from pathlib import Path

from atlas.runtime.base import AgentBase
from atlas.runtime.loader import load_skill


class Skill(AgentBase):
    async def on_startup(self):
        self._run = load_skill(Path(__file__).parent / "skill")

    async def execute(self, input_data):
        return await self._run(input_data)
"#;

/// The package of the agent that runs a skill, and the agent's name, which follows from the contents of the skill's package.
///
/// Its contract takes and gives any object, because a skill's schemas are not enforced when agents call it (compatibility §18.1).
pub fn skill_agent(archive: &[u8]) -> Result<Package, SkillError> {
    let mut files = unpack::files(archive, &Limits::default())?;
    let (skill, runtime) = described(&files)?;
    let provider = match runtime {
        SkillRuntime::Python => {
            for file in &mut files {
                file.path = format!("skill/{}", file.path);
            }
            files.push(text("agent.py", PROGRAM.to_owned()));
            json!({ "type": "python" })
        }
        SkillRuntime::Exec { command } => json!({ "type": "exec", "command": command }),
    };
    files.retain(|file| file.path != CONTRACT_FILE);
    let contract = json!({ "agent": {
        "name": skill_agent_name(crate::digest_of(archive)),
        "version": skill.version,
        "description": format!("The skill {}", skill.name),
        "provider": provider,
        "execution_timeout": TIMEOUT_SECONDS,
    }});
    files.push(text(CONTRACT_FILE, contract.to_string()));
    Ok(pack_files(files)?)
}

/// The name of the agent that runs the skill in the package with this digest.
pub fn skill_agent_name(digest: Digest) -> String {
    let hex: String = digest.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("skill-{hex}")
}

fn text(path: &str, text: String) -> PackFile {
    PackFile { path: path.to_owned(), bytes: text.into_bytes(), executable: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack_skill;

    fn agent_of(files: &[(&str, &str)]) -> Package {
        let dir = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            std::fs::write(dir.path().join(path), text).expect("written");
        }
        let skill = pack_skill(dir.path()).expect("a skill");
        let again = pack_skill(dir.path()).expect("a skill");
        let agent = skill_agent(&skill.bytes).expect("an agent");
        assert_eq!(agent.digest, skill_agent(&again.bytes).expect("an agent").digest, "the same skill, the same agent");
        agent
    }

    #[test]
    fn a_python_skill_lies_beside_the_program_that_runs_it() {
        let yaml = "name: reverse\nversion: \"1.0.0\"\n";
        let agent = agent_of(&[("skill.yaml", yaml), ("skill.py", "async def execute(d):\n    return d\n")]);
        assert!(agent.contract.name.as_str().starts_with("skill-"));
        assert_eq!(agent.files, 4);
    }

    #[test]
    fn an_exec_skill_keeps_its_files_in_place() {
        let yaml = "name: x\nversion: \"1.2.3\"\nprovider: { type: exec, command: [./run.sh] }\n";
        let agent = agent_of(&[("skill.yaml", yaml), ("run.sh", "cat"), ("agent.yaml", "agent: {}")]);
        assert_eq!((agent.contract.version.to_string().as_str(), agent.files), ("1.2.3", 3));
    }

    #[test]
    fn what_is_no_skill_is_refused() {
        assert!(skill_agent(b"no archive").is_err());
    }
}
