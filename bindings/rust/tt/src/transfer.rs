//! Taking what stays on its thread to another one.
use std::fmt;
use std::ops::Deref;

/// Takes what stays on its thread ([`Module`](crate::Module), [`Optimizer`](crate::Optimizer),
/// [`Scheduler`](crate::Scheduler), and what is made of them) to another one: a training that
/// moves, or several threads that use it in turn behind a `Mutex`. A model that is only called is
/// shared without `unsafe`: [`Module::freeze`](crate::Module::freeze).
///
/// ```
/// let net = tt::nn::linear(4, 2)?;
/// // SAFETY: this thread has no other handle of it, and makes none: net is moved.
/// let net = unsafe { tt::Transfer::new(net) };
/// let trained = std::thread::spawn(move || -> tt::Result<_> {
///     let net = net.into_inner();
///     let sgd = tt::optim::sgd(net.parameters()?)?;
///     net.forward(&tt::ones(&[1, 4])?)?.sum()?.backward()?;
///     sgd.step()?;
///     net.state_dict()
/// });
/// assert_eq!(trained.join().unwrap()?.len(), 2);
/// # Ok::<(), tt::Error>(())
/// ```
pub struct Transfer<T>(T, std::marker::PhantomData<*mut ()>);

// SAFETY: `new` asks for it.
unsafe impl<T> Send for Transfer<T> {}

impl<T> Transfer<T> {
    /// Prepares a value for another thread.
    ///
    /// # Safety
    /// From now on only the owner of the Transfer, and later of what is in it, uses what `value`
    /// leads to: its modules with all that is below them, optimizers and schedulers. Other handles
    /// of these, made before or from the Transfer, go along or are only dropped. Copies of modules
    /// of the application count as handles, as they share a closure. On other threads no backward
    /// runs through calls of modules with full backward hooks: register these where the module then
    /// is. Tensors may be shared. Whatever else is in `value` may change threads.
    pub unsafe fn new(value: T) -> Transfer<T> {
        Transfer(value, Default::default())
    }
    /// Returns the value, for the thread that it is on.
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
impl<T: fmt::Debug> fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transfer").field(&self.0).finish()
    }
}
