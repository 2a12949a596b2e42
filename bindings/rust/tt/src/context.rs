//! Thread contexts, additional contexts, runtimes, and context modes.
use crate::error::{Error, Result};
use crate::handle::*;
use crate::{version, Cancel, DType, Generator, Isa, Runtime, RuntimeOpts, Status};
use std::cell::Cell;
use std::ptr::{null_mut, NonNull};
use std::sync::Mutex;
use tt_sys as sys;

thread_local! {
    /// The context of this thread's calls; null before the first call. A `Cell` with a constant
    /// initial value and no destructor costs one load per call.
    static CURRENT: Cell<*mut sys::tt_ctx> = const { Cell::new(null_mut()) };
    /// The context created for this thread; released when the thread ends.
    static OWNED: Cell<Option<Context>> = const { Cell::new(None) };
    /// Whether this thread is in `in_destructor`.
    static IN_DESTRUCTOR: Cell<bool> = const { Cell::new(false) };
}

#[inline(always)]
pub(crate) fn ctx() -> *mut sys::tt_ctx {
    let c = CURRENT.with(Cell::get);
    if c.is_null() {
        first_ctx()
    } else {
        c
    }
}

/// Creates the context of this thread on its first call. Returns null on failure: the call then
/// fails with BAD_HANDLE, and [`Error::last`] finds the reason.
#[cold]
#[inline(never)]
fn first_ctx() -> *mut sys::tt_ctx {
    let context = match Context::new(None) {
        Ok(context) => context,
        Err(_) => return null_mut(),
    };
    let c = context.0.as_ptr();
    let thread_ends = OWNED.try_with(|_| ()).is_err();
    if thread_ends || IN_DESTRUCTOR.with(Cell::get) {
        // `in_destructor` releases it; it leaks if a thread computes while its locals are dropped.
        std::mem::forget(context);
    } else {
        OWNED.with(|owned| owned.set(Some(context)));
    }
    CURRENT.with(|current| current.set(c));
    c
}

/// Runs f, a destructor called by tt, possibly during another call of this thread: calls of tt in f
/// use a separate context. f must not panic.
pub(crate) fn in_destructor(f: impl FnOnce()) {
    let outer = CURRENT.with(|current| current.replace(null_mut()));
    let outermost = !IN_DESTRUCTOR.with(|inside| inside.replace(true));
    f();
    if outermost {
        IN_DESTRUCTOR.with(|inside| inside.set(false));
    }
    let own = CURRENT.with(|current| current.replace(outer));
    if !own.is_null() {
        // SAFETY: `first_ctx` created it for f and left the reference to us.
        unsafe { sys::tt_ctx_release(own) };
    }
}

pub(crate) fn startup_error() -> Error {
    Context::new(None)
        .err()
        .unwrap_or_else(|| Error::new(Status::Oom, "this thread had no context"))
}

/// Runs f with c as this thread's ctx.
pub(crate) fn current_during<R>(c: *mut sys::tt_ctx, f: impl FnOnce() -> R) -> R {
    struct Back(*mut sys::tt_ctx);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.with(|current| current.set(self.0));
        }
    }
    let _back = Back(CURRENT.with(|current| current.replace(c)));
    f()
}

/// Converts the status of a call without a context, for which there is no error record.
fn checked(status: sys::tt_status, what: &str) -> Result<()> {
    if status == sys::TT_OK {
        return Ok(());
    }
    // SAFETY: the string is valid forever.
    let name = unsafe { text_of(sys::tt_status_name(status)) };
    Err(Error::new(
        Status::from_raw(status).unwrap_or(Status::Internal),
        format!("{} failed: {}", what, name),
    ))
}

fn check_version() -> Result<()> {
    let (loaded, needed) = (version(), sys::VERSION);
    if loaded.split('.').take(2).eq(needed.split('.').take(2)) {
        return Ok(());
    }
    Err(Error::new(
        Status::Abi,
        format!(
            "the libtt that was loaded is version {}, this crate needs version {}",
            loaded, needed
        ),
    ))
}

