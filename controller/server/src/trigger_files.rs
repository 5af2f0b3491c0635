//! Triggers from files, `--triggers-path` (compatibility §14.6). The id comes from the name in the file, so that a restart makes
//! nothing twice.

use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_contract::yaml::{Budget, load_strictly};
use atlas_env::Env;
use atlas_service::{Caller, Error, Service};
use serde_json::{Map, Value};

/// The pause between two tries.
const INTERVAL: Duration = Duration::from_millis(100);
/// Most files of a folder.
const FILES_MAX: usize = 1_000;

/// A trigger in a file.
#[derive(Debug)]
pub(crate) struct TriggerFile {
    path: PathBuf,
    document: Value,
}

/// The triggers in the `*.yaml` files of a folder, sorted by name. A file that cannot be read is reported and left out.
pub(crate) fn read(folder: &Path) -> std::io::Result<Vec<TriggerFile>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(FILES_MAX) {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths.into_iter().filter_map(|path| read_file(path).inspect_err(|why| tracing::warn!("{why}")).ok()).collect())
}

fn read_file(path: PathBuf) -> Result<TriggerFile, String> {
    let failed = |why: String| format!("the trigger in \"{}\" was left out: {why}", path.display());
    let budget = Budget::default();
    let bytes = atlas_env::read_bytes(&path, budget.bytes_max as u64).map_err(|error| failed(error.to_string()))?;
    let document = load_strictly(&bytes, budget).map_err(|error| failed(error.to_string()))?;
    let Value::Object(mut members) = document.get("trigger").cloned().unwrap_or(document) else {
        return Err(failed("it is not a mapping".to_owned()));
    };
    members.insert("id".to_owned(), Value::String(id_of(&members, &path)));
    Ok(TriggerFile { document: Value::Object(members), path })
}

/// The id in the file, or one from the name in it, or one from the name of the file.
fn id_of(members: &Map<String, Value>, path: &Path) -> String {
    let text = |member: &str| members.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(id) = text("id") {
        return id.to_owned();
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = text("name").unwrap_or(&stem).chars().take(128).collect();
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    format!("trigger-{}", name.chars().map(plain).collect::<String>().replace("..", "-"))
}

/// Makes the triggers that differ from those of the cluster. Waits for a leader.
pub(crate) async fn store(service: Service, caller: Caller, files: Vec<TriggerFile>, env: Env) {
    for TriggerFile { path, document } in files {
        loop {
            match service.create_trigger(&caller, &document, false, false).await {
                Ok(made) => {
                    for warning in Service::trigger_warnings(&made) {
                        tracing::warn!(path = %path.display(), "{warning}");
                    }
                    break;
                }
                Err(Error::NoLeader | Error::Overloaded | Error::OutcomeUnknown | Error::LevelTooLow(_)) => {
                    env.clock.sleep(INTERVAL).await;
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), error = &error as &dyn std::error::Error, "a trigger was left out");
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_become_triggers_with_ids_of_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        write("b.yaml", "trigger:\n  name: cron echo\n  trigger_type: cron\n");
        write("a.yaml", "trigger_type: webhook\nagent_name: echo\n");
        write("c.yaml", "id: my-own\ntrigger_type: webhook\n");
        write("d.yaml", "- 1\n");
        write("e.yaml", "a: [\n");
        write("f.yml", "trigger_type: webhook\n");
        let files = read(folder.path()).expect("a folder");
        let ids: Vec<&str> = files.iter().filter_map(|file| file.document["id"].as_str()).collect();
        assert_eq!(ids, ["trigger-a", "trigger-cron-echo", "my-own"]);
        assert!(read(&folder.path().join("gone")).is_err());
    }
}
