//! Captured graphs: [`capture`] records what a function computes with tensors. A [`Graph`] can be
//! read, rewritten, optimized, saved and exported; a [`Plan`] runs it without dispatch.
//!
//! Operators are recorded below autograd and composites: a graph has forward and backward as one
//! list of calls. It consists of [nodes](Node), which are these calls, and [values](Value), which
//! are the tensors that nodes read and make. [`compile`](crate::compile) records by itself and
//! takes inputs of any shape.
//!
//! ```
//! use tt::{graph, Tensor};
//! let w = tt::ones(&[3, 2])?;
//! let x = tt::zeros(&[4, 3])?;
//! let mut g = graph::capture(|x| Ok(vec![x[0].matmul(&w)?.relu()?]), &[&x])?;
//!
//! // Replaces relu by tanh.
//! let relu = g.nodes().find(|node| node.name() == "relu").expect("it was called");
//! let (at, old, input) = (relu.index(), relu.results()[0], relu.args()?[0].1.clone());
//! let new = g.insert(at, "tanh", &[input])?[0];
//! g.replace_uses(old.expect("relu has a result"), new)?;
//! g.remove(at + 1)?;
//!
//! let mut plan = g.plan()?;
//! let x = tt::randn(&[4, 3])?;
//! let y = plan.call(&[&x])?;
//! assert_eq!(y[0].to_vec::<f32>()?, x.matmul(&w)?.tanh()?.to_vec::<f32>()?);
//! # Ok::<(), tt::Error>(())
//! ```
use crate::callback::slice;
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::handle::*;
use crate::opts::{GraphExportCOpts, GraphQuantizeOpts};
use crate::{DType, Device, Index, Op, Scalar, Status, Tensor};
use std::borrow::Borrow;
use std::cell::Cell;
use std::fmt;
use std::os::raw::c_char;
use std::path::Path;
use std::ptr::{null, null_mut, NonNull};
use std::time::Duration;
use tt_sys as sys;

const DRAW: i32 = 12; // TT_VAL_GRAPH_DRAW, a macro of tt.h

/// Options of [`capture_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureOptions {
    /// Whether the function may read elements of tensors. What it decides by them is frozen into
    /// the graph. By default such a read fails.
    pub allow_reads: bool,
}

/// Calls `f` with the inputs and records what it computes. Tensors that `f` uses besides the inputs
/// are constants of the graph or, if they are written, its state.
///
/// Optimizer steps cannot be captured, since a graph may move to another thread:
/// [`compile`](crate::compile) records whole training steps.
pub fn capture(
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
) -> Result<Graph> {
    capture_with(f, inputs, CaptureOptions::default())
}

thread_local! {
    /// How many functions this thread records.
    static RECORDED: Cell<u32> = const { Cell::new(0) };
}
/// A function is recorded while this lives.
pub(crate) struct Recording;
impl Recording {
    pub(crate) fn begin() -> Recording {
        RECORDED.with(|n| n.set(n.get() + 1));
        Recording
    }
}
impl Drop for Recording {
    fn drop(&mut self) {
        RECORDED.with(|n| n.set(n.get() - 1));
    }
}
/// Ends the recording of this thread, or fails its capture: memory is read, which C does not see.
pub(crate) fn note_read() -> Result<()> {
    if RECORDED.with(Cell::get) > 0 {
        Tensor::from([0f32]).item_scalar()?;
    }
    Ok(())
}

/// Like [`capture`], with options.
pub fn capture_with(
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    options: CaptureOptions,
) -> Result<Graph> {
    /// Ends the capture if `f` fails or panics.
    struct Running;
    impl Drop for Running {
        fn drop(&mut self) {
            // SAFETY: takes a ctx alone. A failure cannot be reported here.
            let _ = unsafe { call(|c| sys::tt_capture_drop(c)) };
        }
    }
    let opts = sys::tt_capture_opts {
        set: sys::TT_CAPTURE_ALLOW_READS,
        allow_reads: options.allow_reads.into(),
        deferred: 0,
    };
    let inputs: Vec<Tensor> = inputs.iter().map(|x| x.borrow().clone()).collect();
    let list = raw_list::<Tensor>(&inputs);
    // SAFETY: the handles are live, and the length matches the list.
    unsafe {
        let (list, n) = (list.as_ptr() as *const *const _, list.len() as i64);
        call(|c| sys::tt_capture_begin(c, list, n, &opts))?;
    }
    let running = Running;
    let outputs = {
        let _recording = Recording::begin();
        f(&inputs)?
    };
    let list = raw_list::<Tensor>(&outputs);
    // SAFETY: as above. The capture ends if this fails, too.
    let graph = unsafe {
        let (list, n) = (list.as_ptr() as *const *const _, list.len() as i64);
        made(|c, out| sys::tt_capture_end(c, list, n, out))
    };
    std::mem::forget(running);
    let graph = graph?;
    let stays = graph.nodes().find(|node| node.schema().contains(": Object"));
    match stays.map(|node| node.name().to_owned()) {
        Some(name) => Err(Error::new(
            Status::NotImplemented,
            format!("capture: {name} needs an optimizer, which stays on its thread: use compile"),
        )),
        None => Ok(graph),
    }
}

