//! A bound for what a program writes: it is stopped when its folder has become too large.

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use atlas_env::Env;
use futures::future::{Either, select};

/// Most bytes of a clone, with the history of git and with its files.
pub(super) const CLONE_BYTES_MAX: u64 = 1 << 30;

/// Most files and folders of a clone.
const ENTRIES_MAX: u64 = 200_000;

/// How often a folder is looked at.
const PAUSE: Duration = Duration::from_millis(250);

/// Waits for a program that writes to a folder. Once the folder has more than so many bytes, the program is dropped, which kills it.
pub(super) async fn bounded<T>(
    env: &Env,
    folder: &Path,
    bytes_max: u64,
    program: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let watch = async {
        loop {
            env.clock.sleep(PAUSE).await;
            if is_over(env, folder, bytes_max).await {
                return;
            }
        }
    };
    let ended = match select(pin!(program), pin!(watch)).await {
        Either::Left((ended, _)) => Some(ended?),
        Either::Right(_) => None,
    };
    // A program that was fast is looked at as well.
    match ended {
        Some(ended) if !is_over(env, folder, bytes_max).await => Ok(ended),
        _ => Err(format!(
            "it was stopped: it has more than {} MiB or {ENTRIES_MAX} files, which is the most that a worker clones",
            bytes_max >> 20
        )),
    }
}

async fn is_over(env: &Env, folder: &Path, bytes_max: u64) -> bool {
    let folder = folder.to_owned();
    let looked = env.spawn_blocking("size of a clone", move || exceeds(&folder, bytes_max)).join().await;
    looked.unwrap_or(true)
}

/// Whether the files below a folder have more than so many bytes. Links are not followed; what vanishes meanwhile does not count.
fn exceeds(folder: &Path, bytes_max: u64) -> bool {
    let (mut bytes, mut entries, mut folders) = (0_u64, 0_u64, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            entries += 1;
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                bytes = bytes.saturating_add(about.len());
            }
            if bytes > bytes_max || entries > ENTRIES_MAX {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_stopped_when_its_folder_is_too_large() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("a/b")).expect("made");
        let write = |name: &str, bytes: usize| fs::write(folder.path().join(name), vec![0; bytes]).expect("written");
        let env = Env::system();
        write("a/x", 600 << 10);
        let done = bounded(&env, folder.path(), 1 << 20, async { Ok(7) }).await;
        assert_eq!(done, Ok(7));
        let failed = bounded(&env, folder.path(), 1 << 20, async { Err::<(), _>("broken".to_owned()) }).await;
        assert_eq!(failed, Err("broken".to_owned()));
        write("a/b/y", 600 << 10);
        let stopped = bounded(&env, folder.path(), 1 << 20, std::future::pending::<Result<(), String>>()).await;
        assert!(stopped.is_err_and(|why| why.contains("more than 1 MiB")));
        assert!(bounded(&env, folder.path(), 1 << 20, async { Ok(()) }).await.is_err(), "one that was fast");
        assert_eq!(bounded(&env, &folder.path().join("none"), 1, async { Ok(()) }).await, Ok(()));
    }
}
