//! What a document base names as its sources.

use url::Url;

use crate::loader::{TAKEN, is_name};
use crate::page::{ADDRESS_BYTES_MAX, normal};

/// The forms of a source.
pub const FORMS: &str = "https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, \
                         git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE";

/// Where documents come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// One page.
    Page(Url),
    /// The pages below an address, as far as links lead to them.
    Site(Url),
    /// The pages that a website lists.
    Sitemap(Url),
    /// The files of a repository.
    Git(Repository),
    /// What a program of the worker's operator reads.
    Loader { name: String, resource: String },
}

/// A repository of git, and which of its files count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub url: Url,
    /// None for the one that the server offers first.
    pub branch: Option<String>,
    /// A folder, a file or a pattern below the root; none for all files.
    pub pattern: Option<String>,
}

/// Why a text is no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownSource {
    #[error("\"{0}\" is no source; a source is {FORMS}")]
    Form(String),
    #[error("\"{0}\" is not an address of a page")]
    Address(String),
    #[error("\"{0}…\" is too long: an address has at most {ADDRESS_BYTES_MAX} bytes")]
    Long(String),
    #[error("the source has a user or a password in its address, which everyone who reads the base would see")]
    Credentials,
    #[error("\"{0}\" is not a repository over http or https: no others are read")]
    Repository(String),
    #[error("\"{0}\" is no branch")]
    Branch(String),
    #[error("\"{0}\" is no folder and no pattern below the root of a repository")]
    Pattern(String),
}

impl Source {
    /// Reads a source.
    pub fn read(text: &str) -> Result<Self, UnknownSource> {
        let unknown = || UnknownSource::Form(shown(text));
        let (word, rest) = text.split_once(':').ok_or_else(unknown)?;
        match word {
            "http" | "https" => match text.strip_suffix("**") {
                Some(prefix) if prefix.ends_with('/') => Ok(Self::Site(address(prefix)?)),
                Some(_) => Err(unknown()),
                None => Ok(Self::Page(address(text)?)),
            },
            "sitemap" => Ok(Self::Sitemap(address(rest)?)),
            "git" => Ok(Self::Git(Repository::read(rest)?)),
            name if is_name(name) && !TAKEN.contains(&name) && !rest.trim().is_empty() && !rest.starts_with('-') => {
                Ok(Self::Loader { name: name.to_owned(), resource: rest.to_owned() })
            }
            _ => Err(unknown()),
        }
    }
}

impl Repository {
    fn read(text: &str) -> Result<Self, UnknownSource> {
        let (url, branch, pattern) = match text.split_once('#') {
            Some((url, behind)) => {
                let (branch, pattern) =
                    behind.split_once(':').map_or((behind, None), |(branch, pattern)| (branch, Some(pattern)));
                (url, Some(branch), pattern)
            }
            None => {
                // The colon of a port comes before the path.
                let path = text.find("://").and_then(|place| Some(place + 3 + text.get(place + 3..)?.find('/')?));
                let colon = path.and_then(|path| Some(path + text.get(path..)?.find(':')?));
                let (url, behind) = text.split_at(colon.unwrap_or(text.len()));
                (url, None, behind.strip_prefix(':'))
            }
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(UnknownSource::Repository(shown(url)));
        }
        let url = address(url)?;
        if url.path().len() < 2 || url.query().is_some() {
            return Err(UnknownSource::Repository(shown(url.as_str())));
        }
        let is_branch = |name: &&str| {
            let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+');
            name.chars().all(fine) && !name.starts_with(['-', '/', '.']) && !name.contains("..") && name.len() <= 200
        };
        let branch = branch.filter(|branch| !branch.is_empty());
        if let Some(branch) = branch.filter(|branch| !is_branch(branch)) {
            return Err(UnknownSource::Branch(shown(branch)));
        }
        let pattern = pattern.map(|pattern| pattern.trim_end_matches('/')).filter(|pattern| !pattern.is_empty());
        let is_inside = |pattern: &&str| {
            !pattern.starts_with(['/', '-']) && pattern.split('/').all(|part| !matches!(part, "" | "." | ".." | ".git"))
        };
        if let Some(pattern) = pattern.filter(|pattern| !is_inside(pattern) || pattern.contains('\\')) {
            return Err(UnknownSource::Pattern(shown(pattern)));
        }
        Ok(Self { url, branch: branch.map(str::to_owned), pattern: pattern.map(str::to_owned) })
    }
}

