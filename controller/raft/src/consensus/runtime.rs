//! The async runtime for openraft: tokio, with random numbers from the same source as the rest of Atlas.
//!
//! openraft asks a runtime for random numbers without naming a member. Therefore the [`Env`](atlas_env::Env)'s entropy
//! travels with the task, and the election timeouts of a simulated member follow from its seed. Tasks spawned
//! elsewhere, such as for a peer's call, use the machine's randomness.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Entropy, SystemEntropy};
use openraft::async_runtime::AsyncRuntime;
use openraft::{OptionalSend, TokioRuntime};
use rand::TryRng;

tokio::task_local! {
    static ENTROPY: Arc<dyn Entropy>;
}

/// Runs `future` and the tasks that openraft spawns from it with random numbers from `entropy`.
pub(crate) fn with_entropy<F: Future>(
    entropy: Arc<dyn Entropy>,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    ENTROPY.scope(entropy, future)
}

/// Tokio with random numbers from the environment.
#[derive(Debug)]
pub(crate) struct Runtime(TokioRuntime);

/// Random numbers from the entropy of the current task.
pub(crate) struct Draws(Arc<dyn Entropy>);

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        // Both halves of the number are equally random.
        Ok((self.0.u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.0.u64().to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

impl AsyncRuntime for Runtime {
    type JoinError = <TokioRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::JoinHandle<T>;
    type Sleep = <TokioRuntime as AsyncRuntime>::Sleep;
    type Instant = <TokioRuntime as AsyncRuntime>::Instant;
    type TimeoutError = <TokioRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <TokioRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = Draws;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = <TokioRuntime as AsyncRuntime>::Watch;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        match ENTROPY.try_with(Arc::clone) {
            Ok(entropy) => TokioRuntime::spawn(ENTROPY.scope(entropy, future)),
            Err(_) => TokioRuntime::spawn(future),
        }
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        TokioRuntime::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        TokioRuntime::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: Self::Instant, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(join_error: &Self::JoinError) -> bool {
        TokioRuntime::is_panic(join_error)
    }

    fn thread_rng() -> Draws {
        Draws(ENTROPY.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(SystemEntropy)))
    }

    fn new(threads: usize) -> Self {
        Self(TokioRuntime::new(threads))
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }

    fn spawn_blocking<F, T>(work: F) -> impl Future<Output = Result<T, io::Error>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        TokioRuntime::spawn_blocking(work)
    }
}
