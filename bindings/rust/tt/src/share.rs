//! What goes from thread to thread by other rules than a handle of its own.
use crate::error::Result;
use crate::handle::*;
use crate::Tensor;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use tt_sys as sys;

/// Takes what stays on its thread ([`Module`](crate::Module), [`Optimizer`](crate::Optimizer), [`Scheduler`](crate::Scheduler), and what is made of
/// them) to another one. Several threads use one in turn behind a `Mutex`:
/// ```
/// use std::sync::{Arc, Mutex};
/// let net = tt::sequential([tt::nn::linear(4, 2)?, tt::nn::relu()?])?;
/// net.train(false)?;
/// // Safety: this thread has no other handle of it, and makes none: net is moved.
/// let served = Arc::new(Mutex::new(unsafe { tt::Transfer::new(net) }));
/// let workers: Vec<_> = (0..2)
///     .map(|i| {
///         let served = served.clone();
///         std::thread::spawn(move || served.lock().unwrap().call(&tt::full(&[1, 4], i as f64)?))
///     })
///     .collect();
/// for worker in workers {
///     assert_eq!(worker.join().unwrap()?.shape(), [1, 2]);
/// }
/// # Ok::<(), tt::Error>(())
/// ```
pub struct Transfer<T>(T, std::marker::PhantomData<*mut ()>);
unsafe impl<T> Send for Transfer<T> {} // as `new` asks
impl<T> Transfer<T> {
    /// For another thread.
    ///
    /// # Safety
    /// From now on whoever has the Transfer, and later what is in it, is the only one that uses what `value` leads to: its modules with all
    /// that is below them, optimizers and schedulers. Other handles of these, made before or from the Transfer, go along or are only
    /// dropped; copies of modules of the host count as handles, as they share a closure. On other threads no backward goes through calls
    /// of modules with full backward hooks: register these where the module then is. Tensors may be shared. What else `value` has may
    /// change threads.
    pub unsafe fn new(value: T) -> Transfer<T> {
        Transfer(value, Default::default())
    }
    /// For the thread that it is on.
    pub fn into_inner(self) -> T {
        self.0
    }
}
impl<T> Deref for Transfer<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Named tensors: the state of a module or an optimizer, the contents of a checkpoint. A clone has the same tensors; what is set later is in
/// one of the two.
#[derive(Clone)]
pub struct StateDict(Arc<Dict>);
struct Dict {
    raw: NonNull<sys::tt_state_dict>,
    structure: Option<String>, // of the file that a copy's tensors came from, which the C object does not know
}
unsafe impl Send for Dict {} // what more than one has does not change
unsafe impl Sync for Dict {}
impl Drop for Dict {
    fn drop(&mut self) {
        unsafe { sys::tt_state_dict_release(self.raw.as_ptr()) }
    }
}
/// `from_raw`: nothing changes the dict by another handle.
impl Handle for StateDict {
    type Raw = sys::tt_state_dict;
    unsafe fn from_raw(raw: *mut sys::tt_state_dict) -> StateDict {
        StateDict(Arc::new(Dict { raw: NonNull::new_unchecked(raw), structure: None }))
    }
    fn raw(&self) -> *mut sys::tt_state_dict {
        self.0.raw.as_ptr()
    }
}
impl StateDict {
    /// Replaces, or appends.
    pub fn set(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        let (name, own) = (c_string(name)?, self.own()?);
        unsafe { call(|c| sys::tt_state_dict_set(c, own, name.as_ptr(), tensor.raw())) }
    }
    /// How its tensors stand in the file that [`torch_load`](crate::torch_load) read, as JSON (described in tt.h); None of others.
    pub fn structure(&self) -> Option<String> {
        self.0
            .structure
            .clone()
            .or_else(|| unsafe { opt_text(sys::tt_state_dict_structure(self.raw())) })
    }
    /// To change it: if clones have it as well, a copy takes its place.
    pub(crate) fn own(&mut self) -> Result<*mut sys::tt_state_dict> {
        if Arc::get_mut(&mut self.0).is_none() {
            let mut copy = StateDict::new()?;
            for i in 0..self.len() {
                let t = self.get(i)?;
                unsafe {
                    call(|c| {
                        sys::tt_state_dict_set(
                            c,
                            copy.raw(),
                            sys::tt_state_dict_name(self.raw(), i),
                            t.raw(),
                        )
                    })?
                };
            }
            Arc::get_mut(&mut copy.0).expect("new").structure = self.structure();
            *self = copy;
        }
        Ok(self.raw())
    }
}
