//! The host's side of the imports: the world that the calling thread is in.

use std::cell::RefCell;

use super::world::{Action, Instance, World};
use crate::object_store::{ObjectMeta, Refusal};
use crate::runtime::{Context, Level};

thread_local! {
    static CURRENT: RefCell<Option<(World, Instance)>> = const { RefCell::new(None) };
}

/// Runs `work` with every import of this thread answered by `world`, as `instance`.
pub(super) fn enter<T>(world: &World, instance: &Instance, work: impl FnOnce() -> T) -> T {
    /// Takes the thread back to where it was, also when `work` panics.
    struct Leave(Option<(World, Instance)>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _leave = Leave(CURRENT.replace(Some((world.clone(), instance.clone()))));
    work()
}

fn current() -> (World, Instance) {
    CURRENT.with_borrow(Clone::clone).expect("the host's functions answer only inside `World::run` or a `Harness`")
}

fn world() -> World {
    current().0
}

pub(crate) fn context() -> Context {
    current().1.context
}

pub(crate) fn config() -> String {
    current().1.config.to_string()
}

pub(crate) fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    world().log(level, message, fields);
}

pub(crate) fn counter_add(name: &str, by: u64) {
    world().add(name, by);
}

pub(crate) fn gauge_set(name: &str, value: f64) {
    world().set(name, value);
}

pub(crate) fn histogram_record(name: &str, value: f64) {
    world().record(name, value);
}

pub(crate) fn now_micros() -> u64 {
    world().now_micros()
}

pub(crate) fn secret(name: &str) -> Option<Vec<u8>> {
    current().1.secrets.get(name).cloned()
}

pub(crate) fn get(root: &str, path: &str) -> Result<Vec<u8>, Refusal> {
    world().call(Action::Get, root, path, |objects| objects.get(path))
}

pub(crate) fn get_range(root: &str, path: &str, offset: u64, length: u64) -> Result<Vec<u8>, Refusal> {
    let whole = get(root, path)?;
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
    Ok(whole[place(offset)..place(offset.saturating_add(length))].to_vec())
}

pub(crate) fn put(root: &str, path: &str, data: &[u8]) -> Result<(), Refusal> {
    world().call(Action::Put, root, path, |objects| {
        objects.put(path, data);
        Ok(())
    })
}

pub(crate) fn put_if_absent(root: &str, path: &str, data: &[u8]) -> Result<(), Refusal> {
    world().call(Action::PutIfAbsent, root, path, |objects| match objects.get(path) {
        Ok(_) => Err(Refusal::AlreadyExists),
        Err(_) => {
            objects.put(path, data);
            Ok(())
        }
    })
}

pub(crate) fn list(root: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<ObjectMeta>, Refusal> {
    world().call(Action::List, root, prefix, |objects| Ok(objects.list(prefix, after, limit)))
}

pub(crate) fn delete(root: &str, paths: &[String]) -> Result<(), Refusal> {
    paths.iter().try_for_each(|path| {
        world().call(Action::Delete, root, path, |objects| {
            objects.delete(path);
            Ok(())
        })
    })
}

#[derive(Debug)]
pub(crate) struct Upload {
    root: String,
    path: String,
    data: Vec<u8>,
}

impl Upload {
    pub(crate) fn new(root: &str, path: &str) -> Self {
        Self { root: root.into(), path: path.into(), data: Vec::new() }
    }

    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), Refusal> {
        world().call(Action::UploadPart, &self.root, &self.path, |_| Ok(()))?;
        self.data.extend_from_slice(data);
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<u64, Refusal> {
        let data = std::mem::take(&mut self.data);
        world().call(Action::UploadFinish, &self.root, &self.path, |objects| {
            objects.put(&self.path, &data);
            Ok(data.len() as u64)
        })
    }
}
