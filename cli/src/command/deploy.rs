//! `atlasctl deploy`: checks, tests and registers the agents in folders.

pub(crate) mod published;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_contract::fixture::Expectation;
use atlas_contract::{ContractError, Violation, Warning};
use atlas_package::{PackError, Package, SKILL_FILE, SkippedPath};
use atlas_types::Digest;
use serde_json::{Value, json};

use crate::command::model::model_of;
use crate::command::test::before_deploy;
use crate::command::{chain, skill};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::program::{Checker, Findings, Has, RunsOn};
use crate::shipped;
use crate::trial::{self, Case, Trial};
use crate::words;

/// Options of `atlasctl deploy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folders with an agent.yaml or a skill.yaml, folders of folders with an agent.yaml, YAML files with the definition of a chain, or
    /// names of what ships with Atlas.
    #[arg(required_unless_present = "list", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// List the agents, skills and chains that ship with Atlas.
    #[arg(long, conflicts_with_all = ["paths", "dry_run", "no_test", "replace", "watch"])]
    list: bool,
    /// Check, test and pack, without registering.
    #[arg(long)]
    dry_run: bool,
    /// Do not run the agents' tests.
    #[arg(long)]
    no_test: bool,
    /// Replace the package of a version that is deployed with other files; running and waiting jobs keep the old one.
    #[arg(long)]
    replace: bool,
    /// Keep running and deploy agents again when their folders change, until Ctrl-C. It replaces the packages that it deployed itself.
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
}

/// An agent that will be deployed.
struct LocalAgent {
    folder: PathBuf,
    package: Package,
    cases: Vec<Case>,
    /// False if this package is deployed already. The agent is still listed, because tests of other agents may need it.
    news: bool,
    /// The package of this version that this run has uploaded: its own drafts may be replaced.
    ours: Option<Digest>,
}

/// A package that this run has deployed, or found deployed.
#[derive(Clone, Copy)]
struct Known {
    digest: Digest,
    /// Whether this run uploaded it.
    ours: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    if options.watch {
        return watch::run(context, options).await;
    }
    if options.list {
        return shipped::list(context);
    }
    let places = shipped::places(&options.paths)?;
    let (chains, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        places.paths.iter().cloned().partition(|path| chain::is_definition(path));
    let (skills, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        folders.into_iter().partition(|path| path.join(SKILL_FILE).is_file());
    if !skills.is_empty() {
        skill::deploy(context, &skills, options.dry_run, options.replace).await?;
    }
    if !folders.is_empty() || (chains.is_empty() && skills.is_empty()) {
        deploy(context, options, &find(&folders, &BTreeMap::new())?).await?;
    }
    for path in &chains {
        store(context, options, path).await?;
    }
    Ok(Exit::Done)
}

/// Stores the chain in a file.
async fn store(context: &Context, options: &Options, path: &Path) -> Result<(), Failure> {
    let client = context.client()?;
    let object = chain::put(&client, path, options.dry_run).await?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let steps = object["spec"]["steps"].as_array().map_or(0, Vec::len) as u64;
    context.note(&format!("chain {name}   checked    {}", words::count(steps, "step")));
    for warning in chain::warnings(&client, path).await? {
        context.note(&format!("chain {name}   warning    {warning}"));
    }
    if !options.dry_run {
        context.note(&format!("chain {name}   live       runs by its name"));
        let name = words::shell(&name);
        context.next(&format!("next: atlasctl chain check {name}   or: atlasctl run {name} --input '{{}}'"));
    }
    context.show(&Shown { value: object, text: String::new(), names: vec![format!("{}/{name}", chain::KIND)] })
}

/// Finds every agent in some folders; an agent whose package is `known` is not news.
fn find(paths: &[PathBuf], known: &BTreeMap<String, Known>) -> Result<Vec<LocalAgent>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        for folder in folders(path)? {
            let (package, cases) = (pack(&folder)?, trial::cases(&folder)?);
            let before = known.get(&label(&package));
            let news = before.is_none_or(|before| before.digest != package.digest);
            let ours = before.filter(|before| before.ours).map(|before| before.digest);
            found.push(LocalAgent { folder, package, cases, news, ours });
        }
    }
    Ok(found)
}

/// `hello 0.1.0`
pub(crate) fn label(package: &Package) -> String {
    format!("{} {}", package.contract.name, package.contract.version)
}

