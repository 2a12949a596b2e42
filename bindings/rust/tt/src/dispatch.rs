//! Operators by name, custom operators, and custom devices.
use crate::callback::{slice, tensors, user};
use crate::error::{Error, Result};
use crate::generated::callbacks;
use crate::handle::*;
use crate::{CopyKind, Device, Generator, Index, Runtime, Scalar, Status, Tensor};
use std::ffi::CString;
use std::os::raw::c_void;
use tt_sys as sys;

/// An argument of an operator called by name.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value; selects the argument's default.
    None,
    /// A tensor.
    Tensor(Tensor),
    /// A list of tensors, some of which may be absent.
    Tensors(Vec<Option<Tensor>>),
    /// A number, whose kind takes part in dtype promotion.
    Scalar(Scalar),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A string.
    Str(String),
    /// A random number generator.
    Generator(Generator),
    /// A device.
    Device(Device),
    /// A mixed index.
    Index(Vec<Index>),
}

/// A C value with the memory that it points to.
#[allow(dead_code)]
struct RawValue(sys::tt_value, Vec<sys::tt_index>, CString);
impl Value {
    fn raw(&self) -> Result<RawValue> {
        let (mut v, mut index, mut text) = (sys::tt_value::default(), vec![], CString::default());
        match self {
            Value::None => {}
            Value::Tensor(t) => (v.tag, v.tensor) = (sys::TT_VAL_TENSOR, t.raw()),
            Value::Tensors(l) => {
                (v.tag, v.tensors, v.n) =
                    (sys::TT_VAL_TENSORS, l.as_ptr() as *const _, l.len() as i64)
            }
            Value::Scalar(s) => (v.tag, v.scalar) = (sys::TT_VAL_SCALAR, s.raw()),
            Value::Int(i) => (v.tag, v.i) = (sys::TT_VAL_INT, *i),
            Value::Float(f) => (v.tag, v.f) = (sys::TT_VAL_FLOAT, *f),
            Value::Bool(b) => (v.tag, v.i) = (sys::TT_VAL_BOOL, *b as i64),
            Value::Ints(l) => (v.tag, v.ints, v.n) = (sys::TT_VAL_INTS, l.as_ptr(), l.len() as i64),
            Value::Str(s) => {
                text = c_string(s)?;
                (v.tag, v.str, v.n) = (sys::TT_VAL_STR, text.as_ptr(), s.len() as i64);
            }
            Value::Generator(g) => (v.tag, v.generator) = (sys::TT_VAL_GENERATOR, g.raw()),
            Value::Device(d) => (v.tag, v.device) = (sys::TT_VAL_DEVICE, d.raw()),
            Value::Index(l) => {
                index = l.iter().map(Index::raw).collect();
                (v.tag, v.index, v.n) = (sys::TT_VAL_INDEX, index.as_ptr(), l.len() as i64);
            }
        }
        Ok(RawValue(v, index, text))
    }
    /// # Safety
    /// Everything the value points to is valid.
    unsafe fn of_raw(v: &sys::tt_value) -> Value {
        // SAFETY: guaranteed by the caller; the tag selects the valid fields.
        unsafe {
            match v.tag {
                sys::TT_VAL_TENSOR => shared(v.tensor).map_or(Value::None, Value::Tensor),
                sys::TT_VAL_TENSORS => {
                    Value::Tensors(tensors(v.tensors as *const *const _, v.n).to_vec())
                }
                sys::TT_VAL_SCALAR => Value::Scalar(Scalar::of_raw(&v.scalar)),
                sys::TT_VAL_INT => Value::Int(v.i),
                sys::TT_VAL_FLOAT => Value::Float(v.f),
                sys::TT_VAL_BOOL => Value::Bool(v.i != 0),
                sys::TT_VAL_INTS => Value::Ints(slice(v.ints, v.n).to_vec()),
                sys::TT_VAL_STR => {
                    let bytes = slice(v.str as *const u8, v.n);
                    Value::Str(String::from_utf8_lossy(bytes).into_owned())
                }
                sys::TT_VAL_GENERATOR => shared(v.generator).map_or(Value::None, Value::Generator),
                sys::TT_VAL_DEVICE => Value::Device(Device::of_raw(v.device)),
                sys::TT_VAL_INDEX => {
                    Value::Index(slice(v.index, v.n).iter().map(|i| Index::of_raw(i)).collect())
                }
                _ => Value::None,
            }
        }
    }
    /// # Safety
    /// There are n values, and everything they point to is valid.
    pub(crate) unsafe fn list(args: *const sys::tt_value, n: i64) -> Vec<Value> {
        // SAFETY: guaranteed by the caller.
        unsafe { slice(args, n).iter().map(|v| Value::of_raw(v)).collect() }
    }
}

