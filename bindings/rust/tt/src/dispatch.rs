//! Operators by name, operators of the host, devices of the host.
use crate::callback::{slice, tensors, user};
use crate::error::{Error, Result};
use crate::gen::callbacks;
use crate::handle::*;
use crate::{Device, Generator, Index, Runtime, Scalar, Status, Tensor};
use std::ffi::CString;
use std::os::raw::c_void;
use tt_sys as sys;

/// An argument of an operator that is called by name.
#[derive(Clone)]
#[allow(missing_docs)]
pub enum Value {
    None,
    Tensor(Tensor),
    Tensors(Vec<Option<Tensor>>),
    Scalar(Scalar),
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Vec<i64>),
    Str(String),
    Generator(Generator),
    Device(Device),
    Index(Vec<Index>),
}

// A C value and what it points to.
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
                index = index_list(l);
                (v.tag, v.index, v.n) = (sys::TT_VAL_INDEX, index.as_ptr(), l.len() as i64);
            }
        }
        Ok(RawValue(v, index, text))
    }
    unsafe fn of_raw(v: &sys::tt_value) -> Value {
        match v.tag {
            sys::TT_VAL_TENSOR => shared(v.tensor).map_or(Value::None, Value::Tensor),
            sys::TT_VAL_TENSORS => {
                Value::Tensors(tensors(v.tensors as *const *const _, v.n).to_vec())
            }
            sys::TT_VAL_SCALAR => Value::Scalar(Scalar::of_raw(v.scalar)),
            sys::TT_VAL_INT => Value::Int(v.i),
            sys::TT_VAL_FLOAT => Value::Float(v.f),
            sys::TT_VAL_BOOL => Value::Bool(v.i != 0),
            sys::TT_VAL_INTS => Value::Ints(slice(v.ints, v.n).to_vec()),
            sys::TT_VAL_STR => {
                Value::Str(String::from_utf8_lossy(slice(v.str as *const u8, v.n)).into_owned())
            }
            sys::TT_VAL_GENERATOR => shared(v.generator).map_or(Value::None, Value::Generator),
            sys::TT_VAL_DEVICE => Value::Device(Device::of_raw(v.device)),
            sys::TT_VAL_INDEX => {
                Value::Index(slice(v.index, v.n).iter().map(|i| Index::of_raw(i)).collect())
            }
            _ => Value::None,
        }
    }
    pub(crate) unsafe fn list(args: *const sys::tt_value, n: i64) -> Vec<Value> {
        slice(args, n).iter().map(|v| Value::of_raw(v)).collect()
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
pub struct Op(*const sys::tt_op, #[allow(dead_code)] Runtime);
impl Op {
    /// By name.
    pub fn find(name: &str) -> Result<Op> {
        let (name, mut op) = (c_string(name)?, std::ptr::null());
        unsafe { call(|c| sys::tt_op_find(c, name.as_ptr(), &mut op))? };
        Ok(Op(op, Runtime::current()?))
    }
    /// Its name.
    pub fn name(&self) -> String {
        unsafe { text_of(sys::tt_op_name(self.0)).into_owned() }
    }
    /// Its declaration: arguments, defaults, results.
    pub fn schema(&self) -> String {
        unsafe { text_of(sys::tt_op_schema(self.0)).into_owned() }
    }
    /// Does it write into an argument, `Tensor!` in the schema?
    pub fn mutates(&self) -> bool {
        unsafe { text_of(sys::tt_op_schema(self.0)).contains("Tensor!") }
    }
    /// One value per argument of the schema; None, or absent at the end: its default. Operators that write are refused: `call_mut`.
    pub fn call(&self, args: &[Value]) -> Result<Vec<Tensor>> {
        if self.mutates() {
            return Err(Error::new(
                Status::InvalidArg,
                format!("{} writes into an argument: call_mut, which is unsafe", self.name()),
            ));
        }
        unsafe { self.call_mut(args) }
    }
    /// The same of any operator.
    ///
    /// # Safety
    /// Nothing else may read or write the memory that this writes while it runs, slices of it included: clones alias.
    pub unsafe fn call_mut(&self, args: &[Value]) -> Result<Vec<Tensor>> {
        let kept = args.iter().map(Value::raw).collect::<Result<Vec<_>>>()?;
        let raw: Vec<_> = kept.iter().map(|v| v.0).collect();
        call_list(|c, outs, cap, n| {
            sys::tt_op_call(c, self.0, raw.as_ptr(), raw.len() as i64, outs, cap, n)
        })
    }
}

/// An operator of the host: what computes it, unrecorded, on any thread. Found, called, profiled and traced as built-in ones.
pub trait Operator: Send + Sync + 'static {
    /// As many tensors as the schema says.
    fn compute(&self, args: &[Value]) -> Result<Vec<Option<Tensor>>>;
    /// Gradients of the tensor arguments, in order; the default: there are none.
    fn backward(
        &self,
        _grads: &[Option<Tensor>],
        _args: &[Value],
        _results: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![])
    }
    /// Is there a backward? Results have no gradient otherwise.
    fn differentiable(&self) -> bool {
        false
    }
}
/// Adds an operator to the runtime. schema: "name(x: Tensor, k: Int) -> Tensor".
pub fn register_op<O: Operator>(schema: &str, op: O) -> Result<()> {
    let schema = c_string(schema)?;
    let differentiable = op.differentiable();
    let mut def = callbacks::tt_op_def::table::<O>(schema.as_ptr(), user(op));
    def.backward = def.backward.filter(|_| differentiable);
    unsafe { call(|c| sys::tt_op_register(c, &def)) }
}

/// A device of the host: memory and operators of its own.
///
/// # Safety
/// Addresses and copies are as tt.h asks of a `tt_backend_def`; `alloc`, `free` and `copy` do not panic.
pub unsafe trait Backend: Send + Sync + 'static {
    /// An address, to which tt adds offsets for views; null: no room. It must not call tt.
    fn alloc(&self, bytes: i64) -> *mut c_void;
    /// Takes a block back, from any thread. It must not call tt.
    ///
    /// # Safety
    /// `p` came from `alloc`.
    unsafe fn free(&self, p: *mut c_void, bytes: i64);
    /// kind 1: host to device, 2: device to host, 3: within the device.
    ///
    /// # Safety
    /// Both sides have that many bytes.
    unsafe fn copy(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        bytes: i64,
        kind: i32,
    ) -> Result<()>;
    /// The results of an operator; [`Status::NotImplemented`] leaves it to the CPU.
    fn compute(&self, op: &str, args: &[Value]) -> Result<Vec<Option<Tensor>>>;
}
/// Adds a device to the runtime.
pub fn register_backend<B: Backend>(name: &str, backend: B) -> Result<Device> {
    let name = c_string(name)?;
    let def = callbacks::tt_backend_def::table::<B>(name.as_ptr(), user(backend));
    unsafe { call_value(|c, out| sys::tt_backend_register(c, &def, out)).map(Device::of_raw) }
}
