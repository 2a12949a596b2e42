//! What a host can see of tt at work: memory, live objects, operator calls.
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
/// Memory of a device, and how many objects live.
pub fn memory(device: Device) -> Result<MemoryStats> {
    unsafe { call_value(|c, out| sys::tt_memory(c, &device.raw(), out)) }
}

/// What is alive in the runtime, the most bytes first.
///
/// # Safety
/// No other thread uses the runtime meanwhile: all of its memory is looked through.
pub unsafe fn live() -> Result<Vec<Live>> {
    let rows = call_array(sys::tt_live_row::default(), |c, rows, cap, n| {
        sys::tt_runtime_live(c, rows, cap, n)
    })?;
    Ok(rows.into_iter().map(Live::of_raw).collect())
}

/// Runs f and tells which operators it has called, by total time. f must not do so itself: what was counted would be lost.
pub fn profile<R>(f: impl FnOnce() -> R) -> Result<(R, Vec<ProfileRow>)> {
    unsafe { call(|c| sys::tt_profiler_start(c))? };
    let done = catch_unwind(AssertUnwindSafe(f));
    unsafe { call(|c| sys::tt_profiler_stop(c))? };
    let result = done.unwrap_or_else(|panic| resume_unwind(panic));
    let rows = unsafe {
        call_array(sys::tt_profile_row::default(), |c, rows, cap, n| {
            sys::tt_profiler_rows(c, rows, cap, n)
        })?
    };
    Ok((result, rows.into_iter().map(ProfileRow::of_raw).collect()))
}

/// Runs f; `see(operator, slot, depth)` is told of every operator call before it runs, except within another trace. After a panic see sees no
/// more, and the panic goes on when f has returned.
pub fn trace_dispatch<R, S: FnMut(&str, &str, i32)>(see: S, f: impl FnOnce() -> R) -> Result<R> {
    type State<S> = (S, Option<Box<dyn Any + Send>>);
    unsafe extern "C" fn tell<S: FnMut(&str, &str, i32)>(
        user: *mut c_void,
        op: *const c_char,
        slot: *const c_char,
        depth: i32,
    ) {
        let (see, raised) = &mut *(user as *mut State<S>);
        if raised.is_none() {
            *raised =
                catch_unwind(AssertUnwindSafe(|| see(&text_of(op), &text_of(slot), depth))).err();
        }
    }
    type Tracing = (*mut sys::tt_ctx, sys::tt_trace_fn, *mut c_void);
    thread_local!(static TRACING: Cell<Tracing> = const { Cell::new((null_mut(), None, null_mut())) });
    let (mut state, c): (State<S>, _) = ((see, None), ctx());
    let own: Tracing = (c, Some(tell::<S>), &mut state as *mut State<S> as *mut c_void);
    unsafe { call(|c| sys::tt_ctx_trace_dispatch(c, own.1, own.2))? };
    let outer = TRACING.with(|t| t.replace(own));
    let done = catch_unwind(AssertUnwindSafe(f));
    TRACING.with(|t| t.set(outer));
    let (see, user) = if outer.0 == c { (outer.1, outer.2) } else { (None, null_mut()) }; // not if it is of another context
    unsafe { call(|c| sys::tt_ctx_trace_dispatch(c, see, user))? };
    if let Some(panic) = state.1 {
        resume_unwind(panic);
    }
    Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
}