/// Tests all new packages, and looks for versions that others have, before it uploads the first one, so that a failing test leaves
/// nothing half deployed. Returns the labels of those that were uploaded.
async fn deploy(context: &Context, options: &Options, found: &[LocalAgent]) -> Result<BTreeSet<String>, Failure> {
    let client = context.client()?;
    let warned = programs(options, found).await?;
    if !options.dry_run && !options.replace {
        let mut packages = found.iter().filter(|found| found.news).map(|found| (&found.package, found.ours));
        published::immutable(&client, &mut packages).await?;
    }
    let tested = if options.no_test { vec![None; found.len()] } else { tested(found).await? };
    // With --dry-run, there need be no cluster.
    let along = found.iter().map(|found| found.package.contract.name.to_string());
    let has = Has::ask(&client, along).await.ok();
    let (mut answers, mut uploaded) = (Vec::new(), BTreeSet::new());
    let mut names = Vec::new();
    let mut next = None;
    let all = found.iter().zip(tested).zip(warned).filter(|((found, _), _)| found.news);
    for ((LocalAgent { folder, package, cases, ours, .. }, tested), warned) in all {
        let agent = label(package);
        let digest = package.digest.to_string();
        let (files, size) = (words::count(package.files as u64, "file"), words::bytes(package.bytes.len() as u64));
        let tests = match tested {
            Some((count, took)) => {
                let took = words::milliseconds(took.as_secs_f64() * 1000.0);
                format!("{} passed in {took}", words::count(count as u64, "test"))
            }
            None if cases.is_empty() => "no tests".to_owned(),
            None => "not tested".to_owned(),
        };
        context.note(&format!("{agent}   checked    contract valid, {tests}"));
        let lacks = has.iter().flat_map(|has| has.lacks(folder, &package.contract));
        for warning in warned.into_iter().chain(lacks) {
            context.note(&format!("{agent}   warning    {warning}"));
        }
        context.note(&format!("{agent}   packed     {files}, {size}, {}", digest.get(..15).unwrap_or(&digest)));
        if !package.left_out.is_empty() {
            let left_out = words::some(&package.left_out, 5);
            context
                .note(&format!("{agent}   left out   {left_out}: hidden and special files are no part of a package"));
        }
        names.push(format!("agent/{}", package.contract.name));
        let input = example(cases, &package.contract.input_schema);
        let (name, input) = (words::shell(package.contract.name.as_str()), words::shell(&input.to_string()));
        next = Some(format!("next: atlasctl run {name} --input {input}"));
        if options.dry_run {
            let (name, version) = (package.contract.name.to_string(), package.contract.version.to_string());
            answers.push(json!({"name": name, "version": version, "digest": digest}));
            continue;
        }
        let answer = client.register(package.bytes.clone(), options.replace || ours.is_some()).await?;
        if answer["changed"] == true {
            uploaded.insert(agent.clone());
        }
        answers.push(answer);
        let model = model_of(&client, &package.contract, folder).await?;
        let model = model.map(|model| format!("   {model}")).unwrap_or_default();
        context.note(&format!("{agent}   live       accepts jobs{model}"));
    }
    if let (Some(next), false) = (next, options.dry_run) {
        context.next(&next);
    }
    context.show(&Shown { value: Value::Array(answers), text: String::new(), names })?;
    Ok(uploaded)
}

/// Checks that the program of each new agent can start; returns the warnings per agent. With --no-test, a program that
/// is missing here is not refused, because workers may have it.
async fn programs(options: &Options, found: &[LocalAgent]) -> Result<Vec<Vec<Warning>>, Failure> {
    let checker = Checker::new(RunsOn::Workers { tested: !options.no_test });
    let mut warned = Vec::new();
    for LocalAgent { folder, package, news, .. } in found {
        let findings = if *news { checker.check(folder, package).await } else { Findings::default() };
        if let Some(failure) = findings.refusal(&label(package)) {
            return Err(failure);
        }
        warned.push(findings.warnings);
    }
    Ok(warned)
}

/// Runs the tests; returns how many tests of each agent passed, and their duration. The first failing test ends the
/// run. If there are no tests, no trial cluster is started.
async fn tested(found: &[LocalAgent]) -> Result<Vec<Option<(usize, Duration)>>, Failure> {
    if found.iter().all(|found| found.cases.is_empty() || !found.news) {
        return Ok(vec![None; found.len()]);
    }
    let trial = Trial::start(trial::Rules::default()).await?;
    let ran = async {
        for found in found {
            trial.register(&found.package).await?;
        }
        let mut all = Vec::new();
        for found in found {
            let cases = if found.news { &found.cases[..] } else { &[] };
            all.push(before_deploy(&trial, &found.package, cases).await?);
        }
        Ok(all)
    };
    let ran = ran.await;
    trial.end().await;
    ran
}

