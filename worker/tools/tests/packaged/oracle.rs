//! The tool of `oracle`, which reads the history of a project.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bench::{Bench, is_here, said};

/// Commands that are refused, and a word of the refusal. Some would make the file `made`, some would show `secret`.
const HOSTILE: [(&str, &str); 45] = [
    ("", "only commands of git that read"),
    ("git", "only commands of git that read"),
    ("git push", "only commands of git that read"),
    ("git -C .. log", "only commands of git that read"),
    ("git -c core.pager=x log", "only commands of git that read"),
    ("git log '", "cannot be read"),
    ("git log | cat", "redirections, pipes"),
    ("git log > made", "redirections, pipes"),
    ("git log ; ls", "redirections, pipes"),
    ("git log 'a\nb'", "redirections, pipes"),
    ("git log --output=made", "the option"),
    ("git log --outp=made", "the option"),
    ("git log -S -- --output=made", "the option"),
    ("git log -- --output=made", "the option"),
    ("git diff -Omade", "the option"),
    ("git diff --no-index a ../secret", "the option"),
    ("git diff a ../secret", "outside the project"),
    ("git diff a up/secret", "outside the workspace"),
    ("git diff --ext-diff", "the option"),
    ("git show --textconv", "the option"),
    ("git show --remerge-diff", "the option"),
    ("git status -v", "the option"),
    ("git status --pathspec-from-file=/etc/passwd", "the option"),
    ("git grep -Ocat one", "the option"),
    ("git grep '-nOtouch made;' one", "the option"),
    ("git grep '-lOtouch made;' one", "the option"),
    ("git grep --open-files-in-pager='touch made;' one", "the option"),
    ("git grep --open='touch made;' one", "the option"),
    ("git grep -f/etc/passwd", "the option"),
    ("git grep -nf../secret", "the option"),
    ("git grep -f ../secret", "the option"),
    ("git grep --no-index secret", "the option"),
    ("git grep secret ..", "outside the project"),
    ("git grep secret src/../..", "outside the project"),
    ("git grep secret up", "outside the workspace"),
    ("git grep root /etc", "outside the project"),
    ("git blame -S../secret a", "the option"),
    ("git blame -lS../secret a", "the option"),
    ("git blame --contents=../secret a", "the option"),
    ("git ls-files -o -X../secret", "the option"),
    ("git ls-files -o --exclude-from=/etc/passwd", "the option"),
    ("git shortlog --outp=made HEAD", "the option"),
    ("git branch new", "only lists"),
    ("git branch -D main", "the option"),
    ("git tag new", "only lists"),
];

fn git(bench: &Bench, words: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@b.org"]).args(words).current_dir(bench.path("."));
    let status = git.env("HOME", bench.root.path()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("git runs").success(), "{words:?}");
}

fn repository() -> Bench {
    let bench = Bench::new();
    fs::remove_dir_all(bench.path(".git")).expect("a folder");
    git(&bench, &["init", "-b", "main"]);
    bench.write("a", "one\n");
    git(&bench, &["add", "a", "src"]);
    git(&bench, &["commit", "-m", "First"]);
    bench
}

fn command(text: &str) -> Value {
    json!({ "command": text })
}

#[test]
fn the_history_of_a_project_is_read() {
    if !is_here("python3") || !is_here("git") {
        return;
    }
    let bench = repository();
    bench.write("a", "two\n");
    let tool = bench.tool_of("oracle", "run_read_only");
    for (text, words) in [
        ("git log --oneline -5 -- a", "First"),
        ("log -n 1 --format=%s -p", "+one"),
        ("git log -Gone --stat -M90%", "a        | 1 +"),
        ("git diff HEAD", "+two"),
        ("git status -sb", " M a"),
        ("git show HEAD:a", "one"),
        ("git grep -in TWO", "a:1:two"),
        ("git blame -L1,1 a", "two"),
        ("git branch -vv", "* main"),
        ("git tag -l", "[exit status 0]"),
        ("git ls-files -m", "a"),
        ("git ls-tree -r --name-only HEAD", "src/a.py"),
        ("git shortlog -sn HEAD", "1\tA"),
        ("git rev-parse --abbrev-ref HEAD", "main"),
        ("git log none..HEAD", "[exit status 128]"),
    ] {
        let text = command(text);
        let output = said(&tool, &text);
        assert!(output.contains(words), "{text}: {output}");
    }
}