/// Takes ownership of the graph that a C call makes.
///
/// # Safety
/// The call in `f` is sound.
unsafe fn made(
    f: impl FnOnce(*mut sys::tt_ctx, *mut *mut sys::tt_graph) -> sys::tt_status,
) -> Result<Graph> {
    let mut out = null_mut();
    // SAFETY: guaranteed by the caller; a successful call returns one reference.
    unsafe {
        call(|c| f(c, &mut out))?;
        Ok(Graph(NonNull::new_unchecked(out)))
    }
}

/// A tensor of a [`Graph`]: the contents of a memory at some time, with a shape. Edits of the graph
/// keep it valid; it means nothing to another graph, but for a [copy](Graph::copy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Value(i32);

/// The properties of a [`Value`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueInfo {
    /// The sizes of the dimensions.
    pub shape: Vec<i64>,
    /// The strides of the dimensions, in elements.
    pub strides: Vec<i64>,
    /// The type of the elements.
    pub dtype: DType,
    /// The offset in the memory, in bytes.
    pub offset: i64,
    /// The number of the memory, for [`Graph::storage`].
    pub storage: usize,
    /// The number of writes into the memory before.
    pub version: i64,
    /// The position of the node that makes the value; None for a tensor from outside.
    pub node: Option<usize>,
}

/// The origin of the memory of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// An input, which each run has its own contents of.
    Input,
    /// A tensor from outside that nodes write, such as a running mean.
    State,
    /// A tensor from outside that is only read, such as a parameter.
    Constant,
    /// Memory made by a node.
    Made,
}

/// The memory of values.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Storage {
    /// The origin of the memory.
    pub role: Role,
    /// Its size.
    pub bytes: i64,
    /// Its device.
    pub device: Device,
    /// A tensor with this memory; None for memory made by a node.
    pub tensor: Option<Tensor>,
}

/// One item of a mixed index of a node.
#[derive(Clone, Debug)]
pub enum IndexItem {
    /// A number, a range, or the like.
    Index(Index),
    /// A tensor of the graph.
    Value(Value),
}

/// An argument of a [`Node`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arg {
    /// An absent argument, or one that only its operator understands; selects the default in
    /// [`Graph::insert`].
    None,
    /// A tensor.
    Value(Value),
    /// A list of tensors, some of which may be absent.
    Values(Vec<Option<Value>>),
    /// A number, whose kind takes part in dtype promotion.
    Scalar(Scalar),
    /// An integer, a dtype or an enumeration.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A string.
    Str(String),
    /// A device.
    Device(Device),
    /// A mixed index.
    Index(Vec<IndexItem>),
    /// The random numbers of a draw of the graph.
    Draw(i64),
}

macro_rules! args {
    ($($t:ty: $variant:ident;)*) => { $(
        impl From<$t> for Arg {
            fn from(value: $t) -> Arg {
                Arg::$variant(value.into())
            }
        }
    )* };
}
args! {
    Value: Value;
    Vec<Option<Value>>: Values;
    Scalar: Scalar;
    i64: Int;
    i32: Int;
    f64: Float;
    f32: Float;
    bool: Bool;
    &[i64]: Ints;
    Vec<i64>: Ints;
    &str: Str;
    String: Str;
    Device: Device;
    Vec<IndexItem>: Index;
}

/// A C argument with the memory that it points to.
struct RawArg {
    raw: sys::tt_graph_arg,
    values: Vec<i32>,
    index: Vec<sys::tt_index>,
}

