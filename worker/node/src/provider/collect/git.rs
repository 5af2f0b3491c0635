//! Repositories: a shallow clone by the program `git`, and its files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use atlas_pages::Repository;
use serde_json::Map;

use super::handing::{Controllers, Handing, Read};
use super::loading::Programs;
use super::web::Web;
use super::{Fault, files};

/// Most bytes that git prints.
const PRINTED_BYTES_MAX: usize = 64 << 10;

/// How much of what git complains about is shown.
const SHOWN_CHARS: usize = 300;

/// Settings of every call of git: it asks nobody, runs no program of the repository, and speaks to no other server than the checked one.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "credential.helper=",
    "http.followRedirects=false",
    "protocol.allow=never",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
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
        handing.missing(name, &format!("it has more than {} such files; name a folder of it", files::FILES_MAX));
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
    let variables = VARIABLES.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    launch.environment.retain(|(name, _)| name != "HOME");
    launch.environment.extend(variables);
    launch.environment.push(("HOME".into(), folder.into()));
    let ended = programs.ended("git", launch).await?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said: String = said.trim().chars().take(SHOWN_CHARS).collect();
    Err(format!("git failed ({}): {said}", ended.status))
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
