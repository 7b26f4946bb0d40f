//! Every case of `corpus/`, in each mode, once undisturbed and once with kills: a folder there is a test.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cdchost_tests::cases::{Bench, Case, Mode, Outcome};
use cdchost_tests::project;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

const KILLS: u32 = 2;

/// A server with readers, opened by the first test that needs it; a case at a time.
struct Shared {
    kills: u32,
    bench: OnceLock<Result<Mutex<Bench>, String>>,
}

impl Shared {
    fn check(&self, runtime: &Runtime, case: &Case, mode: Mode) -> Result<(), Failed> {
        let seed = rand::random();
        let _inside = runtime.enter();
        let open = || Bench::open(self.kills, seed).map(Mutex::new).map_err(|error| format!("{error:#}"));
        let bench = self.bench.get_or_init(open).as_ref()?;
        let mut bench = bench.lock().unwrap_or_else(PoisonError::into_inner);
        match runtime.block_on(bench.run(case, mode)) {
            Outcome::Passed => Ok(()),
            other => Err(other.to_string().into()),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder: &Path = &project::root().join("tests/cases/corpus");
    let cases = Case::read_all(folder).expect("the corpus can be read");
    let runtime = Arc::new(Runtime::new().expect("a runtime starts"));
    let mut trials = Vec::new();
    for kills in [0, KILLS] {
        let shared = Arc::new(Shared { kills, bench: OnceLock::new() });
        for (case, mode) in cases.iter().flat_map(|case| Mode::ALL.map(|mode| (case.clone(), mode))) {
            let (shared, runtime) = (Arc::clone(&shared), Arc::clone(&runtime));
            let name = format!("{} in mode {} with {kills} kills", case.name, mode.name());
            trials.push(Trial::test(name, move || shared.check(&runtime, &case, mode)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