#[test]
fn commands_that_do_more_are_refused() {
    if !is_here("python3") || !is_here("git") {
        return;
    }
    let bench = repository();
    bench.refuses(("oracle", "run_read_only"), &HOSTILE.map(|(text, words)| (command(text), words)));
    assert!(!bench.path("made").exists());
    // A link in place of a tracked folder.
    fs::remove_dir_all(bench.path("src")).expect("a folder");
    fs::write(bench.root.path().join("a.py"), "top secret").expect("a file");
    std::os::unix::fs::symlink("..", bench.path("src")).expect("a link");
    let table = [
        ("git grep secret", "a link stands"),
        ("git grep secret src/a.py", "outside the workspace"),
        ("git blame src/a.py", "outside the workspace"),
    ];
    bench.refuses(("oracle", "run_read_only"), &table.map(|(text, words)| (command(text), words)));
}

#[test]
fn a_repository_above_the_project_is_not_read() {
    if !is_here("python3") || !is_here("git") {
        return;
    }
    let bench = repository().with("project_dir", "src");
    let table = ["git log", "git grep one", "git show HEAD:a", "git diff a.py a.py"]
        .map(|text| (command(text), "has no history of git"));
    bench.refuses(("oracle", "run_read_only"), &table);
}

#[test]
fn programs_that_the_project_names_do_not_run() {
    if !is_here("python3") || !is_here("git") {
        return;
    }
    let bench = repository();
    let made = bench.path("made");
    let program = format!("touch {}; cat", made.display());
    for name in [
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.d.command",
        "diff.d.textconv",
        "core.alternateRefsCommand",
    ] {
        git(&bench, &["config", name, &program]);
    }
    // A program is one word here.
    let script = bench.program("gpg", &program);
    for name in ["gpg.program", "gpg.ssh.program", "gpg.x509.program"] {
        git(&bench, &["config", name, &script.display().to_string()]);
    }
    git(&bench, &["config", "log.showSignature", "true"]);
    // A work tree elsewhere would show its files.
    git(&bench, &["config", "core.worktree", &bench.root.path().display().to_string()]);
    bench.write(".gitattributes", "* diff=d filter=f\n");
    bench.write("a", "two\n");
    let commit = Command::new("git").args(["cat-file", "commit", "HEAD"]).current_dir(bench.path(".git")).output();
    let commit = String::from_utf8(commit.expect("git runs").stdout).expect("text");
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n";
    bench.write("signed", &commit.replacen("\n\n", &format!("\n{signature}"), 1));
    git(&bench, &["--work-tree=.", "hash-object", "-t", "commit", "-w", "signed"]);
    let signed =
        Command::new("git").args(["hash-object", "-t", "commit", "signed"]).current_dir(bench.path(".")).output();
    let signed = String::from_utf8(signed.expect("git runs").stdout).expect("text");
    let tool = bench.tool_of("oracle", "run_read_only");
    let signed = format!("git log --format=%G? {signed}");
    for text in
        ["git diff", "git status", "git log -p", "git show", "git blame a", "git grep --untracked secret", &signed]
    {
        let output = said(&tool, &command(text));
        assert!(!made.exists(), "{text}: {output}");
        assert!(!output.contains("top secret"), "{text}: {output}");
    }
    git(&bench, &["config", "filter.f.clean", &program]);
    let table = ["git diff", "git status", "git blame a", "git ls-files -m"].map(|text| (command(text), "has filters"));
    bench.refuses(("oracle", "run_read_only"), &table);
    assert!(!made.exists());
}