impl Arg {
    /// The result points to its own vectors and to those of `self`.
    fn raw(&self) -> Result<RawArg> {
        let mut raw = sys::tt_graph_arg::default();
        let (mut values, mut index) = (vec![], vec![]);
        match self {
            Arg::None => {}
            Arg::Value(v) => {
                raw.tag = sys::TT_VAL_TENSOR;
                values.push(v.0);
            }
            Arg::Values(list) => {
                raw.tag = sys::TT_VAL_TENSORS;
                values.extend(list.iter().map(|v| v.map_or(-1, |v| v.0)));
            }
            Arg::Scalar(s) => (raw.tag, raw.scalar) = (sys::TT_VAL_SCALAR, s.raw()),
            Arg::Int(i) => (raw.tag, raw.i) = (sys::TT_VAL_INT, *i),
            Arg::Float(f) => (raw.tag, raw.f) = (sys::TT_VAL_FLOAT, *f),
            Arg::Bool(b) => (raw.tag, raw.i) = (sys::TT_VAL_BOOL, (*b).into()),
            Arg::Ints(list) => {
                (raw.tag, raw.ints, raw.n) = (sys::TT_VAL_INTS, list.as_ptr(), list.len() as i64);
            }
            Arg::Str(s) => {
                (raw.tag, raw.str) = (sys::TT_VAL_STR, s.as_ptr() as *const c_char);
                raw.n = s.len() as i64;
            }
            Arg::Device(d) => (raw.tag, raw.device) = (sys::TT_VAL_DEVICE, d.raw()),
            Arg::Index(items) => {
                raw.tag = sys::TT_VAL_INDEX;
                for item in items {
                    match item {
                        IndexItem::Index(Index::Tensor(_)) => {
                            let why = "a tensor in an index of a graph must be a value of it";
                            return Err(Error::new(Status::InvalidArg, why));
                        }
                        IndexItem::Index(i) => index.push(i.raw()),
                        IndexItem::Value(v) => {
                            values.push(v.0);
                            index.push(sys::tt_index {
                                kind: sys::TT_IDX_TENSOR,
                                ..sys::tt_index::default()
                            });
                        }
                    }
                }
                raw.n = index.len() as i64;
            }
            Arg::Draw(_) => {
                let why = "random numbers are drawn by the graph: no argument can be a draw";
                return Err(Error::new(Status::InvalidArg, why));
            }
        }
        raw.n_values = values.len() as i64;
        Ok(RawArg { raw, values, index })
    }

    /// # Safety
    /// Everything the argument points to is valid.
    unsafe fn of_raw(a: &sys::tt_graph_arg) -> Arg {
        // SAFETY: guaranteed by the caller; the tag selects the valid fields.
        unsafe {
            let values = slice(a.values, a.n_values);
            match a.tag {
                sys::TT_VAL_TENSOR => values.first().and_then(some).map_or(Arg::None, Arg::Value),
                sys::TT_VAL_TENSORS => Arg::Values(values.iter().map(some).collect()),
                sys::TT_VAL_SCALAR => Arg::Scalar(Scalar::of_raw(&a.scalar)),
                sys::TT_VAL_INT => Arg::Int(a.i),
                sys::TT_VAL_FLOAT => Arg::Float(a.f),
                sys::TT_VAL_BOOL => Arg::Bool(a.i != 0),
                sys::TT_VAL_INTS => Arg::Ints(slice(a.ints, a.n).to_vec()),
                sys::TT_VAL_STR => {
                    let bytes = slice(a.str as *const u8, a.n);
                    Arg::Str(String::from_utf8_lossy(bytes).into_owned())
                }
                sys::TT_VAL_DEVICE => Arg::Device(Device::of_raw(a.device)),
                sys::TT_VAL_INDEX => {
                    let mut tensors = values.iter().filter_map(some);
                    let item = |i: &sys::tt_index| match i.kind {
                        sys::TT_IDX_TENSOR => tensors.next().map(IndexItem::Value),
                        _ => Some(IndexItem::Index(Index::of_raw(i))),
                    };
                    Arg::Index(slice(a.index, a.n).iter().filter_map(item).collect())
                }
                DRAW => Arg::Draw(a.i),
                _ => Arg::None,
            }
        }
    }
}

/// Converts the number of a value; -1 is an absent one.
fn some(raw: &i32) -> Option<Value> {
    (*raw >= 0).then_some(Value(*raw))
}

/// A call of an operator, borrowed from a [`Graph`].
pub struct Node<'g> {
    graph: &'g Graph,
    index: usize,
    raw: sys::tt_graph_node,
}