/// An additional context with its own grad mode, random numbers and errors, possibly of another
/// runtime. It may move between threads, but only one at a time may use it.
pub struct Context(NonNull<sys::tt_ctx>);
// SAFETY: a ctx belongs to one thread at a time and may move between threads.
unsafe impl Send for Context {}
impl Context {
    /// Creates a context of a runtime; None means the default runtime, which all threads share.
    pub fn new(runtime: Option<&Runtime>) -> Result<Context> {
        static SHARED: Mutex<Option<Runtime>> = Mutex::new(None);
        check_version()?;
        let mut shared = SHARED.lock().unwrap_or_else(|e| e.into_inner());
        if runtime.is_none() && shared.is_none() {
            *shared = Some(Runtime::new(RuntimeOpts::new())?);
        }
        let mut c = null_mut();
        // SAFETY: the runtime is live; a new ctx is not null.
        unsafe {
            checked(sys::tt_ctx_new(opt_raw(runtime.or(shared.as_ref())), &mut c), "ctx_new")?;
            Ok(Context(NonNull::new_unchecked(c)))
        }
    }
    /// Runs f with this context as the thread's current one.
    pub fn run<R>(&mut self, f: impl FnOnce() -> R) -> R {
        current_during(self.0.as_ptr(), f)
    }
}
impl Drop for Context {
    fn drop(&mut self) {
        let c = self.0.as_ptr();
        let _ = CURRENT.try_with(|current| {
            if current.get() == c {
                current.set(null_mut())
            }
        }); // fails while the thread ends
            // SAFETY: we own the reference.
        unsafe { sys::tt_ctx_release(c) }
    }
}

impl Runtime {
    /// Creates a runtime; [`Context::new`] creates its contexts.
    pub fn new(opts: RuntimeOpts) -> Result<Runtime> {
        check_version()?;
        let mut out = null_mut();
        // SAFETY: the options are valid during the call, and their hooks are static.
        let status = opts.with_raw(|raw| unsafe { sys::tt_runtime_new(raw, &mut out) });
        checked(status, "runtime_new")?;
        // SAFETY: a successful call returns a reference, which we own.
        Ok(unsafe { Runtime::from_raw(out) })
    }
    /// Returns the runtime of the thread's context.
    pub fn current() -> Result<Runtime> {
        // SAFETY: takes a ctx alone.
        unsafe { call1(|c, out| sys::tt_ctx_runtime(c, out)) }
    }
    /// Seeds the contexts created from now on: the n-th draws from stream n of this seed. Existing
    /// contexts keep their generators; [`manual_seed`] also seeds this thread's generator.
    pub fn manual_seed(&self, seed: u64) -> Result<()> {
        // SAFETY: the handle is live.
        checked(unsafe { sys::tt_runtime_manual_seed(self.raw(), seed) }, "runtime_manual_seed")
    }
    /// Returns the seed and the number of contexts created since it was set.
    pub fn rng_state(&self) -> Result<[u64; 2]> {
        let mut state = [0; 2];
        // SAFETY: the state has two numbers.
        let status = unsafe { sys::tt_runtime_rng_state(self.raw(), state.as_mut_ptr()) };
        checked(status, "runtime_rng_state").map(|()| state)
    }
    /// Restores a state that [`rng_state`](Runtime::rng_state) returned: contexts created from now
    /// on draw the same numbers as those created after that call.
    pub fn set_rng_state(&self, state: [u64; 2]) -> Result<()> {
        // SAFETY: the state has two numbers.
        let status = unsafe { sys::tt_runtime_set_rng_state(self.raw(), state.as_ptr()) };
        checked(status, "runtime_set_rng_state")
    }
}

