//! Faults put in on purpose, so that a test can show that it would find them.
//!
//! Without feature `planted-faults` there are none, and what asks for them compiles to nothing.

/// A fault of the protocol, or of the pipeline that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// An epoch is handed out for commit before its record is stored.
    CommitBeforeStore,
    /// A record lacks a committable.
    CommittableLeftOut,
    /// In a writer's queue a barrier passes the rows just before it.
    BarrierOvertakes,
    /// The offset of a cut counts rows that no writer has got yet.
    OffsetAhead,
    /// A run goes on without settling the open epochs that it found.
    NotSettled,
    /// A run settles the open epochs that it found, and reads them again.
    SettledAndReadAgain,
    /// A run writes on though another one has fenced it off.
    FenceNotChecked,
    /// An epoch is noted as committed when its first sink has committed.
    NotedEarly,
    /// Clean-up counts records that are not committed among those that it keeps.
    CleanedOpen,
}

impl PlantedFault {
    /// Every fault.
    pub const ALL: [Self; 9] = [
        Self::CommitBeforeStore,
        Self::CommittableLeftOut,
        Self::BarrierOvertakes,
        Self::OffsetAhead,
        Self::NotSettled,
        Self::SettledAndReadAgain,
        Self::FenceNotChecked,
        Self::NotedEarly,
        Self::CleanedOpen,
    ];

    /// Whether it is planted in what runs on this thread.
    #[cfg(feature = "planted-faults")]
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }

    /// Never.
    #[cfg(not(feature = "planted-faults"))]
    pub const fn is_planted(self) -> bool {
        false
    }
}

#[cfg(feature = "planted-faults")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<PlantedFault>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault in what runs on this thread, in place of the one before.
#[cfg(feature = "planted-faults")]
pub fn plant(fault: Option<PlantedFault>) {
    PLANTED.set(fault);
}
