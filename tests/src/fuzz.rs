//! Mutated inputs for everything that reads a server's bytes in rows: whatever comes, an error or a value, within bounds.

mod allocation;
mod corpus;
mod log;
mod mutation;
mod target;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;

pub use allocation::Watched;
pub use target::{TARGETS, Target};

/// How long, or how often.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// So many inputs.
    Inputs(u64),
    /// As many as this time allows.
    Time(Duration),
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Inputs that were read.
    pub inputs: u64,
    /// Of these, those that were read to their end as valid.
    pub accepted: u64,
    /// What is wrong, each with the number of its input.
    pub findings: Vec<String>,
}

/// Findings after which a run gives up.
const FINDINGS_MAX: usize = 10;
/// No single allocation may be larger than this plus a multiple of the input's length.
const ALLOCATION_BASE: usize = 256 << 10;
const ALLOCATION_FACTOR: usize = 64;

/// Runs a target on mutations of its inputs. Equal seeds give equal inputs.
pub fn run(target: &Target, seed: u64, extent: Extent) -> Result<Outcome> {
    let seeds = corpus::read()?.into_iter().flat_map(|table| (target.inputs)(&table)).collect::<Vec<_>>();
    ensure!(!seeds.is_empty(), "{} has no inputs", target.name);
    let mut outcome = Outcome::default();
    for input in &seeds {
        // What a server wrote must be read.
        let read = attempt(input, &input.bytes, &mut outcome);
        ensure!(read, "an input of the {} as the server wrote it is refused", target.name);
    }
    let mut rng = StdRng::seed_from_u64(seed);
    let start = std::time::Instant::now();
    loop {
        let is_over = match extent {
            Extent::Inputs(count) => outcome.inputs >= count,
            Extent::Time(time) => start.elapsed() >= time,
        };
        if is_over || outcome.findings.len() >= FINDINGS_MAX {
            return Ok(outcome);
        }
        let input = mutation::pick(&seeds, &mut rng).context("there are inputs")?;
        let bytes = mutation::mutated(input, &seeds, &mut rng);
        attempt(input, &bytes, &mut outcome);
    }
}

/// Reads one input; true if it was accepted.
fn attempt(input: &target::Input, bytes: &[u8], outcome: &mut Outcome) -> bool {
    outcome.inputs += 1;
    allocation::reset();
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (input.read)(bytes)));
    let largest = allocation::largest();
    let limit = ALLOCATION_BASE + ALLOCATION_FACTOR * bytes.len();
    let number = outcome.inputs;
    if read.is_err() {
        outcome.findings.push(format!("input {number}: a panic on {}", hexadecimal(bytes)));
    } else if largest > limit {
        let shown = hexadecimal(bytes);
        outcome.findings.push(format!("input {number}: {largest} bytes at once, above {limit}, on {shown}"));
    }
    let accepted = matches!(read, Ok(true));
    outcome.accepted += u64::from(accepted);
    accepted
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
