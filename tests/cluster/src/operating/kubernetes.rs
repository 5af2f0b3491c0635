//! The Helm chart: rendered in many variants and checked.

mod pods;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use atlas_contract::yaml::{self, Budget};
use serde_json::Value;

use crate::kubernetes::{GRANTED, GRANTED_AT_HOME};

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
    ("scaled-slowly", "workers: [{name: cpu, autoscaling: {min: 1, max: 8, cooldownSeconds: 7200}}]"),
    ("every-node", "workers: [{name: all, everyNode: true, nodeSelector: {pool: agents}}, {name: gpu, gpus: 1}]"),
    ("hpa", "workers: [{name: cpu, autoscaling: {min: 2, max: 20, jobsPerWorker: 2.5, metric: atlas_jobs}}]"),
    ("own-secret", "auth: {existingSecret: mine}"),
    ("ingress", "ingress: {enabled: true, host: atlas.example.com, tlsSecret: tls, className: nginx}"),
    ("ingress-notes", "ingress: {enabled: true, host: a.example.com, tlsSecret: t, annotations: {a/b: 'true'}}"),
    (
        "gateway",
        "gateway: {enabled: true, name: public, namespace: edge, sectionName: https, hostnames: [atlas.example.com], caConfigMap: ca}",
    ),
    ("gateway-plain", "tls: {mode: off}\ngateway: {enabled: true, name: public, hostnames: [atlas.example.com]}"),
    (
        "plain",
        "tls: {mode: 'off'}\noperator: {enabled: true}\nbackup: {enabled: true}\ningress: {enabled: true, host: a.example.com, tlsSecret: t}",
    ),
    ("plain-scaled", "tls: {mode: off}\nworkers: [{name: cpu, autoscaling: {max: 20}}]"),
    (
        "cert-manager",
        "tls: {mode: certManager, names: [atlas.example.com, 10.0.0.9]}\noperator: {enabled: true}\nbackup: {enabled: true}",
    ),
    ("cert-manager-issuer", "tls: {mode: certManager, certManager: {issuer: {name: corporate, kind: ClusterIssuer}}}"),
    ("cert-manager-secret", "tls: {mode: certManager}\nauth: {existingSecret: mine}"),
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
    "tls: {mode: on}",
    "tls: {mode: vault}",
    "tls: {names: ['a,b']}",
    "tls: {certManager: {issuer: {name: a, kind: Vault}}}",
    "gateway: {enabled: true, name: public, hostnames: [atlas.example.com]}",
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
    template_with(helm, folder, values, &[])
}

fn template_with(helm: &Path, folder: &Path, values: &str, more: &[&str]) -> Result<String, String> {
    let file = folder.join("values.yaml");
    fs::write(&file, values).expect("a file");
    let mut command = Command::new(helm);
    command.args(["template", "atlas"]).arg(chart()).args(["-n", "atlas", "-f"]).arg(file).args(more);
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

/// The pod of a StatefulSet, a Deployment, a DaemonSet, a Job or a CronJob.
fn pod(document: &Value) -> Option<&Value> {
    match document["kind"].as_str()? {
        "StatefulSet" | "Deployment" | "DaemonSet" | "Job" => document.pointer("/spec/template/spec"),
        "CronJob" => document.pointer("/spec/jobTemplate/spec/template/spec"),
        _ => None,
    }
}

/// The containers of a pod, those first that run before the others.
fn containers(document: &Value) -> Vec<&Value> {
    let of = |field| pod(document).and_then(move |pod| pod[field].as_array()).into_iter().flatten();
    of("initContainers").chain(of("containers")).collect()
}

/// The container of a name.
fn container<'a>(document: &'a Value, name: &str) -> &'a Value {
    containers(document).into_iter().find(|container| container["name"] == name).expect(name)
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
        let component = metadata["labels"]["app.kubernetes.io/component"].as_str().unwrap_or_default();
        let is_operator = component == "operator";
        if pod["automountServiceAccountToken"] != ["operator", "init"].contains(&component) {
            found.push(format!("{name}: the pod has a token of Kubernetes"));
        }
        found.extend(unmounted(pod).into_iter().map(|path| format!("{name}: nothing mounts {path}")));
        // What cannot be right the next time either is not tried again: the code of the test of a secret that lacks a key.
        let definite = document.pointer("/spec/podFailurePolicy/rules/0/onExitCodes/values");
        if component == "init" && definite != Some(&serde_json::json!([2])) {
            found.push(format!("{name}: a secret that lacks a key is examined again"));
        }
        for container in containers(document) {
            let security = &container["securityContext"];
            if security["allowPrivilegeEscalation"] != false
                || security["readOnlyRootFilesystem"] != true
                || security["capabilities"]["drop"] != serde_json::json!(["ALL"])
            {
                found.push(format!("{name}: a container is not restricted"));
            }
            // Connections come for a moment after Kubernetes decided to stop a controller.
            let serves_on = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64();
            let grace = pod["terminationGracePeriodSeconds"].as_u64();
            if component == "controller" && !(1..grace.unwrap_or(30) / 2).contains(&serves_on.unwrap_or(0)) {
                found.push(format!("{name}: it stops while it is asked"));
            }
            let page = match container["name"].as_str() {
                Some("controller") => CONTROLLER,
                Some("operator") => OPERATOR,
                Some("backup" | "init") => CLI,
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
                let Some(path) = get["path"].as_str().and_then(|path| path.split('?').next()) else { continue };
                if !(if is_operator { OPERATOR } else { HTTP }).contains(path) || !ports.contains(&&get["port"]) {
                    found.push(format!("{name}: {probe} asks {path} at {}", get["port"]));
                }
            }
        }
    }
    found
}

