//! Holds one guest to its memory and tables, and notes which bound it met.

use wasmtime::ResourceLimiter;

use cdchost_config::Limits;

/// Columns that a transform may give out.
pub(crate) const COLUMNS_MAX: usize = 4_096;
/// Targets that one call of a route may name.
pub(crate) const TARGETS_MAX: usize = 1_000;
/// Bytes of the name of a column or table that a plugin makes.
pub(crate) const NAME_BYTES_MAX: usize = 256;
/// Bytes of a component file.
pub(crate) const COMPONENT_BYTES_MAX: u64 = 64 << 20;
/// Bytes of the manifest section.
pub(crate) const MANIFEST_BYTES_MAX: usize = 1 << 20;
/// Committables that one prepare may hand over.
pub(crate) const COMMITTABLES_MAX: usize = 100_000;
/// Bytes of one committable's payload.
pub(crate) const COMMITTABLE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a committable's key.
pub(crate) const COMMITTABLE_KEY_BYTES_MAX: usize = 1024;
/// Bytes of one writer's saved state.
pub(crate) const STATE_BYTES_MAX: usize = 64 << 20;
/// Characters of a text that a guest gives for people: error, log line, contract line.
pub(crate) const TEXT_CHARS_MAX: usize = 2048;
/// Entries of a list that a guest gives for people.
pub(crate) const TEXTS_MAX: usize = 64;
/// Core instances, memories and tables of one component each.
const CORE_ITEMS_MAX: usize = 64;

/// Wasmtime's limiter of one store.
#[derive(Debug)]
pub(crate) struct GuestLimiter {
    memory_max: usize,
    table_elements_max: usize,
    refusal: Option<String>,
}

impl GuestLimiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory_max: usize::try_from(limits.memory.0).unwrap_or(usize::MAX),
            table_elements_max: limits.table_elements as usize,
            refusal: None,
        }
    }

    /// The bound that the guest met last; it usually traps soon after.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

impl ResourceLimiter for GuestLimiter {
    fn memory_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.memory_max {
            self.refusal =
                Some(format!("it asked for {desired} bytes of memory, limits.memory is {}", self.memory_max));
            return Ok(false);
        }
        Ok(maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn table_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table_elements_max {
            self.refusal = Some(format!(
                "it asked for a table of {desired} elements, limits.table-elements is {}",
                self.table_elements_max
            ));
            return Ok(false);
        }
        Ok(maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn instances(&self) -> usize {
        CORE_ITEMS_MAX
    }

    fn tables(&self) -> usize {
        CORE_ITEMS_MAX
    }

    fn memories(&self) -> usize {
        CORE_ITEMS_MAX
    }
}
