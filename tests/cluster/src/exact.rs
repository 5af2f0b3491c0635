//! Random JSON through every way that a value takes: the API, programs and Python agents, steps of chains, triggers and `atlasctl`. No
//! digit and no character changes on the way, except for halves of surrogate pairs.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::api::Api;
use crate::patience::eventually_async;
use crate::program::program;
use crate::rng::Rng;
use crate::{Agent, Dev, write_agent};

const ROUNDS: usize = 12;

/// Returns the document that it reads.
const TOLD: Agent<'static> =
    Agent { name: "told", version: "1.0.0", contract: "", script: r#"printf '{"told": %s}' "$(cat)""# };

const PYTHON: &str = "from atlas import AgentBase

class Back(AgentBase):
    async def execute(self, input_data):
        return {\"back\": input_data}
";

/// Numbers that are easily changed.
const NUMBERS: [&str; 14] = [
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "9007199254740993",
    "0.1000000000000000055511151231257827",
    "9007199254740993.0",
    "1e-400",
    "1E+30",
    "-0.0",
    "1.0",
    "1",
    "31.245270191439438",
    "179769313486231570000000000000000000000000000000000000001",
];

/// Texts and names that are easily changed.
const TEXTS: [&str; 12] = [
    r#""$serde_json::private::Number""#,
    r#""$serde_json::private::RawValue""#,
    r#""""#,
    r#""\u0000\u001f\u007f""#,
    r#""\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""\ude00x\ud83d""#,
    r#""日本語""#,
    r#""a/b~c\"\\\n""#,
    r#""on""#,
    r#""1e5""#,
    r#""__proto__""#,
];

/// A random value as text. Python has floats instead of long fractions.
fn value(rng: &mut Rng, depth: usize, fractions: bool) -> String {
    let many = rng.below(4);
    match rng.below(if depth == 0 { 6 } else { 8 }) {
        0 => rng.pick(&["null", "true", "false"]).to_owned(),
        1 | 2 => loop {
            let number = rng.pick(&NUMBERS);
            if fractions || number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
                return number.to_owned();
            }
        },
        3 => {
            let digits: String = (0..rng.range(18, 40)).map(|_| char::from(b'0' + rng.below(10) as u8)).collect();
            format!("{}1{digits}", rng.pick(&["", "-"]))
        }
        4 | 5 => rng.pick(&TEXTS).to_owned(),
        6 => {
            let items: Vec<String> = (0..many).map(|_| value(rng, depth - 1, fractions)).collect();
            format!("[{}]", items.join(", "))
        }
        _ => object(rng, depth - 1, fractions),
    }
}

fn object(rng: &mut Rng, depth: usize, fractions: bool) -> String {
    // Two members may have one name; the last one counts.
    let members: Vec<String> =
        (0..rng.range(1, 5)).map(|_| format!("{}: {}", rng.pick(&TEXTS), value(rng, depth, fractions))).collect();
    format!("{{{}}}", members.join(", "))
}

/// An input with a value as deep as inputs may be.
fn input(rng: &mut Rng, fractions: bool) -> (String, Value) {
    let deep = rng.range(1, 80) as usize;
    let text = format!(
        "{{\"random\": {}, \"deep\": {}{}{}}}",
        object(rng, 4, fractions),
        "[".repeat(deep),
        value(rng, 0, fractions),
        "]".repeat(deep)
    );
    let read = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    (text, read)
}

/// The text of two values with all digits.
fn same(way: &str, sent: &Value, got: &Value) {
    assert_eq!(got.to_string(), sent.to_string(), "{way}");
}

async fn output(api: &Api, agent: &str, text: &str) -> Value {
    let answer = api.post_text("/api/jobs", format!("{{\"agent\": \"{agent}\", \"input\": {text}}}")).await;
    let job = api.wait(answer["id"].as_str().unwrap_or_else(|| panic!("{answer}"))).await;
    assert_eq!(job["status"], "completed", "{job}");
    job["output_data"].clone()
}

/// The output of a job that `atlasctl` runs.
fn printed(dev: &Dev, folder: &Path, text: &str) -> Value {
    let file = folder.join("input.json");
    std::fs::write(&file, text).expect("written");
    let mut command = Command::new(program("atlasctl"));
    command.args(["run", "told", "-o", "json", "--input"]).arg(format!("@{}", file.display()));
    command.env("HOME", folder).env("ATLAS_SERVER", dev.server()).stderr(Stdio::inherit());
    let run = command.output().expect("atlasctl runs");
    assert!(run.status.success(), "{text}");
    serde_json::from_slice(&run.stdout).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn values_stay_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = folder.path().join("agents");
    write_agent(&agents, &TOLD);
    let dev = Dev::start(folder.path(), ["--agents", "./agents"]);
    let api = Api::new(dev.server());
    let python = folder.path().join("back");
    std::fs::create_dir_all(&python).expect("a folder");
    std::fs::write(python.join("agent.yaml"), "agent: {name: back, version: 1.0.0}").expect("written");
    std::fs::write(python.join("agent.py"), PYTHON).expect("written");
    api.register(atlas_package::pack(&python).expect("a package").bytes).await;

    let mut rng = Rng::new(0x5eed);
    for round in 0..ROUNDS {
        let (text, sent) = input(&mut rng, true);
        same("program", &sent, &output(&api, "told", &text).await["told"]["input"]);

        let steps = json!([{"agent": "told"}, {"agent": "told"}]);
        let chain = format!("{{\"chain\": {{\"name\": \"c\", \"steps\": {steps}}}, \"input\": {text}}}");
        let started = api.post_text("/api/chains", chain).await;
        let id = started["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
        let run = eventually_async("the chain ends", async || {
            let run = api.get(&format!("/api/chains/{id}?view=full")).await;
            let ended = ["completed", "failed"].iter().any(|status| run["status"] == *status);
            if ended { Ok(run) } else { Err(run.to_string()) }
        })
        .await;
        let first = run["step_jobs"][0]["job_id"].as_str().unwrap_or_else(|| panic!("{run}"));
        same("first step", &sent, &api.job(first).await["output_data"]["told"]["input"]);
        let second = run["step_jobs"][1]["job_id"].as_str().unwrap_or_else(|| panic!("{run}"));
        let second = api.job(second).await;
        same("second step", &sent, &second["output_data"]["told"]["input"]["told"]["input"]);

        let trigger = format!(
            "{{\"id\": \"t-{round}\", \"name\": \"t\", \"trigger_type\": \"webhook\", \"agent_name\": \"told\", \"input_data\": {text}}}"
        );
        let made = api.post_text("/api/triggers", trigger).await;
        let fired = api.post(&format!("/api/triggers/{}/fire", made["id"].as_str().expect("an id")), json!({})).await;
        let job = api.wait(fired["job_id"].as_str().unwrap_or_else(|| panic!("{fired}"))).await;
        same("trigger", &sent, &job["output_data"]["told"]["input"]);

        let job = printed(&dev, folder.path(), &text);
        same("input of atlasctl", &sent, &job["input_data"]);
        same("output of atlasctl", &sent, &job["output_data"]["told"]["input"]);

        let (text, sent) = input(&mut rng, false);
        same("Python", &sent, &output(&api, "back", &text).await["back"]);
    }
    drop(dev);
}
