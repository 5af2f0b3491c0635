//! Repositories: a shallow clone by the program `git`, and its files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use atlas_pages::Repository;
use serde_json::Map;

use super::handing::{Controllers, Handing, Read};
use super::loading::Programs;
use super::size::{CLONE_BYTES_MAX, bounded};
use super::web::Web;
use super::{Fault, files};

/// Most bytes that git prints.
const PRINTED_BYTES_MAX: usize = 64 << 10;

/// How much of what git complains about is shown.
const SHOWN_CHARS: usize = 300;

/// The first version that has `http.curloptResolve`. Earlier ones ignore it and resolve the name of the server by themselves, so that nobody
/// could say where they connect to.
const OLDEST: (u32, u32) = (2, 37);

/// Settings of every call of git: it asks nobody, runs no program of the repository, and speaks to no other server than the checked one.
const SETTINGS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "credential.helper=",
    "http.followRedirects=false",
    // An empty one means no proxy, whatever the environment says.
    "http.proxy=",
    "protocol.allow=never",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "submodule.recurse=false",
];

/// Variables of git likewise.
const VARIABLES: [(&str, &str); 6] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
    ("GIT_ASKPASS", "true"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// Variables of git that the operator may pass on: where the certificates are that it trusts.
const PASSED_ON: [&str; 2] = ["GIT_SSL_CAINFO", "GIT_SSL_CAPATH"];

/// Reads the files of a repository.
pub(super) async fn read<C: Controllers>(
    web: &Web,
    repository: &Repository,
    programs: &Programs<'_>,
    handing: &mut Handing<'_, C>,
) -> Result<(), Fault> {
    let name = repository.url.as_str();
    let folder = programs.folder().await.map_err(Fault::Machine)?;
    let clone = folder.path().join("clone");
    if let Err(why) = cloned(web, repository, programs, (folder.path(), &clone)).await {
        handing.missing(name, &why);
        return Ok(());
    }
    let (root, pattern) = (clone.clone(), repository.pattern.clone());
    let listed = programs.blocking(move || files::below(&root, |path| is_chosen(pattern.as_deref(), path))).await;
    let (paths, is_more) = match listed {
        Ok(listed) => listed,
        Err(why) => {
            handing.missing(name, &why);
            return Ok(());
        }
    };
    if is_more {
        let why = format!(
            "it has more than {} such files, or deeper folders than are read; name a folder of it",
            files::FILES_MAX
        );
        handing.missing(name, &why);
    }
    if paths.is_empty() {
        handing.missing(name, "it has no such files");
        return Ok(());
    }
    let prefix = name.trim_end_matches('/').trim_end_matches(".git").trim_end_matches('/');
    for path in paths {
        let shown = path.to_string_lossy().into_owned();
        let file = clone.join(&path);
        match programs.blocking(move || Ok(files::read(&file))).await {
            Ok(Ok(Some(text))) => {
                let metadata = Map::from_iter([("path".to_owned(), shown.as_str().into())]);
                handing.document(Read { name: format!("{prefix}/{shown}"), text, metadata }).await?;
            }
            Ok(Ok(None)) => {}
            Ok(Err(why)) | Err(why) => handing.unread(&format!("{prefix}/{shown}"), &why),
        }
    }
    Ok(())
}

/// Clones a repository. Git gets the addresses that were checked, so that no second look at the name leads elsewhere.
async fn cloned(
    web: &Web,
    repository: &Repository,
    programs: &Programs<'_>,
    (folder, clone): (&Path, &PathBuf),
) -> Result<(), String> {
    checked(programs, folder).await?;
    let Repository { url, branch, .. } = repository;
    let host = url.host_str().ok_or("its address has no host")?;
    let port = url.port_or_known_default().ok_or("its address has no port")?;
    let addresses = web.addresses(host, port).await.map_err(|error| format!("no answer: {error}"))?;
    let addresses: BTreeSet<String> = addresses.iter().map(ToString::to_string).collect();
    let addresses = addresses.into_iter().collect::<Vec<_>>().join(",");
    let mut arguments = Vec::new();
    let settings = SETTINGS.iter().map(|setting| (*setting).to_owned());
    for setting in settings.chain([format!("http.curloptResolve={host}:{port}:{addresses}")]) {
        arguments.extend(["-c".to_owned(), setting]);
    }
    let words = ["clone", "--quiet", "--depth=1", "--single-branch", "--no-tags"];
    arguments.extend(words.map(str::to_owned));
    arguments.extend(branch.iter().map(|branch| format!("--branch={branch}")));
    arguments.extend(["--".to_owned(), url.to_string(), clone.to_string_lossy().into_owned()]);
    let mut launch = programs.launch("git", &arguments, folder, PRINTED_BYTES_MAX);
    launch.environment = environment(launch.environment, folder);
    let ended = bounded(&programs.shared.env, clone, CLONE_BYTES_MAX, programs.ended("git", launch)).await?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said: String = said.trim().chars().take(SHOWN_CHARS).collect();
    Err(format!("git failed ({}): {said}", ended.status))
}

/// Refuses a git that does not connect to the addresses that it is given. A worker asks once.
async fn checked(programs: &Programs<'_>, folder: &Path) -> Result<(), String> {
    let ask = async || {
        let mut launch = programs.launch("git", &["--version".to_owned()], folder, PRINTED_BYTES_MAX);
        launch.environment = environment(launch.environment, folder);
        let ended = programs.ended("git", launch).await?;
        is_new_enough(&String::from_utf8_lossy(&ended.stdout))
    };
    // Only a version that will do is remembered: another one may be installed.
    programs.shared.collection.git.get_or_try_init(ask).await?;
    Ok(())
}

/// Reads what `git --version` prints, such as `git version 2.47.3`.
fn is_new_enough(printed: &str) -> Result<(), String> {
    let shown: String = printed.trim().chars().take(80).collect();
    let version = shown.strip_prefix("git version ").unwrap_or_default();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else {
        return Err(format!("the worker's program git says no version: \"{shown}\""));
    };
    match (major, minor) >= OLDEST {
        true => Ok(()),
        false => Err(format!(
            "the worker has git {version}, which may connect to other addresses than those that were checked; install git {}.{} or a newer one",
            OLDEST.0, OLDEST.1
        )),
    }
}

/// The environment of git: that of agents, without proxies, which would resolve names by themselves, and without settings of git.
fn environment(agents: Vec<(OsString, OsString)>, home: &Path) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsString| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        !name.ends_with("_PROXY") && name != "HOME" && (!name.starts_with("GIT_") || PASSED_ON.contains(&&*name))
    };
    let kept = agents.into_iter().filter(|(name, _)| is_kept(name));
    let own = VARIABLES.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    kept.chain(own).chain([("HOME".into(), home.into())]).collect()
}

