//! MCP servers that want access tokens: a person logs in by the command line, agents call the server, the leader renews the token. No token is
//! in any file, in any answer, or on the terminal, even if the server tells it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use atlas_llm_server::guarded::Guarded;
use serde_json::Value;

use crate::Dev;
use crate::logins::{browse, done, end_clean, refused};
use crate::program::program;

const CONTRACT: &str = "agent:
  name: teller
  version: 1.0.0
  provider: { type: mcp, server: vault, tool: tell }
";

/// A cluster with a server that wants tokens, and an agent that is its tool.
fn cluster(folder: &Path, guarded: &Guarded) -> Dev {
    let agent = folder.join("agents/teller");
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("a contract");
    let options = ["--data-dir", "data", "--agents", "./agents", "--log", "debug,openraft=off"];
    let dev = Dev::start(folder, options);
    done(&dev, &["mcp", "add", "vault", "--url", &guarded.url()]);
    dev
}

/// Logs in as a person does.
async fn log_in(dev: &Dev) {
    let mut command = Command::new(program("atlasctl"));
    command.args(["--server", dev.server(), "mcp", "login", "vault", "--no-browser"]).env("NO_COLOR", "1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().expect("stderr")).read_line(&mut line).expect("a line");
    let url = line.trim().strip_prefix("log in at: ").unwrap_or_else(|| panic!("{line}")).to_owned();
    assert_eq!(browse(&url).await, "The login is complete. You can close this window.");
    let mut printed = String::new();
    child.stdout.as_mut().expect("stdout").read_to_string(&mut printed).expect("text");
    assert!(child.wait().expect("ended").success(), "{printed}");
    assert_eq!(printed, "MCP server vault   logged in   the cluster renews the access token\n");
}

fn run(dev: &Dev) -> Value {
    let job: Value = serde_json::from_str(&done(dev, &["run", "teller", "-i", "{}", "-o", "json"])).expect("JSON");
    job["output_data"]["result"].clone()
}

#[tokio::test]
async fn a_person_logs_in_at_a_server_and_the_leader_renews_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let guarded = Guarded::start(3_600).expect("a server");
    let dev = cluster(folder.path(), &guarded);

    let text = refused(&dev, &["run", "teller", "-i", "{}"]);
    assert!(
        text.contains("the MCP server vault refuses the credential; log in (atlasctl mcp login vault --scope tools)"),
        "{text}"
    );
    log_in(&dev).await;
    // The tool tells its token, which is removed from the output.
    assert_eq!(run(&dev), "called with [redacted:login of vault]");
    assert_eq!(guarded.seen(), (1, 0, 1));
    done(&dev, &["mcp", "test", "vault"]);

    // The server refuses the token of four jobs at the same time: one refresh, and the issuer takes each refresh token once.
    guarded.expire();
    let jobs: Vec<String> =
        (0..4).map(|_| done(&dev, &["run", "teller", "-i", "{}", "--detach", "-o", "name"])).collect();
    for job in &jobs {
        done(&dev, &["job", "wait", job.trim()]);
    }
    assert_eq!(guarded.seen(), (1, 1, 5));

    // The issuer ends the login: the error says what to do, and a login mends it.
    guarded.end();
    let text = refused(&dev, &["run", "teller", "-i", "{}"]);
    assert!(text.contains("invalid_grant: the issuer says no; log in again: atlasctl mcp login vault"), "{text}");
    log_in(&dev).await;
    run(&dev);
    assert_eq!(guarded.seen().0, 2);

    // Whoever changes the address of the server does not get the tokens.
    let elsewhere = Guarded::start(3_600).expect("a server");
    done(&dev, &["mcp", "add", "vault", "--url", &elsewhere.url(), "--replace"]);
    let text = refused(&dev, &["run", "teller", "-i", "{}"]);
    assert!(text.contains("the address of the server has changed since the login"), "{text}");
    done(&dev, &["mcp", "add", "vault", "--url", &guarded.url(), "--replace"]);
    run(&dev);
    done(&dev, &["mcp", "logout", "vault"]);
    let text = refused(&dev, &["mcp", "logout", "vault"]);
    assert!(text.contains("there is no login at MCP server \"vault\""), "{text}");
    refused(&dev, &["run", "teller", "-i", "{}"]);

    let listed: Value = serde_json::from_str(&done(&dev, &["job", "list", "-o", "json"])).expect("JSON");
    for job in listed.as_array().expect("jobs") {
        let id = job["id"].as_str().expect("an id");
        for verb in ["show", "logs", "explain"] {
            done(&dev, &["job", verb, id, "-o", "json"]);
        }
    }
    end_clean(dev, folder.path());
}

#[tokio::test]
async fn servers_that_can_have_no_login_say_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let guarded = Guarded::start(3_600).expect("a server");
    let dev = cluster(folder.path(), &guarded);
    let login = |name: &str| refused(&dev, &["mcp", "login", name, "--no-browser"]);
    assert!(login("nothing").contains("no such MCP server"), "{}", login("nothing"));
    done(&dev, &["mcp", "add", "program", "--command", "true"]);
    assert!(login("program").contains("is a program, so it has no login"), "{}", login("program"));
    // Nobody is there, and the issuer has no page like this.
    done(&dev, &["mcp", "add", "silent", "--url", "http://127.0.0.1:9/mcp"]);
    assert!(login("silent").contains("could not log in to MCP server \"silent\""), "{}", login("silent"));
    done(&dev, &["mcp", "add", "other", "--url", &guarded.url().replace("/mcp", "/other")]);
    assert!(login("other").contains("it does not say who gives tokens for it"), "{}", login("other"));
    assert_eq!(guarded.seen(), (0, 0, 0));
    assert_eq!(dev.interrupt(), Some(0));
}
