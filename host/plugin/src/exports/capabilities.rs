//! What a sink says it can do, held to what makes sense.

use cdchost_connector::{Ability, Capabilities, Delivery, Ordering};

use crate::bindings::v0_1::cdchost::plugin::sink_types as wit;
use crate::limits::TEXTS_MAX;

/// Tags of all schema changes of the contract.
const SCHEMA_CHANGES: [&str; 11] = [
    "create-table",
    "add-column",
    "drop-column",
    "rename-column",
    "alter-column",
    "reorder-columns",
    "alter-key",
    "truncate-table",
    "drop-table",
    "rename-table",
    "comment-table",
];

/// Checks and converts; an error says what the plugin does, as in "it ...".
pub(super) fn capabilities(told: wit::Capabilities, clean: impl Fn(&str) -> String) -> Result<Capabilities, String> {
    if let Some(tag) = told.schema_changes.iter().find(|tag| !SCHEMA_CHANGES.contains(&tag.as_str())) {
        return Err(format!("lists the schema change {:?}, which there is not", clean(tag)));
    }
    if told.target_rows == 0 || told.target_bytes == 0 || told.max_open_epochs == 0 {
        return Err("gives 0 for target-rows, target-bytes or max-open-epochs".into());
    }
    let has = |ability| told.abilities.contains(ability);
    Ok(Capabilities {
        delivery: match told.delivery {
            wit::Delivery::Transactional => Delivery::Transactional,
            wit::Delivery::Idempotent => Delivery::Idempotent,
            wit::Delivery::AtLeastOnce => Delivery::AtLeastOnce,
        },
        ordering: match told.ordering {
            wit::Ordering::None => Ordering::None,
            wit::Ordering::PerKey => Ordering::PerKey,
            wit::Ordering::PerTable => Ordering::PerTable,
        },
        wants_update_before: told.wants_update_before,
        abilities: Ability {
            reports_progress: has(wit::Ability::REPORTS_PROGRESS),
            purges_older: has(wit::Ability::PURGES_OLDER),
            rolls_back: has(wit::Ability::ROLLS_BACK),
            truncates: has(wit::Ability::TRUNCATES),
            takes_changelog: has(wit::Ability::TAKES_CHANGELOG),
        },
        schema_changes: told.schema_changes,
        target_rows: told.target_rows,
        target_bytes: told.target_bytes,
        max_open_epochs: told.max_open_epochs,
        committable_ttl_ms: told.committable_ttl_ms,
        contract: told.contract.iter().take(TEXTS_MAX).map(|(what, how)| (clean(what), clean(how))).collect(),
    })
}
