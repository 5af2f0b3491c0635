//! The status machine's edges are closed (B.5): every command on a job in every situation, and its result.

use std::fmt::Write;

use expect_test::expect;

use super::script::Run;

/// How a job gets into each situation, from an agent that must not run twice, with one retry.
const SITUATIONS: [(&str, &str); 13] = [
    ("queued", ""),
    ("back-off", "grant j1 n1; fail j1"),
    ("lost", "grant j1 n1; lose j1"),
    ("in doubt", "grant j1 n1; start j1; lose j1"),
    ("running", "grant j1 n1"),
    ("cancelling", "grant j1 n1; cancel j1"),
    ("parked", "grant j1 n1; record j1 from=0 steps=s; park j1 at=9"),
    ("woken", "grant j1 n1; record j1 from=0 steps=s; park j1 at=2; clock +9; wake j1"),
    ("for a run", "cancel j1; job j2 agent=b"),
    ("carried", "cancel j1; job j2 agent=b; carry j2 run=7"),
    ("completed", "grant j1 n1; complete j1"),
    ("failed", "grant j1 n1; fail j1"),
    ("cancelled", "cancel j1"),
];

const COMMANDS: [&str; 18] = [
    "grant",
    "start",
    "complete",
    "fail",
    "lose",
    "park",
    "carry",
    "end-run",
    "end-run-failed",
    "fail-pending",
    "cancel",
    "cancel-pending",
    "wake",
    "retry",
    "job",
    "resolve",
    "resolve-done",
    "resolve-failed",
];

