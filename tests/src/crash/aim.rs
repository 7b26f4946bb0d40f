//! Where in its work the program is to be killed.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// The moment that a round waits for before it kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Any moment.
    Any,
    /// While writers make their work durable.
    Prepare,
    /// While the record is written.
    Record,
    /// After the record, before all is committed.
    Commit,
    /// While a run finds out what the one before left.
    Recovery,
}

impl Aim {
    /// The event that begins it; none for any moment.
    pub(crate) fn event(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::Prepare => Some("prepare-started"),
            Self::Record => Some("prepared"),
            Self::Commit => Some("record-stored"),
            Self::Recovery => Some("recovery-started"),
        }
    }

    /// Failpoints that hold the program there for a while: these moments are too short to be hit by chance.
    pub(crate) fn failpoints(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Prepare => "checkpoint::prepare=sleep(40)",
            Self::Record => "checkpoint::before-store=sleep(40)",
            Self::Commit => "checkpoint::after-store=sleep(40)",
            Self::Recovery => "recovery::settle=sleep(60)",
        }
    }

    /// How long to wait, once there, before the kill.
    pub(crate) fn delay(self, random: &mut StdRng) -> Duration {
        let most = if self == Self::Any { 1_200 } else { 35 };
        Duration::from_millis(random.random_range(0..most))
    }
}

/// Aims without end: half of them any moment, the others in turn, in an order drawn anew for each eight.
#[derive(Debug, Default)]
pub(crate) struct Aims(Vec<Aim>);

impl Aims {
    pub(crate) fn next(&mut self, random: &mut StdRng) -> Aim {
        if self.0.is_empty() {
            self.0 =
                vec![Aim::Any, Aim::Any, Aim::Any, Aim::Any, Aim::Prepare, Aim::Record, Aim::Commit, Aim::Recovery];
            self.0.shuffle(random);
        }
        self.0.pop().unwrap_or(Aim::Any)
    }
}