/// Seeds the generators of this thread and of contexts created later, such as those of new threads.
/// Each draws from its own stream, determined by the seed and the order in which contexts are
/// created. Other threads that have called tt before keep their generators. Without a seed, each
/// run of a program draws different numbers.
///
/// ```
/// tt::manual_seed(7)?;
/// let draw = || std::thread::spawn(|| tt::rand(&[64])?.to_vec::<f32>()).join().unwrap();
/// assert_ne!(draw()?, draw()?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn manual_seed(seed: u64) -> Result<()> {
    // SAFETY: takes a ctx and a number.
    unsafe { call(|c| sys::tt_manual_seed(c, seed))? };
    Runtime::current()?.manual_seed(seed)
}

/// Runs f, then restores the generator of this thread and, if f has seeded it, the seed of new
/// threads: what is drawn later does not depend on f. All devices draw from one generator.
///
/// ```
/// tt::manual_seed(1)?;
/// let expected = tt::fork_rng(|| tt::rand(&[3]))?;
/// tt::fork_rng(|| tt::manual_seed(2))?;
/// assert!(tt::rand(&[3])?.equal(&expected)?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn fork_rng<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    struct Back(Generator, [u64; 2], Runtime, [u64; 2]);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = self.0.set_state(self.1);
            let seeds = &self.3;
            // not if f was the first to use a thread: the next ones go on counting
            if self.2.rng_state().map_or(false, |now| now[0] != seeds[0] || now[1] < seeds[1]) {
                let _ = self.2.set_rng_state(*seeds);
            }
        }
    }
    let (generator, runtime) = (Generator::current()?, Runtime::current()?);
    let (state, seeds) = (generator.state()?, runtime.rng_state()?);
    let _back = Back(generator, state, runtime, seeds);
    f()
}

impl Generator {
    /// Returns the generator of the thread's context.
    pub fn current() -> Result<Generator> {
        // SAFETY: takes a ctx alone.
        unsafe { call1(|c, out| sys::tt_ctx_generator(c, out)) }
    }
    /// Returns the seed and the offset.
    pub fn state(&self) -> Result<[u64; 2]> {
        // SAFETY: the state has two numbers.
        unsafe {
            call_value(|c, out: *mut [u64; 2]| {
                sys::tt_generator_state(c, self.raw(), out as *mut u64)
            })
        }
    }
    /// Restores a state that [`state`](Generator::state) returned.
    pub fn set_state(&self, state: [u64; 2]) -> Result<()> {
        // SAFETY: the state has two numbers.
        unsafe { call(|c| sys::tt_generator_set_state(c, self.raw(), state.as_ptr())) }
    }
}

/// Runs f; its calls fail with [`Status::Cancelled`] once `cancel` is requested. A nested
/// `cancellable` replaces the outer token until its f returns.
pub fn cancellable<R>(cancel: &Cancel, f: impl FnOnce() -> R) -> Result<R> {
    type Running = (*mut sys::tt_ctx, *mut sys::tt_cancel);
    thread_local!(static RUNNING: Cell<Running> = const { Cell::new((null_mut(), null_mut())) });
    struct Back(*mut sys::tt_ctx, Running);
    impl Drop for Back {
        fn drop(&mut self) {
            // Restores the outer token, unless it belongs to another context.
            let outer = if self.1 .0 == self.0 { self.1 .1 } else { null_mut() };
            // SAFETY: the ctx is live, and so is the token of an outer `cancellable`.
            unsafe { sys::tt_ctx_set_cancel(self.0, outer) };
            RUNNING.with(|running| running.set(self.1));
        }
    }
    // SAFETY: the token is live until f returns.
    unsafe { call(|c| sys::tt_ctx_set_cancel(c, cancel.raw()))? };
    let _back = Back(ctx(), RUNNING.with(|running| running.replace((ctx(), cancel.raw()))));
    Ok(f())
}

type Setter = unsafe extern "C" fn(*mut sys::tt_ctx, i32, *mut i32) -> sys::tt_status;

