//! Kills the program again and again under load, and looks whether a row was lost, doubled or changed.
//!
//! Rounds come in campaigns. A campaign has a shop, a pipeline and a target of its own: it begins with the reading of the
//! tables, so that kills fall there too, and ends with a comparison. Comparing a lake costs about as much as three rounds,
//! for a reader merges all that the campaign's epochs wrote; what a kill breaks stays broken, so it is found at the end
//! all the same, and the campaigns are short.

mod aim;
mod campaign;
mod reads;
mod tally;
mod target;
mod trace;

use anyhow::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::server::Server;

use self::campaign::Campaign;
pub use self::tally::Tally;
use self::target::Target;

/// Rounds of one campaign.
const CAMPAIGN_ROUNDS: u32 = 10;

/// What to do.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// Kills in all.
    pub rounds: u32,
    /// Gives the same aims, moments and transactions again.
    pub seed: u64,
    /// The component to write with.
    pub sink: String,
}

impl Default for CrashOptions {
    fn default() -> Self {
        Self { rounds: 100, seed: rand::random_range(0..1_000_000), sink: "paimon".to_owned() }
    }
}

/// Runs all rounds; `say` takes a line for each.
pub async fn run(options: &CrashOptions, say: fn(&str)) -> Result<Tally> {
    let mut target = Target::named(&options.sink)?;
    say(&format!("seed {}", options.seed));
    let mut random = StdRng::seed_from_u64(options.seed);
    let server = Server::start()?;
    let statements = server.log_statements(true).await?;
    let mut aims = aim::Aims::default();
    let mut tally = Tally::default();
    let mut number = 0;
    while tally.rounds < options.rounds {
        number += 1;
        let left = options.rounds - tally.rounds;
        let mut campaign = Campaign::open(&server, &statements, &target, (number, random.random())).await?;
        for place in 0..left.min(CAMPAIGN_ROUNDS) {
            let aim = aims.next(place, &mut random);
            let round = campaign.round(aim, &mut random)?;
            if aim.phase().is_some_and(|phase| phase != round.phase) {
                aims.again(aim);
            }
            tally.count(&round);
            say(&format!("round {}: {round}", tally.rounds));
        }
        let is_last = tally.rounds == options.rounds;
        let end = campaign.close(&mut target, is_last).await?;
        end.shown.iter().for_each(|line| say(line));
        say(&format!("campaign {number}: {} rows compared, {} differences", end.rows, end.differences));
        tally.differences += end.differences;
    }
    Ok(tally)
}
