//! A tool of the platform that an attempt calls. Each call has one future, which returns the answer.

use std::time::Duration;

use atlas_env::Env;
use atlas_service::Service;
use atlas_types::{ToolEnd, ToolRequest};
use tokio::sync::watch;

/// The pause between two tries while there is no leader or the log is overloaded.
const PAUSE: Duration = Duration::from_millis(200);

/// Calls a tool. The session drops this future when it ends. The worker then repeats the call in its next session. None
/// if the lease of the attempt ends first: `alive` closes then.
pub(super) async fn run(
    service: Service,
    env: Env,
    mut alive: watch::Receiver<()>,
    number: u64,
    call: ToolRequest,
) -> Option<(u64, ToolEnd)> {
    tokio::select! {
        biased;
        _ = alive.changed() => None,
        end = end(service, env, call) => Some((number, end)),
    }
}

async fn end(service: Service, env: Env, mut call: ToolRequest) -> ToolEnd {
    loop {
        match service.call_tool(&call).await {
            Ok(end) => return end,
            Err(error) => tracing::debug!(%error, tool = call.tool, "a tool is called again"),
        }
        // The job may have been spawned although the call failed.
        call.again = true;
        env.clock.sleep(PAUSE).await;
    }
}