fn address(text: &str) -> Result<Url, UnknownSource> {
    let mut url = Url::parse(text).map_err(|_| UnknownSource::Address(shown(text)))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UnknownSource::Credentials);
    }
    url.set_fragment(None);
    if url.as_str().len() > ADDRESS_BYTES_MAX {
        return Err(UnknownSource::Long(text.chars().filter(|c| !c.is_control()).take(40).collect()));
    }
    normal(url).ok_or_else(|| UnknownSource::Address(shown(text)))
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(texts: &[&str], expected: &Expect) {
        let shown = |text: &&str| match Source::read(text) {
            Ok(Source::Page(url)) => format!("page {url}\n"),
            Ok(Source::Site(url)) => format!("site {url}\n"),
            Ok(Source::Sitemap(url)) => format!("sitemap {url}\n"),
            Ok(Source::Git(Repository { url, branch, pattern })) => format!("git {url} {branch:?} {pattern:?}\n"),
            Ok(Source::Loader { name, resource }) => format!("loader {name} {resource}\n"),
            Err(error) => format!("! {error}\n"),
        };
        expected.assert_eq(&texts.iter().map(shown).collect::<String>());
    }

    #[test]
    fn forms_are_read() {
        check(
            &[
                "https://example.org",
                "http://example.org:8080/a?b#c",
                "https://example.org/docs/**",
                "sitemap:https://example.org/sitemap.xml",
                "git:https://example.org/a/b",
                "git:https://example.org:8443/a/b.git#main:docs/",
                "git:https://example.org:8443/a/b:docs/**/*.md",
                "git:https://example.org/a/b#v1.0/x",
                "pdf:/srv/a.pdf",
                "jira:PROJECT = X",
            ],
            &expect![[r#"
                page https://example.org/
                page http://example.org:8080/a?b
                site https://example.org/docs/
                sitemap https://example.org/sitemap.xml
                git https://example.org/a/b None None
                git https://example.org:8443/a/b.git Some("main") Some("docs")
                git https://example.org:8443/a/b None Some("docs/**/*.md")
                git https://example.org/a/b Some("v1.0/x") None
                loader pdf /srv/a.pdf
                loader jira PROJECT = X
            "#]],
        );
    }

    #[test]
    fn other_forms_are_refused() {
        check(
            &[
                "docs",
                "ftp://example.org/a",
                "file:///etc/passwd",
                "https://example.org/a**",
                "https://user:secret@example.org/",
                "https://",
                "sitemap:file:///etc/passwd",
                "git:git@example.org:a/b",
                "git:file:///srv/a",
                "git:ssh://example.org/a",
                "git:https://example.org",
                "git:https://example.org/a#--upload-pack=x",
                "git:https://example.org/a:../x",
                "git:https://example.org/a:.git/config",
                "PDF:x",
                "pdf: ",
                "pdf:--output=/etc/passwd",
            ],
            &expect![[r#"
                ! "docs" is no source; a source is https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE
                ! "ftp://example.org/a" is no source; a source is https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE
                ! "file:///etc/passwd" is no source; a source is https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE
                ! "https://example.org/a**" is no source; a source is https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE
                ! the source has a user or a password in its address, which everyone who reads the base would see
                ! "https://" is not an address of a page
                ! "file:///etc/passwd" is not an address of a page
                ! "git@example.org:a/b" is not a repository over http or https: no others are read
                ! "file:///srv/a" is not a repository over http or https: no others are read
                ! "ssh://example.org/a" is not a repository over http or https: no others are read
                ! "https://example.org/" is not a repository over http or https: no others are read
                ! "--upload-pack=x" is no branch
                ! "../x" is no folder and no pattern below the root of a repository
                ! ".git/config" is no folder and no pattern below the root of a repository
                ! "PDF:x" is no source; a source is https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE
                ! "pdf: " is no source; a source is https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE
                ! "pdf:--output=/etc/passwd" is no source; a source is https://HOST/PAGE, https://HOST/PATH/**, sitemap:https://HOST/SITEMAP.xml, git:https://HOST/REPOSITORY[#BRANCH][:FOLDER-OR-PATTERN], or LOADER:RESOURCE
            "#]],
        );
    }

    #[test]
    fn addresses_have_a_bound() {
        let of = |bytes: usize| Source::read(&format!("https://h/{}", "a".repeat(bytes - "https://h/".len())));
        assert!(of(ADDRESS_BYTES_MAX).is_ok());
        assert!(matches!(of(ADDRESS_BYTES_MAX + 1), Err(UnknownSource::Long(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(git:|sitemap:|https://|h|/|:|#|\\*\\*|\\.\\.|é|@){0,12}") {
            let _ = Source::read(&text);
        }
    }
}
