//! Puts a message into a job's inbox and wakes the job if it is parked and waits for that.

use std::sync::Arc;

use atlas_types::{
    DeliverMessage, Event, INBOX_BYTES_MAX, INBOX_MESSAGES_MAX, Inbox, Job, Message, Outcome, Payload, PayloadBody,
    Rejection,
};

use super::{check_bytes, check_limit, check_size};
use crate::change::Change;
use crate::state::State;

pub(super) fn apply(command: &DeliverMessage, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = Arc::clone(change.own_job(command.job)?);
    if job.status.is_terminal() {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    let bytes = check_payload(&command.payload)?;
    let mut inbox = change.state.inboxes.get(&job.id).cloned().unwrap_or_default();
    if is_repeat(&inbox, command)? {
        return Ok(Outcome::Delivered { repeated: true });
    }
    check_room(change.state, &inbox, bytes)?;

    let message = Arc::new(Message {
        id: command.id.clone(),
        answers: command.answers,
        channel: command.channel.clone(),
        payload: command.payload.clone(),
        from: change.origin.principal.clone(),
        at: change.at,
    });
    let number = inbox.next();
    Arc::make_mut(&mut inbox).messages.push(Arc::clone(&message));
    change.put_inbox(job.id, &inbox);
    change.emit(Event::MessageDelivered { job: job.id, message: command.id.clone(), number });
    if waits_for(&job, &message) {
        change.wake((*job).clone());
    }
    Ok(Outcome::Delivered { repeated: false })
}

/// The bytes of a payload. One that is an artifact would have to be copied to every member before its job could read it.
fn check_payload(payload: &Payload) -> Result<u64, Rejection> {
    if let PayloadBody::Artifact { size_bytes: bytes, .. } = payload.body {
        return Err(Rejection::PayloadTooLarge { bytes });
    }
    let bytes = payload.inline_bytes();
    check_size(bytes).map(|()| bytes)
}

/// Whether the inbox has had the message; refused if it has another one of its id. The content of those that were read is gone.
fn is_repeat(inbox: &Inbox, command: &DeliverMessage) -> Result<bool, Rejection> {
    let Some(known) = inbox.messages.iter().find(|message| message.id == command.id) else {
        return Ok(inbox.read_ids.contains(&command.id));
    };
    let same = (&known.payload, known.answers, &known.channel) == (&command.payload, command.answers, &command.channel);
    if same { Ok(true) } else { Err(Rejection::MessageConflict { message: command.id.clone() }) }
}

fn check_room(state: &State, inbox: &Inbox, bytes: u64) -> Result<(), Rejection> {
    check_limit("messages of a job", inbox.messages.len() as u64, INBOX_MESSAGES_MAX)?;
    if inbox.bytes() + bytes > INBOX_BYTES_MAX {
        return Err(Rejection::LimitReached { what: "message bytes of a job", limit: INBOX_BYTES_MAX });
    }
    check_bytes(state, bytes, 0)
}

fn waits_for(job: &Job, message: &Message) -> bool {
    job.parked.as_ref().is_some_and(|parked| parked.waits.iter().any(|wait| wait.is_for(message)))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const RUNNING: &str = "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s";

    #[test]
    fn a_message_wakes_a_job_that_waits_for_one() {
        check(
            &format!("{RUNNING} -- park j1 message=true; send j1 a; send j1 a; send j1 b; inbox j1; grant j1 n1; park j1 message=true read=1;
            park j1 message=true read=2; inbox j1; send j1 a; inbox j1"),
            expect![[r#"
                j1 Parked running→pending Parked
                j1 message 0: a
                j1 Woken pending→pending Queued
                = delivered before
                j1 message 1: b
                j1: read 0 [] then ["a", "b"] of 2 bytes
                j1 Granted pending→running on n1 token 2 attempt 2
                = ready
                j1 Parked running→pending Parked
                j1: read 2 [a, b] then [] of 0 bytes
                = delivered before
                j1: read 2 [a, b] then [] of 0 bytes
            "#]],
        );
    }

    #[test]
    fn only_an_answer_wakes_a_job_that_waits_for_one() {
        check(
            &format!(
                "{RUNNING}; park j1 answer=7 -- send j1 a; send j1 b answers=8; show j1; send j1 c answers=7; show j1"
            ),
            expect![[r#"
                j1 message 0: a
                j1 message 1: b
                j1: pending Parked attempt 1
                j1 message 2: c
                j1 Woken pending→pending Queued
                j1: pending Queued attempt 1
            "#]],
        );
    }

    #[test]
    fn a_message_that_was_not_read_keeps_a_job_from_parking() {
        check(
            &format!(
                "{RUNNING}; send j1 a answers=7 -- park j1 message=true; park j1 answer=7; park j1 answer=7 read=2; park j1 answer=8; show j1; inbox j1"
            ),
            expect![[r#"
                = ready
                = ready
                ! the job cannot have read 2 messages, its inbox has had 1
                j1 Parked running→pending Parked
                j1: pending Parked attempt 1
                j1: read 0 [] then ["a"] of 1 bytes
            "#]],
        );
    }

    #[test]
    fn a_job_gets_messages_until_it_ends() {
        check(
            "level 6; agent a; node n1; job j1; job j2 -- send j1 a; send j1 a payload=2; send j1 a channel=x; send j1 b ns=other; send j9 a; grant j1 n1; send j1 b; inbox j1;
            complete j1; inbox j1; send j1 c; cancel j2; send j2 a",
            expect![[r#"
                j1 message 0: a
                ! the inbox has another message with the id "a"
                ! the inbox has another message with the id "a"
                ! no such job: j1
                ! no such job: ?
                j1 Granted pending→running on n1 token 1 attempt 1
                j1 message 1: b
                j1: read 0 [] then ["a", "b"] of 2 bytes
                j1 Ended running→completed
                j1: no inbox
                ! the job is Completed
                j2 Ended pending→cancelled
                ! the job is Cancelled
            "#]],
        );
    }

    #[test]
    fn an_inbox_and_the_cluster_have_bounds() {
        let send = |count| (0..count).map(|n| format!("send j1 m{n}")).collect::<Vec<_>>().join(";");
        check(
            &format!("{RUNNING}; {} -- send j1 z; park j1 at=9 read=1; send j1 z", send(64)),
            expect![[r#"
                ! the cluster's limit of 64 for messages of a job is reached
                j1 Parked running→pending Parked
                j1 message 64: z
            "#]],
        );
        check(
            &format!("{RUNNING} -- send j1 a bytes=65537; send j1 a bytes=65536; send j1 b bytes=65536; send j1 c bytes=65536; send j1 d bytes=65536;
            send j1 e bytes=1; send j1 f artifact=7; job j2; config bytes=262200; send j2 a bytes=100"),
            expect![[r#"
                ! a payload of 65537 bytes is too large to be inline
                j1 message 0: a
                j1 message 1: b
                j1 message 2: c
                j1 message 3: d
                ! the cluster's limit of 262144 for message bytes of a job is reached
                ! a payload of 70000 bytes is too large to be inline
                j2 Submitted pending→pending Queued
                configured
                ! the cluster's limit of 262200 for payload bytes is reached
            "#]],
        );
    }
}
