//! All that is outside a sink: object stores in memory, a clock that stands still, a log, scripted faults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

use super::imports;
use crate::object_store::{ObjectMeta, Refusal};
use crate::runtime::{Context, Level};

/// What a sink asks of an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read an object, or part of it.
    Get,
    /// Write an object.
    Put,
    /// Create an object.
    PutIfAbsent,
    /// List objects.
    List,
    /// Remove an object.
    Delete,
    /// Hand over a part of an upload.
    UploadPart,
    /// Finish an upload.
    UploadFinish,
}

impl Action {
    /// Whether it changes the store.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List)
    }
}

/// How a call to the store fails. The sink sees `unavailable` in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Before anything happened.
    Before,
    /// After it happened: only the answer is lost.
    After,
}

/// Who calls, and with which options.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What `runtime::context` answers.
    pub context: Context,
    /// The options, as the pipeline file would have them.
    pub config: Value,
    /// Secrets by option name.
    pub secrets: BTreeMap<String, Vec<u8>>,
}

impl Instance {
    /// Writer 0 of 1 of the first run of pipeline `test`, or its committer.
    pub fn new(config: Value) -> Self {
        let context =
            Context { pipeline: "test".into(), operator: "sink".into(), subtask: 0, parallelism: 1, generation: 1 };
        Self { context, config, secrets: BTreeMap::new() }
    }
}

/// A line that a sink logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// The text.
    pub message: String,
    /// Name and value pairs.
    pub fields: Vec<(String, String)>,
}

/// All that is outside a sink. Clones are the same world; it outlives the instances that run in it.
#[derive(Clone, Debug, Default)]
pub struct World {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    roots: BTreeMap<String, Objects>,
    scripted: Vec<Scripted>,
    gone: Option<Gone>,
    calls: u64,
    now_micros: u64,
    log: Vec<LogLine>,
    counters: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    histograms: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug)]
struct Scripted {
    action: Action,
    path_part: String,
    fault: Fault,
    times: u64,
}

/// The store is out of reach after so many more calls that change it.
#[derive(Debug)]
struct Gone {
    writes_left: u64,
    last: Fault,
}

/// Objects of one root.
#[derive(Debug, Default)]
pub(super) struct Objects {
    by_path: BTreeMap<String, (Vec<u8>, u64)>,
    now_micros: u64,
}

impl Objects {
    pub(super) fn get(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        self.by_path.get(path).map(|(data, _)| data.clone()).ok_or(Refusal::NotFound)
    }

    pub(super) fn put(&mut self, path: &str, data: &[u8]) {
        self.by_path.insert(path.into(), (data.to_vec(), self.now_micros));
    }

    pub(super) fn delete(&mut self, path: &str) {
        self.by_path.remove(path);
    }

    pub(super) fn list(&self, folder: &str, after: Option<&str>, limit: u32) -> Vec<ObjectMeta> {
        let folder = folder.strip_suffix('/').unwrap_or(folder);
        let is_below =
            |path: &str| folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let found = self.by_path.iter().filter(|(path, _)| is_below(path));
        let found = found.filter(|(path, _)| after.is_none_or(|after| path.as_str() > after));
        let meta = |(path, (data, modified_micros)): (&String, &(Vec<u8>, u64))| ObjectMeta {
            path: path.clone(),
            size: data.len() as u64,
            modified_micros: *modified_micros,
        };
        found.map(meta).take(limit as usize).collect()
    }
}

impl World {
    /// A world with these roots granted, at 2026-01-01T00:00:00Z.
    pub fn new(roots: &[&str]) -> Self {
        let world = Self::default();
        let mut state = world.state();
        state.roots = roots.iter().map(|&root| (root.to_owned(), Objects::default())).collect();
        state.now_micros = 1_767_225_600_000_000;
        drop(state);
        world
    }

    /// Runs `work` as the given instance: all of `runtime` and `object_store` answer out of this world.
    pub fn run<T>(&self, instance: &Instance, work: impl FnOnce() -> T) -> T {
        imports::enter(self, instance, work)
    }

    /// Paths of all objects under a root.
    pub fn paths(&self, root: &str) -> Vec<String> {
        self.state().roots.get(root).into_iter().flat_map(|objects| objects.by_path.keys().cloned()).collect()
    }

    /// An object's bytes.
    pub fn object(&self, root: &str, path: &str) -> Option<Vec<u8>> {
        self.state().roots.get(root)?.get(path).ok()
    }

