//! What has to be sent so that a version of an agent is registered as its resource says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use atlas_package::{CONTRACT_FILE, PackFile, Package};
use serde_json::{Value, json};

use crate::problem::{Problem, Reason};
use crate::request::{Body, Request};
use crate::resource::{ADOPT, Resource};

/// Most files of an agent. The API server bounds their size together.
const FILES_MAX: usize = 256;
/// Most characters of a file's path, and most parts of it.
const PATH_CHARS_MAX: usize = 200;
const PATH_PARTS_MAX: usize = 8;
/// Most versions that the status of a resource remembers.
const VERSIONS_MAX: usize = 32;

/// The files and the deprecation of an agent version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Agent {
    namespace: String,
    files: Vec<PackFile>,
    deprecated: Option<String>,
    /// `NAME@VERSION` of what the resource registered before.
    registered: Vec<String>,
    adopts: bool,
}

impl Agent {
    /// The agent of a resource; `home` is the operator's namespace.
    pub(crate) fn of(resource: &Resource, home: &str) -> Result<Self, Problem> {
        let spec = &resource.spec;
        let executable: Vec<&str> =
            spec["executable"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let files = spec["files"].as_object().ok_or_else(|| invalid("spec.files is not an object"))?;
        if files.len() > FILES_MAX {
            return Err(invalid(format!("spec.files has more than {FILES_MAX} files")));
        }
        let mut packed = Vec::new();
        for (path, text) in files {
            check_path(path)?;
            let text = text.as_str().ok_or_else(|| invalid(format!("spec.files: {path} is not text")))?;
            let executable = executable.contains(&path.as_str());
            packed.push(PackFile { path: path.clone(), bytes: text.as_bytes().to_vec(), executable });
        }
        if let Some(missing) = executable.iter().find(|path| !files.contains_key(**path)) {
            return Err(invalid(format!("spec.executable: there is no file {missing}")));
        }
        Ok(Self {
            namespace: resource.place(home)?,
            files: packed,
            deprecated: spec["deprecated"].as_str().map(str::to_owned),
            registered: registered(&resource.status),
            adopts: resource.adopts(),
        })
    }

    /// The namespace of the cluster that has it.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Packs its files. Blocks: without a contract, it follows from definitions in a folder.
    pub(crate) fn pack(&self) -> Result<Package, Problem> {
        let packed = if self.files.iter().any(|file| file.path == CONTRACT_FILE) {
            atlas_package::pack_files(self.files.clone())
        } else {
            let folder = tempfile::tempdir().map_err(|error| unwritten(&error))?;
            self.write(folder.path()).map_err(|error| unwritten(&error))?;
            atlas_package::pack(folder.path())
        };
        packed.map_err(|error| invalid(format!("spec.files: {}", atlas_env::chain(&error))))
    }

    fn write(&self, folder: &Path) -> std::io::Result<()> {
        for file in &self.files {
            let path = folder.join(&file.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&path, &file.bytes)?;
            if file.executable {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(())
    }

    /// Asks for the version.
    pub(crate) fn get(&self, package: &Package) -> Request {
        let (name, version) = named(package);
        Request::new("GET", &["api", "agents", &name, "versions", &version], &self.namespace)
    }

    /// Registers the version and marks it, as far as what was `found` differs.
    pub(crate) fn put(&self, package: &Package, found: Option<&Value>) -> Result<Vec<Request>, Problem> {
        let (name, version) = named(package);
        let mut requests = Vec::new();
        let is_same = found.is_some_and(|found| found["digest"].as_str() == Some(&package.digest.to_string()));
        let is_live = found.is_some_and(|found| found["retired"] != true);
        let replaces = !is_same && found.is_some();
        if replaces && !self.adopts {
            let message = format!(
                "{name}@{version} of the namespace {} has other files: raise the version of the contract, or replace \
                 it with the annotation {ADOPT}: \"true\"",
                self.namespace
            );
            return Err(Problem::new(Reason::Conflict, message));
        }
        if !is_same || !is_live {
            let upload = Request::new("POST", &["api", "agents"], &self.namespace);
            requests.push(Request { body: Body::Package { bytes: package.bytes.clone(), replaces }, ..upload });
        }
        let marked = found.filter(|_| is_same).and_then(|found| found["deprecated"].as_str());
        if marked != self.deprecated.as_deref() {
            let body = match &self.deprecated {
                Some(message) => json!({"message": message}),
                None => json!({"deprecated": false}),
            };
            let path = ["api", "agents", &name, "versions", &version, "deprecate"];
            requests.push(Request::new("POST", &path, &self.namespace).json(body));
        }
        Ok(requests)
    }

    /// The versions that the status remembers after this one is registered, the newest last.
    pub(crate) fn remembered(&self, package: &Package) -> Vec<String> {
        let (name, version) = named(package);
        let this = format!("{name}@{version}");
        let mut versions = self.registered.clone();
        versions.retain(|version| *version != this);
        versions.push(this);
        let surplus = versions.len().saturating_sub(VERSIONS_MAX);
        versions.split_off(surplus)
    }
}

/// Retires what a resource registered.
pub(crate) fn retire(resource: &Resource, home: &str) -> Result<Vec<Request>, Problem> {
    let namespace = resource.place(home)?;
    let request = |version: String| {
        let (name, version) = version.split_once('@')?;
        Some(Request::new("DELETE", &["api", "agents", name, "versions", version], &namespace))
    };
    Ok(registered(&resource.status).into_iter().filter_map(request).collect())
}

fn registered(status: &Value) -> Vec<String> {
    let versions = status["versions"].as_array().into_iter().flatten();
    versions.filter_map(Value::as_str).map(str::to_owned).take(VERSIONS_MAX).collect()
}

fn named(package: &Package) -> (String, String) {
    (package.contract.name.to_string(), package.contract.version.to_string())
}

/// Refuses a path that leaves the folder of the agent, or that packages leave out.
fn check_path(path: &str) -> Result<(), Problem> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_plain = |part: &&str| !part.is_empty() && !part.starts_with('.') && *part != "__pycache__";
    let is_text = !path.chars().any(|char| char.is_control() || char == '\\');
    if path.chars().count() > PATH_CHARS_MAX || parts.len() > PATH_PARTS_MAX || !is_text || !parts.iter().all(is_plain)
    {
        let shown: String = path.chars().take(PATH_CHARS_MAX).collect();
        return Err(invalid(format!("spec.files: {shown:?} is not a path in a package")));
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::new(Reason::Invalid, message)
}

fn unwritten(error: &std::io::Error) -> Problem {
    Problem::new(Reason::Unreachable, format!("could not write the files of the agent: {error}"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::kind::Kind;

    const CONTRACT: &str = "agent:\n  name: hello\n  version: 1.0.0\n  input_schema: {}\n  output_schema: {}\n  provider: {type: exec, command: [./run.sh]}\n";

    fn resource(spec: &Value, status: &Value) -> Resource {
        let document = json!({"metadata": {"namespace": "atlas", "name": "hello"}, "spec": spec, "status": status});
        Resource::read(Kind::Agent, &document).expect("a resource")
    }

    fn hello() -> Value {
        json!({"files": {"agent.yaml": CONTRACT, "run.sh": "#!/bin/sh\n"}, "executable": ["run.sh"]})
    }

    fn check(agent: &Agent, found: Option<&Value>, expected: &Expect) {
        let package = agent.pack().expect("a package");
        let shown = match agent.put(&package, found) {
            Ok(requests) => requests.iter().map(|request| format!("{request}\n")).collect(),
            Err(problem) => format!("{}: {problem}\n", problem.reason.as_str()),
        };
        let size = format!("({} bytes)", package.bytes.len());
        expected.assert_eq(&format!("{}\n{shown}", agent.get(&package)).replace(&size, "(package)"));
    }

    #[test]
    fn versions_are_registered_marked_and_left_alone() {
        let mut spec = hello();
        let agent = Agent::of(&resource(&spec, &json!({})), "atlas").expect("an agent");
        let digest = agent.pack().expect("a package").digest.to_string();
        check(
            &agent,
            None,
            &expect![[r#"
                GET /api/agents/hello/versions/1.0.0?namespace=default
                POST /api/agents?namespace=default (package)
            "#]],
        );
        let same = json!({"digest": digest, "retired": false, "deprecated": null});
        check(
            &agent,
            Some(&same),
            &expect![[r#"
                GET /api/agents/hello/versions/1.0.0?namespace=default
            "#]],
        );
        let retired = json!({"digest": digest, "retired": true, "deprecated": "old"});
        check(
            &agent,
            Some(&retired),
            &expect![[r#"
                GET /api/agents/hello/versions/1.0.0?namespace=default
                POST /api/agents?namespace=default (package)
                POST /api/agents/hello/versions/1.0.0/deprecate?namespace=default {"deprecated":false}
            "#]],
        );
        check(
            &agent,
            Some(&json!({"digest": "other", "retired": false})),
            &expect![[r#"
                GET /api/agents/hello/versions/1.0.0?namespace=default
                Conflict: hello@1.0.0 of the namespace default has other files: raise the version of the contract, or replace it with the annotation atlas.dev/adopt: "true"
            "#]],
        );
        spec["deprecated"] = json!("use hallo");
        let status = json!({"versions": ["hello@0.9.0", "hello@1.0.0"]});
        let mut adopting = resource(&spec, &status);
        adopting.annotations.insert(ADOPT.to_owned(), "true".to_owned());
        let agent = Agent::of(&adopting, "atlas").expect("an agent");
        check(
            &agent,
            Some(&json!({"digest": "other", "retired": false})),
            &expect![[r#"
                GET /api/agents/hello/versions/1.0.0?namespace=default
                POST /api/agents?namespace=default&replace=true (package)
                POST /api/agents/hello/versions/1.0.0/deprecate?namespace=default {"message":"use hallo"}
            "#]],
        );
        assert_eq!(agent.remembered(&agent.pack().expect("a package")), ["hello@0.9.0", "hello@1.0.0"]);
        let retired = retire(&resource(&hello(), &status), "atlas").expect("requests");
        let retired: Vec<String> = retired.iter().map(ToString::to_string).collect();
        assert_eq!(
            retired,
            [
                "DELETE /api/agents/hello/versions/0.9.0?namespace=default",
                "DELETE /api/agents/hello/versions/1.0.0?namespace=default"
            ]
        );
    }

    #[test]
    fn a_contract_that_follows_from_a_definition_is_packed() {
        let graph = "name: g\nversion: 1.0.0\n";
        let agent = Agent::of(&resource(&json!({"files": {"graph.yaml": graph}}), &json!({})), "atlas").expect("files");
        let refused = agent.pack().expect_err("a graph without nodes");
        assert!(refused.message.starts_with("spec.files: the definition is not valid"), "{refused}");
    }

    #[test]
    fn files_that_are_no_package_are_refused() {
        let of = |spec: Value| Agent::of(&resource(&spec, &json!({})), "atlas").expect_err("refused").message;
        assert_eq!(of(json!({})), "spec.files is not an object");
        for path in ["../a", "/etc/passwd", "a//b", ".hidden", "a/../b", "a\\b", "a\nb", ""] {
            assert!(of(json!({"files": {path: ""}})).ends_with("is not a path in a package"), "{path:?}");
        }
        assert_eq!(of(json!({"files": {"a": 1}})), "spec.files: a is not text");
        assert_eq!(of(json!({"files": {}, "executable": ["b"]})), "spec.executable: there is no file b");
        let many: serde_json::Map<_, _> = (0..=FILES_MAX).map(|at| (at.to_string(), json!(""))).collect();
        assert_eq!(of(json!({"files": many})), "spec.files has more than 256 files");
        let empty = Agent::of(&resource(&json!({"files": {}}), &json!({})), "atlas").expect("no files");
        assert_eq!(empty.pack().expect_err("nothing").message, "spec.files: it contains no agent.yaml");
    }
}
