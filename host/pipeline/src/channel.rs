//! Channels bounded by the bytes in them.
//!
//! Rows take credit and give it back when their receiver is done with them; messages that carry no rows take none, so
//! that a full queue never holds up a barrier that is next in line.

use std::sync::Arc;

use cdchost_checkpoint::PlantedFault;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::failure::Failure;

/// Credit is counted in units of this many bytes; the least that a message with rows takes.
const UNIT_BYTES: usize = 4 << 10;
/// Messages without rows that have room beside those with rows.
const CONTROL_ROOM: usize = 64;

/// A message, and the credit it holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<T> {
    pub(crate) message: T,
    pub(crate) credit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(crate) struct Sender<T> {
    queue: mpsc::Sender<Held<T>>,
    credit: Arc<Semaphore>,
    units_max: usize,
}

#[derive(Debug)]
pub(crate) struct Receiver<T> {
    queue: mpsc::Receiver<Held<T>>,
    /// The message that a barrier overtook.
    #[cfg(feature = "planted-faults")]
    overtaken: Option<Held<T>>,
}

/// A channel that holds up to `bytes_max` bytes of rows, and one message more where that one alone is larger.
pub(crate) fn channel<T>(bytes_max: usize) -> (Sender<T>, Receiver<T>) {
    let units_max = bytes_max.div_ceil(UNIT_BYTES).max(1);
    let (to, from) = mpsc::channel(units_max + CONTROL_ROOM);
    let receiver = Receiver {
        queue: from,
        #[cfg(feature = "planted-faults")]
        overtaken: None,
    };
    (Sender { queue: to, credit: Arc::new(Semaphore::new(units_max)), units_max }, receiver)
}

impl<T> Sender<T> {
    /// Sends rows of so many bytes; waits while the queue is full.
    pub(crate) async fn send_rows(&self, message: T, bytes: usize) -> Result<(), Failure> {
        let units = bytes.div_ceil(UNIT_BYTES).clamp(1, self.units_max);
        let units = u32::try_from(units).expect("a queue holds less than 2^32 units");
        let credit = Arc::clone(&self.credit).acquire_many_owned(units).await.map_err(|_| Failure::Closed)?;
        self.queue.send(Held { message, credit: Some(credit) }).await.map_err(|_| Failure::Closed)
    }

    /// Sends a message without rows.
    pub(crate) async fn send_control(&self, message: T) -> Result<(), Failure> {
        self.queue.send(Held { message, credit: None }).await.map_err(|_| Failure::Closed)
    }
}

impl<T> Receiver<T> {
    /// The next message; none when all senders are gone.
    pub(crate) async fn recv(&mut self) -> Option<Held<T>> {
        self.queue.recv().await
    }

    /// As [`Receiver::recv`].
    #[cfg(not(feature = "planted-faults"))]
    pub(crate) async fn recv_with(&mut self, _: PlantedFault, _: fn(&T) -> bool) -> Option<Held<T>> {
        self.recv().await
    }

    /// As [`Receiver::recv`]; where the fault is planted, a barrier comes before the message just before it.
    #[cfg(feature = "planted-faults")]
    pub(crate) async fn recv_with(&mut self, fault: PlantedFault, is_barrier: fn(&T) -> bool) -> Option<Held<T>> {
        let first = match self.overtaken.take() {
            Some(overtaken) => overtaken,
            None => self.recv().await?,
        };
        if !fault.is_planted() || is_barrier(&first.message) {
            return Some(first);
        }
        let Some(next) = self.recv().await else { return Some(first) };
        let (now, then) = if is_barrier(&next.message) { (next, first) } else { (first, next) };
        self.overtaken = Some(then);
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_wait_for_credit_and_control_does_not() {
        let (to, mut from) = channel(8 << 10);
        to.send_rows("a", 1).await.unwrap();
        to.send_rows("b", 4 << 10).await.unwrap();
        let mut third = std::pin::pin!(to.send_rows("c", 1));
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        to.send_control("barrier").await.unwrap();
        let a = from.recv().await.unwrap();
        assert!(futures_util::poll!(third.as_mut()).is_pending(), "credit is held until the rows are dealt with");
        drop(a);
        third.await.unwrap();
        let rest = [from.recv().await, from.recv().await, from.recv().await];
        assert_eq!(rest.map(|held| held.unwrap().message), ["b", "barrier", "c"]);
    }

    #[tokio::test]
    async fn rows_larger_than_the_queue_pass_alone() {
        let (to, mut from) = channel(8 << 10);
        to.send_rows("huge", 1 << 30).await.unwrap();
        assert!(futures_util::poll!(std::pin::pin!(to.send_rows("next", 1))).is_pending());
        assert_eq!(from.recv().await.unwrap().message, "huge");
        to.send_rows("next", 1).await.unwrap();
    }

    #[tokio::test]
    async fn a_sender_without_receiver_says_so() {
        let (to, from) = channel(1);
        drop(from);
        assert!(matches!(to.send_rows("x", 1).await, Err(Failure::Closed)));
        assert!(matches!(to.send_control("x").await, Err(Failure::Closed)));
    }
}
