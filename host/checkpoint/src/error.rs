//! What can go wrong in the store's chain.

use cdchost_model::Epoch;
use cdchost_storage::StorageError;

use crate::Slot;

/// Why bytes are no object of ours.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    /// Not the first bytes that our objects have.
    #[error("it does not begin as a checkpoint object does")]
    Magic,
    /// Shorter or longer than it says.
    #[error("it has {found} bytes and should have {expected}")]
    Length {
        /// Bytes there.
        found: u64,
        /// Bytes that its head promises.
        expected: u64,
    },
    /// Bytes changed since it was written.
    #[error("its checksum does not match")]
    Checksum,
    /// Written by another version of the program.
    #[error("it has format {found}, this program reads format {known}")]
    Format {
        /// Format of the object.
        found: u32,
        /// Format of this program.
        known: u32,
    },
    /// The bytes are as they were written and still make no sense.
    #[error("its content is wrong: {0}")]
    Content(String),
}

/// An error of the checkpoint protocol.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The store failed.
    #[error("checkpoint store failed")]
    Store(#[from] StorageError),
    /// The store holds checkpoints of another pipeline.
    #[error("checkpoint store belongs to pipeline {found:?}, not to {own:?}")]
    Foreign {
        /// The pipeline that runs.
        own: String,
        /// The pipeline that the store belongs to.
        found: String,
    },
    /// An object that another version of the program wrote.
    #[error("slot {slot} of the checkpoint store cannot be read: {reason}")]
    Format {
        /// The slot.
        slot: Slot,
        /// Both versions.
        reason: DecodeError,
    },
    /// An epoch that is not committed has no readable record, though a later one builds on it.
    #[error(
        "epoch {epoch} is not committed and its record in slot {slot} is gone or damaged, though a later record needs it"
    )]
    Broken {
        /// The epoch.
        epoch: Epoch,
        /// Where its record should be.
        slot: Slot,
    },
    /// Another run writes to the chain faster than it can be read.
    #[error("checkpoint store changed each of the {reads} times that it was read")]
    Moving {
        /// How often it was read.
        reads: u32,
    },
    /// A record that is larger than allowed.
    #[error("record of epoch {epoch} has {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// The epoch.
        epoch: Epoch,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
}

impl CheckpointError {
    /// Whether calling again may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
            Self::Moving { .. } => true,
            _ => false,
        }
    }

    /// A short stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(_) => "checkpoint-store",
            Self::Foreign { .. } => "checkpoint-store-foreign",
            Self::Format { .. } => "checkpoint-format",
            Self::Broken { .. } => "checkpoint-broken",
            Self::Moving { .. } => "checkpoint-moving",
            Self::TooLarge { .. } => "checkpoint-too-large",
        }
    }

    /// What a person can do about it.
    pub fn instruction(&self) -> &'static str {
        match self {
            Self::Store(error) => error.instruction(),
            Self::Foreign { .. } => "give each pipeline a store of its own in [checkpoint] store",
            Self::Format { .. } => "run the version of the program that wrote it",
            Self::Broken { .. } => "put the store back from a backup; starting afresh would lose or double rows",
            Self::Moving { .. } => "run each pipeline once",
            Self::TooLarge { .. } => "make checkpoints more often, so that each holds less",
        }
    }
}
