//! The Helm chart: rendered in many variants and checked, and its containers run as processes on three machines.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use atlas_contract::yaml::{self, Budget};
use serde_json::Value;

use super::page::{DESK, Line};
use super::site::Site;
use crate::kubernetes::{GRANTED, GRANTED_AT_HOME};
use crate::{Agent, write_agent};

/// Names the program.
const HELM: &str = "ATLAS_TEST_HELM";
/// Names the Python that has `kubernetes-validate`.
const PYTHON: &str = "ATLAS_TEST_KUBERNETES_PYTHON";
/// The versions of Kubernetes whose schemas every manifest must fit.
const VERSIONS: [&str; 3] = ["1.33", "1.35", "1.37"];
/// What the programs know. The pages are generated from them.
const CONTROLLER: &str = include_str!("../../../../docs/reference/controller-options.md");
const WORKER: &str = include_str!("../../../../docs/reference/worker-options.md");
const OPERATOR: &str = include_str!("../../../../docs/reference/operator-options.md");
const CLI: &str = concat!(
    include_str!("../../../../docs/reference/cli.md"),
    include_str!("../../../../docs/reference/errors/E2106.md"),
);
const HTTP: &str = include_str!("../../../../docs/reference/api.md");

/// Values of variants: a name and lines of YAML.
const VARIANTS: &[(&str, &str)] = &[
    ("defaults", ""),
    ("one", "controllers: {replicas: 1}"),
    ("five", "controllers: {replicas: 5}"),
    ("no-zones", "controllers: {spreadOverZones: false}"),
    ("storage", "controllers: {storage: {size: 100Gi, className: fast}}"),
    ("options", "controllers: {options: {ATLAS_LOG: debug, ATLAS_HISTORY_KEEP: 30d}}"),
    ("placed", "controllers: {nodeSelector: {pool: system}, tolerations: [{key: dedicated, operator: Exists}]}"),
    ("no-workers", "workers: []"),
    ("bare-worker", "workers: [{name: plain}]"),
    ("gpu", "workers: [{name: h100, gpus: 8, resources: {limits: {memory: 64Gi}}, nodeSelector: {gpu: h100}}]"),
    ("mig", "workers: [{name: mig, gpus: 1, gpuResource: nvidia.com/mig-1g.10gb}]"),
    ("two-groups", "workers: [{name: cpu, replicas: 4, image: worker}, {name: gpu, gpus: 1}]"),
    ("long-drain", "workers: [{name: slow, drainSeconds: 3600, scratch: 50Gi}]"),
    ("worker-options", "workers: [{name: a, options: {ATLAS_PLACES: '16', ATLAS_PYTHON: python3.13}}]"),
    (
        "scaled",
        "workers: [{name: cpu, autoscaling: {max: 20, jobsPerWorker: 2.5, hardware: cpu}}, {name: b, replicas: 1}]",
    ),
    ("every-node", "workers: [{name: all, everyNode: true, nodeSelector: {pool: agents}}, {name: gpu, gpus: 1}]"),
    ("hpa", "workers: [{name: cpu, autoscaling: {min: 2, max: 20, jobsPerWorker: 2.5, metric: atlas_jobs}}]"),
    ("own-secret", "auth: {existingSecret: mine}"),
    ("ingress", "ingress: {enabled: true, host: atlas.example.com, tlsSecret: tls, className: nginx}"),
    ("ingress-notes", "ingress: {enabled: true, host: a.example.com, tlsSecret: t, annotations: {a/b: 'true'}}"),
    (
        "gateway",
        "gateway: {enabled: true, name: public, namespace: edge, sectionName: https, hostnames: [atlas.example.com]}",
    ),
    ("open-network", "networkPolicy: {enabled: false}"),
    ("clients", "networkPolicy: {clients: [{namespaceSelector: {matchLabels: {team: a}}}]}"),
    ("monitored", "monitoring: {serviceMonitor: true, tokenSecret: metrics}"),
    ("registry", "image: {registry: registry.example.com/atlas, tag: 0.1.1, pullPolicy: Always, pullSecrets: [pull]}"),
    ("release", "image: {tag: latest}"),
    (
        "operator",
        "operator: {enabled: true, watchNamespaces: [team-a, team-b]}\nnetworkPolicy: {clients: [{podSelector: {}}]}",
    ),
    ("backup", "backup: {enabled: true}\nnetworkPolicy: {clients: [{podSelector: {}}]}"),
    (
        "backup-claim",
        "backup: {enabled: true, existingClaim: mine, keep: 30, testRestore: false, tokenSecret: t, schedule: '@daily'}",
    ),
    (
        "operator-token",
        "operator: {enabled: true, crds: false, replicas: 2, tokenSecret: mine, resyncSeconds: 60, options: {ATLAS_LOG: debug}}",
    ),
];

