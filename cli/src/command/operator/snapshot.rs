//! `atlasctl operator snapshot`: saves a backup of a running cluster, inspects it, and restores it into a new cluster.

mod series;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_offline::{About, ArchiveContents, RecoveryError};
use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Verbs of `atlasctl operator snapshot`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Saves a backup of the running cluster, from any of its controllers, and checks it.
    Save(SaveOptions),
    /// Verifies a whole backup and shows its contents.
    Inspect(InspectOptions),
    /// Creates a data directory from a backup, for the first controller of a new cluster.
    Restore(RestoreOptions),
}

/// Options of `atlasctl operator snapshot save`.
#[derive(Debug, clap::Args)]
pub(crate) struct SaveOptions {
    /// The file to write; it must not exist.
    #[arg(value_name = "FILE", required_unless_present = "dir", conflicts_with = "dir")]
    file: Option<PathBuf>,
    /// Write a file named after the time into this directory, which is created if it is missing, such as atlas-20261122T120107Z.tar.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// With --dir: keep the newest N of these files, and delete the others once the new backup is complete.
    #[arg(long, value_name = "N", requires = "dir", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Also restore the backup into a temporary directory (TMPDIR), and delete it again.
    #[arg(long)]
    test_restore: bool,
}

/// Options of `atlasctl operator snapshot inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectOptions {
    /// The backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Options of `atlasctl operator snapshot restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreOptions {
    /// The backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Data directory to create; it must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Name of the controller that will start on it.
    #[arg(long, value_name = "NAME", default_value = "c1")]
    name: String,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Save(options) => save_as_told(context, options).await,
        Verb::Inspect(options) => show(context, &options.file),
        Verb::Restore(options) => restore(context, options),
    }
}

/// Saves a backup, tries it, and deletes older ones.
async fn save_as_told(context: &Context, options: &SaveOptions) -> Result<Exit, Failure> {
    let name = series::name(context.look.now);
    let file = match (&options.file, &options.dir) {
        (Some(file), _) => file.clone(),
        (None, dir) => {
            let dir = dir.as_deref().unwrap_or(Path::new("."));
            make(dir)?;
            dir.join(&name)
        }
    };
    let exit = save(context, &file).await?;
    if options.test_restore {
        let folder = tempfile::tempdir().map_err(|error| words::could_not("write", &std::env::temp_dir(), &error))?;
        let data = folder.path().join("data");
        let restored = atlas_offline::restore::restore(&file, &data, "c1", &Env::system());
        let restored = restored.map_err(|error| refused(&file, &error))?;
        context.note(&format!("restored for a test: {}", words::count(restored.found.about.jobs, "job")));
    }
    // Older backups may be whole where this one is not.
    if let (Some(dir), Some(keep), Exit::Done) = (&options.dir, options.keep, exit) {
        for old in series::prune(dir, &name, keep as usize)? {
            context.note(&format!("deleted {}", old.display()));
        }
    }
    Ok(exit)
}

/// Creates the directory of backups if it is missing; only the owner may look into it.
fn make(dir: &Path) -> Result<(), Failure> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| words::could_not("create", dir, &error))
}

/// Saves a backup under a temporary name, and renames the file after all of it was read back and verified.
async fn save(context: &Context, file: &Path) -> Result<Exit, Failure> {
    if file.exists() {
        return Err(Failure::usage(format!("\"{}\" exists; backups do not overwrite files", file.display())));
    }
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let failed = |error| words::could_not("write", &partial, &error);
    // Only the owner may read the backup, because it contains the inputs and outputs of jobs unencrypted.
    let mine = File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial).map_err(failed)?;
    let mut out = BufWriter::new(mine);
    let written = |error| words::could_not("write", &partial, &error);
    context.client()?.download(&["api", "cluster", "snapshot"], |bytes| out.write_all(bytes).map_err(written)).await?;
    let out = out.into_inner().map_err(|error| failed(error.into_error()))?;
    out.sync_all().map_err(failed)?;
    let inspected = atlas_offline::inspect(&partial).map_err(|error| refused(&partial, &error))?;
    fs::rename(&partial, file).map_err(failed)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    tell(context, file, &inspected.found)?;
    context.next(&format!("next: atlasctl operator snapshot inspect {}", words::shell(&file.display().to_string())));
    Ok(verdict(context, &inspected.found))
}

fn show(context: &Context, file: &Path) -> Result<Exit, Failure> {
    let inspected = atlas_offline::inspect(file).map_err(|error| refused(file, &error))?;
    tell(context, file, &inspected.found)?;
    Ok(verdict(context, &inspected.found))
}

fn restore(context: &Context, options: &RestoreOptions) -> Result<Exit, Failure> {
    let RestoreOptions { file, data_dir, name } = options;
    let restored = atlas_offline::restore::restore(file, data_dir, name, &Env::system());
    let restored = restored.map_err(|error| refused(file, &error))?;
    let (about, dir) = (&restored.found.about, data_dir.display());
    let cluster_id = format!("{:032x}", restored.cluster_id);
    let text = format!(
        "{dir}   {}, {}, from entry {} of {}\n  cluster    {cluster_id} (was {})\n  tokens     from {} on; the backup's last was {}\n",
        words::count(about.jobs, "job"),
        words::count(about.agents, "agent version"),
        about.seq,
        words::date_and_time(about.taken_at as f64),
        about.cluster_id,
        restored.grant_seq + 1,
        about.grant_seq,
    );
    let value = json!({
        "data_dir": data_dir, "cluster_id": cluster_id, "name": name, "grant_seq": restored.grant_seq, "from": about,
        "missing": restored.found.manifest.missing,
    });
    context.show(&Shown { value, text, names: vec![format!("cluster/{cluster_id}")] })?;
    let (dir, name) = (words::shell(&data_dir.display().to_string()), words::shell(name));
    context.next(&format!("next: atlas-controller --data-dir {dir} --name {name}"));
    Ok(verdict(context, &restored.found))
}

