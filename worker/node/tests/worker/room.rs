//! Tests agents that share the memory of one GPU.

use atlas_types::{Assignment, GpuShare};
use atlas_wire::session::ToLeader;

use crate::support::{Agent, Controller, Node, shell};

/// A job of `agent` that holds 20 of the GPU's 24 GiB.
fn most_of_the_gpu(controller: &mut Controller, agent: &Agent) -> Assignment {
    let mut assignment = controller.assignment(agent, "{}");
    assignment.allocation.gpus = vec![GpuShare { index: 0, vram_bytes: 20 << 30 }];
    assignment
}

#[tokio::test]
async fn a_job_starts_only_after_the_idle_process_that_holds_its_gpu_memory_is_gone() {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| {
        options.declared.gpus = Some(1);
        options.declared.gpu_vram_gb = vec![24];
    })
    .await;
    let mut session = controller.welcomed(Vec::new()).await;
    let lock = node.dir.path().join("gpu.lock");
    let lock = lock.display();
    // The first agent stays warm after its job, with its model in the GPU's memory, and ends slowly. The lock is
    // released when its process ends.
    let first =
        format!("exec 9>{lock}; flock 9; while read -r line; do echo '{{\"output\": {{}}}}'; done; exec sleep 0.3");
    let first = controller.publish_owned(&shell(&first, "    mode: warm\n"));
    let second =
        format!("if flock -n {lock} true; then echo '{{\"first\":\"gone\"}}'; else echo '{{\"first\":\"there\"}}'; fi");
    let second = controller.publish_owned(&shell(&second, ""));

    let end = session.run(&most_of_the_gpu(&mut controller, &first)).await;
    assert_eq!(end.usage().idle, 1, "it stays warm");
    session.grant(&most_of_the_gpu(&mut controller, &second)).await;
    while !matches!(session.next().await, ToLeader::WarmChanged { digest, idle: 0 } if digest == first.digest) {}
    assert_eq!(session.end().await.1.output(&controller), r#"{"first":"gone"}"#);
    node.shutdown().await;
}