/// Values that the chart refuses.
const WRONG: &[&str] = &[
    "controller: {replicas: 3}",
    "controllers: {replicas: 2}",
    "controllers: {replicas: '3'}",
    "controllers: {storage: {size: big}}",
    "controllers: {options: {LOG: debug}}",
    "workers: [{replicas: 1}]",
    "workers: [{name: Bad_Name}]",
    "workers: [{name: a, gpus: -1}]",
    "workers: [{name: a, image: other}]",
    "workers: [{name: a, autoscaling: {min: 1}}]",
    "workers: [{name: a, autoscaling: {max: 3, hardware: tpu}}]",
    "workers: [{name: a, everyNode: true, replicas: 2}]",
    "workers: [{name: a, everyNode: true, autoscaling: {max: 3}}]",
    "workers: [{name: a, autoscaling: {min: 0, max: 3, metric: atlas_jobs}}]",
    "workers: [{name: a, autoscaling: {max: 3, metric: atlas_jobs, agent: hello}}]",
    "gateway: {enabled: true, name: public}",
    "gateway: {enabled: true, hostnames: [atlas.example.com]}",
    "ingress: {enabled: true}",
    "ingress: {enabled: true, host: a.example.com}",
    "auth: {token: secret}",
    "operator: {enabled: 'yes'}",
    "operator: {watchNamespaces: [Team]}",
    "operator: {resyncSeconds: 0}",
    "operator: {replicas: 0}",
    "backup: {keep: 0}",
    "backup: {schedule: daily}",
];

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../k8s/chart")
}

/// The program of a variable; none, with a notice, if it was not installed.
fn tool(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    if found.is_none() {
        atlas_notice::skip(format!("{variable} names no program: cargo xtask test installs it"));
    }
    found
}

fn template(helm: &Path, folder: &Path, values: &str) -> Result<String, String> {
    let file = folder.join("values.yaml");
    fs::write(&file, values).expect("a file");
    let mut command = Command::new(helm);
    command.args(["template", "atlas"]).arg(chart()).args(["-n", "atlas", "-f"]).arg(file);
    command.env("HELM_CACHE_HOME", folder).env("HELM_CONFIG_HOME", folder).env("HELM_DATA_HOME", folder);
    let output = command.output().expect("helm starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn documents(text: &str) -> Vec<Value> {
    let parts = text.split("\n---\n").map(|part| part.trim_start_matches("---\n"));
    let load = |part: &str| yaml::load_core(part.as_bytes(), Budget::default()).expect("YAML").value;
    parts.map(load).filter(|value| !value.is_null()).collect()
}

/// The pod of a StatefulSet, a Deployment, a DaemonSet or a CronJob.
fn pod(document: &Value) -> Option<&Value> {
    match document["kind"].as_str()? {
        "StatefulSet" | "Deployment" | "DaemonSet" => document.pointer("/spec/template/spec"),
        "CronJob" => document.pointer("/spec/jobTemplate/spec/template/spec"),
        _ => None,
    }
}

fn containers(document: &Value) -> Vec<&Value> {
    pod(document).and_then(|pod| pod["containers"].as_array()).into_iter().flatten().collect()
}

/// What the policy "restricted" and our programs ask of a rendered chart.
fn complaints(documents: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    for document in documents {
        let metadata = &document["metadata"];
        let name = format!("{} {} {}", document["kind"], metadata["namespace"], metadata["name"]);
        if !names.insert(name.clone()) {
            found.push(format!("{name} exists twice"));
        }
        let Some(pod) = pod(document) else { continue };
        let security = &pod["securityContext"];
        if security["runAsNonRoot"] != true || security["seccompProfile"]["type"] != "RuntimeDefault" {
            found.push(format!("{name}: the pod is not restricted"));
        }
        let is_operator = metadata["labels"]["app.kubernetes.io/component"] == "operator";
        if pod["automountServiceAccountToken"] != is_operator {
            found.push(format!("{name}: the pod has a token of Kubernetes"));
        }
        for container in containers(document) {
            let security = &container["securityContext"];
            if security["allowPrivilegeEscalation"] != false
                || security["readOnlyRootFilesystem"] != true
                || security["capabilities"]["drop"] != serde_json::json!(["ALL"])
            {
                found.push(format!("{name}: a container is not restricted"));
            }
            let page = match container["name"].as_str() {
                Some("controller") => CONTROLLER,
                Some("operator") => OPERATOR,
                Some("backup") => CLI,
                _ => WORKER,
            };
            let arguments = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for option in arguments.filter(|argument| argument.starts_with("--")) {
                if !page.contains(&format!("`{option}")) {
                    found.push(format!("{name}: the program has no {option}"));
                }
            }
            for variable in container["env"].as_array().into_iter().flatten() {
                let variable = variable["name"].as_str().unwrap_or_default();
                if variable.starts_with("ATLAS_") && !page.contains(&format!("`{variable}`")) {
                    found.push(format!("{name}: the program has no {variable}"));
                }
            }
            let ports: Vec<&Value> =
                container["ports"].as_array().into_iter().flatten().map(|port| &port["name"]).collect();
            for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
                let get = &container[probe]["httpGet"];
                let Some(path) = get["path"].as_str() else { continue };
                if !(if is_operator { OPERATOR } else { HTTP }).contains(path) || !ports.contains(&&get["port"]) {
                    found.push(format!("{name}: {probe} asks {path} at {}", get["port"]));
                }
            }
        }
    }
    found
}

