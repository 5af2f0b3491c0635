//! Skills: deploying one from its package. Everything else about them is that of objects.

use atlas_api::types::Skill;
use atlas_desk::{ShownObject, requests, with_revision};
use atlas_env::chain;
use atlas_mcp_spec::ServerSpec;
use atlas_objects::{SkillProgram, SkillSpec};
use atlas_package::SkillRuntime;
use atlas_types::{Command, Expect, Object, ObjectKey, ObjectKind, ObjectName, PutObject, SPEC_BYTES_MAX};
use bytes::Bytes;
use serde_json::Value;

use crate::{Caller, Consistency, Error, Service};

/// The kind of skills.
const KIND: &str = "skill";

/// The label of the MCP servers that are peers.
const PEER: &str = "atlas.peer";
/// The version of the tools of peers, which tell none.
const REMOTE_VERSION: &str = "1.0.0";

/// How often a skill is deployed again after another client changed it at the same time.
const TRIES_MAX: usize = 5;

/// A skill after its package was deployed.
#[derive(Debug, Clone, PartialEq)]
pub struct DeployedSkill {
    pub object: ShownObject,
    /// False if the same package was deployed already.
    pub changed: bool,
}

impl Service {
    /// Deploys a skill from its package: checks it, stores it durably, then writes the object. It replaces one of the same name; one of
    /// the same version only if the caller asks for that.
    pub async fn deploy_skill(&self, caller: &Caller, package: Bytes, replace: bool) -> Result<DeployedSkill, Error> {
        let limit = self.shared.limits.package_bytes_max;
        let package_bytes = package.len() as u64;
        if package_bytes > limit {
            return Err(Error::TooLarge { what: "the package", limit });
        }
        let bytes = package.clone();
        let read = self.shared.env.spawn_blocking("read-package", move || atlas_package::skill_of(&bytes));
        let read = read.join().await.map_err(|_| Error::Internal)?;
        let (skill, runtime) = read.map_err(|error| Error::PackageRefused(chain(&error)))?;
        self.may_deploy_skill(caller, &package).await?;
        let key = ObjectKey {
            namespace: caller.namespace.clone(),
            kind: ObjectKind::new(KIND)?,
            name: ObjectName::new(&skill.name)?,
        };
        self.shared.check_room().map_err(|error| Error::storing("the package", error))?;
        let digest =
            self.shared.artifacts.store(package).await.map_err(|error| Error::storing("the package", error))?;
        let spec = SkillSpec {
            version: skill.version,
            description: skill.description,
            input_schema: skill.input_schema.to_string(),
            output_schema: skill.output_schema.to_string(),
            runtime: match runtime {
                SkillRuntime::Python => SkillProgram::Python,
                SkillRuntime::Exec { .. } => SkillProgram::Exec,
            },
            package: digest.to_string(),
            package_bytes,
        };
        let value = serde_json::to_value(&spec).map_err(|error| Error::internal("write a skill", &error))?;
        let spec = atlas_objects::canonical(&value).map_err(|error| Error::internal("write a skill", &error))?;
        if spec.len() > SPEC_BYTES_MAX {
            return Err(Error::TooLarge { what: "the description of the skill", limit: SPEC_BYTES_MAX as u64 });
        }
        let changed = self.put_skill(caller, &key, &spec, replace).await?;
        tracing::info!(skill = %key.name, ?digest, changed, "skill deployed");
        let state = self.state(Consistency::Linearizable).await?;
        let gone = || Error::UnknownObject(format!("the skill \"{}\" was deleted", key.name));
        Ok(DeployedSkill { object: state.object(&key).map(with_revision).ok_or_else(gone)?, changed })
    }

    /// Refuses a skill that a policy does not allow to deploy: it runs as an agent, whose contract is judged.
    async fn may_deploy_skill(&self, caller: &Caller, package: &Bytes) -> Result<(), Error> {
        let state = self.shared.current().await?;
        if !state.has_policies() {
            return Ok(());
        }
        let package = package.clone();
        let made = self.shared.env.spawn_blocking("make-skill-agent", move || atlas_package::skill_agent(&package));
        let made = made.join().await.map_err(|_| Error::Internal)?;
        let made = made.map_err(|error| Error::PackageRefused(chain(&error)))?;
        self.shared.registry.may_deploy(caller, &state, &made.contract.to_json()).await
    }

