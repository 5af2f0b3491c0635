//! Attempts that end while something is under way: a step, a call, a question, an answer.

use serde_json::json;

use super::{Job, Rig};

const HERE: &str = r#"
    async def execute(self, input_data):
        return {"process": os.getpid()}
"#;

/// A program that holds its lock as long as its process lives, and does this.
fn body(code: &str) -> String {
    let code = code.trim_matches('\n');
    format!(
        "\n    async def execute(self, input_data):\n        folder = input_data[\"folder\"]\n        self.lock = getattr(self, \"lock\", None) or lock(folder)\n        note(folder, \"begins\")\n{code}\n"
    )
}

#[tokio::test]
async fn a_cancel_ends_a_step_and_the_process_in_which_it_runs() {
    let rig = Rig::start();
    let code = body("        await self.context.step('long', gate, folder, 'never')");
    rig.deploy("long", "1.0.0", "", &code).await;
    rig.deploy("here", "1.0.0", "", HERE).await;
    let job = rig.submit("long").await;
    job.until_line("waits for never", 1);
    rig.api.post(&format!("/api/jobs/{}/cancel", job.id), json!({})).await;
    assert_eq!(rig.api.wait(&job.id).await["status"], "cancelled");
    job.until_unlocked();
    // Of the step there is no record, and its worker serves others.
    let steps = rig.api.get(&format!("/api/jobs/{}/steps", job.id)).await;
    assert!(!steps.to_string().contains("\"long\""), "{steps}");
    assert_eq!(rig.run("here").await.0["status"], "completed");
}

#[tokio::test]
async fn a_cancelled_job_takes_no_answer() {
    let rig = Rig::start();
    rig.deploy("asks", "1.0.0", "", &body("        return {'answer': await self.context.ask('Go?')}")).await;
    let job = rig.submit("asks").await;
    let question = rig.question(&job).await;
    rig.api.post(&format!("/api/jobs/{}/cancel", job.id), json!({})).await;
    assert_eq!(rig.api.wait(&job.id).await["status"], "cancelled");
    let (_, code, answer) =
        rig.api.try_post(&format!("/api/questions/{question}/answer"), json!({"text": "yes"})).await;
    assert_eq!(code, "E3041", "{answer}");
}

/// Answers and messages arrive while no attempt runs: after the worker was killed and before its lease has ended.
#[tokio::test]
async fn what_arrives_between_two_attempts_is_not_lost() {
    let mut rig = Rig::start();
    let code = r#"
        await self.context.step("before", note, folder, "before")
        answer, message = await asyncio.gather(self.context.ask("Go?"), self.context.receive("go"))
        return {"answer": answer, "message": message.body}
"#;
    rig.deploy("waits", "1.0.0", "", &body(code)).await;
    let jobs = [rig.submit("waits").await, rig.submit("waits").await];
    let questions = [rig.question(&jobs[0]).await, rig.question(&jobs[1]).await];
    rig.until(&jobs[0], "parked").await;
    rig.until(&jobs[1], "parked").await;
    let late = rig.submit("waits").await;
    let question = rig.question(&late).await;
    rig.kill_worker();
    for (job, question) in jobs.iter().zip(&questions).chain([(&late, &question)]) {
        rig.api.post(&format!("/api/questions/{question}/answer"), json!({"text": "yes"})).await;
        let message = json!({"id": "m1", "channel": "go", "message": {"n": 1}});
        rig.api.post(&format!("/api/jobs/{}/messages", job.id), message).await;
    }
    rig.start_worker();
    for job in jobs.iter().chain([&late]) {
        let ended = rig.api.wait(&job.id).await;
        assert_eq!(ended["output_data"], json!({"answer": "yes", "message": {"n": 1}}), "{ended}");
        assert_eq!(job.count("before"), 1);
    }
}

/// A program that returns while a step of it runs: the job ends without a record of that step, and its end is none of the next job.
#[tokio::test]
async fn a_step_that_outlives_its_job_ends_for_nobody() {
    let rig = Rig::start();
    let code = r#"
        if input_data.get("second"):
            return {"own": await self.context.step("own", gate, folder, "open")}
        task = asyncio.create_task(self.context.step("left", gate, folder, "open"))
        while not Path(folder, "lines").read_text().count("waits"):
            await asyncio.sleep(0.02)
        return {"done": True}
"#;
    rig.deploy("leaves", "1.0.0", "", &body(code)).await;
    let (ended, first) = rig.run("leaves").await;
    assert_eq!(ended["output_data"], json!({"done": true}), "{ended}");
    let folder = tempfile::tempdir_in(rig.folder.path()).expect("a folder").keep();
    let id = rig.api.submit("leaves", json!({"folder": folder, "second": true})).await;
    let second = Job { id, folder };
    second.until_line("waits for open", 1);
    first.open("open");
    second.open("open");
    let ended = rig.api.wait(&second.id).await;
    assert_eq!(ended["output_data"], json!({"own": "open"}), "{ended}");
    for (job, names) in [(&first, vec![]), (&second, vec!["own"])] {
        let steps = rig.api.get(&format!("/api/jobs/{}/steps", job.id)).await;
        let steps = steps.as_array().expect("steps").iter().filter(|step| step["kind"] == "code");
        let found: Vec<&str> = steps.filter_map(|step| step["outcome"]["name"].as_str()).collect();
        assert_eq!(found, names);
    }
}

/// A job that cannot go on while a step of it runs: its process ends with it, so that the step does not run beside another job.
#[tokio::test]
async fn a_job_that_fails_while_a_step_runs_takes_its_process_with_it() {
    let mut rig = Rig::start();
    let code = r#"
        task = asyncio.create_task(self.context.step("runs", gate, folder, "never"))
        while True:
            lines = Path(folder, "lines").read_text()
            if lines.count("begins") == lines.count("waits for never"):
                break
            await asyncio.sleep(0.02)
        await self.context.step("charge", gate, folder, "paid", effects="once")
"#;
    rig.deploy("charges", "1.0.0", "", &body(code)).await;
    let folder = tempfile::tempdir_in(rig.folder.path()).expect("a folder").keep();
    let id = rig.api.submit("charges", json!({"folder": folder})).await;
    let job = Job { id, folder };
    job.until_line("waits for paid", 1);
    rig.kill_worker();
    rig.start_worker();
    // Whether it was paid nobody knows, and the job asks nobody.
    let ended = rig.api.wait(&job.id).await;
    assert_eq!((&ended["status"], &ended["error_code"]), (&json!("failed"), &json!("E3017")), "{ended}");
    let counts = ["begins", "waits for never", "waits for paid"].map(|line| job.count(line));
    assert_eq!(counts, [2, 2, 1], "{:?}", job.lines());
    job.until_unlocked();
}
