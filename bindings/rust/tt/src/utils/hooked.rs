//! Tensors of modules that a forward pre-hook computes, the ids of these hooks, and copies of such
//! modules.
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::{Handle, Module, Status, Tensor};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The way in which a tensor of a module is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Parametrization,
    Pruning,
}
impl Kind {
    fn compute(self, m: &Module, name: &str) -> Result<Tensor> {
        match self {
            Kind::Parametrization => super::parametrize::compute(m, name),
            Kind::Pruning => super::prune::compute(m, name),
        }
    }
}
struct Entry {
    module: usize,
    kind: Kind,
    name: String,
    id: Mutex<i64>,
}
/// The entries of all hooks. A hook owns its entry, so that a live one is of a live module.
static ENTRIES: Mutex<Vec<Weak<Entry>>> = Mutex::new(Vec::new());

fn entries() -> MutexGuard<'static, Vec<Weak<Entry>>> {
    ENTRIES.lock().unwrap_or_else(|e| e.into_inner())
}
fn entries_of(m: &Module) -> Vec<Arc<Entry>> {
    let address = m.raw() as usize;
    entries().iter().filter_map(Weak::upgrade).filter(|e| e.module == address).collect()
}
fn entry_of(m: &Module, kind: Kind, name: Option<&str>) -> Option<Arc<Entry>> {
    let is_it = |e: &Arc<Entry>| e.kind == kind && name.map_or(true, |name| e.name == name);
    entries_of(m).into_iter().find(is_it)
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

/// Makes the parameter `name` a buffer that is not saved, which is computed now and before each
/// forward.
pub(super) fn hook(m: &Module, kind: Kind, name: &str) -> Result<()> {
    let value = kind.compute(m, name)?;
    m.register_parameter(name, None)?;
    m.register_buffer(name, Some(&value), false)?;
    register(m, kind, name)
}
/// Computes the buffer `name` before each forward.
fn register(m: &Module, kind: Kind, name: &str) -> Result<()> {
    let (module, id) = (m.raw() as usize, Mutex::new(0));
    let entry = Arc::new(Entry { module, kind, name: name.into(), id });
    let own = entry.clone();
    let registered = m.register_forward_pre_hook(move |m, _| {
        m.register_buffer(&own.name, Some(&own.kind.compute(m, &own.name)?), false)?;
        Ok(vec![])
    })?;
    *entry.id.lock().unwrap_or_else(|e| e.into_inner()) = registered;
    let mut entries = entries();
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

// ---- copies ----

/// Makes the copy of a module compute the tensors that the module computes.
pub(crate) fn copied(copy: Module, module: &Module) -> Result<Module> {
    if entries().is_empty() {
        return Ok(copy);
    }
    let mut seen = HashSet::new();
    let mut todo = vec![(copy.clone(), module.clone())];
    while let Some((copy, module)) = todo.pop() {
        if !seen.insert(module.raw() as usize) {
            continue;
        }
        for entry in entries_of(&module) {
            register(&copy, entry.kind, &entry.name)?;
        }
        for i in 0..module.num_children() {
            todo.push((copy.child(i)?, module.child(i)?));
        }
    }
    Ok(copy)
}
/// The same for the copy that an AveragedModel has.
pub(crate) fn averaged(average: Module, module: &Module) -> Result<Module> {
    copied(average.get_submodule("module")?, module)?;
    Ok(average)
}
/// The same for the copies of a layer that a stack of them has.
pub(crate) fn stacked(stack: Module, layer: &Module) -> Result<Module> {
    let layers = stack.get_submodule("layers")?;
    for i in 0..layers.num_children() {
        copied(layers.child(i)?, layer)?;
    }
    Ok(stack)
}