impl<'g> Node<'g> {
    /// Returns the position of the node: nodes run in order.
    pub fn index(&self) -> usize {
        self.index
    }
    /// Returns the name of the operator.
    pub fn name(&self) -> &'g str {
        // SAFETY: the string is valid while the graph does not change.
        unsafe { borrowed(self.raw.name) }
    }
    /// Returns the declaration of the operator: arguments, defaults, results.
    pub fn schema(&self) -> &'g str {
        // SAFETY: as in `name`.
        unsafe { borrowed(self.raw.schema) }
    }
    /// Returns the composite operator that the node is a part of.
    pub fn scope(&self) -> Option<&'g str> {
        // SAFETY: as in `name`.
        (!self.raw.scope.is_null()).then(|| unsafe { borrowed(self.raw.scope) })
    }
    /// Returns the arguments with their names in the schema.
    pub fn args(&self) -> Result<Vec<(&'g str, Arg)>> {
        (0..self.raw.n_args).map(|i| self.arg(i)).collect()
    }
    fn arg(&self, i: i64) -> Result<(&'g str, Arg)> {
        let mut raw = sys::tt_graph_arg::default();
        // SAFETY: the handle is live; what the argument points to is valid while the graph does not
        // change.
        unsafe {
            let node = self.index as i64;
            call(|c| sys::tt_graph_get_arg(c, self.graph.raw(), node, i, &mut raw))?;
            Ok((borrowed(raw.name), Arg::of_raw(&raw)))
        }
    }
    /// Returns the results; None for an absent one.
    pub fn results(&self) -> Vec<Option<Value>> {
        self.outs()[..self.raw.n_results as usize].iter().map(some).collect()
    }
    /// Returns the written arguments, as they are after the call.
    pub fn written(&self) -> Vec<Value> {
        self.outs()[self.raw.n_results as usize..].iter().filter_map(some).collect()
    }
    fn outs(&self) -> &'g [i32] {
        // SAFETY: the list is valid while the graph does not change.
        unsafe { slice(self.raw.outs, self.raw.n_outs) }
    }
}
impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("index", &self.index).field("name", &self.name()).finish()
    }
}

/// Borrows an ASCII string of C.
///
/// # Safety
/// `s` is valid for `'a`.
unsafe fn borrowed<'a>(s: *const c_char) -> &'a str {
    // SAFETY: guaranteed by the caller.
    unsafe { std::ffi::CStr::from_ptr(s) }.to_str().unwrap_or("?")
}

/// The calls of operators that a function has made, from [`capture`] or [`Graph::load`]. `Display`
/// prints them, one per line.
///
/// Edits need a graph that no [`Plan`] uses; [`copy`](Graph::copy) makes one. After an edit the
/// shapes behind it are computed again; an edit that fails changes nothing. Values stay valid, the
/// positions of nodes behind the edit change.
pub struct Graph(NonNull<sys::tt_graph>);

// SAFETY: threads may read a graph at the same time (tt.h, graphs); edits take `&mut` and fail if a
// plan uses the graph. What a graph keeps alive may be used by any thread: tensors, generators and
// operators, but no optimizers, which `capture_with` refuses.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: we own the reference.
        unsafe { sys::tt_graph_release(self.0.as_ptr()) }
    }
}

