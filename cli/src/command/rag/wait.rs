//! Waiting until each part of a base has a vector.

use std::time::Duration;

use atlas_api::types::Base;
use atlas_env::Env;

use super::show::progress;
use super::{at, listed};
use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words;

/// How often the base is asked for.
const EVERY: Duration = Duration::from_millis(300);

/// Looks between two lines about the progress.
const SAID_EVERY: u32 = 10;

/// Waits, and says how far it is. A failure ends the wait: the cluster tries again by itself.
pub(super) async fn for_vectors(context: &Context, name: &str) -> Result<Exit, Failure> {
    let (client, env) = (context.client()?, Env::system());
    let mut said = String::new();
    for look in 0_u32.. {
        let base: Base = answers::read(&client.get(&at(name), &[]).await.map_err(listed)?)?;
        let Some(vectors) = base.vectors else { break };
        let text = progress(&vectors);
        match vectors.state.as_str() {
            "ready" if look == 0 => break,
            "ready" => {
                context.note(&format!("vectors of base/{name}: {text}"));
                break;
            }
            "failed" => {
                context.note(&format!(
                    "{}vectors of base/{name} {text}; it is tried again, and parts without a vector are found by words",
                    words::WARNING
                ));
                return Ok(Exit::Short);
            }
            _ if look % SAID_EVERY == SAID_EVERY - 1 && text != said => {
                context.note(&format!("vectors of base/{name}: {text}"));
                said = text;
            }
            _ => {}
        }
        env.clock.sleep(EVERY).await;
    }
    Ok(Exit::Done)
}
