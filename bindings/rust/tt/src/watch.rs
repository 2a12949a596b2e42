//! Memory statistics, live objects, profiles, and traces of operator calls.
use crate::context::ctx;
use crate::error::Result;
use crate::handle::*;
use crate::{Device, Live, ProfileEvent, ProfileRow, ProfileSum};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::null_mut;
use tt_sys as sys;

pub use sys::tt_memory_stats as MemoryStats;

/// Returns the memory statistics of a device and the number of live objects.
pub fn memory(device: Device) -> Result<MemoryStats> {
    // SAFETY: the device is valid during the call.
    unsafe { call_value(|c, out| sys::tt_memory(c, &device.raw(), out)) }
}

/// Returns the live objects of the runtime, largest first.
///
/// # Safety
/// No other thread uses the runtime during the call, which searches all of its memory.
pub unsafe fn live() -> Result<Vec<Live>> {
    // SAFETY: guaranteed by the caller; the strings of rows are valid forever.
    unsafe {
        let rows = call_array(sys::tt_live_row::default(), |c, rows, cap, n| {
            sys::tt_runtime_live(c, rows, cap, n)
        })?;
        Ok(rows.into_iter().map(|row| Live::of_raw(row)).collect())
    }
}

/// Runs f and returns the operators that it called, sorted by total time. A `profile` inside f
/// discards the counts of the outer one.
pub fn profile<R>(f: impl FnOnce() -> R) -> Result<(R, Vec<ProfileRow>)> {
    // SAFETY: takes a ctx alone, as `stop` does.
    unsafe { call(|c| sys::tt_profiler_start(c))? };
    let done = catch_unwind(AssertUnwindSafe(f));
    // SAFETY: as above.
    unsafe { call(|c| sys::tt_profiler_stop(c))? };
    let result = done.unwrap_or_else(|panic| resume_unwind(panic));
    // SAFETY: the strings of rows are valid until the next start.
    unsafe {
        let rows = call_array(sys::tt_profile_row::default(), |c, rows, cap, n| {
            sys::tt_profiler_rows(c, rows, cap, n)
        })?;
        Ok((result, rows.into_iter().map(|row| ProfileRow::of_raw(row)).collect()))
    }
}

/// The kind of an event of a [`Profile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum EventKind {
    /// An operator.
    Op = sys::TT_EVENT_OP,
    /// A kernel launch.
    Kernel = sys::TT_EVENT_KERNEL,
    /// The forward of a module.
    Module = sys::TT_EVENT_MODULE,
    /// The gradient of an operator, in backward.
    Node = sys::TT_EVENT_NODE,
    /// An allocation or release of memory.
    Memory = sys::TT_EVENT_MEMORY,
    /// An optimizer step.
    Optimizer = sys::TT_EVENT_OPTIMIZER,
    /// A [`region`].
    Region = sys::TT_EVENT_REGION,
    /// A collective or transfer of a [`Group`](crate::Group), recorded by the thread that waits.
    Communication = sys::TT_EVENT_COMMUNICATION,
}

impl EventKind {
    pub(crate) fn from_raw(kind: i32) -> EventKind {
        match kind {
            sys::TT_EVENT_KERNEL => EventKind::Kernel,
            sys::TT_EVENT_MODULE => EventKind::Module,
            sys::TT_EVENT_NODE => EventKind::Node,
            sys::TT_EVENT_MEMORY => EventKind::Memory,
            sys::TT_EVENT_OPTIMIZER => EventKind::Optimizer,
            sys::TT_EVENT_REGION => EventKind::Region,
            sys::TT_EVENT_COMMUNICATION => EventKind::Communication,
            _ => EventKind::Op,
        }
    }
}

/// Options of a [`Profile`], which always records operators, kernels, nodes, steps and regions.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfileOptions {
    /// Number of events to keep, the latest ones; None means 1048576.
    pub capacity: Option<i64>,
    /// Whether operator events have the shapes of their arguments.
    pub record_shapes: bool,
    /// Whether memory is recorded.
    pub profile_memory: bool,
    /// Whether floating-point operations are counted.
    pub with_flops: bool,
    /// Whether modules are recorded.
    pub with_modules: bool,
}

