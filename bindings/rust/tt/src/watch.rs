//! Memory, live objects, and the calls of operators.
use crate::context::ctx;
use crate::error::Result;
use crate::handle::*;
use crate::{Device, Live, ProfileRow};
use std::any::Any;
use std::cell::Cell;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use tt_sys as sys;

pub use sys::tt_memory_stats as MemoryStats;

/// Returns the memory of a device and the number of live objects.
pub fn memory(device: Device) -> Result<MemoryStats> {
    // SAFETY: the device is valid during the call.
    unsafe { call_value(|c, out| sys::tt_memory(c, &device.raw(), out)) }
}

/// Returns the live objects of the runtime, largest first.
///
/// # Safety
/// No other thread uses the runtime during the call, which searches all of its memory.
pub unsafe fn live() -> Result<Vec<Live>> {
    // SAFETY: the caller's; the texts of rows are valid forever.
    unsafe {
        let rows = call_array(sys::tt_live_row::default(), |c, rows, cap, n| {
            sys::tt_runtime_live(c, rows, cap, n)
        })?;
        Ok(rows.into_iter().map(|row| Live::of_raw(row)).collect())
    }
}

/// Runs f and returns the operators that it called, by total time. A `profile` inside f discards
/// the counts of the outer one.
pub fn profile<R>(f: impl FnOnce() -> R) -> Result<(R, Vec<ProfileRow>)> {
    // SAFETY: takes a ctx alone, as `stop` does.
    unsafe { call(|c| sys::tt_profiler_start(c))? };
    let done = catch_unwind(AssertUnwindSafe(f));
    // SAFETY: as above.
    unsafe { call(|c| sys::tt_profiler_stop(c))? };
    let result = done.unwrap_or_else(|panic| resume_unwind(panic));
    // SAFETY: the texts of rows are valid until the next start.
    unsafe {
        let rows = call_array(sys::tt_profile_row::default(), |c, rows, cap, n| {
            sys::tt_profiler_rows(c, rows, cap, n)
        })?;
        Ok((result, rows.into_iter().map(|row| ProfileRow::of_raw(row)).collect()))
    }
}

/// Runs f and calls `see(operator, slot, depth)` before every operator call, except within another
/// trace. After a panic `see` is not called again, and the panic continues when f has returned.
pub fn trace_dispatch<R, S: FnMut(&str, &str, i32)>(see: S, f: impl FnOnce() -> R) -> Result<R> {
    type State<S> = (S, Option<Box<dyn Any + Send>>);
    /// # Safety
    /// `user` is a State that nothing else uses meanwhile; the texts are valid.
    unsafe extern "C" fn tell<S: FnMut(&str, &str, i32)>(
        user: *mut c_void,
        op: *const c_char,
        slot: *const c_char,
        depth: i32,
    ) {
        // SAFETY: the caller's; tt does not call it from within itself.
        let ((see, raised), op, slot) =
            unsafe { (&mut *(user as *mut State<S>), text_of(op), text_of(slot)) };
        if raised.is_none() {
            *raised = catch_unwind(AssertUnwindSafe(|| see(&op, &slot, depth))).err();
        }
    }
    type Tracing = (*mut sys::tt_ctx, sys::tt_trace_fn, *mut c_void);
    thread_local!(
        static TRACING: Cell<Tracing> = const { Cell::new((null_mut(), None, null_mut())) }
    );
    let (mut state, c): (State<S>, _) = ((see, None), ctx());
    let own: Tracing = (c, Some(tell::<S>), &mut state as *mut State<S> as *mut c_void);
    // SAFETY: the state outlives the trace, which ends below.
    unsafe { call(|c| sys::tt_ctx_trace_dispatch(c, own.1, own.2))? };
    let outer = TRACING.with(|t| t.replace(own));
    let done = catch_unwind(AssertUnwindSafe(f));
    TRACING.with(|t| t.set(outer));
    // Restores an outer trace, unless it belongs to another context.
    let (see, user) = if outer.0 == c { (outer.1, outer.2) } else { (None, null_mut()) };
    // SAFETY: the state of an outer trace outlives this one.
    unsafe { call(|c| sys::tt_ctx_trace_dispatch(c, see, user))? };
    if let Some(panic) = state.1 {
        resume_unwind(panic);
    }
    Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
}