/// # Reading
impl Graph {
    fn raw(&self) -> *mut sys::tt_graph {
        self.0.as_ptr()
    }
    fn info(&self) -> sys::tt_graph_info {
        let mut info = sys::tt_graph_info::default();
        // SAFETY: the handle is live. A failure leaves the info of an empty graph.
        let _ = unsafe { call(|c| sys::tt_graph_get_info(c, self.raw(), &mut info)) };
        info
    }
    /// Returns the number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.info().n_nodes as usize
    }
    /// Returns a node; fails with [`Status::InvalidArg`] past the end.
    pub fn node(&self, index: usize) -> Result<Node<'_>> {
        let mut raw = sys::tt_graph_node::default();
        let i = i64::try_from(index).unwrap_or(i64::MAX);
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_graph_get_node(c, self.raw(), i, &mut raw))? };
        Ok(Node { graph: self, index, raw })
    }
    /// Iterates over the nodes in the order in which they run.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.num_nodes()).filter_map(move |i| self.node(i).ok())
    }
    /// Returns the inputs.
    pub fn inputs(&self) -> Vec<Value> {
        let info = self.info();
        // SAFETY: the list is valid while the graph does not change.
        unsafe { slice(info.inputs, info.n_inputs) }.iter().map(|v| Value(*v)).collect()
    }
    /// Returns the outputs.
    pub fn outputs(&self) -> Vec<Value> {
        let info = self.info();
        // SAFETY: as in `inputs`.
        unsafe { slice(info.outputs, info.n_outputs) }.iter().map(|v| Value(*v)).collect()
    }
    /// Returns the properties of a value.
    pub fn value(&self, value: Value) -> Result<ValueInfo> {
        let mut raw = sys::tt_graph_value::default();
        // SAFETY: the handle is live; the lists are valid while the graph does not change.
        unsafe {
            call(|c| sys::tt_graph_get_value(c, self.raw(), value.0.into(), &mut raw))?;
            Ok(ValueInfo {
                shape: slice(raw.sizes, raw.ndim).to_vec(),
                strides: slice(raw.strides, raw.ndim).to_vec(),
                dtype: DType::from_raw(raw.dtype).expect("a dtype of this library's version"),
                offset: raw.offset,
                storage: raw.storage as usize,
                version: raw.version,
                node: usize::try_from(raw.node).ok(),
            })
        }
    }
    /// Returns a memory of values; fails with [`Status::InvalidArg`] past the end.
    pub fn storage(&self, index: usize) -> Result<Storage> {
        let mut raw = sys::tt_graph_storage::default();
        let i = i64::try_from(index).unwrap_or(i64::MAX);
        // SAFETY: the handle is live; the tensor is borrowed from the graph.
        unsafe {
            call(|c| sys::tt_graph_get_storage(c, self.raw(), i, &mut raw))?;
            Ok(Storage {
                role: match raw.role {
                    sys::TT_GRAPH_INPUT => Role::Input,
                    sys::TT_GRAPH_STATE => Role::State,
                    sys::TT_GRAPH_CONSTANT => Role::Constant,
                    _ => Role::Made,
                },
                bytes: raw.bytes,
                device: Device::of_raw(raw.device),
                tensor: shared(raw.tensor as *mut _),
            })
        }
    }
    /// Returns the positions of the nodes that read a value, in order.
    pub fn users(&self, value: Value) -> Result<Vec<usize>> {
        // SAFETY: the handle is live.
        let nodes = unsafe {
            call_array(0i64, |c, nodes, cap, n| {
                sys::tt_graph_users(c, self.raw(), value.0, nodes, cap, n)
            })?
        };
        Ok(nodes.into_iter().map(|i| i as usize).collect())
    }
    /// Returns the graph in the language of Graphviz.
    pub fn dot(&self) -> Result<String> {
        // SAFETY: the handle is live.
        unsafe { call_text(|c, text, cap, n| sys::tt_graph_dot(c, self.raw(), text, cap, n)) }
    }
}