/// A profile of this thread's calls. It records until it is stopped ([`Profile::stop`]) or dropped;
/// its results are valid until this thread starts another profile.
#[derive(Debug)]
pub struct Profile {
    _of_this_thread: PhantomData<*mut ()>,
}

impl Profile {
    /// Starts a profile.
    pub fn start(options: ProfileOptions) -> Result<Profile> {
        let bits = sys::TT_PROFILER_START_RECORD_SHAPES
            | sys::TT_PROFILER_START_PROFILE_MEMORY
            | sys::TT_PROFILER_START_WITH_FLOPS
            | sys::TT_PROFILER_START_WITH_MODULES;
        let capacity = options.capacity.map_or(0, |_| sys::TT_PROFILER_START_CAPACITY);
        let raw = sys::tt_profiler_start_opts {
            set: bits | capacity,
            capacity: options.capacity.unwrap_or(0),
            record_shapes: options.record_shapes as i32,
            profile_memory: options.profile_memory as i32,
            with_flops: options.with_flops as i32,
            with_modules: options.with_modules as i32,
        };
        // SAFETY: the options are valid during the call.
        unsafe { call(|c| sys::tt_profiler_start_ex(c, &raw))? };
        Ok(Profile { _of_this_thread: PhantomData })
    }

    /// Ends recording.
    pub fn stop(&self) -> Result<()> {
        // SAFETY: takes a ctx alone.
        unsafe { call(|c| sys::tt_profiler_stop(c)) }
    }

    /// Returns the events by start time. Those that newer ones have replaced are missing.
    pub fn events(&self) -> Result<Vec<ProfileEvent>> {
        // SAFETY: the strings and shapes of rows are valid until the next start.
        unsafe {
            let rows = call_array(sys::tt_profile_event::default(), |c, rows, cap, n| {
                sys::tt_profiler_events(c, rows, cap, n)
            })?;
            Ok(rows.into_iter().map(|row| ProfileEvent::of_raw(row)).collect())
        }
    }

    /// Returns the number of events that newer ones have replaced.
    pub fn dropped(&self) -> Result<i64> {
        // SAFETY: takes a ctx and an out.
        unsafe { call_value(|c, out| sys::tt_profiler_dropped(c, out)) }
    }

    /// Returns the sums of all events per kind and name, largest total time first.
    pub fn sums(&self) -> Result<Vec<ProfileSum>> {
        // SAFETY: the strings of rows are valid until the next start.
        unsafe {
            let rows = call_array(sys::tt_profile_sum::default(), |c, rows, cap, n| {
                sys::tt_profiler_sums(c, rows, cap, n)
            })?;
            Ok(rows.into_iter().map(|row| ProfileSum::of_raw(row)).collect())
        }
    }

    /// Writes the events to a file that chrome://tracing and Perfetto can display.
    pub fn chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        // SAFETY: the path is valid during the call.
        unsafe { call(|c| sys::tt_profiler_chrome_trace(c, path.as_ptr())) }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Runs f and records it as an event of this thread's profile, if one is active.
pub fn region<R>(name: &str, f: impl FnOnce() -> R) -> Result<R> {
    struct End(i64);
    impl Drop for End {
        fn drop(&mut self) {
            // SAFETY: takes numbers; an event that has ended is not an error.
            let _ = unsafe { call(|c| sys::tt_profiler_end(c, self.0)) };
        }
    }
    let name = c_string(name)?;
    // SAFETY: the name is valid during the call.
    let id = unsafe {
        call_value(|c, out| sys::tt_profiler_begin(c, sys::TT_EVENT_REGION, name.as_ptr(), out))?
    };
    let _end = End(id);
    Ok(f())
}

/// Runs f and calls `see(operator, slot, depth)` before every operator call, except within a nested
/// trace. If `see` panics, it is not called again, and the panic continues after f returns.
pub fn trace_dispatch<R, S: FnMut(&str, &str, i32)>(see: S, f: impl FnOnce() -> R) -> Result<R> {
    type State<S> = (S, Option<Box<dyn Any + Send>>);
    /// # Safety
    /// `user` points to a State that nothing else uses during the call; the strings are valid.
    unsafe extern "C" fn tell<S: FnMut(&str, &str, i32)>(
        user: *mut c_void,
        op: *const c_char,
        slot: *const c_char,
        depth: i32,
    ) {
        // SAFETY: guaranteed by the caller; tt does not call this recursively.
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
