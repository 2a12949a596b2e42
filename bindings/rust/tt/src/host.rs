//! Traits by which an application supplies memory, threads and a logger, and enums for plain
//! numbers of tt.h.
use std::os::raw::c_void;
use tt_sys as sys;

/// An instruction set for which kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
#[non_exhaustive]
pub enum Isa {
    /// The instructions that every CPU of the architecture has.
    Baseline = 1,
    /// AVX2 with FMA; on 64-bit ARM, SVE with vectors of 256 bits; on 32-bit ARM, NEON.
    Avx2 = 2,
    /// AVX-512.
    Avx512 = 3,
}
impl Isa {
    /// Converts the C value; returns None for one that a later library may have added.
    pub fn from_raw(raw: i32) -> Option<Isa> {
        [Isa::Baseline, Isa::Avx2, Isa::Avx512].into_iter().find(|isa| *isa as i32 == raw)
    }
}

/// The severity of a message of a [`Logger`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// Details for debugging tt.
    Debug,
    /// Normal events.
    Info,
    /// Something works, but should be changed.
    Warning,
    /// Something failed.
    Error,
}
impl LogLevel {
    pub(crate) fn of_raw(raw: i32) -> LogLevel {
        match raw {
            i32::MIN..=1 => LogLevel::Debug,
            2 => LogLevel::Info,
            3 => LogLevel::Warning,
            _ => LogLevel::Error,
        }
    }
}

/// The direction of a copy of a [`Backend`](crate::Backend).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyKind {
    /// From CPU memory to the device.
    ToDevice,
    /// From the device to CPU memory.
    ToHost,
    /// Within the device.
    WithinDevice,
}
impl CopyKind {
    pub(crate) fn of_raw(raw: i32) -> CopyKind {
        match raw {
            1 => CopyKind::ToDevice,
            2 => CopyKind::ToHost,
            _ => CopyKind::WithinDevice,
        }
    }
}

/// Allocates the memory of a runtime. Its methods are called from any thread.
///
/// # Safety
/// `alloc` returns null or an unused block of that size and alignment. Neither function panics.
pub unsafe trait Allocator: Sync {
    /// Returns `size` bytes at a multiple of `align`, a power of two; null if memory is exhausted.
    fn alloc(&self, size: usize, align: usize) -> *mut c_void;
    /// Frees a block.
    ///
    /// # Safety
    /// `p` came from `alloc` with the same size and alignment.
    unsafe fn free(&self, p: *mut c_void, size: usize, align: usize);
}

/// Runs loops on the threads of the application.
///
/// # Safety
/// The ranges of `parallel_for` cover every index of 0 … n exactly once and have at most `grain`
/// indices; it returns when all calls have returned. Neither function panics.
pub unsafe trait Executor: Sync {
    /// Returns the number of threads that run concurrently.
    fn num_threads(&self) -> i32;
    /// Calls `body(begin, end)` for ranges that cover 0 … n, in any order and on any threads.
    fn parallel_for(&self, n: i64, grain: i64, body: &(dyn Fn(i64, i64) + Sync));
}

/// Receives the messages of a runtime, from any thread and in the middle of calls. Panics are
/// ignored.
pub trait Logger: Sync {
    /// Receives a message.
    fn log(&self, level: LogLevel, message: &str);
}

struct Body(sys::tt_range_fn, *mut c_void);
// SAFETY: a body may run on any thread, and on several at once.
unsafe impl Sync for Body {}
impl Body {
    fn run(&self, begin: i64, end: i64) {
        // SAFETY: tt provides both for the duration of parallel_for.
        unsafe { self.0.expect("a body")(self.1, begin, end) }
    }
}

/// # Safety
/// `user` points to a T, and body may be called with body_ctx until this returns.
pub(crate) unsafe extern "C" fn parallel_for<T: Executor>(
    user: *mut c_void,
    n: i64,
    grain: i64,
    body: sys::tt_range_fn,
    body_ctx: *mut c_void,
) -> i32 {
    let body = Body(body, body_ctx);
    // SAFETY: guaranteed by the caller.
    let executor = unsafe { &*(user as *const T) };
    executor.parallel_for(n, grain, &|begin, end| body.run(begin, end));
    0
}
