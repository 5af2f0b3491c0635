//! What makes options, and what is refused.

use std::path::Path;

use super::*;

#[test]
fn flags_win_over_the_file() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("worker.toml");
    std::fs::write(&path, "node = \"a\"\nplaces = 3\ncontrollers = [\"c:1\"]\nidle-timeout = \"5m\"\n")
        .expect("writable");
    let flags = Configuration { config: Some(path), node: Some("b".into()), ..Configuration::default() };
    let options = flags.with_file().and_then(|merged| merged.options()).expect("valid");
    assert_eq!((options.node.as_str(), options.places), ("b", Some(3)));
    assert_eq!(options.idle_timeout, Duration::from_secs(300));
}

#[test]
fn an_unknown_key_is_refused() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("worker.toml");
    let told = |text: &str| {
        std::fs::write(&path, text).expect("writable");
        let flags = Configuration { config: Some(path.clone()), ..Configuration::default() };
        flags.with_file().expect_err("refused").to_string()
    };
    let place = |line: usize| format!("the configuration \"{}\" cannot be used: line {line}: ", path.display());
    assert!(told("node = \"a\"\nplace = 3\n").starts_with(&(place(2) + "unknown field `place`, expected one of ")));
    assert!(told("node = \"a\"\n\nplaces = \"x\"\n").starts_with(&(place(3) + "invalid type: string \"x\"")));
    assert!(told("[\n").starts_with(&place(1)));
}

#[test]
fn the_token_of_a_group_comes_with_the_certificates_and_without_another() {
    let path = |name: &str| Some(PathBuf::from(name));
    let set = |token: Option<&str>, group, authority| Configuration {
        node: Some("a".into()),
        controllers: Some(vec!["c:1".into()]),
        token_file: token.map(PathBuf::from),
        group_token_file: group,
        authority_file: authority,
        ..Configuration::default()
    };
    let group = set(None, path("g"), path("ca.pem")).options().expect("options").group;
    assert_eq!(group, Some(Group { token_file: "g".into(), authority_file: "ca.pem".into() }));
    let options = set(None, path("g"), path("ca.pem")).options().expect("options");
    assert!(options.hidden().any(|hidden| *hidden == Path::new("g")), "agents do not see it");
    assert_eq!(set(Some("t"), None, None).options().expect("options").group, None);
    for wrong in
        [set(None, path("g"), None), set(None, None, path("ca.pem")), set(Some("t"), path("g"), path("ca.pem"))]
    {
        assert!(matches!(wrong.options(), Err(ConfigurationError::Group)));
    }
}

#[test]
fn checks_are_on_unless_they_are_switched_off() {
    let set = |checks: Option<&str>, gpus| Configuration {
        node: Some("a".into()),
        controllers: Some(vec!["c:1".into()]),
        hardware_checks: checks.map(str::to_owned),
        gpus,
        ..Configuration::default()
    };
    let checks = |set: Configuration| set.options().map(|options| options.hardware_checks).ok();
    assert_eq!((checks(set(None, None)), checks(set(Some("off"), None))), (Some(true), Some(false)));
    assert!(matches!(set(Some("off"), Some(1)).options(), Err(ConfigurationError::DeclaredUnchecked)));
    assert!(matches!(set(Some("no"), None).options(), Err(ConfigurationError::Value { .. })));
}

#[test]
fn secrets_have_sources() {
    let set = |prefix: Option<&str>, allowed: Option<&[&str]>| Configuration {
        node: Some("a".into()),
        controllers: Some(vec!["c:1".into()]),
        secrets_prefix: prefix.map(str::to_owned),
        secrets_allowed: allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        ..Configuration::default()
    };
    let secrets = |set: Configuration| set.options().map(|options| options.secrets).ok();
    assert_eq!(secrets(set(None, None)), Some(SecretSources::default()));
    let found = secrets(set(Some("X_"), Some(&["a", ""]))).expect("options");
    assert_eq!((found.prefix.as_str(), found.allowed), ("X_", Rules::Only(["a".to_owned()].into())));
    let none = secrets(set(None, Some(&[""]))).expect("options");
    assert_eq!(none.allowed, Rules::Only([].into()), "an empty name allows none");
    assert!(secrets(set(Some(""), None)).is_none() && secrets(set(Some("A-"), None)).is_none());
}
