//! `/api/skills` (compatibility §15.4, and ours). Labels and revisions of skills are at `/api/objects/skill`.

use atlas_api::types::{Registration, Skill, SkillTested};
use atlas_contract::platform;
use atlas_service::{Caller, Error, SkillEnd, Unwanted};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::HttpDoor;
use super::answer::{self, Answer};
use super::request::Request;

/// The version of the platform's tools, as in Atlas for Python.
const PLATFORM_VERSION: &str = "1.0.0";

/// `GET /api/skills`, the oldest first, then the tools of peers and those of the platform.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let mut skills = door.service.skills_and_tools(caller, request.consistency()).await?;
    skills.extend(platform::TOOLS.iter().map(|tool| Skill {
        name: tool.name.to_owned(),
        version: PLATFORM_VERSION.to_owned(),
        description: tool.description.to_owned(),
        input_schema: tool.input_schema(),
        output_schema: Skill::any_object(),
    }));
    Ok(answer::body(StatusCode::OK, &skills))
}

/// `GET /api/skills/{name}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    Ok(answer::body(StatusCode::OK, &door.service.skill(caller, name, request.consistency()).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestBody {
    #[serde(default)]
    input: Map<String, Value>,
}

/// `POST /api/skills/{name}/test` with `{"input": {}}`: calls a skill as an agent would, and waits for its end.
pub(crate) async fn test(door: &HttpDoor, caller: &Caller, request: &mut Request, name: &str) -> Answer {
    let TestBody { input } = request.read_json(door).await?;
    let end = door.service.run_skill(caller, name, &Value::Object(input), Unwanted::never()).await?;
    let Some(end) = end else { return Err(Error::UnknownObject(format!("no such skill: \"{name}\"")).into()) };
    let (output, error, refused) = match end {
        SkillEnd::Done(output) => (output, String::new(), false),
        SkillEnd::Failed(error) => (Value::Null, error, false),
        SkillEnd::Unfit(why) => (Value::Null, why, true),
    };
    Ok(answer::body(StatusCode::OK, &SkillTested { output, error, refused }))
}

/// `POST /api/skills` with a package as its body.
pub(crate) async fn deploy(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let package = request.body(door, door.limits.package_bytes_max).await?;
    let deployed = door.service.deploy_skill(caller, package, request.query().flag("replace")?).await?;
    let object = &deployed.object.value;
    let text = |member: &str| object.spec[member].as_str().unwrap_or_default().to_owned();
    let registration = Registration {
        name: object.metadata.name.clone(),
        version: text("version"),
        digest: text("package"),
        changed: deployed.changed,
    };
    Ok(answer::body(StatusCode::CREATED, &registration))
}