/// # Rewriting
impl Graph {
    /// Returns a copy, which can be edited independently.
    pub fn copy(&self) -> Result<Graph> {
        // SAFETY: the handle is live.
        unsafe { made(|c, out| sys::tt_graph_copy(c, self.raw(), out)) }
    }
    /// Inserts a call of an operator before the node at `before`, or at the end, and returns the
    /// values of its results. A composite operator becomes several nodes. Missing arguments at the
    /// end are the defaults. Operators that write into an argument are refused.
    pub fn insert(&mut self, before: usize, op: &str, args: &[Arg]) -> Result<Vec<Value>> {
        let op = Op::find(op)?;
        let kept = args.iter().map(Arg::raw).collect::<Result<Vec<_>>>()?;
        let raw: Vec<_> = kept
            .iter()
            .map(|arg| sys::tt_graph_arg {
                values: arg.values.as_ptr(),
                index: arg.index.as_ptr(),
                ..arg.raw
            })
            .collect();
        let (at, n_args) = (i64::try_from(before).unwrap_or(i64::MAX), raw.len() as i64);
        // SAFETY: `kept` and `args` own what the arguments point to.
        let outs = unsafe {
            call_array(0i32, |c, outs, cap, n| {
                let args = raw.as_ptr();
                sys::tt_graph_insert(c, self.raw(), at, op.raw(), args, n_args, outs, cap, n)
            })?
        };
        Ok(outs.into_iter().map(Value).collect())
    }
    /// Replaces a value by `with` in the outputs and in the nodes behind the one that makes `with`.
    pub fn replace_uses(&mut self, value: Value, with: Value) -> Result<()> {
        // SAFETY: the handle is live, and nothing borrows from the graph.
        unsafe { call(|c| sys::tt_graph_replace_uses(c, self.raw(), value.0, with.0)) }
    }
    /// Removes a node; fails if something reads what it makes or writes.
    pub fn remove(&mut self, node: usize) -> Result<()> {
        let node = i64::try_from(node).unwrap_or(i64::MAX);
        // SAFETY: as in `replace_uses`.
        unsafe { call(|c| sys::tt_graph_remove(c, self.raw(), node)) }
    }
    /// Sets the outputs.
    pub fn set_outputs(&mut self, outputs: &[Value]) -> Result<()> {
        let (list, n) = (outputs.as_ptr() as *const i32, outputs.len() as i64);
        // SAFETY: as in `replace_uses`; a Value has the layout of its number.
        unsafe { call(|c| sys::tt_graph_set_outputs(c, self.raw(), list, n)) }
    }
    /// Returns an optimized copy with the same inputs and outputs. [`Passes::EXACT`] keep every
    /// bit.
    pub fn optimize(&self, passes: Passes) -> Result<Graph> {
        let set = sys::TT_GRAPH_OPTIMIZE_PASSES;
        let opts = sys::tt_graph_optimize_opts { set, passes: passes.0 };
        // SAFETY: the options are valid during the call.
        unsafe { made(|c, out| sys::tt_graph_optimize(c, self.raw(), &opts, out)) }
    }
}

/// Passes of [`Graph::optimize`]; `|` joins them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passes(u64);
impl Passes {
    /// Removes calls whose results nothing needs.
    pub const DCE: Passes = Passes(sys::TT_PASS_DCE);
    /// Computes once what is computed twice.
    pub const CSE: Passes = Passes(sys::TT_PASS_CSE);
    /// Computes what depends only on constants; writing them later has no effect.
    pub const FOLD: Passes = Passes(sys::TT_PASS_FOLD);
    /// Merges batch normalizations with constant statistics into the weights of the convolutions
    /// before them. Writing these later has no effect, and results are rounded differently.
    pub const NORM: Passes = Passes(sys::TT_PASS_NORM);
    /// Puts relu behind the max pooling that follows it.
    pub const POOL: Passes = Passes(sys::TT_PASS_POOL);
    /// Writes gradients of slices side by side, in place of sums with zeros.
    pub const SLICES: Passes = Passes(sys::TT_PASS_SLICES);
    /// Moves elementwise calls behind the product whose result they take.
    pub const EPILOGUES: Passes = Passes(sys::TT_PASS_EPILOGUES);
    /// The passes that keep every bit and all later writes: all but FOLD and NORM.
    pub const EXACT: Passes = Passes(
        sys::TT_PASS_DCE
            | sys::TT_PASS_CSE
            | sys::TT_PASS_POOL
            | sys::TT_PASS_SLICES
            | sys::TT_PASS_EPILOGUES,
    );
}
impl Default for Passes {
    fn default() -> Passes {
        Passes::EXACT
    }
}
impl std::ops::BitOr for Passes {
    type Output = Passes;
    fn bitor(self, other: Passes) -> Passes {
        Passes(self.0 | other.0)
    }
}