    /// Writes the object with the labels that it has. Returns whether that changed it.
    async fn put_skill(&self, caller: &Caller, key: &ObjectKey, spec: &[u8], replace: bool) -> Result<bool, Error> {
        for tried in 1.. {
            let state = self.state(Consistency::Linearizable).await?;
            let old = state.object(key);
            if old.is_some_and(|old| *old.spec == *spec) {
                return Ok(false);
            }
            if let Some(old) = old.filter(|_| !replace) {
                not_taken(&key.name, &old.spec, spec)?;
            }
            let command = Command::PutObject(PutObject {
                kind: key.kind.clone(),
                name: key.name.clone(),
                labels: old.map(|object| (*object.labels).clone()).unwrap_or_default(),
                spec: spec.into(),
                spec_version: 1,
                expect: old.map_or(Expect::Absent, |object| Expect::Revision(object.revision)),
            });
            // A repeat finds the same spec; under one request id it would get the refusal of the first try again.
            match self.propose(requests::of(&caller.clone().with_request_id(None), command)).await {
                Err(Error::ObjectChanged { .. }) if tried < TRIES_MAX => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        Ok(true)
    }

    /// The skills of a namespace as Atlas for Python lists them, the oldest first.
    pub async fn skills(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<Skill>, Error> {
        let state = self.state(consistency).await?;
        let found =
            state.objects_of_kind(&ObjectKind::new(KIND)?).filter(|found| found.key.namespace == caller.namespace);
        Ok(found.filter_map(|object| shown(object)).collect())
    }

    /// The skills of a namespace, and after them the tools of peers as `PEER.TOOL`, by name. Clients outside get only the former, so that
    /// rings of clusters do not multiply names.
    pub async fn skills_and_tools(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<Skill>, Error> {
        let mut all = self.skills(caller, consistency).await?;
        let state = self.state(consistency).await?;
        for peer in state.objects(&caller.namespace, &ObjectKind::new("mcp-server")?, None) {
            let spec = ServerSpec::read(&peer.spec).map_err(|error| Error::internal("read an MCP server", &error))?;
            if !peer.labels.contains_key(PEER) {
                continue;
            }
            let tools = spec.tools.iter().flatten().filter(|tool| !tool.ends_with('*'));
            all.extend(tools.map(|tool| Skill {
                name: format!("{}.{tool}", peer.key.name),
                version: REMOTE_VERSION.to_owned(),
                description: format!("Remote tool: {tool}"),
                input_schema: Skill::any_object(),
                output_schema: Skill::any_object(),
            }));
        }
        Ok(all)
    }

    /// One skill as Atlas for Python lists it.
    pub async fn skill(&self, caller: &Caller, name: &str, consistency: Consistency) -> Result<Skill, Error> {
        let unknown =
            || Error::UnknownObject(format!("no such skill: \"{}\"", name.chars().take(255).collect::<String>()));
        let name = ObjectName::new(name).map_err(|_| unknown())?;
        let key = ObjectKey { namespace: caller.namespace.clone(), kind: ObjectKind::new(KIND)?, name };
        let state = self.state(consistency).await?;
        state.object(&key).and_then(|object| shown(object)).ok_or_else(unknown)
    }
}

/// Refuses other files under a version that a skill has already.
fn not_taken(name: &ObjectName, old: &[u8], new: &[u8]) -> Result<(), Error> {
    let read = |spec| SkillSpec::read(spec).map_err(|error| Error::internal("read a skill", &error));
    let (old, new) = (read(old)?, read(new)?);
    if old.version != new.version || old.package == new.package {
        return Ok(());
    }
    Err(Error::VersionTaken(format!(
        "the version {} of the skill \"{name}\" is deployed with the package {}, this package is {}",
        old.version, old.package, new.package
    )))
}

fn shown(object: &Object) -> Option<Skill> {
    let spec = SkillSpec::read(&object.spec).ok()?;
    let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    Some(Skill {
        name: object.key.name.as_str().to_owned(),
        input_schema: schema(&spec.input_schema),
        output_schema: schema(&spec.output_schema),
        version: spec.version,
        description: spec.description,
    })
}
