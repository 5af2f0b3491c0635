//! Event sockets: a job is submitted while a client listens.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::agents::known_example;
use crate::bench::Bench;
use crate::matcher::{Captures, fill};
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text, unknown};
use crate::setup::only;
use crate::socket::{Opened, Socket};

/// Longest wait for the expected frames.
const FRAMES_MAX: Duration = Duration::from_secs(60);

/// How long to wait for frames that must not arrive.
const QUIET: Duration = Duration::from_millis(500);

pub(super) fn judge(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["path", "submit", "server_flags", "agents", "pool"])?;
    if let Some(member) = unknown(&row.expect, &["frames", "server_closed", "close_code", "status"]) {
        return Err(Stop::skip(format!("sockets of which \"{member}\" is expected")));
    }
    let submission = row.input.get("submit").filter(|submission| !submission.is_null());
    known_example(submission.map_or("", |submission| text(submission, "agent")), bench.bundled()?)?;
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let cluster = super::rest::start(row, bench, folder.path())?;
    let mut captures = Captures::new();
    let submit = || submission.map(|submission| cluster.http.submit(submission)).transpose();
    // A path with a job id needs an existing job, so the job is submitted first.
    let early = row.text("path").contains("{job}");
    let mut job = if early { submit()? } else { None };
    captures.insert("job".to_owned(), json!(job));
    let opened = Socket::open(cluster.address(), &fill(row.text("path"), &captures))?;
    let answer = match opened {
        Opened::Refused(status) => json!({ "status": status }),
        Opened::Socket(mut socket) => {
            if !early {
                job = submit()?;
                captures.insert("job".to_owned(), json!(job));
            }
            listen(row, &mut socket)?
        }
    };
    compare(&row.expect, &answer, &captures)
}

fn listen(row: &Row, socket: &mut Socket) -> Result<Value, Stop> {
    let wanted = items(&row.expect, "frames").count();
    socket.collect(FRAMES_MAX, |frames| frames.len() >= wanted)?;
    let closes = row.expect["server_closed"] == true;
    socket.collect(if closes { FRAMES_MAX } else { QUIET }, |frames| frames.len() > wanted)?;
    let mut answer = Map::new();
    answer.insert("frames".to_owned(), Value::Array(std::mem::take(&mut socket.frames)));
    answer.insert("server_closed".to_owned(), json!(socket.closed.is_some()));
    answer.insert("close_code".to_owned(), json!(socket.closed.flatten()));
    answer.retain(|name, _| row.expect.get(name).is_some());
    Ok(Value::Object(answer))
}