#[test]
fn every_command_on_a_job_in_every_situation() {
    let mut table = String::new();
    for (situation, setup) in SITUATIONS {
        writeln!(table, "{situation}").expect("writing to a string");
        for command in COMMANDS {
            let mut run = Run::new();
            run.prepare("level 6; agent a effects=once retries=1; agent b carried=true retries=1; node n1; job j1");
            run.prepare(setup);
            // The retry of a failed job is the one that backs off.
            let job = match situation {
                "back-off" => "j1'1",
                "for a run" | "carried" => "j2",
                _ => "j1",
            };
            let more = match command {
                "grant" => "n1",
                "retry" => "j9",
                "park" => "at=9",
                "carry" => "run=8",
                "end-run-failed" => "error=no",
                "resolve-done" => "output=1",
                "resolve-failed" => "error=no",
                _ => "",
            };
            // One statement, several outcomes.
            let verbs = ["resolve", "end-run"].into_iter().find(|verb| command.starts_with(verb));
            let verb = verbs.unwrap_or(command);
            let line = run.play(&format!("{verb} {job} {more}"));
            let line = line.trim().replace('\n', " | ");
            writeln!(table, "  {command:<15}{line}").expect("writing to a string");
        }
    }
    expect![[r#"
        queued
          grant          j1 Granted pending→running on n1 token 1 attempt 1
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! jobs of this agent run under a lease; no run carries them
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   j1 Granted pending→running without a lease | j1 Ended running→failed Agent: boom | j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
          cancel         j1 Ended pending→cancelled
          cancel-pending j1 Ended pending→cancelled
          wake           ! the job is Pending
          retry          ! the job is Pending
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Pending
          resolve-done   ! the job is not in doubt, it is Pending
          resolve-failed ! the job is not in doubt, it is Pending
        back-off
          grant          ! the job is not due yet
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is not due yet
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   j1'1 Granted pending→running without a lease | j1'1 Ended running→failed Agent: boom
          cancel         j1'1 Ended pending→cancelled
          cancel-pending j1'1 Ended pending→cancelled
          wake           ! the job is not due yet
          retry          ! the job is Pending
          job            ! the id of j1'1 is taken
          resolve        ! the job is not in doubt, it is Pending
          resolve-done   ! the job is not in doubt, it is Pending
          resolve-failed ! the job is not in doubt, it is Pending
        lost
          grant          j1 Granted pending→running on n1 token 2 attempt 2
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is Pending
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   j1 Granted pending→running without a lease | j1 Ended running→failed Agent: boom | j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
          cancel         j1 Ended pending→cancelled
          cancel-pending j1 Ended pending→cancelled
          wake           ! the job is Pending
          retry          ! the job is Pending
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Pending
          resolve-done   ! the job is not in doubt, it is Pending
          resolve-failed ! the job is not in doubt, it is Pending
        in doubt
          grant          ! the job is Pending
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is Pending
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Pending
          cancel         j1 Ended pending→cancelled
          cancel-pending j1 Ended pending→cancelled
          wake           ! the job is Pending
          retry          ! the job is Pending
          job            ! the id of j1 is taken
          resolve        j1 Resolved pending→pending Lost
          resolve-done   j1 Granted pending→running without a lease | j1 Ended running→completed
          resolve-failed j1 Granted pending→running without a lease | j1 Ended running→failed LeaseLost: no
        running
          grant          ! the job is Running
          start          j1 Started running→running Running
          complete       j1 Ended running→completed
          fail           j1 Ended running→failed Agent: boom | j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
          lose           j1 Lost running→pending Lost
          park           ! the job has no recorded steps, so it can neither park nor ask
          carry          ! the job is Running
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Running
          cancel         j1 Cancelling running→running Cancelling
          cancel-pending = nothing to cancel
          wake           ! the job is Running
          retry          ! the job is Running
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Running
          resolve-done   ! the job is not in doubt, it is Running
          resolve-failed ! the job is not in doubt, it is Running
        cancelling
          grant          ! the job is Running
          start          j1 Ended running→cancelled
          complete       j1 Ended running→cancelled
          fail           j1 Ended running→cancelled
          lose           j1 Ended running→cancelled
          park           j1 Ended running→cancelled
          carry          ! the job is Running
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Running
          cancel         
          cancel-pending = nothing to cancel
          wake           ! the job is Running
          retry          ! the job is Running
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Running
          resolve-done   ! the job is not in doubt, it is Running
          resolve-failed ! the job is not in doubt, it is Running
        parked
          grant          ! the job is Pending
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is Pending
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Pending
          cancel         j1 Ended pending→cancelled
          cancel-pending = nothing to cancel
          wake           ! the job is not due yet
          retry          ! the job is Pending
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Pending
          resolve-done   ! the job is not in doubt, it is Pending
          resolve-failed ! the job is not in doubt, it is Pending
        woken
          grant          j1 Granted pending→running on n1 token 2 attempt 2
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! jobs of this agent run under a lease; no run carries them
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Pending
          cancel         j1 Ended pending→cancelled
          cancel-pending = nothing to cancel
          wake           ! the job is Pending
          retry          ! the job is Pending
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Pending
          resolve-done   ! the job is not in doubt, it is Pending
          resolve-failed ! the job is not in doubt, it is Pending
        for a run
          grant          ! a run carries the jobs of this agent; they get no lease
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          j2 Carried pending→running by run-0000000000000008
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   j2 Granted pending→running without a lease | j2 Ended running→failed Agent: boom | j2'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
          cancel         j2 Ended pending→cancelled
          cancel-pending j2 Ended pending→cancelled
          wake           ! the job is Pending
          retry          ! the job is Pending
          job            ! the id of j2 is taken
          resolve        ! the job is not in doubt, it is Pending
          resolve-done   ! the job is not in doubt, it is Pending
          resolve-failed ! the job is not in doubt, it is Pending
        carried
          grant          ! the job is Running
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is Running
          end-run        j2 Ended running→completed
          end-run-failed j2 Ended running→failed Agent: no | j2'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
          fail-pending   ! the job is Running
          cancel         j2 Ended running→cancelled
          cancel-pending = nothing to cancel
          wake           ! the job is Running
          retry          ! the job is Running
          job            ! the id of j2 is taken
          resolve        ! the job is not in doubt, it is Running
          resolve-done   ! the job is not in doubt, it is Running
          resolve-failed ! the job is not in doubt, it is Running
        completed
          grant          ! the job is Completed
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is Completed
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Completed
          cancel         = nothing to cancel
          cancel-pending = nothing to cancel
          wake           ! the job is Completed
          retry          j9 Submitted pending→pending Queued
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Completed
          resolve-done   ! the job is not in doubt, it is Completed
          resolve-failed ! the job is not in doubt, it is Completed
        failed
          grant          ! the job is Failed
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is Failed
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Failed
          cancel         = nothing to cancel
          cancel-pending = nothing to cancel
          wake           ! the job is Failed
          retry          j9 Submitted pending→pending Queued
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Failed
          resolve-done   ! the job is not in doubt, it is Failed
          resolve-failed ! the job is not in doubt, it is Failed
        cancelled
          grant          ! the job is Cancelled
          start          ! the lease is outdated
          complete       ! the lease is outdated
          fail           ! the lease is outdated
          lose           ! the lease is outdated
          park           ! the lease is outdated
          carry          ! the job is Cancelled
          end-run        ! the run does not carry this job
          end-run-failed ! the run does not carry this job
          fail-pending   ! the job is Cancelled
          cancel         = nothing to cancel
          cancel-pending = nothing to cancel
          wake           ! the job is Cancelled
          retry          j9 Submitted pending→pending Queued
          job            ! the id of j1 is taken
          resolve        ! the job is not in doubt, it is Cancelled
          resolve-done   ! the job is not in doubt, it is Cancelled
          resolve-failed ! the job is not in doubt, it is Cancelled
    "#]].assert_eq(&table);
}
