//! Moves modules, optimizers and schedulers to another thread.
use std::fmt;
use std::ops::Deref;

/// Moves a [`Module`](crate::Module), [`Optimizer`](crate::Optimizer) or
/// [`Scheduler`](crate::Scheduler), or a value that contains them, to another thread. In a `Mutex`,
/// several threads can use it in turn. Inference needs no `unsafe`: see
/// [`Module::freeze`](crate::Module::freeze).
///
/// ```
/// let net = tt::nn::linear(4, 2)?;
/// // SAFETY: net is moved, and this thread has no other handle of it.
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

// SAFETY: guaranteed by the caller of `new`.
unsafe impl<T> Send for Transfer<T> {}

impl<T> Transfer<T> {
    /// Prepares a value for another thread.
    ///
    /// # Safety
    /// From now on, only the thread that owns the Transfer, or the value taken out of it, uses the
    /// modules in `value` and below them, its optimizers and its schedulers. Other handles of these
    /// move to the same thread or are only dropped. Copies of custom modules count as handles,
    /// since they share a closure. No other thread runs backward through calls of modules with full
    /// backward hooks. Tensors may be shared. Everything else in `value` is `Send`.
    pub unsafe fn new(value: T) -> Transfer<T> {
        Transfer(value, Default::default())
    }
    /// Returns the value, on its new thread.
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
