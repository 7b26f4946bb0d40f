//! Calls into the host.

use super::bindings::cdchost::plugin::{object_store as store, runtime};
use crate::object_store::{ObjectMeta, Refusal};
use crate::runtime::{Context, Level};

pub(crate) fn context() -> Context {
    let runtime::Context { pipeline, operator, subtask, parallelism, generation } = runtime::get_context();
    Context { pipeline, operator, subtask, parallelism, generation }
}

pub(crate) fn config() -> String {
    runtime::config()
}

pub(crate) fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    let level = match level {
        Level::Trace => runtime::Level::Trace,
        Level::Debug => runtime::Level::Debug,
        Level::Info => runtime::Level::Info,
        Level::Warn => runtime::Level::Warn,
        Level::Error => runtime::Level::Error,
    };
    let fields: Vec<_> = fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    runtime::log(level, message, &fields);
}

pub(crate) fn counter_add(name: &str, by: u64) {
    runtime::counter_add(name, by);
}

pub(crate) fn gauge_set(name: &str, value: f64) {
    runtime::gauge_set(name, value);
}

pub(crate) fn histogram_record(name: &str, value: f64) {
    runtime::histogram_record(name, value);
}

pub(crate) fn now_micros() -> u64 {
    runtime::now_micros()
}

pub(crate) fn secret(name: &str) -> Option<Vec<u8>> {
    runtime::secret(name)
}

pub(crate) fn get(root: &str, path: &str) -> Result<Vec<u8>, Refusal> {
    store::get(root, path).map_err(refusal)
}

pub(crate) fn get_range(root: &str, path: &str, offset: u64, length: u64) -> Result<Vec<u8>, Refusal> {
    store::get_range(root, path, offset, length).map_err(refusal)
}

pub(crate) fn put(root: &str, path: &str, data: &[u8]) -> Result<(), Refusal> {
    store::put(root, path, data).map_err(refusal)
}

pub(crate) fn put_if_absent(root: &str, path: &str, data: &[u8]) -> Result<(), Refusal> {
    store::put_if_absent(root, path, data).map_err(refusal)
}

pub(crate) fn list(root: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<ObjectMeta>, Refusal> {
    let found = store::list(root, prefix, after, limit).map_err(refusal)?;
    let meta = |store::ObjectMeta { path, size, modified_micros }| ObjectMeta { path, size, modified_micros };
    Ok(found.into_iter().map(meta).collect())
}

pub(crate) fn delete(root: &str, paths: &[String]) -> Result<(), Refusal> {
    store::delete(root, paths).map_err(refusal)
}

#[derive(Debug)]
pub(crate) struct Upload(store::Upload);

impl Upload {
    pub(crate) fn new(root: &str, path: &str) -> Self {
        Self(store::Upload::new(root, path))
    }

    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), Refusal> {
        self.0.write(data).map_err(refusal)
    }

    pub(crate) fn finish(&mut self) -> Result<u64, Refusal> {
        self.0.finish().map_err(refusal)
    }
}

fn refusal(error: store::StoreError) -> Refusal {
    match error {
        store::StoreError::NotFound => Refusal::NotFound,
        store::StoreError::AlreadyExists => Refusal::AlreadyExists,
        store::StoreError::Denied(why) => Refusal::Denied(why),
        store::StoreError::Unavailable(why) => Refusal::Unavailable(why),
    }
}
