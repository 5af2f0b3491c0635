//! The end of a run whose job was parked or cannot go on: the host leaves it, and can serve others.

use std::time::Duration;

use serde_json::json;

use super::frame::{Beginning, Kind};
use super::process::{FRAME_BYTES_EXTRA, Host};
use crate::provider::Control;
use crate::provider::durable::Called;
use crate::provider::io_loop::{Ready, Wait, Woken};

/// How long a program may take to leave a job.
const LEAVE_PATIENCE: Duration = Duration::from_secs(1);

impl Host {
    /// Has the host leave its run, whose job was parked or cannot go on: `stop` says why. True if it can serve another job.
    pub(super) async fn leave(
        &mut self,
        control: &mut Control<'_>,
        stop: Option<Called>,
        output_bytes_max: usize,
    ) -> bool {
        match &stop {
            Some(stop) => self.send_body(stop.frame().as_bytes()),
            None => self.send(&json!({"type": "leave", "number": self.run})),
        }
        let mut wait = Wait::to_leave(control.now() + LEAVE_PATIENCE);
        loop {
            let pipes: [&dyn Ready; 4] = [&self.to_host, &self.from_host, &self.stdout.source, &self.stderr.source];
            let woken = wait.next(control, &mut self.tree, pipes).await;
            let ([to_host, from_host, stdout, stderr], tree) = match woken {
                Woken::Io { pipes, tree } => (pipes, tree),
                // The program does not wait for it any more.
                Woken::Answered => {
                    drop(control.answers());
                    continue;
                }
                Woken::TimedOut | Woken::Stopped | Woken::Parked => {
                    self.tree.kill().await;
                    return false;
                }
            };
            if to_host {
                self.to_host.flush();
            }
            if stdout {
                self.stdout.read(control).await;
            }
            if stderr {
                self.stderr.read(control).await;
            }
            if tree && self.tree.change().is_some() {
                self.tree.kill().await;
                return false;
            }
            if !from_host {
                continue;
            }
            self.from_host.read(&mut self.frames);
            loop {
                let beginning = match self.a_beginning(output_bytes_max) {
                    Ok(Some(beginning)) => beginning,
                    Ok(None) => break,
                    Err(_) => {
                        self.tree.kill().await;
                        return false;
                    }
                };
                let Beginning { kind, number } = beginning;
                // A run that has ended meanwhile has said so, and says no more.
                if matches!(kind, Kind::Left | Kind::Result | Kind::Error) && number == self.run {
                    self.stdout.finish(control).await;
                    self.stderr.finish(control).await;
                    return !self.strayed;
                }
            }
        }
    }

    /// The beginning of the next whole frame in the buffer, which is dropped.
    fn a_beginning(&mut self, output_bytes_max: usize) -> Result<Option<Beginning>, String> {
        let Some(header) = self.frames.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > output_bytes_max + FRAME_BYTES_EXTRA {
            return Err("too long a frame".to_owned());
        }
        if self.frames.len() < 4 + length {
            return Ok(None);
        }
        let rest = self.frames.split_off(4 + length);
        let body = std::mem::replace(&mut self.frames, rest);
        serde_json::from_slice(&body[4..]).map(Some).map_err(|error| error.to_string())
    }
}