    /// Puts an object there, as somebody else would.
    pub fn put(&self, root: &str, path: &str, data: &[u8]) {
        self.state().roots.entry(root.into()).or_default().put(path, data);
    }

    /// Removes an object, as somebody else would.
    pub fn remove(&self, root: &str, path: &str) {
        if let Some(objects) = self.state().roots.get_mut(root) {
            objects.delete(path);
        }
    }

    /// Lets the next `times` calls of this action on a path that holds `path_part` fail.
    pub fn fail(&self, action: Action, path_part: &str, fault: Fault, times: u64) {
        self.state().scripted.push(Scripted { action, path_part: path_part.into(), fault, times });
    }

    /// Lets the store go away at the call after `writes` more that change it; that one fails in this manner. What
    /// follows until [`World::come_back`] fails before anything happens: as if the process had died there.
    pub fn go_away_after(&self, writes: u64, last: Fault) {
        self.state().gone = Some(Gone { writes_left: writes, last });
    }

    /// Ends all scripted faults. Answers whether the store had gone away.
    pub fn come_back(&self) -> bool {
        let mut state = self.state();
        state.scripted.clear();
        state.gone.take().is_some_and(|gone| gone.writes_left == u64::MAX)
    }

    /// Moves the clock.
    pub fn advance(&self, micros: u64) {
        self.state().now_micros += micros;
    }

    /// Calls to the store so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Lines logged so far.
    pub fn log_lines(&self) -> Vec<LogLine> {
        self.state().log.clone()
    }

    /// A counter's value; 0 if nothing was added.
    pub fn counter(&self, name: &str) -> u64 {
        self.state().counters.get(name).copied().unwrap_or_default()
    }

    /// A gauge's value.
    pub fn gauge(&self, name: &str) -> Option<f64> {
        self.state().gauges.get(name).copied()
    }

    /// Values recorded of a distribution.
    pub fn recorded(&self, name: &str) -> Vec<f64> {
        self.state().histograms.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn now_micros(&self) -> u64 {
        self.state().now_micros
    }

    pub(super) fn log(&self, level: Level, message: &str, fields: &[(&str, &str)]) {
        let fields = fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.state().log.push(LogLine { level, message: message.into(), fields });
    }

    pub(super) fn add(&self, name: &str, by: u64) {
        *self.state().counters.entry(name.into()).or_default() += by;
    }

    pub(super) fn set(&self, name: &str, value: f64) {
        self.state().gauges.insert(name.into(), value);
    }

    pub(super) fn record(&self, name: &str, value: f64) {
        self.state().histograms.entry(name.into()).or_default().push(value);
    }

    /// One call to a store, through grants and faults.
    pub(super) fn call<T>(
        &self,
        action: Action,
        root: &str,
        path: &str,
        work: impl FnOnce(&mut Objects) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let folder = if action == Action::List { path.strip_suffix('/').unwrap_or(path) } else { path };
        let is_wrong = |part: &str| matches!(part, "" | "." | "..") || part.len() > 255 || part.contains('\\');
        if !(action == Action::List && folder.is_empty()) && folder.split('/').any(is_wrong) {
            return Err(Refusal::Denied(format!("{path:?} is no path below a root")));
        }
        let mut state = self.state();
        state.calls += 1;
        let fault = state.fault(action, path);
        if fault == Some(Fault::Before) {
            return Err(Refusal::Unavailable("scripted, before".into()));
        }
        let now_micros = state.now_micros;
        let Some(objects) = state.roots.get_mut(root) else {
            return Err(Refusal::Denied(format!("store {root} is not granted")));
        };
        objects.now_micros = now_micros;
        let answer = work(objects);
        match fault {
            Some(_) => Err(Refusal::Unavailable("scripted, after".into())),
            None => answer,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked inside a call has failed already; what it left is still whole.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn fault(&mut self, action: Action, path: &str) -> Option<Fault> {
        if let Some(gone) = &mut self.gone {
            match gone.writes_left {
                u64::MAX => return Some(Fault::Before),
                0 if action.writes() => {
                    gone.writes_left = u64::MAX;
                    return Some(gone.last);
                }
                0 => {}
                _ if action.writes() => gone.writes_left -= 1,
                _ => {}
            }
        }
        let matches = |script: &Scripted| script.action == action && path.contains(&script.path_part);
        let script = self.scripted.iter_mut().find(|script| script.times > 0 && matches(script))?;
        script.times -= 1;
        Some(script.fault)
    }
}
