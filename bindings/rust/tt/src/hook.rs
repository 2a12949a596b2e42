//! Guards of hooks.

use std::mem::ManuallyDrop;

use crate::{Module, Node, Result, Tensor};

/// Objects that have hooks: tensors, modules and nodes.
pub trait Hooked {
    /// Removes a hook by the id that registering it returned.
    fn remove_hook_by_id(&self, id: i64) -> Result<()>;
}
impl Hooked for Tensor {
    fn remove_hook_by_id(&self, id: i64) -> Result<()> {
        self.remove_hook(id)
    }
}
impl Hooked for Module {
    fn remove_hook_by_id(&self, id: i64) -> Result<()> {
        self.remove_hook(id)
    }
}
impl Hooked for Node {
    fn remove_hook_by_id(&self, id: i64) -> Result<()> {
        self.remove_hook(id)
    }
}

/// Removes a hook when it is dropped.
/// ```no_run
/// # fn main() -> tt::Result<()> {
/// let x = tt::ones(&[2])?.requires_grad_(true)?;
/// let guard = tt::HookGuard::new(&x, x.register_hook(|grad| Ok(Some(grad.neg()?)))?);
/// x.sum()?.backward()?;
/// guard.remove()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a guard that is not kept removes its hook at once"]
pub struct HookGuard<'a, T: Hooked> {
    owner: &'a T,
    id: i64,
}
impl<'a, T: Hooked> HookGuard<'a, T> {
    /// Guards the hook of `owner` with the id that registering it returned.
    pub fn new(owner: &'a T, id: i64) -> Self {
        HookGuard { owner, id }
    }
    /// Removes the hook. Fails if it has been removed by its id.
    pub fn remove(self) -> Result<()> {
        let guard = ManuallyDrop::new(self);
        guard.owner.remove_hook_by_id(guard.id)
    }
    /// Leaves the hook registered, and returns its id.
    pub fn keep(self) -> i64 {
        ManuallyDrop::new(self).id
    }
}
impl<T: Hooked> Drop for HookGuard<'_, T> {
    fn drop(&mut self) {
        let _ = self.owner.remove_hook_by_id(self.id);
    }
}
