//! What to do where a pipeline cannot go on as it is, in the words of all instructions.

use cdchost_config::TablePatterns;
use cdchost_model::TableId;

/// A store alone will not do: a target that holds rows of another run is refused.
pub(crate) const ANEW: &str = "start the pipeline anew with an empty checkpoint store and an empty target";

/// For what concerns one table.
pub(crate) fn leave_out(table: &TableId) -> String {
    format!(
        "leave the table out (add {} to `tables` in [source]) and start the pipeline again: the others go on, and the \
         rows of this one stay in the target as of the last checkpoint; or {ANEW}, so that it is read as it is now",
        TablePatterns::leaving_out(&table.database, &table.table)
    )
}
