//! Tasks: one helper spawns them with a name and the current span, and reports panics.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tracing::Instrument;

use crate::{Env, Vitals};

/// Pause before a panicked task is restarted; it doubles with each consecutive panic.
const RESTART_MIN: Duration = Duration::from_secs(1);
/// Longest pause. After a task ran for longer than this before it panicked, the pause starts at the minimum again.
const RESTART_MAX: Duration = Duration::from_secs(60);

/// Where blocking work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    Machine,
    /// No threads: blocking work runs on the task that waits for it, and no simulated time passes. For a simulation, in
    /// which threads would make runs not reproducible.
    None,
}

/// How a task ended without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// The task panicked; the panic was logged with the task's name.
    Panicked,
    /// The task was aborted, or its runtime shut down.
    Aborted,
}

/// A running task. Dropping this handle does not stop the task.
#[derive(Debug)]
pub struct Task<T>(tokio::task::JoinHandle<T>);

impl<T> Task<T> {
    /// Waits for the task's value.
    pub async fn join(self) -> Result<T, TaskEnd> {
        self.0.await.map_err(|error| if error.is_panic() { TaskEnd::Panicked } else { TaskEnd::Aborted })
    }

    /// Stops the task at its next await.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Env {
    /// Spawns a task on the current async runtime.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn(name, Box::pin(future))
    }

    /// Spawns a task without which the process cannot work: if the task returns or panics, [`Vitals::failed`]
    /// completes. Aborting the task is allowed.
    pub fn spawn_vital<F>(&self, name: &'static str, future: F) -> Task<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let guard = VitalReport(name, self.vitals.clone());
        self.spawn(name, async move {
            future.await;
            guard.1.ended(name, "ended");
        })
    }

    /// Spawns a task that is restarted after a pause if it panics, for work that may be interrupted for a while.
    /// `begin` creates the future for each start; the task ends when its future returns.
    pub fn spawn_restarting<F>(&self, name: &'static str, begin: impl Fn() -> F + Send + 'static) -> Task<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let clock = self.clock.clone();
        self.spawn(name, async move {
            let mut pause = RESTART_MIN;
            loop {
                let begun = clock.monotonic();
                if ends_without_panic(begin()).await {
                    return;
                }
                if clock.monotonic().saturating_sub(begun) > RESTART_MAX {
                    pause = RESTART_MIN;
                }
                tracing::error!(task = name, ?pause, "task panicked, restarting it after a pause");
                clock.sleep(pause).await;
                pause = (2 * pause).min(RESTART_MAX);
            }
        })
    }

    /// Runs blocking work on the runtime's blocking pool, or immediately if there are no threads.
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Task<T> {
        let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
        if self.threads == Threads::None { spawn(name, Box::pin(async { work() })) } else { spawn_blocking(name, work) }
    }

    /// Like [`Env::thread`], for work without which the process cannot work: if it panics, [`Vitals::failed`]
    /// completes.
    pub fn vital_thread<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<std::thread::JoinHandle<T>> {
        let guard = VitalReport(name, self.vitals.clone());
        self.thread(name, move || {
            let _guard = guard;
            work()
        })
    }

    /// Starts a named thread, for work that blocks as long as the process runs.
    pub fn thread<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<std::thread::JoinHandle<T>> {
        if self.threads == Threads::None {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "there are no threads here"));
        }
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let guard = PanicReport(name);
            let value = work();
            std::mem::forget(guard);
            value
        })
    }
}

/// A future of whatever type. What the runtime generates for a task, 5 KiB of code, exists once for each output, and not for each task
/// that is written somewhere.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn spawn<T: Send + 'static>(name: &'static str, future: Boxed<T>) -> Task<T> {
    let span = tracing::Span::current();
    let reported = async move {
        let guard = PanicReport(name);
        let value = future.await;
        std::mem::forget(guard);
        value
    };
    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns tasks")]
    Task(tokio::spawn(reported.instrument(span)))
}

