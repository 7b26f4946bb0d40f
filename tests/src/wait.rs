//! Waiting for a fact, with a limit: the only place of the tests where time passes.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Time between two looks.
const STEP: Duration = Duration::from_millis(5);

/// Looks until `look` gives a value; an error of `look` ends it, and so does the limit.
pub fn until<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = look().with_context(|| format!("while waiting until {what}"))? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("waited {limit:?} in vain until {what}");
        }
        std::thread::sleep(STEP);
    }
}

/// As [`until`], for looks that wait for an answer.
pub async fn until_async<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let start = Instant::now();
    loop {
        if let Some(value) = look().await.with_context(|| format!("while waiting until {what}"))? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("waited {limit:?} in vain until {what}");
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Lets `duration` pass while a load or a random moment is the subject itself.
pub async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await;
}
