//! A person logs in at an issuer that the cluster trusts, and works with it: by a browser, on another device, with tokens that end.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use atlas_llm_server::people::{CLIENT_ID, People};
use serde_json::Value;

use crate::logins::browse;
use crate::pair::Controller;
use crate::program::program;

/// A person's machine: a folder with a configuration file.
struct Laptop<'a>(&'a Path);

impl Laptop<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("atlasctl"));
        command.args(arguments).current_dir(self.0).env("ATLAS_CONFIG", self.0.join("config.toml"));
        command.env("NO_COLOR", "1").env_remove("ATLAS_TOKEN").env_remove("ATLAS_SERVER").env_remove("ATLAS_CONTEXT");
        command
    }

    /// Runs a command that must succeed, and returns its stdout.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        without_secrets(arguments, &output);
        text(&output.stdout)
    }

    /// Runs a command that must not succeed, and returns its stderr.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("it runs");
        assert!(!output.status.success(), "{arguments:?}: {}", text(&output.stdout));
        without_secrets(arguments, &output);
        text(&output.stderr)
    }

    /// Logs in with a browser, and returns what is printed.
    async fn logs_in(&self) -> String {
        let mut command = self.command(&["login", "--no-browser"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut errors = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("log in at: ").unwrap_or_else(|| panic!("{line}")).to_owned();
        assert_eq!(browse(&url).await, "The login is complete. You can close this window.");
        let (mut printed, mut rest) = (String::new(), String::new());
        child.stdout.as_mut().expect("stdout").read_to_string(&mut printed).expect("text");
        errors.read_to_string(&mut rest).expect("text");
        assert!(child.wait().expect("ended").success(), "{rest}");
        printed
    }

    fn principal(&self) -> Value {
        let who = self.done(&["auth", "whoami", "-o", "json"]);
        serde_json::from_str::<Value>(&who).expect("JSON")["principal"].clone()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn without_secrets(arguments: &[&str], output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        assert!(!text(stream).contains("canary"), "{arguments:?}: {}", text(stream));
    }
}

/// A cluster that checks tokens, and trusts the issuer.
fn cluster(folder: &Path, people: &People) -> Controller {
    let admin = Laptop(folder);
    admin.done(&["auth", "root-token", "root.token"]);
    let token = folder.join("root.token").display().to_string();
    let controller = Controller::start_with(folder, &["--auth", "tokens", "--root-token-file", &token]);
    let server = format!("http://{}", controller.http);
    admin.done(&["context", "add", "root", "--server", &server, "--token-file", "root.token"]);
    let nobody = admin.refused(&["login"]);
    assert!(nobody.contains("nobody can log in: the cluster trusts no issuer"), "{nobody}");
    let issuer = ["--url", &people.url, "--audience", CLIENT_ID, "--principal-claim", "email"];
    admin.done(&[&["auth", "oidc", "set", "staff"], &issuer[..], &["--role", "viewer", "--cluster"]].concat());
    let unnamed = admin.refused(&["login"]);
    assert!(unnamed.contains("the cluster names no client for logins"), "{unnamed}");
    let client = ["--login-client", CLIENT_ID, "--role", "viewer", "--cluster"];
    admin.done(&[&["auth", "oidc", "set", "staff"], &issuer[..], &client[..]].concat());
    controller
}

#[tokio::test]
async fn a_person_logs_in_and_the_token_is_renewed() {
    let (folder, home) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let people = People::start(3_600).expect("an issuer");
    let controller = cluster(folder.path(), &people);
    let laptop = Laptop(home.path());
    let server = format!("http://{}", controller.http);
    let lost = laptop.refused(&["--server", &server, "login"]);
    assert!(lost.contains("a login is kept in a context") && lost.contains("atlasctl context add NAME"), "{lost}");
    laptop.done(&["context", "add", "work", "--server", &server]);
    laptop.refused(&["job", "list"]);

    assert_eq!(laptop.logs_in().await, "work   logged in as staff:ann@example.com   atlasctl renews the token\n");
    assert_eq!(laptop.principal(), "staff:ann@example.com");
    laptop.done(&["job", "list"]);
    assert_eq!(people.refreshed(), 0);

    // A token that ends soon is renewed once for each use, and not by two programs with the same refresh token.
    people.set_expires_in(30);
    laptop.logs_in().await;
    people.set_expires_in(3_600);
    let four: Vec<_> = (0..4)
        .map(|_| {
            let mut command = laptop.command(&["job", "list"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs")
        })
        .collect();
    for child in four {
        let output = child.wait_with_output().expect("ended");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert_eq!(people.refreshed(), 1);

    // The issuer has ended the login.
    people.set_expires_in(30);
    laptop.logs_in().await;
    people.end();
    let over = laptop.refused(&["job", "list"]);
    assert!(over.contains("the login failed: invalid_grant") && over.contains("atlasctl login"), "{over}");
    laptop.done(&["logout"]);
    let out = laptop.refused(&["job", "list"]);
    assert!(out.contains("E2106"), "{out}");
    laptop.refused(&["logout"]);
    assert_eq!(controller.end(), Some(0));
}

#[tokio::test]
async fn a_person_logs_in_on_another_device() {
    let (folder, home) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let people = People::start(3_600).expect("an issuer");
    let controller = cluster(folder.path(), &people);
    let laptop = Laptop(home.path());
    laptop.done(&["context", "add", "work", "--server", &format!("http://{}", controller.http)]);
    let output = laptop.command(&["login", "--device"]).output().expect("it runs");
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.starts_with("log in at: http://127.0.0.1/d   with the code: AB-CD\n"),
        "{said}"
    );
    assert_eq!(laptop.principal(), "staff:ann@example.com");
    assert_eq!(controller.end(), Some(0));
}