/// Whether a path is in a folder, is a file of that name, or fits a pattern. All are chosen without one.
fn is_chosen(pattern: Option<&str>, path: &Path) -> bool {
    let Some(pattern) = pattern else { return true };
    if path.starts_with(pattern) {
        return true;
    }
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
    let fits = |pattern: glob::Pattern| pattern.matches_path_with(path, options);
    pattern.contains(['*', '?', '[']) && glob::Pattern::new(pattern).is_ok_and(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_git_is_refused() {
        for printed in
            ["git version 2.37.0\n", "git version 2.47.3", "git version 2.39.5 (Apple Git-154)", "git version 3.0.rc1"]
        {
            assert_eq!(is_new_enough(printed), Ok(()), "{printed}");
        }
        let old = is_new_enough("git version 2.34.1\n").expect_err("too old");
        assert!(old.contains("git 2.34.1") && old.contains("install git 2.37"), "{old}");
        assert!(is_new_enough("git version 1.99").is_err());
        for printed in ["", "git", "git version", "git version x.y", "2.47.3", &"x".repeat(10_000)] {
            let error = is_new_enough(printed).expect_err("no version");
            assert!(error.contains("says no version") && error.len() < 200, "{error}");
        }
    }

    #[test]
    fn git_gets_no_proxy_and_no_settings() {
        let agents = [
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("HTTPS_PROXY", "http://proxy"),
            ("https_proxy", "http://proxy"),
            ("ALL_PROXY", "http://proxy"),
            ("no_proxy", "x"),
            ("GIT_PROXY_COMMAND", "x"),
            ("GIT_SSL_NO_VERIFY", "1"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_SSL_CAINFO", "/ca"),
            ("GIT_LFS_SKIP_SMUDGE", "0"),
        ];
        let agents = agents.map(|(name, value)| (name.into(), value.into())).to_vec();
        let names: BTreeSet<String> = environment(agents, Path::new("/folder"))
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect();
        let own = VARIABLES.map(|(name, value)| format!("{name}={value}"));
        let kept = ["PATH=/bin", "GIT_SSL_CAINFO=/ca", "HOME=/folder"].map(str::to_owned);
        assert_eq!(names, own.into_iter().chain(kept).collect());
    }

    #[test]
    fn a_folder_or_a_pattern_chooses_files() {
        for (pattern, path, expected) in [
            (None, "a.md", true),
            (Some("docs"), "docs/a/b.md", true),
            (Some("docs"), "docs2/a.md", false),
            (Some("docs/a.md"), "docs/a.md", true),
            (Some("*.md"), "a.md", true),
            (Some("*.md"), "docs/a.md", false),
            (Some("docs/**/*.md"), "docs/a/b/c.md", true),
            (Some("docs/**/*.md"), "docs/c.txt", false),
            (Some("[a"), "[a", true),
            (Some("[a"), "a", false),
        ] {
            assert_eq!(is_chosen(pattern, Path::new(path)), expected, "{pattern:?} {path}");
        }
    }
}