/// The Deployments that KEDA or Kubernetes scales. They say no number of replicas, which would be set again by every upgrade, and KEDA
/// reaches the door that it is told.
fn scaled(documents: &[Value]) -> Vec<&str> {
    let of_kind = |kind: &'static str| documents.iter().filter(move |document| document["kind"] == kind);
    let scalers = of_kind("ScaledObject").chain(of_kind("HorizontalPodAutoscaler"));
    let objects: Vec<&str> = scalers.filter_map(|object| object["spec"]["scaleTargetRef"]["name"].as_str()).collect();
    let free = of_kind("Deployment").filter(|deployment| deployment["spec"].get("replicas").is_none());
    assert_eq!(free.filter_map(|deployment| deployment["metadata"]["name"].as_str()).collect::<Vec<_>>(), objects);
    let asks = of_kind("ScaledObject").map(|object| &object["spec"]["triggers"][0]["metadata"]["scalerAddress"]);
    assert!(asks.clone().all(|address| address == "atlas.atlas.svc:7403"), "{:?}", asks.collect::<Vec<_>>());
    let opens = |document: &&Value| document.to_string().contains("7403");
    let doors = of_kind("Service").chain(of_kind("StatefulSet")).filter(opens).count();
    assert_eq!(
        doors,
        if of_kind("ScaledObject").count() == 0 { 0 } else { 2 },
        "a port of the controllers and of their Service"
    );
    objects
}

/// How many routes lead to a port that the Service has.
fn routes(documents: &[Value]) -> usize {
    let of_kind = |kind: &'static str| documents.iter().filter(move |document| document["kind"] == kind);
    let backends = of_kind("HTTPRoute").map(|route| &route["spec"]["rules"][0]["backendRefs"][0]);
    let serves = |backend: &&Value| {
        of_kind("Service").filter(|service| service["metadata"]["name"] == backend["name"]).any(|service| {
            let ports = service["spec"]["ports"].as_array();
            ports.is_some_and(|ports| ports.iter().any(|port| port["port"] == backend["port"]))
        })
    };
    backends.filter(serves).count()
}

/// The rules of the roles of a namespace: groups, resources, verbs and names.
fn rules(documents: &[Value], namespace: &str) -> BTreeSet<String> {
    let roles = documents.iter().filter(|document| document["kind"] == "Role");
    let roles = roles.filter(|role| role["metadata"]["namespace"] == namespace);
    let rules = roles.flat_map(|role| role["rules"].as_array().into_iter().flatten());
    rules.map(|rule| format!("{} {} {}", rule["apiGroups"], rule["resources"], rule["verbs"])).collect()
}

