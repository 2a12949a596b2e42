//! What a host may put in the place of tt's own: memory, threads, a logger.
use std::os::raw::c_void;
use tt_sys as sys;

/// Where a runtime's memory comes from; called from any thread.
///
/// # Safety
/// `alloc` gives null or a block of that size and alignment that nothing else uses until it is freed. Neither panics.
pub unsafe trait Allocator: Sync {
    /// `size` bytes at a multiple of `align`, a power of two; null: no room.
    fn alloc(&self, size: usize, align: usize) -> *mut c_void;
    /// Takes a block back.
    ///
    /// # Safety
    /// `p` came from `alloc` with these numbers.
    unsafe fn free(&self, p: *mut c_void, size: usize, align: usize);
}

/// The host's own thread pool.
///
/// # Safety
/// `parallel_for` calls body for every index of 0 … n exactly once, in ranges of at most `grain`, and returns when all are done. Neither
/// function panics.
pub unsafe trait Executor: Sync {
    /// How many threads work at once.
    fn num_threads(&self) -> i32;
    /// Covers 0 … n by calls of `body(begin, end)`, in any order, on any threads.
    fn parallel_for(&self, n: i64, grain: i64, body: &(dyn Fn(i64, i64) + Sync));
}

/// What a runtime has to say; called from any thread, in the middle of calls. Its panics are lost.
pub trait Logger: Sync {
    /// 1 debug, 2 info, 3 warning, 4 error.
    fn log(&self, level: i32, message: &str);
}

struct Body(sys::tt_range_fn, *mut c_void);
unsafe impl Sync for Body {} // kernels may run on any thread
impl Body {
    fn run(&self, begin: i64, end: i64) {
        unsafe { self.0.expect("a body")(self.1, begin, end) }
    }
}

pub(crate) unsafe extern "C" fn parallel_for<T: Executor>(
    user: *mut c_void,
    n: i64,
    grain: i64,
    body: sys::tt_range_fn,
    body_ctx: *mut c_void,
) -> i32 {
    let body = Body(body, body_ctx);
    (*(user as *const T)).parallel_for(n, grain, &|begin, end| body.run(begin, end));
    0
}
