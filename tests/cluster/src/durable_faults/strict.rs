//! `replay: strict`: what is different in each attempt is told, and what a program leaves out of its record is an error.

use super::Rig;

/// Takes what is different in each attempt, and leaves a step out once its worker was lost.
const CHANCE: &str = r#"
    async def execute(self, input_data):
        folder = input_data["folder"]
        time.time()
        random.random()
        with socket.socket() as client:
            client.connect_ex(("127.0.0.1", 9))
        self.context.now(), self.context.random().random(), self.context.uuid()
        await self.context.step("inside", lambda: [time.time(), random.random()])
        if not Path(folder, "lost").exists():
            await self.context.step("left", note, folder, "left")
            await self.context.step("gate", gate, folder, "lost")
        return {"done": True}
"#;

#[tokio::test]
async fn what_is_different_in_each_attempt_is_told_and_what_is_left_out_is_an_error() {
    let mut rig = Rig::start();
    rig.deploy("strict", "1.0.0", "  replay: strict\n", CHANCE).await;
    rig.deploy("lenient", "1.0.0", "", CHANCE).await;
    let jobs = [rig.submit("strict").await, rig.submit("lenient").await];
    jobs.iter().for_each(|job| job.until_line("waits for lost", 1));
    rig.kill_worker();
    jobs.iter().for_each(|job| job.open("lost"));
    rig.start_worker();
    let [strict, lenient] = &jobs;

    let ended = rig.api.wait(&strict.id).await;
    let error = ended["error"].as_str().unwrap_or_default();
    assert_eq!((&ended["status"], &ended["error_code"]), (&"failed".into(), &"E3013".into()), "{ended}");
    assert!(error.contains("the step 'left'") && error.contains("the contract says replay: strict"), "{error}");
    let log = rig.log(strict).await;
    for what in [
        "time.time() outside of a step is different in each attempt; use self.context.now()",
        "random.random() outside of a step is different in each attempt; use self.context.random()",
        "the network outside of a step is different in each attempt; do it in a step",
    ] {
        assert!(log.contains(what), "{what}: {log}");
    }
    assert_eq!(log.matches("outside of a step").count() % 3, 0, "once a line, and nothing in steps: {log}");

    let ended = rig.api.wait(&lenient.id).await;
    assert_eq!(ended["output_data"], serde_json::json!({"done": true}), "{ended}");
    let log = rig.log(lenient).await;
    assert!(log.contains("its record has the step 'left', for which it did not ask"), "{log}");
    assert!(!log.contains("outside of a step"), "{log}");
    assert_eq!((strict.count("left"), lenient.count("left")), (1, 1));
}