/// The operator may do what it is seen to do, in the namespaces that it watches, and nobody else may do anything.
fn check_rights(documents: &[Value], watched: &[&str]) {
    let shown = |(group, resources, verbs): &(&str, &[&str], &[&str])| {
        let json = |texts: &[&str]| serde_json::json!(texts).to_string();
        format!("{} {} {}", json(&[group]), json(resources), json(verbs))
    };
    for namespace in watched {
        let mut granted: BTreeSet<String> = GRANTED.iter().map(shown).collect();
        if *namespace == "atlas" {
            granted.extend(GRANTED_AT_HOME.iter().map(shown));
        }
        assert_eq!(rules(documents, namespace), granted, "{namespace}");
    }
    let of_kind = |kind: &'static str| documents.iter().filter(move |document| document["kind"] == kind);
    let roles = if watched.is_empty() { 0 } else { watched.len() + 1 };
    assert_eq!((of_kind("Role").count(), of_kind("RoleBinding").count()), (roles, roles));
    assert_eq!(of_kind("ClusterRole").chain(of_kind("ClusterRoleBinding")).count(), 0);
    for binding in of_kind("RoleBinding") {
        let subject = &binding["subjects"][0];
        assert_eq!((&subject["name"], &subject["namespace"]), (&"atlas-operator".into(), &"atlas".into()));
    }
}

