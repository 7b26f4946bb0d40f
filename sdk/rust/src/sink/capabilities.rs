//! What a sink says of itself when it opens.

/// What a sink guarantees of what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Two-phase: prepared work is durable and invisible, a commit makes it visible once.
    Transactional,
    /// Writes by key and version: repeating them changes nothing.
    Idempotent,
    /// A replay may write rows again.
    AtLeastOnce,
}

/// Which order of rows a sink needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// None: rows may go to any writer.
    None,
    /// Rows of one key in order, at one writer.
    PerKey,
    /// Rows of one table in order, at one writer.
    PerTable,
}

/// Things that not every sink can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Keeps a marker of progress in the target.
    pub reports_progress: bool,
    /// Can remove rows older than a change-seq.
    pub purges_older: bool,
    /// Can roll the target back to a savepoint.
    pub rolls_back: bool,
    /// Can empty a table.
    pub truncates: bool,
    /// Takes updates and deletes of tables without key.
    pub takes_changelog: bool,
}

/// What a sink says of itself when it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its guarantee.
    pub delivery: Delivery,
    /// The order it needs.
    pub ordering: Ordering,
    /// Whether it wants rows as they were before updates.
    pub wants_update_before: bool,
    /// What else it can do.
    pub abilities: Abilities,
    /// Tags of the schema changes it applies, e.g. `create-table`.
    pub schema_changes: Vec<String>,
    /// Rows a batch that suit it.
    pub target_rows: u32,
    /// Bytes a batch that suit it.
    pub target_bytes: u64,
    /// Epochs that may be prepared and not yet committed.
    pub max_open_epochs: u32,
    /// How long prepared work lives in the target, in milliseconds; none = for ever.
    pub committable_ttl_ms: Option<u64>,
    /// Lines of the write contract shown to the user: what, and how.
    pub contract: Vec<(String, String)>,
}

impl Capabilities {
    /// A sink of this guarantee with the usual rest: any order of rows, no before images, no abilities, no schema
    /// changes, batches of 8,192 rows or 2 MiB, one open epoch.
    pub fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            ordering: Ordering::None,
            wants_update_before: false,
            abilities: Abilities::default(),
            schema_changes: Vec::new(),
            target_rows: 8192,
            target_bytes: 2 << 20,
            max_open_epochs: 1,
            committable_ttl_ms: None,
            contract: Vec::new(),
        }
    }
}