fn spawn_blocking<T: Send + 'static>(name: &'static str, work: Box<dyn FnOnce() -> T + Send>) -> Task<T> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns blocking work")]
    Task(tokio::task::spawn_blocking(move || {
        let guard = PanicReport(name);
        let value = work();
        std::mem::forget(guard);
        value
    }))
}

/// Runs a future to its end; false if it panicked.
async fn ends_without_panic(future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    // After a panic, the future is dropped and never polled again, so no broken state can be observed.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(|()| true),
        Err(_) => Poll::Ready(false),
    })
    .await
}

/// Reports a panic when it is dropped during unwinding; a task that completes forgets it.
struct PanicReport(&'static str);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.0, "task panicked");
        }
    }
}

/// Reports the end of a vital task to [`Vitals`] when it is dropped during unwinding.
struct VitalReport(&'static str, Vitals);

impl Drop for VitalReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.1.ended(self.0, "panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atlas_types::Timestamp;

    use super::*;
    use crate::Clock;

    #[tokio::test]
    async fn a_panic_ends_the_task_and_nothing_else() {
        let env = Env::system();
        let end = env.spawn("doomed", async { panic!("on purpose") }).join().await;
        assert_eq!(end, Err::<(), _>(TaskEnd::Panicked));
        assert_eq!(env.spawn("fine", async { 7 }).join().await, Ok(7));
    }

    /// A clock that reports the requested sleeps and completes them immediately.
    struct Told(tokio::sync::mpsc::UnboundedSender<Duration>);

    impl Clock for Told {
        fn wall(&self) -> Timestamp {
            Timestamp(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            self.0.send(duration).expect("the test listens");
            Box::pin(tokio::task::yield_now())
        }
    }

    #[tokio::test]
    async fn a_task_that_panics_begins_anew_after_a_pause_that_grows() {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let env = Env { clock: Arc::new(Told(tell)), ..Env::system() };
        let task = env.spawn_restarting("unlucky", || async {
            tokio::task::yield_now().await;
            panic!("on purpose");
        });
        let mut pauses = Vec::new();
        while pauses.len() < 8 {
            pauses.push(told.recv().await.expect("it begins anew").as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        task.abort();
        assert_eq!(task.join().await, Err(TaskEnd::Aborted));
        assert_eq!(env.spawn_restarting("fine", || async {}).join().await, Ok(()));
    }

    #[tokio::test]
    async fn the_end_of_what_is_vital_is_told() {
        let env = Env::system();
        drop(env.spawn_vital("doomed", async { panic!("on purpose") }));
        assert_eq!(&*env.vitals.failed().await, "\"doomed\" panicked");
        let env = Env::system();
        drop(env.spawn_vital("short", async {}));
        assert_eq!(&*env.vitals.failed().await, "\"short\" ended");
        let env = Env::system();
        drop(env.vital_thread("doomed", || panic!("on purpose")).expect("a thread").join());
        assert_eq!(&*env.vitals.failed().await, "\"doomed\" panicked");
    }

    #[tokio::test]
    async fn what_is_vital_may_be_stopped() {
        let env = Env::system();
        let stopped = env.spawn_vital("stopped", std::future::pending());
        stopped.abort();
        assert_eq!(stopped.join().await, Err(TaskEnd::Aborted));
        env.vital_thread("done", || ()).expect("a thread").join().expect("no panic");
        // The first reported end wins, so this also checks that the earlier ones were not reported.
        drop(env.spawn_vital("short", async {}));
        assert_eq!(&*env.vitals.failed().await, "\"short\" ended");
    }

    #[tokio::test]
    async fn without_threads_blocking_work_runs_where_it_is_waited_for() {
        let env = Env { threads: Threads::None, ..Env::system() };
        let here = std::thread::current().id();
        let there = env.spawn_blocking("inline", || std::thread::current().id()).join().await;
        assert_eq!(there, Ok(here));
        assert_eq!(env.thread("none", || ()).expect_err("refused").kind(), io::ErrorKind::Unsupported);
    }
}