/// Prints the contents of a backup.
fn tell(context: &Context, file: &Path, found: &ArchiveContents) -> Result<(), Failure> {
    let bytes = fs::metadata(file).map_or(0, |metadata| metadata.len());
    let value = json!({"file": file, "bytes": bytes, "about": found.about, "manifest": found.manifest});
    let text = described(file, bytes, found);
    context.show(&Shown { value, text, names: vec![format!("snapshot/{}", file.display())] })
}

fn described(file: &Path, bytes: u64, found: &ArchiveContents) -> String {
    let About { format, version, taken_at, cluster_id, level, seq, event_seq, grant_seq, jobs, agents, nodes } =
        &found.about;
    let parts = &found.manifest.parts;
    let size = |name: &str| words::bytes(parts.iter().filter(|part| part.name == name).map(|part| part.bytes).sum());
    let artifacts = parts.iter().filter(|part| part.name.starts_with("artifacts/"));
    let (count, total) = artifacts.fold((0, 0), |(count, total), part| (count + 1, total + part.bytes));
    let missing = match found.manifest.missing.len() {
        0 => String::new(),
        some => format!(", {some} missing"),
    };
    format!(
        "{}   {}   format {format}, made by {version}\n\
         \x20 cluster    {cluster_id}   level {level}\n\
         \x20 taken      {}\n\
         \x20 state      entry {seq}: {}, {}, {}; last token {grant_seq}; {}\n\
         \x20 history    up to event {event_seq}; {}\n\
         \x20 artifacts  {count}; {}{missing}\n\
         \x20 checked    {} match the manifest; the state is consistent\n",
        file.display(),
        words::bytes(bytes),
        words::date_and_time(*taken_at as f64),
        words::count(*jobs, "job"),
        words::count(*agents, "agent version"),
        words::count(*nodes, "node"),
        size("state.snapshot"),
        size("history.sqlite"),
        words::bytes(total),
        words::count(parts.len() as u64, "part"),
    )
}

/// A backup with missing artifacts is kept, but the command exits 1.
fn verdict(context: &Context, found: &ArchiveContents) -> Exit {
    if found.manifest.missing.is_empty() {
        return Exit::Done;
    }
    for digest in &found.manifest.missing {
        context.note(&format!("missing: no controller had an intact sha256:{digest}"));
    }
    Exit::Short
}

fn refused(file: &Path, error: &RecoveryError) -> Failure {
    let text = format!("\"{}\": {}", file.display(), atlas_env::chain(error));
    let failure = Failure::new("E0111", Exit::Short, text);
    match error {
        RecoveryError::Taken { .. } => failure.with_next("use another folder: --data-dir DIR"),
        RecoveryError::Archive(_) | RecoveryError::State(_) => {
            failure.with_next("use an older backup, or save a new one: atlasctl operator snapshot save FILE")
        }
        _ => failure.with_next("what it means: atlasctl explain-error E0111"),
    }
}

#[cfg(test)]
mod tests {
    use atlas_offline::About;
    use expect_test::expect;

    use super::*;

    fn found() -> ArchiveContents {
        let about: About = serde_json::from_value(json!({
            "format": 1, "version": "0.1.0", "taken_at": 1_795_348_867_u64, "cluster_id": "4f".repeat(16), "level": 2, "seq": 1042,
            "event_seq": 77, "grant_seq": 18, "jobs": 12, "agents": 3, "nodes": 1,
        }))
        .expect("complete");
        let part = |name: &str, bytes: u64| json!({"name": name, "bytes": bytes, "sha256": "00"});
        let parts = [
            part("state.snapshot", 4096),
            part("history.sqlite", 65536),
            part("artifacts/aa", 512),
            part("artifacts/bb", 512),
        ];
        let manifest = serde_json::from_value(json!({"parts": parts, "missing": ["cc"]})).expect("complete");
        ArchiveContents { about, manifest }
    }

    #[test]
    fn the_directory_of_backups_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("a/b");
        make(&dir).expect("made");
        make(&dir).expect("there");
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&dir).expect("there").permissions());
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_backup_is_described_in_seven_lines() {
        expect![[r#"
            atlas.tar   72.0 KiB   format 1, made by 0.1.0
              cluster    4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f   level 2
              taken      2026-11-22 12:01:07 UTC
              state      entry 1042: 12 jobs, 3 agent versions, 1 node; last token 18; 4.0 KiB
              history    up to event 77; 64.0 KiB
              artifacts  2; 1.0 KiB, 1 missing
              checked    4 parts match the manifest; the state is consistent
        "#]]
        .assert_eq(&described(Path::new("atlas.tar"), 73728, &found()));
    }
}
