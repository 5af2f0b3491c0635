//! Atlas as one seeded program: three controllers, their workers and their clients, in virtual time and without threads.
//!
//! Real: the replicated state, the formats, the head, the leader tasks, the sessions and the workers' slot machine.
//! Modelled: Raft is "a majority has it", the leader loop and the workers' shell follow their rules in the simplest
//! way, agents are children that end after a while. A seed decides everything: the options, each delay, each fault.
//!
//! A run has two phases. With faults, an oracle looks at every committed entry, answer and execution, and stops at the first
//! violation. Then the faults end, and all jobs have to. A run that did too little is void, which is a failure as well.
//!
//! Checkers must be able to fail: [`Bug`] lists deliberate bugs of the simulation, each where a shell could have it,
//! and a test shows that each is caught. The programs under test have no such switches.

mod bug;
mod chains;
mod client;
mod coverage;
mod family;
mod fault;
mod journal;
mod leader;
mod logs;
mod member;
mod message;
mod node;
mod options;
mod oracle;
mod people;
mod raft;
mod rng;
mod routing;
mod runs;
mod sleeper;
mod stream;
mod ticks;
pub mod workload;
mod world;

pub use bug::Bug;
pub use coverage::Coverage;
pub use options::Options;
pub use rng::Rng;
pub use ticks::{Ticked, Ticks, run_ticks};
pub use world::{Failure, Report, run};

/// Runs one seed; one in twenty twice, to see that it does the same again.
pub fn run_checked(options: &Options) -> Result<Report, Failure> {
    let report = run(options)?;
    if options.seed.is_multiple_of(20) {
        let again = run(options)?;
        if again != report {
            return Err(Failure::of(options, "the same seed led to another run", false));
        }
    }
    Ok(report)
}
