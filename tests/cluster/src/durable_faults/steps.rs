//! Steps at and beyond their bounds: what they return, where they run, and for how long.

use serde_json::json;

use super::Rig;

/// Steps of all kinds. What they do comes after their names in the lines of the job.
const ALL: &str = r#"
    async def execute(self, input_data):
        folder = input_data["folder"]
        said = []

        async def fails(name, function, *arguments):
            try:
                await self.context.step(name, function, *arguments)
            except StepFailed as error:
                said.append([error.name, error.type, error.text[:150]])

        async def nested():
            await self.context.step("inner", note, folder, "inner")

        def raises(size):
            note(folder, "raises")
            raise ValueError("x" * size)

        await fails("set", lambda: {1, 2})
        await fails("outer", nested)
        await fails("raises", raises, 20 << 20)
        for size in (8 << 20, 10 << 20, 40 << 20):
            await fails("large", lambda size: note(folder, "large") and "x" * size, size)
        equal = [await self.context.step("same", note, folder, "same") for _ in range(3)]
        artifact = await self.context.step("artifact", lambda: note(folder, "artifact") and "x" * 100_000)

        def from_thread(n):
            return self.context.step("thread", note, folder, f"thread {n}")

        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(3) as pool:
            threads = await asyncio.gather(*(loop.run_in_executor(pool, from_thread, n) for n in range(3)))
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                await self.context.step("fork", note, folder, "fork")
            except BaseException as error:
                os.write(writes, type(error).__name__.encode())
            os._exit(0)
        os.waitpid(child, 0)
        await self.context.step("gate", gate, folder, "open")
        rest = {"equal": equal, "artifact": len(artifact), "threads": threads, "fork": os.read(reads, 100).decode()}
        return {"said": said, **rest}
"#;

#[tokio::test]
async fn each_step_ends_as_before_after_a_lost_worker() {
    let mut rig = Rig::start();
    rig.deploy("all", "1.0.0", "", ALL).await;
    let job = rig.submit("all").await;
    for lost in 1..=2 {
        job.until_line("waits for open", lost);
        rig.kill_worker();
        rig.start_worker();
    }
    job.until_line("waits for open", 3);
    job.open("open");
    let ended = rig.api.wait(&job.id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["attempt"].as_u64() >= Some(3), "{ended}");
    let output = &ended["output_data"];
    let said: Vec<String> = output["said"].as_array().expect("a list").iter().map(ToString::to_string).collect();
    let begins = |index: usize, text: &str| assert!(said[index].starts_with(text), "{index}: {}", said[index]);
    begins(0, r#"["set","TypeError","step 'set' returned what JSON cannot represent"#);
    begins(1, r#"["outer","NestedStep","step 'inner' is called inside of step 'outer'"#);
    begins(2, r#"["raises","ValueError","xxxx"#);
    for large in &said[3..] {
        let text = r#"["large","ValueError","the result of the step 'large' has "#;
        assert!(large.starts_with(text) && large.contains("more than 8388608"), "{large}");
    }
    assert_eq!(output["equal"], json!(["same", "same", "same"]));
    assert_eq!((&output["artifact"], &output["fork"]), (&json!(100_000), &json!("OtherProcessError")), "{output}");
    assert_eq!(output["threads"], json!(["thread 0", "thread 1", "thread 2"]));
    // Nothing was done twice, and what cannot be done was not done.
    let counts = ["raises", "large", "same", "artifact", "thread 0", "thread 1", "thread 2", "inner", "fork"];
    let counts = counts.map(|line| job.count(line));
    assert_eq!(counts, [1, 3, 3, 1, 1, 1, 1, 0, 0], "{:?}", job.lines());
}

#[tokio::test]
async fn a_step_may_take_longer_than_a_lease() {
    let rig = Rig::start();
    let body = r#"
    async def execute(self, input_data):
        folder = input_data["folder"]
        return {"slept": await self.context.step("sleeps", lambda: note(folder, "sleeps") and time.sleep(12))}
"#;
    rig.deploy("sleeps", "1.0.0", "", body).await;
    let (ended, job) = rig.run("sleeps").await;
    assert_eq!(
        (&ended["status"], &ended["attempt"], job.count("sleeps")),
        (&json!("completed"), &json!(1), 1),
        "{ended}"
    );
}