/// An operator, built in or registered with the runtime of the thread's context.
///
/// ```
/// use tt::Value;
/// let x = tt::ones(&[2])?;
/// let sum = tt::Op::find("add")?.call(&[Value::Tensor(x.clone()), Value::Tensor(x)])?;
/// assert_eq!(sum[0].to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone)]
pub struct Op(*const sys::tt_op, #[allow(dead_code)] Runtime);

// SAFETY: an operator does not change, and lives as long as its runtime. One of the application may
// be called from any thread (`Operator`).
unsafe impl Send for Op {}
// SAFETY: as above.
unsafe impl Sync for Op {}

impl Op {
    pub(crate) fn raw(&self) -> *const sys::tt_op {
        self.0
    }
    /// Looks up an operator by name.
    pub fn find(name: &str) -> Result<Op> {
        let (name, mut op) = (c_string(name)?, std::ptr::null());
        // SAFETY: the name is valid during the call.
        unsafe { call(|c| sys::tt_op_find(c, name.as_ptr(), &mut op))? };
        Ok(Op(op, Runtime::current()?))
    }
    /// Returns the name.
    pub fn name(&self) -> String {
        // SAFETY: the operator lives as long as its runtime, and so does the text.
        unsafe { text_of(sys::tt_op_name(self.0)).into_owned() }
    }
    /// Returns the declaration: arguments, defaults, results.
    pub fn schema(&self) -> String {
        // SAFETY: as in `name`.
        unsafe { text_of(sys::tt_op_schema(self.0)).into_owned() }
    }
    /// Returns whether the operator writes into an argument, declared as `Tensor!` in the schema.
    pub fn mutates(&self) -> bool {
        self.schema().contains("Tensor!")
    }
    /// Calls the operator with one value per argument of the schema. [`Value::None`] and omitted
    /// trailing values select the arguments' defaults. Operators that write into an argument need
    /// [`call_mut`](Op::call_mut).
    pub fn call(&self, args: &[Value]) -> Result<Vec<Tensor>> {
        if self.mutates() {
            return Err(Error::new(
                Status::InvalidArg,
                format!("{} writes into an argument: use call_mut, which is unsafe", self.name()),
            ));
        }
        // SAFETY: the operator writes into no argument.
        unsafe { self.call_mut(args) }
    }
    /// Calls any operator, including those that write into an argument.
    ///
    /// # Safety
    /// During the call, nothing else reads or writes the memory that the operator writes, including
    /// through slices and clones, which alias it.
    pub unsafe fn call_mut(&self, args: &[Value]) -> Result<Vec<Tensor>> {
        let kept = args.iter().map(Value::raw).collect::<Result<Vec<_>>>()?;
        let raw: Vec<_> = kept.iter().map(|v| v.0).collect();
        // SAFETY: `kept` and `args` own everything the values point to; the caller guarantees the
        // rest.
        unsafe {
            call_list(|c, outs, cap, n| {
                sys::tt_op_call(c, self.0, raw.as_ptr(), raw.len() as i64, outs, cap, n)
            })
        }
    }
}

/// A custom operator. Its methods may run on any thread, and the operators that they call are not
/// recorded. It is looked up, called, profiled and traced like a built-in one.
pub trait Operator: Send + Sync + 'static {
    /// Computes the results declared by the schema.
    fn compute(&self, args: &[Value]) -> Result<Vec<Option<Tensor>>>;
    /// Computes the gradients of the tensor arguments, in order; the default returns none.
    fn backward(
        &self,
        _grads: &[Option<Tensor>],
        _args: &[Value],
        _results: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![])
    }
    /// Returns whether the operator has a backward; without one, results do not require gradients.
    fn differentiable(&self) -> bool {
        false
    }
}

/// Adds an operator to the runtime, with a schema such as "name(x: Tensor, k: Int) -> Tensor".
pub fn register_op<O: Operator>(schema: &str, op: O) -> Result<()> {
    let schema = c_string(schema)?;
    let differentiable = op.differentiable();
    let mut def = callbacks::tt_op_def::table::<O>(schema.as_ptr(), user(op));
    def.backward = def.backward.filter(|_| differentiable);
    // SAFETY: the table belongs to O, and tt takes ownership of `op`.
    unsafe { call(|c| sys::tt_op_register(c, &def)) }
}

/// A custom device with its own memory and operators.
///
/// # Safety
/// Addresses and copies meet the requirements of `tt_backend_def` in tt.h; `alloc`, `free` and
/// `copy` do not panic.
pub unsafe trait Backend: Send + Sync + 'static {
    /// Returns the address of new memory, to which tt adds the offsets of views; null if memory is
    /// exhausted. It must not call tt.
    fn alloc(&self, bytes: i64) -> *mut c_void;
    /// Frees a block; called from any thread. It must not call tt.
    ///
    /// # Safety
    /// `p` came from `alloc`.
    unsafe fn free(&self, p: *mut c_void, bytes: i64);
    /// Copies memory.
    ///
    /// # Safety
    /// Both sides have that many bytes.
    unsafe fn copy(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        bytes: i64,
        kind: CopyKind,
    ) -> Result<()>;
    /// Computes the results of an operator. After [`Status::NotImplemented`] the CPU computes them.
    fn compute(&self, op: &str, args: &[Value]) -> Result<Vec<Option<Tensor>>>;
}

/// Registers a device with the runtime.
pub fn register_backend<B: Backend>(name: &str, backend: B) -> Result<Device> {
    let name = c_string(name)?;
    let def = callbacks::tt_backend_def::table::<B>(name.as_ptr(), user(backend));
    // SAFETY: the table belongs to B, and tt takes ownership of `backend`.
    unsafe { call_value(|c, out| sys::tt_backend_register(c, &def, out)).map(Device::of_raw) }
}
