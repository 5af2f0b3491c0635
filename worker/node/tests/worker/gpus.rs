//! Tests the health of GPUs while a worker runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_inventory::{GpuFacts, GpuProbe, ProbeError};

use crate::support::{Controller, Node, shell};

/// Two GPUs, the second of which may be broken.
#[derive(Debug, Default)]
struct TwoGpus {
    broken: AtomicBool,
}

impl GpuProbe for TwoGpus {
    fn gpus(&self) -> Result<Vec<GpuFacts>, ProbeError> {
        let healthy = |index| index == 0 || !self.broken.load(Ordering::SeqCst);
        let gpu = |index: u32| GpuFacts {
            index,
            uuid: format!("GPU-{index}"),
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            memory_bytes: 80 << 30,
            healthy: healthy(index),
            slices: Vec::new(),
        };
        Ok((0..2).map(gpu).collect())
    }
}

#[tokio::test]
async fn a_gpu_that_breaks_is_advertised_and_the_leases_stay() {
    let mut controller = Controller::start().await;
    let gpus = Arc::new(TwoGpus::default());
    let node = Node::start_with(&controller, |options| {
        options.gpus = Arc::clone(&gpus) as Arc<dyn GpuProbe>;
        options.gpu_health_every = Duration::from_millis(10);
    })
    .await;
    let mut session = controller.session().await;
    let first = session.hello().await;
    assert!(first.inventory.gpus.iter().all(|gpu| gpu.healthy), "{:?}", first.inventory.gpus);
    let gate = node.dir.path().join("gate");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done; echo '{{}}'", gate.display());
    let agent = controller.publish_owned(&shell(&script, ""));
    let assignment = controller.assignment(&agent, "{}");
    session.welcome(vec![assignment.clone()]).await;

    // The stream stays open while nothing changes, and the worker opens another one with the next change.
    for broken in [true, false] {
        gpus.broken.store(broken, Ordering::SeqCst);
        session = controller.session().await;
        let hello = session.hello().await;
        let healthy: Vec<bool> = hello.inventory.gpus.iter().map(|gpu| gpu.healthy).collect();
        assert_eq!((healthy, hello.boot_id), (vec![true, !broken], first.boot_id));
        assert_eq!(hello.leases.iter().map(|held| held.token).collect::<Vec<_>>(), [assignment.token]);
        session.welcome(vec![assignment.clone()]).await;
    }
    std::fs::write(&gate, "").expect("writable");
    assert_eq!(session.end().await.0, assignment.token);
    node.shutdown().await;
}
