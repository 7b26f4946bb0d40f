//! The allocator of the program.

/// Batches are megabytes that come and go: the system's allocator gives their pages back and takes them anew. Pages are
/// small ones: of a huge one all is held as soon as a part is used.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Gives back what a start took and needs no more: the bytes of components and of their code. By itself the allocator
/// keeps it for what may come.
#[expect(unsafe_code, reason = "a call of the allocator's that touches nothing in use")]
pub(crate) fn give_back() {
    // SAFETY: it may be called at any time, from any thread; only memory that was freed is given back.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