/// Files under /etc/atlas that a container is told of and does not have. Agents' containers must have none.
fn unmounted(pod: &Value) -> Vec<String> {
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut missing = Vec::new();
    for container in all(&pod["initContainers"]).iter().chain(&all(&pod["containers"])) {
        let mounts = all(&container["volumeMounts"]);
        let mount = mounts.iter().find(|mount| mount["mountPath"] == "/etc/atlas");
        let volume =
            mount.and_then(|mount| all(&pod["volumes"]).into_iter().find(|volume| volume["name"] == mount["name"]));
        let sources = volume.map(|volume| all(&volume["projected"]["sources"])).unwrap_or_default();
        let items = sources.iter().flat_map(|source| all(&source["secret"]["items"]));
        let files: Vec<String> =
            items.map(|item| format!("/etc/atlas/{}", item["path"].as_str().expect("a path"))).collect();
        let values = all(&container["env"]);
        let told = values
            .iter()
            .filter_map(|variable| variable["value"].as_str())
            .filter(|value| value.starts_with("/etc/atlas"));
        let has = |path: &str| files.iter().any(|file| file == path || file.starts_with(&format!("{path}/")));
        missing.extend(told.filter(|path| !has(path)).map(str::to_owned));
        if container["name"] == "worker" && !files.is_empty() {
            missing.push(format!("{files:?} for a reason"));
        }
    }
    missing
}

/// What a rendered chart says about encryption: all of it, or nothing.
fn is_encrypted(documents: &[Value]) -> bool {
    let of_kind = |kind: &str| documents.iter().filter(move |document| document["kind"] == *kind).collect::<Vec<_>>();
    let text = Value::from(documents.to_vec()).to_string();
    let joins = documents.iter().flat_map(containers).filter(|container| container["name"] == "join").count();
    let workers =
        documents.iter().filter(|one| one["metadata"]["labels"]["atlas/workers"].is_string() && pod(one).is_some());
    let controller = container(of_kind("StatefulSet")[0], "controller");
    let set = |name: &str| controller["env"].as_array().expect("variables").iter().any(|one| one["name"] == name);
    let encrypted = set("ATLAS_TLS_DIR");
    assert_eq!(set("ATLAS_PLAIN_PORTS"), !encrypted);
    assert_eq!(joins, if encrypted { workers.count() } else { 0 }, "each group of workers joins");
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert_eq!(controller[probe]["httpGet"]["scheme"], if encrypted { "HTTPS" } else { "HTTP" });
    }
    assert_eq!(text.contains("http://atlas.atlas.svc"), !encrypted && text.contains("ATLAS_SERVER"));
    for (kind, other) in [("ScaledObject", "TriggerAuthentication"), ("HTTPRoute", "BackendTLSPolicy")] {
        assert_eq!(!of_kind(other).is_empty(), encrypted && !of_kind(kind).is_empty(), "{other}");
    }
    for monitor in of_kind("ServiceMonitor") {
        assert_eq!(monitor["spec"]["endpoints"][0]["scheme"] == "https", encrypted);
    }
    for ingress in of_kind("Ingress") {
        let protocol = &ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/backend-protocol"];
        assert_eq!(protocol == "HTTPS", encrypted);
    }
    encrypted
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
    for object in of_kind("ScaledObject") {
        let waits = object.pointer("/spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleDown");
        let waits = waits.and_then(|waits| waits["stabilizationWindowSeconds"].as_u64());
        let said = object["spec"]["cooldownPeriod"].as_u64().expect("a number");
        assert_eq!(waits, Some(said.min(3_600)), "the time before fewer workers are wanted");
    }
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

/// The Job that makes the secret, and its role.
const INIT: &str = "atlas-init";

/// The rules of the roles of a namespace but that of the Job: groups, resources, verbs and names.
fn rules(documents: &[Value], namespace: &str) -> BTreeSet<String> {
    let roles = documents.iter().filter(|document| document["kind"] == "Role");
    let roles = roles.filter(|role| role["metadata"]["namespace"] == namespace && role["metadata"]["name"] != INIT);
    let rules = roles.flat_map(|role| role["rules"].as_array().into_iter().flatten());
    rules.map(|rule| format!("{} {} {}", rule["apiGroups"], rule["resources"], rule["verbs"])).collect()
}