/// # Files
impl Graph {
    /// Writes the graph with its state and constants to a .ttg file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        // SAFETY: the path is valid during the call.
        unsafe { call(|c| sys::tt_graph_save(c, self.raw(), path.as_ptr())) }
    }
    /// Reads a graph from a file that [`save`](Graph::save) wrote. The file is not trusted: all of
    /// it is checked.
    pub fn load(path: impl AsRef<Path>) -> Result<Graph> {
        let path = c_path(path)?;
        // SAFETY: the path is valid during the call.
        unsafe { made(|c, out| sys::tt_graph_load(c, path.as_ptr(), out)) }
    }
    /// Writes `<name>.c` and `<name>.h` to a directory: C99 that computes the outputs from the
    /// inputs, for machines without tt.
    pub fn export_c(&self, dir: impl AsRef<Path>, name: &str) -> Result<()> {
        let (dir, name) = (c_path(dir)?, c_string(name)?);
        // SAFETY: the strings are valid during the call.
        unsafe { call(|c| sys::tt_graph_export_c(c, self.raw(), dir.as_ptr(), name.as_ptr())) }
    }
    /// As [`export_c`](Graph::export_c), with options.
    pub fn export_c_with(
        &self,
        dir: impl AsRef<Path>,
        name: &str,
        opts: GraphExportCOpts,
    ) -> Result<()> {
        let (dir, name) = (c_path(dir)?, c_string(name)?);
        let (dir, name) = (dir.as_ptr(), name.as_ptr());
        // SAFETY: the strings and the options are valid during the call.
        unsafe { call(|c| sys::tt_graph_export_c_with(c, self.raw(), dir, name, &opts.0)) }
    }
    /// Returns a graph that computes convolutions and linear layers with constant weights in 8-bit
    /// integers. The samples are inputs, run after run, and show the ranges of activations.
    pub fn quantize(&self, samples: &[Tensor], opts: GraphQuantizeOpts) -> Result<Graph> {
        let handles = raw_list::<Tensor>(samples);
        let (list, n) = (handles.as_ptr() as *const *const _, samples.len() as i64);
        // SAFETY: the handles are live, and the length matches the list.
        unsafe { made(|c, out| sys::tt_graph_quantize(c, self.raw(), list, n, &opts.0, out)) }
    }
    /// Reads an ONNX model, whose initializers become constants. `dynamic` is the size of the
    /// dimensions of inputs that have no number. The file is not trusted: all of it is checked.
    pub fn load_onnx(path: impl AsRef<Path>, dynamic: i64) -> Result<Graph> {
        let path = c_path(path)?;
        let opts = sys::tt_graph_load_onnx_opts { set: sys::TT_GRAPH_LOAD_ONNX_DYNAMIC, dynamic };
        // SAFETY: the path and the options are valid during the call.
        unsafe { made(|c, out| sys::tt_graph_load_onnx(c, path.as_ptr(), &opts, out)) }
    }
    /// Writes an ONNX model with inputs in0, in1, … and outputs out0, out1, ….
    pub fn export_onnx(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        // SAFETY: the path is valid during the call.
        unsafe { call(|c| sys::tt_graph_export_onnx(c, self.raw(), path.as_ptr())) }
    }
    /// Writes an ONNX model with a dimension of any size, named `dim`. `other` is the same
    /// computation for another size of it.
    pub fn export_onnx_dynamic(
        &self,
        other: &Graph,
        dim: &str,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        let (dim, path) = (c_path(dim)?, c_path(path)?);
        let (a, b) = (self.raw(), other.raw());
        // SAFETY: the texts are valid during the call, and the handles are live.
        unsafe { call(|c| sys::tt_graph_export_onnx_dynamic(c, a, b, dim.as_ptr(), path.as_ptr())) }
    }
    /// Writes an ONNX model with up to three dimensions of any size, named `dims` in the order in
    /// which the inputs have them. `others` are the same computation for other sizes: one graph for
    /// one dimension, three for two, seven for three.
    pub fn export_onnx_dims(
        &self,
        others: &[&Graph],
        dims: &[&str],
        path: impl AsRef<Path>,
    ) -> Result<()> {
        let path = c_path(path)?;
        let dims = dims.iter().map(c_path).collect::<Result<Vec<_>>>()?;
        let names: Vec<_> = dims.iter().map(|dim| dim.as_ptr()).collect();
        let others: Vec<_> = others.iter().map(|other| other.raw() as *const _).collect();
        let (n_others, n) = (others.len() as i64, names.len() as i64);
        let (others, names) = (others.as_ptr(), names.as_ptr());
        // SAFETY: the texts and the lists are valid during the call, and the handles are live.
        unsafe {
            call(|c| {
                let path = path.as_ptr();
                sys::tt_graph_export_onnx_dims(c, self.raw(), others, n_others, names, n, path)
            })
        }
    }
    /// Returns the graph for another size of a dimension. `other` is the same computation for a
    /// second size of it; what differs must grow evenly with the size.
    pub fn resize(&self, other: &Graph, size: i64) -> Result<Graph> {
        // SAFETY: the handles are live.
        unsafe { made(|c, out| sys::tt_graph_resize(c, self.raw(), other.raw(), size, out)) }
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the handle is live.
        let text = unsafe {
            call_text(|c, text, cap, n| sys::tt_graph_print(c, self.raw(), text, cap, n))
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}
impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("nodes", &self.num_nodes()).finish_non_exhaustive()
    }
}

