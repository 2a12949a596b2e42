//! Closures that tt calls: kept by a counted pointer, run with their ctx current, their errors and panics carried to the outer call.
use crate::context::{aside, current_during};
use crate::error::{Error, Result};
use crate::{Status, Tensor};
use std::cell::Cell;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use tt_sys as sys;

thread_local! {
    static RAISED: Cell<Option<Error>> = Cell::new(None);
}

/// What the last failing closure of this thread has raised, once.
pub(crate) fn take_raised() -> Option<Error> {
    RAISED.try_with(Cell::take).ok().flatten()
}

/// Runs f for a callback of c; its status.
pub(crate) fn guarded(c: *mut sys::tt_ctx, f: impl FnOnce() -> Result<()>) -> sys::tt_status {
    let e = match catch_unwind(AssertUnwindSafe(|| current_during(c, f))) {
        Ok(Ok(())) => return sys::TT_OK,
        Ok(Err(e)) => e,
        Err(payload) => Error::from_panic(payload),
    };
    let status = e.status as i32;
    if let Ok(Some(before)) = RAISED.try_with(|r| r.replace(Some(e))) {
        quietly(|| drop(before));
    }
    status
}

/// The same where NOT_IMPLEMENTED is an answer, no failure.
pub(crate) fn declinable(c: *mut sys::tt_ctx, f: impl FnOnce() -> Result<()>) -> sys::tt_status {
    let status = guarded(c, f);
    if status == sys::TT_NOT_IMPLEMENTED {
        quietly(|| drop(take_raised()));
    }
    status
}

/// The `user` of a callback; `drop_user::<F>` takes it back.
pub(crate) fn user<F>(f: F) -> *mut c_void {
    Arc::into_raw(Arc::new(f)) as *mut c_void
}

pub(crate) unsafe extern "C" fn drop_user<F>(user: *mut c_void) {
    aside(|| quietly(|| drop(Arc::from_raw(user as *const F))));
}

/// Where nobody is told of a panic: it must not go on through C.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        std::mem::forget(payload); // its drop may panic as well
    }
}

/// A hook that gets a module. One that backward runs, on any thread, is for the thread that has registered it: there the module is.
pub(crate) struct Hook<F>(F, Option<ThreadId>);
impl<F> Hook<F> {
    pub(crate) fn new(f: F, in_backward: bool) -> Hook<F> {
        Hook(f, in_backward.then(|| thread::current().id()))
    }
    pub(crate) fn here(&self) -> Result<&F> {
        if self.1.map_or(false, |own| own != thread::current().id()) {
            return Err(Error::new(
                Status::Callback,
                "the hook's module belongs to another thread, which has registered it",
            ));
        }
        Ok(&self.0)
    }
}

/// The closure, kept alive: it may take itself away.
pub(crate) unsafe fn closure<F>(user: *mut c_void) -> Arc<F> {
    Arc::increment_strong_count(user as *const F);
    Arc::from_raw(user as *const F)
}

// A handle and a Rust reference to it have one layout: a pointer. NULL items are None.
pub(crate) unsafe fn tensors<'a>(
    list: *const *const sys::tt_tensor,
    n: i64,
) -> &'a [Option<Tensor>] {
    slice(list as *const Option<Tensor>, n)
}

pub(crate) unsafe fn slice<'a, T>(p: *const T, n: i64) -> &'a [T] {
    if n == 0 {
        return &[];
    }
    std::slice::from_raw_parts(p, n as usize)
}

/// Gives results to tt: at most cap of them.
pub(crate) unsafe fn give(
    results: Vec<Option<Tensor>>,
    outs: *mut *mut sys::tt_tensor,
    cap: i64,
) -> Result<()> {
    let n = results.len() as i64;
    if n > cap {
        return Err(Error::new(
            Status::Callback,
            format!("a closure gave {} results: at most {} were asked for", n, cap),
        ));
    }
    for (i, t) in results.into_iter().enumerate() {
        *outs.add(i) = t.map_or(std::ptr::null_mut(), Tensor::into_raw);
    }
    Ok(())
}