#[test]
fn the_chart_is_right_in_every_variant() {
    let Some(helm) = tool(HELM) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let lint = Command::new(&helm).args(["lint", "--strict"]).arg(chart()).output().expect("helm starts");
    assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    for (name, values) in VARIANTS {
        let text = template(&helm, folder.path(), values).unwrap_or_else(|error| panic!("{name}: {error}"));
        let documents = documents(&text);
        assert_eq!(complaints(&documents), Vec::<String>::new(), "{name}");
        let kinds = |kind: &str| documents.iter().filter(|document| document["kind"] == kind).count();
        assert_eq!(kinds("StatefulSet"), 1, "{name}");
        let scales = ["scaled", "hpa"].contains(name).then_some("atlas-worker-cpu");
        assert_eq!(scaled(&documents), Vec::from_iter(scales), "{name}");
        assert_eq!(kinds("DaemonSet"), usize::from(*name == "every-node"), "{name}");
        assert_eq!(kinds("HTTPRoute"), usize::from(*name == "gateway"), "{name}");
        assert_eq!(routes(&documents), kinds("HTTPRoute"), "{name}");
        assert_eq!(kinds("Secret"), usize::from(*name != "own-secret"), "{name}");
        let (watched, definitions) = match *name {
            "operator" => (&["atlas", "team-a", "team-b"][..], 5),
            "operator-token" => (&["atlas"][..], 0),
            _ => (&[][..], 0),
        };
        check_rights(&documents, watched);
        assert_eq!(kinds("CustomResourceDefinition"), definitions, "{name}");
        assert_eq!(kinds("CronJob"), usize::from(name.starts_with("backup")), "{name}");
        assert_eq!(kinds("PersistentVolumeClaim"), usize::from(*name == "backup"), "{name}");
        fs::write(folder.path().join(format!("{name}.rendered.yaml")), text).expect("a file");
    }
    // The manifests without Helm are those of the chart.
    let plain = template(&helm, folder.path(), "auth: {existingSecret: atlas-auth}").expect("rendered");
    let plain: String = plain
        .lines()
        .filter(|line| !line.contains("helm.sh/chart") && !line.contains("managed-by"))
        .map(|line| format!("{line}\n"))
        .collect();
    expect_test::expect_file!["../../../../k8s/base/atlas.yaml"].assert_eq(&plain);
    for values in WRONG {
        let refused = template(&helm, folder.path(), values).expect_err(values);
        assert!(refused.contains("schema"), "{values}: {refused}");
    }
    let Some(python) = tool(PYTHON) else { return };
    let validate = python.with_file_name("kubernetes-validate");
    for version in VERSIONS {
        let mut command = Command::new(&validate);
        command.args(["-k", version, "--strict", "--quiet"]);
        // The schemas of the Prometheus operator, of KEDA and of the Gateway API are not among those of Kubernetes.
        let foreign = ["monitored", "scaled", "gateway"];
        let names = VARIANTS.iter().map(|(name, _)| name).filter(|name| !foreign.contains(name));
        command.args(names.map(|name| folder.path().join(format!("{name}.rendered.yaml"))));
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{version}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Echoes its input.
const HELLO: Agent<'static> = Agent {
    name: "hello",
    version: "1.0.0",
    contract: "",
    script: r#"cat >/dev/null; printf '{"greeting": "Hello"}'"#,
};

/// The line that runs a container on a machine as the kubelet would, with addresses instead of names.
fn line(container: &Value, machine: &str, home: &Path, program: &str) -> Line {
    let pod = machine.to_owned();
    let mut assignments = String::new();
    for variable in container["env"].as_array().expect("variables") {
        let name = variable["name"].as_str().expect("a name");
        let mut value = variable["value"].as_str().unwrap_or(&pod).replace("$(POD_NAME)", &pod).replace("$(ZONE)", "a");
        for at in 0..3 {
            let address = format!("10.0.0.{}", at + 1);
            value = value.replace(&format!("atlas-controller-{at}.atlas-controllers.atlas.svc"), &address);
            value = value.replace(&format!("c{}.atlas-controllers.atlas.svc", at + 1), &address);
        }
        let value = value.replace("/etc/atlas/", &format!("{}/", home.display()));
        assignments.push_str(&format!("{name}='{value}' "));
    }
    Line { machine: machine.to_owned(), command: format!("env {assignments}{program}") }
}

#[test]
fn the_containers_of_the_chart_are_a_cluster() {
    let Some(helm) = tool(HELM) else { return };
    let Some(mut site) = Site::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let documents = documents(&template(&helm, folder.path(), "backup: {enabled: true, keep: 2}").expect("rendered"));
    let of_kind = |kind: &str| documents.iter().find(|document| document["kind"] == kind).expect(kind);
    let controller = containers(of_kind("StatefulSet"))[0];
    let worker = containers(of_kind("Deployment"))[0];
    // What the chart makes once for all controllers.
    let secret = &of_kind("Secret")["data"];
    for machine in ["c1", "c2", "c3"] {
        for file in ["root.token", "secrets.key"] {
            let path = site.home(machine).join(file);
            let encoded = secret[file].as_str().expect("data");
            let decoded =
                Command::new("base64").arg("-d").stdin(fed(folder.path(), encoded)).output().expect("decoded");
            fs::write(&path, decoded.stdout).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).expect("a mode");
        }
    }
    fs::copy(site.home("c1").join("root.token"), site.home(DESK).join("root.token")).expect("copied");
    for machine in ["c1", "c2", "c3"] {
        let home = site.home(machine);
        site.start(&line(controller, machine, &home, "atlas-controller"));
        if machine == "c1" {
            site.typed(DESK, "export ATLAS_TOKEN=$(cat root.token)");
            site.typed(DESK, "export ATLAS_SERVER=http://10.0.0.1:7400,http://10.0.0.2:7400,http://10.0.0.3:7400");
        }
    }
    site.all_vote();
    let home = site.home("w1");
    site.start(&line(worker, "w1", &home, "atlas-worker"));
    write_agent(&site.home(DESK), &HELLO);
    site.typed(DESK, "atlasctl deploy ./hello");
    assert!(site.typed(DESK, "atlasctl run hello").contains("Hello"));
    // Each night's backup is restored for a test, and the older ones go.
    let backup = containers(of_kind("CronJob"))[0]["args"].as_array().expect("arguments");
    let backup = backup.iter().map(|word| word.as_str().expect("a word").replace("/backups", "backups"));
    let backup = format!("atlasctl {}", backup.collect::<Vec<_>>().join(" "));
    site.typed(DESK, "mkdir backups && touch backups/atlas-20260101T000000Z.tar backups/atlas-20260102T000000Z.tar");
    let told = site.typed(DESK, &format!("{backup} 2>&1"));
    assert!(told.contains("restored for a test: ") && told.contains("deleted "), "{told}");
    let left = site.typed(DESK, "ls backups");
    assert!(left.starts_with("atlas-20260102T000000Z.tar") && left.lines().count() == 2, "{left}");
    // A pod that is replaced has its volume, and is a member again.
    site.stop("c2");
    site.start_again("c2");
    site.all_vote();
    // The first pod with an empty volume finds the others, and forms no second cluster.
    site.lose("c1");
    site.typed(DESK, "for i in $(seq 40); do atlasctl cluster remove c1 --yes && exit 0; sleep 0.5; done; exit 1");
    site.start_again("c1");
    site.all_vote();
    assert!(site.typed(DESK, "atlasctl run hello").contains("Hello"));
}

/// A text as the input of a program.
fn fed(folder: &Path, text: &str) -> fs::File {
    let path = folder.join("input");
    fs::write(&path, text).expect("a file");
    fs::File::open(path).expect("a file")
}