/// # Running
impl Graph {
    /// Lowers the graph to a list of kernel launches on the CPU. Fails with
    /// [`Status::NotImplemented`] if an operator decides by elements that it reads.
    pub fn plan(&self) -> Result<Plan> {
        let mut out = null_mut();
        // SAFETY: the handle is live; null selects the default options.
        unsafe { call(|c| sys::tt_plan_new(c, self.raw(), null(), &mut out))? };
        let raw = NonNull::new(out).expect("tt_plan_new has succeeded");
        let mut plan = Plan { raw, inputs: vec![], outputs: vec![], pending: false };
        let info = self.info();
        plan.inputs = (0..info.n_inputs).map(|i| plan.slot(false, i)).collect::<Result<_>>()?;
        plan.outputs = (0..info.n_outputs).map(|i| plan.slot(true, i)).collect::<Result<_>>()?;
        Ok(plan)
    }
}

/// A [`Graph`] as a list of kernel launches in memory of its own. A run allocates and dispatches
/// nothing, and gives the bits that the operators gave. Several plans of a graph run at the same
/// time, each on one thread.
pub struct Plan {
    raw: NonNull<sys::tt_plan>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    /// Whether `run_for` has begun a run that is not complete.
    pending: bool,
}

// SAFETY: a plan may run on any thread, one at a time: runs take `&mut`. It uses only what its
// graph keeps alive.
unsafe impl Send for Plan {}
// SAFETY: `&Plan` gives the tensors alone, which are Sync.
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: we own the reference.
        unsafe { sys::tt_plan_release(self.raw.as_ptr()) }
    }
}

impl Plan {
    fn slot(&self, output: bool, i: i64) -> Result<Tensor> {
        // SAFETY: the handle is live.
        unsafe { call1(|c, out| sys::tt_plan_slot(c, self.raw.as_ptr(), output.into(), i, out)) }
    }
    /// Copies the inputs into the plan, runs it, and returns copies of the outputs. Shapes and
    /// dtypes must be those of the capture. Fails while a run that [`run_for`](Plan::run_for) began
    /// is not complete.
    pub fn call(&mut self, inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Tensor>> {
        if self.pending {
            let why = "plan: a run is not complete: run or run_for completes it";
            return Err(Error::new(Status::InvalidArg, why));
        }
        if inputs.len() != self.inputs.len() {
            let why = format!("plan: {} inputs, must be {}", inputs.len(), self.inputs.len());
            return Err(Error::new(Status::InvalidArg, why));
        }
        for (i, (given, slot)) in inputs.iter().zip(&self.inputs).enumerate() {
            let given = given.borrow();
            if given.shape() != slot.shape() || given.dtype() != slot.dtype() {
                let why = format!("plan: input {i} is {given:?}, must be {slot:?}");
                return Err(Error::new(Status::Shape, why));
            }
        }
        no_grad(|| {
            for (given, slot) in inputs.iter().zip(&self.inputs) {
                // SAFETY: the handles are live; nothing else writes the plan's inputs during `call`
                // unless `unsafe` code does.
                unsafe { call(|c| sys::tt_copy_(c, slot.raw(), given.borrow().raw()))? };
            }
            self.run()?;
            self.outputs.iter().map(Tensor::copy).collect()
        })
    }
    /// Returns the tensors of the inputs, in the plan's memory, to write before [`run`](Plan::run).
    pub fn inputs(&self) -> &[Tensor] {
        &self.inputs
    }
    /// Returns the tensors of the outputs, in the plan's memory. They have the values of the last
    /// run.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }
    /// Runs the plan, or completes a run that [`run_for`](Plan::run_for) began. State that it
    /// writes is written in place; a run that fails leaves it half written.
    pub fn run(&mut self) -> Result<()> {
        self.pending = false;
        // SAFETY: the handle is live, and no other thread runs the plan.
        unsafe { call(|c| sys::tt_plan_run(c, self.raw.as_ptr())) }
    }
    /// Runs for at most this time, and until the launch that is running then has ended. Returns
    /// whether the run is complete; otherwise the next call continues it.
    pub fn run_for(&mut self, time: Duration) -> Result<bool> {
        let ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: as in `run`.
        let done: Result<i32> =
            unsafe { call_value(|c, out| sys::tt_plan_run_for(c, self.raw.as_ptr(), ns, out)) };
        self.pending = matches!(done, Ok(0));
        Ok(done? != 0)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}