/// Restores a mode of the thread's context when dropped.
#[must_use = "dropping the guard restores the mode"]
pub struct ModeGuard(Setter, i32, std::marker::PhantomData<*mut ()>);
impl ModeGuard {
    fn new(set: Setter, on: bool) -> ModeGuard {
        let mut previous = on as i32;
        // SAFETY: the ctx is live.
        unsafe { set(ctx(), on as i32, &mut previous) };
        ModeGuard(set, previous, Default::default())
    }
}
impl Drop for ModeGuard {
    fn drop(&mut self) {
        // SAFETY: the ctx is live; the caller does not need the previous mode.
        unsafe { self.0(ctx(), self.1, null_mut()) };
    }
}

/// Sets whether gradients are recorded, until the guard is dropped.
pub fn grad_guard(on: bool) -> ModeGuard {
    ModeGuard::new(sys::tt_set_grad_enabled, on)
}
/// Makes backward fail at the first operator whose gradient contains nan, until the guard is
/// dropped. The error names the forward operator.
pub fn anomaly_guard(on: bool) -> ModeGuard {
    ModeGuard::new(sys::tt_set_anomaly_enabled, on)
}
/// Runs f without recording gradients. The mode belongs to the thread's context: it does not affect
/// other threads, including those that f starts.
///
/// ```
/// let w = tt::ones(&[2])?.requires_grad_(true)?;
/// assert!(!tt::no_grad(|| w.exp())?.requires_grad() && w.exp()?.requires_grad());
/// # Ok::<(), tt::Error>(())
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    let _off = grad_guard(false);
    f()
}
/// Runs f with gradients recorded.
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    let _on = grad_guard(true);
    f()
}

/// Sets this thread's default dtype of floating-point numbers and tensors.
pub fn set_default_dtype(dtype: DType) -> Result<()> {
    // SAFETY: takes a ctx and a number.
    unsafe { call(|c| sys::tt_ctx_set_default_dtype(c, dtype as i32)) }
}
/// Returns this thread's default dtype of floating-point numbers and tensors.
pub fn default_dtype() -> Result<DType> {
    // SAFETY: takes a ctx alone.
    let raw = unsafe { call_value(|c, out| sys::tt_ctx_default_dtype(c, out))? };
    DType::from_raw(raw).ok_or_else(|| Error::new(Status::Abi, format!("dtype {} is unknown", raw)))
}
/// How tensors are printed.
#[derive(Clone, Copy, Debug)]
pub struct PrintOptions {
    /// Digits after the decimal point, at most 17.
    pub precision: i64,
    /// Tensors with more elements are summarized.
    pub threshold: i64,
    /// Items shown at each end of a dimension of a summarized tensor.
    pub edgeitems: i64,
    /// Characters per line.
    pub linewidth: i64,
    /// Whether to use scientific notation; None decides by the magnitudes of the elements.
    pub sci_mode: Option<bool>,
}
impl Default for PrintOptions {
    fn default() -> Self {
        PrintOptions { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: None }
    }
}
/// Sets how tensors are printed on this thread.
pub fn set_print_options(o: PrintOptions) -> Result<()> {
    let sci_mode = o.sci_mode.map_or(-1, i32::from);
    // SAFETY: takes a ctx and numbers.
    unsafe {
        call(|c| {
            sys::tt_ctx_set_print_options(
                c,
                o.precision,
                o.threshold,
                o.edgeitems,
                o.linewidth,
                sci_mode,
            )
        })
    }
}

/// Returns the instruction set of the kernels in use.
pub fn isa() -> Result<Isa> {
    // SAFETY: takes a ctx alone.
    let raw = unsafe { call_value(|c, out| sys::tt_ctx_isa(c, out))? };
    Isa::from_raw(raw).ok_or_else(|| Error::new(Status::Abi, format!("isa {} is unknown", raw)))
}