/// The folder itself if it contains an agent, otherwise every agent in its subfolders.
pub(crate) fn folders(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if atlas_package::is_agent(path) {
        return Ok(vec![path.to_owned()]);
    }
    if !path.exists() {
        return Err(absent(path));
    }
    let discovery = atlas_package::discover(&[path]);
    if let Some(first) = discovery.skipped.into_iter().next() {
        return Err(skipped(first));
    }
    if discovery.found.is_empty() {
        let message = format!(
            "\"{}\" contains no agent: no agent.yaml, graph.yaml or config.yaml was found in it",
            path.display()
        );
        return Err(Failure::new("E1105", Exit::Invalid, message).with_next("make one: atlasctl init NAME"));
    }
    Ok(discovery.found.into_iter().map(|found| found.dir).collect())
}

/// The failure for a path that does not exist.
pub(crate) fn absent(path: &Path) -> Failure {
    let failure = Failure::new("E1105", Exit::Invalid, format!("\"{}\" does not exist", path.display()));
    failure.with_next(shipped::instead_of(path))
}

/// The failure for a folder that was skipped during discovery.
pub(crate) fn skipped(skipped: SkippedPath) -> Failure {
    match skipped {
        SkippedPath::Contract { path, source } => refused(&path, &source),
        other => Failure::new("E1105", Exit::Invalid, other.to_string()),
    }
}

pub(crate) fn pack(path: &Path) -> Result<Package, Failure> {
    atlas_package::pack_in(path, &|name| std::env::var(name).ok()).map_err(|error| match &error {
        PackError::Contract(contract) => refused(path, contract),
        _ => {
            let message = format!("could not pack \"{}\": {}", path.display(), atlas_env::chain(&error));
            Failure::new("E1105", Exit::Invalid, message)
        }
    })
}

/// An invalid contract, with the location of each violation.
fn refused(path: &Path, error: &ContractError) -> Failure {
    let place = |violation: &Violation| (violation.pointer.clone(), violation.message.clone());
    let places: Vec<_> = error.plain().iter().map(place).collect();
    let why = if places.is_empty() { format!(": {error}") } else { String::new() };
    let file = if path.is_dir() { path.join(atlas_package::CONTRACT_FILE) } else { path.to_owned() };
    let message = format!("the contract \"{}\" is not valid{why}", file.display());
    Failure { places, ..Failure::new("E1103", Exit::Invalid, message).with_next("the rules: atlasctl docs contract") }
}

/// An example input: the input of the first test that expects an output; without such a test, a value for each required
/// member.
fn example(cases: &[Case], schema: &Value) -> Value {
    let completes = |case: &&Case| matches!(case.fixture.expected, Expectation::Output(_));
    if let Some(case) = cases.iter().find(completes) {
        return case.fixture.input.clone();
    }
    let value = |name: &str| {
        let property = &schema["properties"][name];
        match property["enum"].get(0) {
            Some(first) => first.clone(),
            None => match property["type"].as_str() {
                Some("integer" | "number") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => json!("…"),
            },
        }
    };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    required.map(|name| (name.to_owned(), value(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_contract_is_no_agent() {
        let dir = tempfile::tempdir().expect("a folder");
        let failure = folders(dir.path()).expect_err("nothing in it");
        assert_eq!(failure.code.as_deref(), Some("E1105"));
        assert!(failure.message.ends_with("no agent.yaml, graph.yaml or config.yaml was found in it"), "{failure}");
    }

    #[test]
    fn a_folder_of_agents_is_every_agent_below() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["a", "b"] {
            let agent = dir.path().join(name);
            std::fs::create_dir(&agent).expect("made");
            let contract = format!("agent: {{ name: {name}, version: 1.0.0 }}");
            std::fs::write(agent.join("agent.yaml"), contract).expect("written");
        }
        assert_eq!(folders(dir.path()).expect("two agents").len(), 2);
        assert_eq!(folders(&dir.path().join("a")).expect("one agent").len(), 1);
    }

    #[test]
    fn an_example_has_what_is_required() {
        let schema = json!({
            "properties": {"name": {"type": "string"}, "n": {"type": "integer"}, "style": {"enum": ["a", "b"]}, "x": {}},
            "required": ["name", "n", "style"],
        });
        assert_eq!(example(&[], &schema), json!({"name": "…", "n": 1, "style": "a"}));
        assert_eq!(example(&[], &json!({})), json!({}));
    }

    #[test]
    fn a_broken_rule_is_told_with_its_place() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("agent.yaml"), "agent: { name: x }").expect("written");
        let failure = pack(dir.path()).expect_err("no version");
        assert_eq!(failure.code.as_deref(), Some("E1103"));
        assert!(!failure.places.is_empty(), "{failure}");
    }
}
