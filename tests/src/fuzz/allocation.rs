//! The system's allocator, which remembers the largest request since it was last asked to forget.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// To be the global allocator of programs that run [`super::run`], one run at a time.
#[derive(Debug)]
pub struct Watched;

pub(super) fn reset() {
    LARGEST.store(0, Ordering::Relaxed);
}

pub(super) fn largest() -> usize {
    LARGEST.load(Ordering::Relaxed)
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; each call is handed on as it came")]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
