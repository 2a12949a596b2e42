//! Tensors of modules that a forward pre-hook computes, and the ids of these hooks.
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::{Handle, Module, Status, Tensor};
use std::sync::{Arc, Mutex, Weak};

/// What computes a tensor of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Parametrization,
    Pruning,
}
struct Entry {
    module: usize,
    kind: Kind,
    name: String,
    id: Mutex<i64>,
}
/// The entries of all hooks. A hook owns its entry, so that a live one is of a live module.
static ENTRIES: Mutex<Vec<Weak<Entry>>> = Mutex::new(Vec::new());

fn entry_of(m: &Module, kind: Kind, name: Option<&str>) -> Option<Arc<Entry>> {
    let address = m.raw() as usize;
    let entries = ENTRIES.lock().unwrap_or_else(|e| e.into_inner());
    entries
        .iter()
        .filter_map(Weak::upgrade)
        .find(|e| e.module == address && e.kind == kind && name.map_or(true, |name| e.name == name))
}

/// Whether the tensor of this name, or any, is computed by a hook of this kind.
pub(super) fn is_hooked(m: &Module, kind: Kind, name: Option<&str>) -> bool {
    entry_of(m, kind, name).is_some()
}

/// Fails if the tensor of this name is a buffer.
pub(super) fn check_parameter(m: &Module, name: &str) -> Result<()> {
    if !m.named_buffers()?.contains_key(name) {
        return Ok(());
    }
    let why = format!("name is \"{}\", a buffer of {}: must be a parameter", name, m.class());
    Err(Error::new(Status::InvalidArg, why))
}

/// Copies a value into a parameter of the same shape and returns the parameter.
pub(super) fn overwritten(parameter: &Tensor, value: &Tensor) -> Result<Tensor> {
    // SAFETY: writes numbers alone, as an optimizer's step does.
    no_grad(|| unsafe { parameter.copy_(value) })?;
    Ok(parameter.clone())
}

/// Makes the parameter `name` a buffer that is not saved, which `compute` sets now and before each
/// forward.
pub(super) fn hook(
    m: &Module,
    kind: Kind,
    name: &str,
    compute: impl Fn(&Module) -> Result<Tensor> + Send + 'static,
) -> Result<()> {
    let value = compute(m)?;
    m.register_parameter(name, None)?;
    m.register_buffer(name, Some(&value), false)?;
    let (module, id) = (m.raw() as usize, Mutex::new(0));
    let entry = Arc::new(Entry { module, kind, name: name.into(), id });
    let own = entry.clone();
    let registered = m.register_forward_pre_hook(move |m, _| {
        m.register_buffer(&own.name, Some(&compute(m)?), false)?;
        Ok(vec![])
    })?;
    *entry.id.lock().unwrap_or_else(|e| e.into_inner()) = registered;
    let mut entries = ENTRIES.lock().unwrap_or_else(|e| e.into_inner());
    entries.retain(|e| e.strong_count() > 0);
    entries.push(Arc::downgrade(&entry));
    Ok(())
}

/// Removes the hook, and makes `value` the parameter.
pub(super) fn unhook(m: &Module, kind: Kind, name: &str, value: &Tensor) -> Result<()> {
    if let Some(entry) = entry_of(m, kind, Some(name)) {
        m.remove_hook(*entry.id.lock().unwrap_or_else(|e| e.into_inner()))?;
    }
    m.register_buffer(name, None, false)?;
    m.register_parameter(name, Some(value))
}
