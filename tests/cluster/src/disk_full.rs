//! A controller on a disk that fills up and is freed again (B.38).
//!
//! Needs a file system of a fixed size, so the right to mount one; without it the test says so and leaves it to its twin on a
//! simulated disk (`atlas-raft`, `tests::faults`).

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use atlas_package::pack;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::json;

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;
use crate::{Agent, write_agent};

const QUICK: Agent<'static> =
    Agent { name: "quick", version: "1.0.0", contract: "", script: "cat >/dev/null; printf '{\"done\": true}'" };

const GATED: Agent<'static> = Agent {
    name: "gated",
    version: "1.0.0",
    contract: "",
    script: r#"gate=$(sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
while [ ! -e "$gate" ]; do sleep 0.05; done
printf '{"passed": true}'"#,
};

/// A small file system in memory, gone at the end.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf, mib: u64) -> Result<Self, nix::Error> {
        fs::create_dir_all(&at).expect("a folder");
        let size = format!("size={mib}m");
        mount(Some("small"), &at, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))?;
        Ok(Self(at))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Takes what is free, but for `left` bytes.
    fn fill(&self, left: usize) {
        let mut filler = File::options().append(true).create(true).open(self.filler()).expect("a file");
        let block = vec![1; 64 << 10];
        while filler.write_all(&block).is_ok() {}
        let len = filler.metadata().expect("readable").len();
        filler.set_len(len.saturating_sub(left as u64)).expect("shortened");
    }

    fn free(&self) {
        fs::remove_file(self.filler()).expect("removed");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Detached, since a process that was killed may hold it for a moment longer.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

async fn room(api: &Api, wanted: &str) {
    eventually_async("the controller sees its disk", async || {
        let cluster = api.get("/api/cluster").await;
        if cluster["disk"]["room"] == wanted { Ok(()) } else { Err(cluster["disk"].to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = match Small::mount(folder.path().join("small"), 64) {
        Ok(small) => small,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!(
                    "SKIPPED a_full_disk_refuses_new_work_and_nothing_else: nothing can be mounted here: {error}"
                );
            }
            return;
        }
    };
    for agent in [&QUICK, &GATED] {
        write_agent(folder.path(), agent);
    }
    let options = ["--disk-reserve", "8MiB", "--disk-ballast", "4MiB"];
    let controller = Controller::start_with(&small.0, &options);
    let api = Api::new(&controller.http.to_string());
    for agent in ["quick", "gated"] {
        api.register(pack(&folder.path().join(agent)).expect("a package").bytes).await;
    }
    let worker = worker(folder.path(), &controller);
    let mut acknowledged = Vec::new();
    for _ in 0..5 {
        let id = api.submit("quick", json!({})).await;
        api.wait(&id).await;
        acknowledged.push(id);
    }
    let gate = folder.path().join("gate");
    let running = api.submit("gated", json!({"gate": gate})).await;

    // Less than the reserve, and more than the log needs: what runs may end.
    small.fill(2 << 20);
    room(&api, "short").await;
    let (status, code, body) = api.try_post("/api/jobs", json!({"agent": "quick", "input": {}})).await;
    assert_eq!((status, code.as_str()), (507, "E4009"), "{body}");
    fs::write(&gate, "").expect("opened");
    let job = api.wait(&running).await;
    assert_eq!(job["status"], "completed", "{job}");
    acknowledged.push(running);

    // Nothing left at all, not even the ballast that was given back: reads go on.
    small.fill(0);
    room(&api, "none").await;
    for id in &acknowledged {
        assert_eq!(api.job(id).await["status"], "completed");
    }
    let (status, code, body) = api.try_post("/api/jobs", json!({"agent": "quick", "input": {}})).await;
    assert_eq!((status, code.as_str()), (507, "E4009"), "{body}");

    small.free();
    room(&api, "ample").await;
    let id = api.submit("quick", json!({})).await;
    assert_eq!(api.wait(&id).await["status"], "completed");
    acknowledged.push(id);
    assert!(ballast(&small.0) > 0, "the ballast is set aside again");
    let controller = controller.kill_and_restart(&small.0);
    let api = Api::new(&controller.http.to_string());
    for id in &acknowledged {
        assert_eq!(api.job(id).await["status"], "completed", "{id}");
    }
    drop((worker, controller));
}

/// The length of the ballast.
fn ballast(folder: &Path) -> u64 {
    fs::metadata(folder.join("controller/raft/log/ballast")).map_or(0, |found| found.len())
}
