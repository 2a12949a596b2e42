//! Closures that tt calls. tt owns each through an `Arc`. While a closure runs, the context of the
//! outer call is the thread's current context; an error or panic of the closure becomes the cause
//! of that call's error.
use crate::context::{current_during, in_destructor};
use crate::error::{Error, Result};
use crate::handle::c_string;
use crate::{Status, Tensor};
use std::cell::{Cell, RefCell};
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use tt_sys as sys;

thread_local! {
    /// The error of the last closure that failed, until the outer call fails and takes it.
    static RAISED: Cell<Option<Error>> = const { Cell::new(None) };
}

/// Takes the error of this thread's last failed closure.
pub(crate) fn take_raised() -> Option<Error> {
    RAISED.try_with(Cell::take).ok().flatten()
}

/// Runs f as a callback of context c. Errors and panics become a status, and their text the cause
/// of the error of a call on another thread, such as a loader's.
pub(crate) fn guarded(c: *mut sys::tt_ctx, f: impl FnOnce() -> Result<()>) -> sys::tt_status {
    let e = match catch_unwind(AssertUnwindSafe(|| current_during(c, f))) {
        Ok(Ok(())) => return sys::TT_OK,
        Ok(Err(e)) => e,
        Err(payload) => Error::from_panic(payload),
    };
    let status = e.status as i32;
    if let Ok(text) = c_string(&e.to_string()) {
        // SAFETY: the ctx is live, and the text is copied.
        unsafe { sys::tt_ctx_set_error(c, status, text.as_ptr()) };
    }
    if let Ok(Some(before)) = RAISED.try_with(|r| r.replace(Some(e))) {
        quietly(|| drop(before));
    }
    status
}

/// Like [`guarded`], for callbacks that may return NOT_IMPLEMENTED, which is not an error.
pub(crate) fn declinable(c: *mut sys::tt_ctx, f: impl FnOnce() -> Result<()>) -> sys::tt_status {
    let status = guarded(c, f);
    if status == sys::TT_NOT_IMPLEMENTED {
        quietly(|| drop(take_raised()));
    }
    status
}

/// Makes the `user` pointer of a callback; `drop_user::<F>` frees it.
pub(crate) fn user<F>(f: F) -> *mut c_void {
    Arc::into_raw(Arc::new(f)) as *mut c_void
}

/// # Safety
/// `user` came from [`user`] with the same F, and is not used again.
pub(crate) unsafe extern "C" fn drop_user<F>(user: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    in_destructor(|| quietly(|| drop(unsafe { Arc::from_raw(user as *const F) })));
}

/// Runs f and discards its panic, which must not unwind into C and has no caller to report to.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        std::mem::forget(payload); // dropping it could panic again
    }
}

/// An `FnMut` closure called by one thread: a module hook, or the closure of an optimizer or a
/// scheduler. These objects stay on their thread. Only backward hooks can be called from another
/// thread, since graphs move between threads; they check the thread.
pub(crate) struct Local<F> {
    f: RefCell<F>,
    thread: Option<ThreadId>,
}
impl<F> Local<F> {
    pub(crate) fn new(f: F, in_backward: bool) -> Local<F> {
        Local { f: RefCell::new(f), thread: in_backward.then(|| thread::current().id()) }
    }
    /// Calls the closure. Fails on any other thread and on a recursive call.
    pub(crate) fn run<R>(&self, call: impl FnOnce(&mut F) -> Result<R>) -> Result<R> {
        if self.thread.map_or(false, |own| own != thread::current().id()) {
            return Err(Error::new(
                Status::Callback,
                "the hook belongs to the thread that registered it, and was called on another one",
            ));
        }
        match self.f.try_borrow_mut() {
            Ok(mut f) => call(&mut f),
            Err(_) => Err(Error::new(
                Status::Callback,
                "the closure is already running: it has called itself",
            )),
        }
    }
}

/// Returns a new reference to the closure behind `user`: a hook may remove itself while it runs.
///
/// # Safety
/// `user` came from [`user`] with the same F, and has not been freed.
pub(crate) unsafe fn closure<F>(user: *mut c_void) -> Arc<F> {
    // SAFETY: guaranteed by the caller; `from_raw` takes the reference added here.
    unsafe {
        Arc::increment_strong_count(user as *const F);
        Arc::from_raw(user as *const F)
    }
}

/// Borrows tensors from tt; NULL items are None.
///
/// # Safety
/// The list has n items, and is valid for `'a`.
pub(crate) unsafe fn tensors<'a>(
    list: *const *const sys::tt_tensor,
    n: i64,
) -> &'a [Option<Tensor>] {
    // SAFETY: a Tensor has the layout of its handle, which is not null.
    unsafe { slice(list as *const Option<Tensor>, n) }
}

/// # Safety
/// `p` points to n items that are valid for `'a`, or n is 0.
pub(crate) unsafe fn slice<'a, T>(p: *const T, n: i64) -> &'a [T] {
    if n == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(p, n as usize) }
}

/// Writes the results of a closure to `outs`; fails if there are more than `cap`.
///
/// # Safety
/// `outs` has room for cap handles.
pub(crate) unsafe fn give(
    results: Vec<Option<Tensor>>,
    outs: *mut *mut sys::tt_tensor,
    cap: i64,
) -> Result<()> {
    let n = results.len() as i64;
    if n > cap {
        return Err(Error::new(
            Status::Callback,
            format!("a closure returned {} results, must be at most {}", n, cap),
        ));
    }
    for (i, t) in results.into_iter().enumerate() {
        // SAFETY: i is below cap.
        unsafe { *outs.add(i) = t.map_or(std::ptr::null_mut(), Tensor::into_raw) };
    }
    Ok(())
}
