//! Where in its work the program is to be killed.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};

use super::trace::Phase;
use crate::journal::Event;

/// How long a failpoint holds the program.
const HELD_MS: u64 = 40;

/// The moment that a round waits for before it kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Any moment.
    Any,
    /// While tables are read.
    Snapshot,
    /// While writers make their work durable.
    Prepare,
    /// While the record is written.
    Record,
    /// After the record, before all is committed.
    Commit,
    /// While a run finds out what the one before left.
    Recovery,
    /// Between epochs, when all tables are read: on a busy machine that is seldom met by chance.
    Stream,
}

impl Aim {
    /// Whether its moment has come: with one of these events, or with the phase that the run is in.
    pub(crate) fn has_come(self, events: &[Event], phase: Phase) -> bool {
        match self {
            Self::Any => true,
            // The event that ends the tables' reading may be an earlier run's.
            Self::Stream => phase == Phase::Stream,
            _ => events.iter().any(|event| self.event() == Some(event.name.as_str())),
        }
    }

    /// The event that begins it, if one does.
    fn event(self) -> Option<&'static str> {
        match self {
            Self::Any | Self::Stream => None,
            Self::Snapshot => Some("chunk-merged"),
            Self::Prepare => Some("prepare-started"),
            Self::Record => Some("prepared"),
            Self::Commit => Some("record-stored"),
            Self::Recovery => Some("recovery-started"),
        }
    }

    /// The phase that a kill is to fall into; none for any, and for the tables' reading, which may be over for good.
    pub(crate) fn phase(self) -> Option<Phase> {
        match self {
            Self::Any | Self::Snapshot => None,
            Self::Prepare => Some(Phase::Prepare),
            Self::Record => Some(Phase::Record),
            Self::Commit => Some(Phase::Commit),
            Self::Recovery => Some(Phase::Recovery),
            Self::Stream => Some(Phase::Stream),
        }
    }

    /// A failpoint that holds the program there for a while: these moments are too short to be hit by chance.
    pub(crate) fn failpoint(self, random: &mut StdRng) -> String {
        let places: &[&str] = match self {
            Self::Any | Self::Snapshot | Self::Stream => return String::new(),
            Self::Prepare => &["checkpoint-after-barrier", "checkpoint-prepared"],
            Self::Record => &["checkpoint-before-persist"],
            Self::Commit => &["checkpoint-after-persist", "commit-before", "commit-before-note"],
            Self::Recovery => {
                &["recovery-before-claim", "recovery-before-recover", "recovery-after-recover", "recovery-before-note"]
            }
        };
        places.choose(random).map(|place| format!("{place}=sleep({HELD_MS})")).unwrap_or_default()
    }

    /// How long to wait, once there, before the kill.
    pub(crate) fn delay(self, random: &mut StdRng) -> Duration {
        let most = match self {
            Self::Any => 1_200,
            Self::Snapshot | Self::Stream => 150,
            _ => HELD_MS + 10,
        };
        Duration::from_millis(random.random_range(0..most))
    }
}

/// Aims without end: three of eight any moment, the others in turn, in an order drawn anew for each eight. A campaign's
/// first two rounds are aimed at its tables' reading, which is over soon.
#[derive(Debug, Default)]
pub(crate) struct Aims(Vec<Aim>);

impl Aims {
    /// The aim of a campaign's next round; `round` begins with 0.
    pub(crate) fn next(&mut self, round: u32, random: &mut StdRng) -> Aim {
        if round < 2 {
            return Aim::Snapshot;
        }
        if self.0.is_empty() {
            self.0 =
                vec![Aim::Any, Aim::Any, Aim::Any, Aim::Stream, Aim::Prepare, Aim::Record, Aim::Commit, Aim::Recovery];
            self.0.shuffle(random);
        }
        self.0.pop().unwrap_or(Aim::Any)
    }

    /// Aims there again in the next round, in place of one that would fall anywhere: the kill fell elsewhere.
    pub(crate) fn again(&mut self, aim: Aim) {
        if let Some(any) = self.0.iter().position(|&next| next == Aim::Any) {
            self.0.remove(any);
        }
        self.0.push(aim);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_missed_aim_takes_the_place_of_any_moment() {
        let mut random = StdRng::seed_from_u64(1);
        let mut aims = Aims(vec![Aim::Commit, Aim::Any, Aim::Record]);
        aims.again(Aim::Prepare);
        let next: Vec<_> = (2..5).map(|round| aims.next(round, &mut random)).collect();
        assert_eq!(next, [Aim::Prepare, Aim::Record, Aim::Commit]);
    }
}