/// The operator may do what it is seen to do, in the namespaces that it watches. The Job, if there is one, may create secrets and
/// read its own, before anything else is there. Nobody else may do anything.
fn check_rights(documents: &[Value], watched: &[&str], makes_secret: bool) {
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
    let made = documents.iter().filter(|document| document["metadata"]["name"] == INIT).collect::<Vec<_>>();
    assert_eq!(made.len(), if makes_secret { 4 } else { 0 });
    for document in &made {
        assert_eq!(document["metadata"]["annotations"]["helm.sh/hook"], "pre-install,pre-upgrade");
        if document["kind"] == "Role" {
            let rules = serde_json::json!([
                { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
                { "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["atlas-auth"], "verbs": ["get"] },
            ]);
            assert_eq!(document["rules"], rules);
        }
    }
    let roles = if watched.is_empty() { 0 } else { watched.len() + 1 } + usize::from(makes_secret);
    assert_eq!((of_kind("Role").count(), of_kind("RoleBinding").count()), (roles, roles));
    assert_eq!(of_kind("ClusterRole").chain(of_kind("ClusterRoleBinding")).count(), 0);
    for binding in of_kind("RoleBinding") {
        let subject = &binding["subjects"][0];
        let name = if binding["metadata"]["name"] == INIT { INIT } else { "atlas-operator" };
        assert_eq!((&subject["name"], &subject["namespace"]), (&name.into(), &"atlas".into()));
    }
}

/// A secret of others may be made later than the release, so it is checked when the release changes, by a Job that may only read it.
#[test]
fn an_upgrade_checks_a_secret_of_others() {
    let Some(helm) = tool(HELM) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = template_with(&helm, folder.path(), "auth: {existingSecret: mine}", &["--is-upgrade"]);
    let documents = documents(&text.expect("rendered"));
    assert_eq!(complaints(&documents), Vec::<String>::new());
    let made = documents.iter().filter(|document| document["metadata"]["name"] == INIT).collect::<Vec<_>>();
    assert_eq!(made.len(), 4);
    for document in made {
        assert_eq!(document["metadata"]["annotations"]["helm.sh/hook"], "pre-upgrade");
        if document["kind"] == "Role" {
            let rules = serde_json::json!([
                { "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"] },
            ]);
            assert_eq!(document["rules"], rules);
        }
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
        assert_eq!(is_encrypted(&documents), !name.contains("plain"), "{name}");
        let scales = ["scaled", "scaled-slowly", "hpa", "plain-scaled"].contains(name).then_some("atlas-worker-cpu");
        assert_eq!(scaled(&documents), Vec::from_iter(scales), "{name}");
        assert_eq!(kinds("DaemonSet"), usize::from(*name == "every-node"), "{name}");
        assert_eq!(kinds("HTTPRoute"), usize::from(name.starts_with("gateway")), "{name}");
        assert_eq!(routes(&documents), kinds("HTTPRoute"), "{name}");
        // Keys are in no manifest.
        assert_eq!(kinds("Secret"), 0, "{name}");
        let by_cert_manager = usize::from(name.starts_with("cert-manager"));
        assert_eq!(kinds("Certificate"), by_cert_manager, "{name}");
        assert_eq!(kinds("Issuer"), by_cert_manager - usize::from(*name == "cert-manager-issuer"), "{name}");
        let (watched, definitions) = match *name {
            "operator" => (&["atlas", "team-a", "team-b"][..], 5),
            "operator-token" => (&["atlas"][..], 0),
            "plain" | "cert-manager" => (&["atlas"][..], 5),
            _ => (&[][..], 0),
        };
        check_rights(&documents, watched, !["own-secret", "cert-manager-secret"].contains(name));
        assert_eq!(kinds("CustomResourceDefinition"), definitions, "{name}");
        let saves = ["backup", "backup-claim", "plain", "cert-manager"].contains(name);
        assert_eq!(kinds("CronJob"), usize::from(saves), "{name}");
        assert_eq!(kinds("PersistentVolumeClaim"), usize::from(saves && *name != "backup-claim"), "{name}");
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
        // The schemas of the Prometheus operator, of KEDA, of the Gateway API and of cert-manager are not among those of Kubernetes.
        let foreign = ["monitored", "scaled", "gateway", "cert-manager"];
        let is_foreign = |name: &&str| foreign.iter().any(|part| name.contains(part));
        let names = VARIANTS.iter().map(|(name, _)| name).filter(|name| !is_foreign(name));
        command.args(names.map(|name| folder.path().join(format!("{name}.rendered.yaml"))));
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{version}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
}
