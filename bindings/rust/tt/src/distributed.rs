//! Process groups and data-parallel training.
use crate::callback::{closure, drop_user, guarded, slice, user};
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::handle::*;
use crate::opts::EmptyOpts;
use crate::{DType, Ddp, Group, Module, Status, Tensor, Work};
use std::os::raw::c_void;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;
use tt_sys as sys;

/// The reduction of elements across ranks. For bool, a sum is "or" and a product is "and".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReduceOp {
    /// The sum.
    Sum = 1,
    /// The mean, of floating-point and complex numbers.
    Mean = 2,
    /// The least number; nan wins.
    Min = 3,
    /// The greatest number; nan wins.
    Max = 4,
    /// The product.
    Product = 5,
    /// The bitwise "and" of integers and bool.
    BitAnd = 6,
    /// The bitwise "or" of integers and bool.
    BitOr = 7,
    /// The bitwise "exclusive or" of integers and bool.
    BitXor = 8,
}

/// Options of a [`Group`].
#[derive(Clone, Debug, Default)]
pub struct GroupOptions {
    /// Timeout of every wait for another process; None means 30 minutes.
    pub timeout: Option<Duration>,
    /// The path of the backend's library; None means `libtt_gloo.so` or `libtt_mpi.so`, next to
    /// libtt or on the loader's path.
    pub library: Option<PathBuf>,
}

/// Reads a number from an environment variable.
fn number(name: &str, default: i32) -> Result<i32> {
    match std::env::var(name) {
        Err(_) => Ok(default),
        Ok(text) => text.parse().map_err(|_| {
            Error::new(Status::InvalidArg, format!("{name} is {text:?}: must be a number"))
        }),
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// # The group
impl Group {
    /// Joins a process group. The backend "gloo" has a rendezvous at "tcp://host:port" or
    /// "file:///path"; "mpi" provides rank and size, so both may be -1.
    pub fn new(
        backend: &str,
        rank: i32,
        size: i32,
        rendezvous: &str,
        options: &GroupOptions,
    ) -> Result<Group> {
        let (backend, rendezvous) = (c_string(backend)?, c_string(rendezvous)?);
        let library = options.library.as_ref().map(c_path).transpose()?;
        let mut raw = sys::tt_group_opts::default();
        if let Some(timeout) = options.timeout {
            raw.set |= sys::TT_GROUP_TIMEOUT_MS;
            raw.timeout_ms = milliseconds(timeout);
        }
        if let Some(path) = &library {
            raw.set |= sys::TT_GROUP_LIBRARY;
            raw.library = path.as_ptr();
        }
        let (name, place) = (backend.as_ptr(), rendezvous.as_ptr());
        // SAFETY: the strings are valid during the call.
        unsafe { call1(|c, out| sys::tt_group_new(c, name, rank, size, place, &raw, out)) }
    }

    /// Joins the group described by the variables of a launcher (RANK, WORLD_SIZE, MASTER_ADDR and
    /// MASTER_PORT) or by mpirun. Without either, the group has one process.
    pub fn from_env(options: &GroupOptions) -> Result<Group> {
        let set = |name: &str| std::env::var_os(name).is_some();
        if (set("OMPI_COMM_WORLD_SIZE") || set("PMI_SIZE")) && !set("MASTER_ADDR") {
            return Group::new("mpi", -1, -1, "", options);
        }
        let host = std::env::var("MASTER_ADDR").unwrap_or_default();
        let place = format!("tcp://{}:{}", host, number("MASTER_PORT", 0)?);
        Group::new("gloo", number("RANK", 0)?, number("WORLD_SIZE", 1)?, &place, options)
    }

    /// Splits the group: returns the group of the ranks with this color, ordered by key; None for a
    /// negative color. All ranks of the group must call it.
    pub fn split(&self, color: i64, key: i64) -> Result<Option<Group>> {
        // SAFETY: the handle is live.
        unsafe { call_opt(|c, out| sys::tt_group_split(c, self.raw(), color, key, out)) }
    }

    /// Returns the rank of this process.
    pub fn rank(&self) -> i32 {
        // SAFETY: the handle is live.
        unsafe { sys::tt_group_rank(self.raw()) }
    }

    /// Returns the number of processes.
    pub fn size(&self) -> i32 {
        // SAFETY: the handle is live.
        unsafe { sys::tt_group_size(self.raw()) }
    }

    /// Returns the name of the backend, "" for a group of one process without a backend.
    pub fn backend(&self) -> String {
        // SAFETY: the string is valid while the handle is.
        unsafe { text_of(sys::tt_group_backend(self.raw())) }.into_owned()
    }

    /// Waits until all ranks have called this function.
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_group_barrier(c, self.raw(), ptr::null_mut())) }
    }

    /// Starts [`Group::barrier`].
    pub fn start_barrier(&self) -> Result<Work> {
        // SAFETY: the handle is live.
        unsafe { call1(|c, out| sys::tt_group_barrier(c, self.raw(), out)) }
    }
}

/// # Collectives
///
/// All ranks make the same calls in the same order. As for operators, `name_` writes into its
/// tensor and `name_into` into a given one.
impl Group {
    /// Returns the reduction of the tensors of all ranks, on every rank.
    pub fn all_reduce(&self, tensor: &Tensor, op: ReduceOp) -> Result<Tensor> {
        let result = own_copy(tensor)?;
        // SAFETY: nothing else has the copy.
        unsafe { self.all_reduce_(&result, op)? };
        Ok(result)
    }

    /// Returns the reduction on rank `root`; a copy of the tensor on the other ranks.
    pub fn reduce(&self, tensor: &Tensor, op: ReduceOp, root: i32) -> Result<Tensor> {
        let result = own_copy(tensor)?;
        // SAFETY: nothing else has the copy.
        unsafe { self.reduce_(&result, op, root)? };
        Ok(result)
    }

    /// Returns the tensor of rank `root`, on every rank. The others give one of the same shape and
    /// dtype.
    pub fn broadcast(&self, tensor: &Tensor, root: i32) -> Result<Tensor> {
        let result = own_copy(tensor)?;
        // SAFETY: nothing else has the copy.
        unsafe { self.broadcast_(&result, root)? };
        Ok(result)
    }

    /// Returns the tensors of all ranks, on every rank, stacked along a new first dimension.
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Tensor> {
        let shape: Vec<i64> =
            std::iter::once(self.size().into()).chain(tensor.shape().iter().copied()).collect();
        let result = room(tensor, &shape)?;
        // SAFETY: nothing else has the result.
        unsafe { self.all_gather_into(tensor, &result)? };
        Ok(result)
    }

    /// Sends part r of the tensor, along the first dimension, to rank r, and returns the parts that
    /// come from the other ranks, in order.
    pub fn all_to_all(&self, tensor: &Tensor) -> Result<Tensor> {
        let result = room(tensor, tensor.shape())?;
        // SAFETY: nothing else has the result.
        unsafe { self.all_to_all_into(tensor, &result)? };
        Ok(result)
    }

    /// Returns a tensor of this shape and dtype that rank `peer` sends with the same tag.
    pub fn recv(&self, shape: &[i64], dtype: DType, peer: i32, tag: i32) -> Result<Tensor> {
        let result = crate::empty_with(shape, EmptyOpts::new().dtype(dtype))?;
        // SAFETY: nothing else has the result.
        unsafe { self.recv_into(&result, peer, tag)?.wait()? };
        Ok(result)
    }

    /// Starts sending a tensor to another rank, which receives it with the same tag. Writes into
    /// the tensor before the work is done may be sent.
    pub fn send(&self, tensor: &Tensor, peer: i32, tag: i32) -> Result<Work> {
        let t = tensor.raw();
        // SAFETY: the handles are live; C keeps the tensor.
        unsafe { call1(|c, out| sys::tt_group_send(c, self.raw(), t, peer, tag, out)) }
    }

    /// Replaces the contents of the tensor, on all ranks, with the reduction.
    ///
    /// # Safety
    /// While it runs, nothing else reads or writes the memory of the tensor, slices included:
    /// clones alias.
    pub unsafe fn all_reduce_(&self, tensor: &Tensor, op: ReduceOp) -> Result<()> {
        let (t, wait) = (tensor.raw(), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_all_reduce(c, self.raw(), t, op as i32, wait)) }
    }

    /// Starts [`Group::all_reduce_`].
    ///
    /// # Safety
    /// Until the work is done, nothing else reads or writes the memory of the tensor, slices
    /// included: clones alias.
    pub unsafe fn start_all_reduce_(&self, tensor: &Tensor, op: ReduceOp) -> Result<Work> {
        let t = tensor.raw();
        // SAFETY: the handles are live; C keeps the tensor.
        unsafe { call1(|c, out| sys::tt_group_all_reduce(c, self.raw(), t, op as i32, out)) }
    }

    /// Replaces the contents of the tensor of rank `root` with the reduction; the tensors of other
    /// ranks do not change.
    ///
    /// # Safety
    /// As for [`Group::all_reduce_`].
    pub unsafe fn reduce_(&self, tensor: &Tensor, op: ReduceOp, root: i32) -> Result<()> {
        let (t, wait) = (tensor.raw(), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_reduce(c, self.raw(), t, op as i32, root, wait)) }
    }

    /// Starts [`Group::reduce_`].
    ///
    /// # Safety
    /// As for [`Group::start_all_reduce_`].
    pub unsafe fn start_reduce_(&self, tensor: &Tensor, op: ReduceOp, root: i32) -> Result<Work> {
        let t = tensor.raw();
        // SAFETY: the handles are live; C keeps the tensors.
        unsafe { call1(|c, out| sys::tt_group_reduce(c, self.raw(), t, op as i32, root, out)) }
    }

    /// Replaces the contents of the tensor, on all ranks, with those of rank `root`.
    ///
    /// # Safety
    /// As for [`Group::all_reduce_`].
    pub unsafe fn broadcast_(&self, tensor: &Tensor, root: i32) -> Result<()> {
        let (t, wait) = (tensor.raw(), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_broadcast(c, self.raw(), t, root, wait)) }
    }

    /// Starts [`Group::broadcast_`].
    ///
    /// # Safety
    /// As for [`Group::start_all_reduce_`].
    pub unsafe fn start_broadcast_(&self, tensor: &Tensor, root: i32) -> Result<Work> {
        let t = tensor.raw();
        // SAFETY: the handles are live; C keeps the tensors.
        unsafe { call1(|c, out| sys::tt_group_broadcast(c, self.raw(), t, root, out)) }
    }

    /// Writes the concatenated inputs of all ranks to the output.
    ///
    /// # Safety
    /// As for [`Group::all_reduce_`], for the output.
    pub unsafe fn all_gather_into(&self, input: &Tensor, output: &Tensor) -> Result<()> {
        let (i, o, wait) = (input.raw(), output.raw(), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_all_gather(c, self.raw(), i, o, wait)) }
    }

    /// Starts [`Group::all_gather_into`].
    ///
    /// # Safety
    /// As for [`Group::start_all_reduce_`], for both tensors.
    pub unsafe fn start_all_gather_into(&self, input: &Tensor, output: &Tensor) -> Result<Work> {
        let (i, o) = (input.raw(), output.raw());
        // SAFETY: the handles are live; C keeps the tensors.
        unsafe { call1(|c, out| sys::tt_group_all_gather(c, self.raw(), i, o, out)) }
    }

    /// Reduces the inputs of all ranks, and writes part r of the result to the output of rank r.
    ///
    /// # Safety
    /// As for [`Group::all_reduce_`], for the output.
    pub unsafe fn reduce_scatter_into(
        &self,
        input: &Tensor,
        output: &Tensor,
        op: ReduceOp,
    ) -> Result<()> {
        let (i, o, wait) = (input.raw(), output.raw(), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_reduce_scatter(c, self.raw(), i, o, op as i32, wait)) }
    }

    /// Starts [`Group::reduce_scatter_into`].
    ///
    /// # Safety
    /// As for [`Group::start_all_reduce_`], for both tensors.
    pub unsafe fn start_reduce_scatter_into(
        &self,
        input: &Tensor,
        output: &Tensor,
        op: ReduceOp,
    ) -> Result<Work> {
        let (i, o) = (input.raw(), output.raw());
        // SAFETY: the handles are live; C keeps the tensors.
        unsafe { call1(|c, out| sys::tt_group_reduce_scatter(c, self.raw(), i, o, op as i32, out)) }
    }

    /// Sends part r of the input to rank r; part r of the output comes from rank r.
    ///
    /// # Safety
    /// As for [`Group::all_reduce_`], for the output.
    pub unsafe fn all_to_all_into(&self, input: &Tensor, output: &Tensor) -> Result<()> {
        let (i, o, wait) = (input.raw(), output.raw(), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_all_to_all(c, self.raw(), i, o, wait)) }
    }

    /// Starts [`Group::all_to_all_into`].
    ///
    /// # Safety
    /// As for [`Group::start_all_reduce_`], for both tensors.
    pub unsafe fn start_all_to_all_into(&self, input: &Tensor, output: &Tensor) -> Result<Work> {
        let (i, o) = (input.raw(), output.raw());
        // SAFETY: the handles are live; C keeps the tensors.
        unsafe { call1(|c, out| sys::tt_group_all_to_all(c, self.raw(), i, o, out)) }
    }

    /// Writes the concatenated inputs of all ranks to the output of rank `root`; others have none.
    ///
    /// # Safety
    /// As for [`Group::all_reduce_`], for the output.
    pub unsafe fn gather_into(
        &self,
        input: &Tensor,
        output: Option<&Tensor>,
        root: i32,
    ) -> Result<()> {
        let (i, o, wait) = (input.raw(), opt_raw(output), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_gather(c, self.raw(), i, o, root, wait)) }
    }

    /// Starts [`Group::gather_into`].
    ///
    /// # Safety
    /// As for [`Group::start_all_reduce_`], for both tensors.
    pub unsafe fn start_gather_into(
        &self,
        input: &Tensor,
        output: Option<&Tensor>,
        root: i32,
    ) -> Result<Work> {
        let (i, o) = (input.raw(), opt_raw(output));
        // SAFETY: the handles are live; C keeps the tensors.
        unsafe { call1(|c, out| sys::tt_group_gather(c, self.raw(), i, o, root, out)) }
    }

    /// Writes part r of the input of rank `root` to the output of rank r.
    ///
    /// # Safety
    /// As for [`Group::all_reduce_`], for the output.
    pub unsafe fn scatter_into(
        &self,
        input: Option<&Tensor>,
        output: &Tensor,
        root: i32,
    ) -> Result<()> {
        let (i, o, wait) = (opt_raw(input), output.raw(), ptr::null_mut());
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_scatter(c, self.raw(), i, o, root, wait)) }
    }

    /// Starts [`Group::scatter_into`].
    ///
    /// # Safety
    /// As for [`Group::start_all_reduce_`], for both tensors.
    pub unsafe fn start_scatter_into(
        &self,
        input: Option<&Tensor>,
        output: &Tensor,
        root: i32,
    ) -> Result<Work> {
        let (i, o) = (opt_raw(input), output.raw());
        // SAFETY: the handles are live; C keeps the tensors.
        unsafe { call1(|c, out| sys::tt_group_scatter(c, self.raw(), i, o, root, out)) }
    }

    /// Lets the batch normalizations in a module use the statistics of the batches of all ranks.
    /// Their forward and backward are then collective calls.
    pub fn sync_batch_norm(&self, module: &Module) -> Result<()> {
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_group_sync_batch_norm(c, self.raw(), module.raw())) }
    }

    /// Starts receiving a tensor of this shape and dtype from another rank; if `peer` is -1, from
    /// the first that sends with this tag, which [`Work::source`] returns.
    ///
    /// # Safety
    /// Until the work is done, nothing else reads or writes the memory of the tensor, slices
    /// included: clones alias.
    pub unsafe fn recv_into(&self, tensor: &Tensor, peer: i32, tag: i32) -> Result<Work> {
        let t = tensor.raw();
        // SAFETY: the handles are live; C keeps the tensor.
        unsafe { call1(|c, out| sys::tt_group_recv(c, self.raw(), t, peer, tag, out)) }
    }
}

/// Returns a contiguous copy without a gradient.
fn own_copy(tensor: &Tensor) -> Result<Tensor> {
    let result = room(tensor, tensor.shape())?;
    // SAFETY: nothing else has the result.
    no_grad(|| unsafe { result.copy_(tensor) })?;
    Ok(result)
}

/// Returns a tensor without contents, with the dtype and device of another one.
fn room(like: &Tensor, shape: &[i64]) -> Result<Tensor> {
    crate::empty_with(shape, EmptyOpts::new().dtype(like.dtype()).device(like.device()))
}

impl Work {
    /// Waits until the work is done; fails if the work failed.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_work_wait(c, self.raw(), -1)) }
    }

    /// Like [`Work::wait`]; fails if the work is not done within the timeout.
    pub fn wait_for(&self, timeout: Duration) -> Result<()> {
        let ms = milliseconds(timeout);
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_work_wait(c, self.raw(), ms)) }
    }

    /// Waits for a receive and returns the rank that has sent.
    pub fn source(&self) -> Result<i32> {
        // SAFETY: the handle is live.
        unsafe { call_value(|c, out| sys::tt_work_source(c, self.raw(), out)) }
    }

    /// Returns whether the work is done.
    pub fn is_done(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        unsafe { call_value(|c, out| sys::tt_work_test(c, self.raw(), out)).map(|n: i32| n != 0) }
    }
}

/// Options of a [`Ddp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DdpOptions {
    /// Bytes per bucket; the first bucket has at most 1 MB.
    pub bucket_bytes: i64,
    /// Whether a forward in training mode first broadcasts the buffers of rank 0.
    pub broadcast_buffers: bool,
    /// Whether backward may leave parameters without gradients, which then count as zeros.
    pub find_unused_parameters: bool,
    /// The dtype of messages, such as BF16; None means that of the gradients.
    pub compression: Option<DType>,
}

impl Default for DdpOptions {
    fn default() -> DdpOptions {
        DdpOptions {
            bucket_bytes: 25 << 20,
            broadcast_buffers: true,
            find_unused_parameters: false,
            compression: None,
        }
    }
}

impl Ddp {
    /// Starts data-parallel training of a module. All ranks must call it. It broadcasts the
    /// parameters and buffers of rank 0; backward averages gradients over the ranks until the last
    /// clone is dropped.
    pub fn new(module: &Module, group: &Group, options: &DdpOptions) -> Result<Ddp> {
        let mut raw = sys::tt_ddp_opts {
            set: sys::TT_DDP_BUCKET_BYTES
                | sys::TT_DDP_BROADCAST_BUFFERS
                | sys::TT_DDP_FIND_UNUSED_PARAMETERS,
            bucket_bytes: options.bucket_bytes,
            broadcast_buffers: options.broadcast_buffers as i32,
            find_unused_parameters: options.find_unused_parameters as i32,
            compression: 0,
            pad: 0,
        };
        if let Some(dtype) = options.compression {
            raw.set |= sys::TT_DDP_COMPRESSION;
            raw.compression = dtype as _;
        }
        // SAFETY: the options are valid during the call.
        unsafe { call1(|c, out| sys::tt_ddp_new(c, module.raw(), group.raw(), &raw, out)) }
    }

    /// Prepares a forward that does not call the module: broadcasts the buffers of rank 0.
    pub fn prepare_forward(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_ddp_prepare_forward(c, self.raw())) }
    }

    /// Replaces the gradients that the parameters have by their means over the ranks, after
    /// backwards without ([`Ddp::set_sync`]), such as those of a compiled step.
    pub fn reduce(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_ddp_reduce(c, self.raw())) }
    }

    /// Lets a hook reduce the gradients instead of tt. All ranks must call it, and call the same
    /// collectives in their hooks. If the hook fails on one rank, backward fails on all.
    pub fn set_hook<H: BucketHook>(&self, hook: H) -> Result<()> {
        let (start, finish) = (Some(start::<H> as _), Some(finish::<H> as _));
        let (user, drop) = (user(hook), Some(drop_user::<H> as _));
        // SAFETY: the handle is live; tt drops the hook, also after a failure.
        unsafe { call(|c| sys::tt_ddp_set_hook(c, self.raw(), start, finish, user, drop)) }
    }

    /// Lets tt reduce the gradients again. All ranks must call it.
    pub fn clear_hook(&self) -> Result<()> {
        let none = ptr::null_mut();
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_ddp_set_hook(c, self.raw(), None, None, none, None)) }
    }

    /// Sets whether backward reduces gradients. While it is off, they accumulate in each process.
    pub fn set_sync(&self, on: bool) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_ddp_set_sync(c, self.raw(), on as i32)) }
    }
}

/// Gradients that a backward has filled, for a [`BucketHook`].
#[derive(Debug)]
pub struct GradBucket<'a>(&'a sys::tt_ddp_bucket);

impl<'a> GradBucket<'a> {
    /// Returns the number of the bucket, in the order in which backward fills them on all ranks.
    pub fn index(&self) -> usize {
        self.0.index as usize
    }

    /// Returns the number of buckets of a backward.
    pub fn count(&self) -> usize {
        self.0.num_buckets as usize
    }

    /// Returns the gradients as a tensor of one dimension.
    pub fn buffer(&self) -> &'a Tensor {
        // SAFETY: a Tensor has the layout of its handle, which is valid while the hook runs.
        unsafe { &*(&self.0.buffer as *const _ as *const Tensor) }
    }

    /// Returns views of the buffer with the shapes of the parameters.
    pub fn gradients(&self) -> &'a [Tensor] {
        // SAFETY: as in `buffer`.
        unsafe { slice(self.0.gradients as *const Tensor, self.0.num_parameters) }
    }

    /// Returns the parameters of the gradients.
    pub fn parameters(&self) -> &'a [Tensor] {
        // SAFETY: as in `buffer`.
        unsafe { slice(self.0.parameters as *const Tensor, self.0.num_parameters) }
    }

    /// Returns whether backward has failed: `finish` then waits for what `start` has begun.
    pub fn failed(&self) -> bool {
        self.0.failed != 0
    }
}

/// Reduces buckets of gradients: see [`Ddp::set_hook`].
pub trait BucketHook: Send + Sync + 'static {
    /// Called during backward, as soon as it has filled a bucket and those before. It may start
    /// work of groups.
    fn start(&self, bucket: &GradBucket) -> Result<()>;

    /// Called at the end of backward, once for each `start` that has succeeded; after a failure it
    /// may be as late as the next backward. The buffer then holds the gradients.
    fn finish(&self, bucket: &GradBucket) -> Result<()> {
        let _ = bucket;
        Ok(())
    }
}

unsafe extern "C" fn start<H: BucketHook>(
    user: *mut c_void,
    ctx: *mut sys::tt_ctx,
    bucket: *const sys::tt_ddp_bucket,
) -> sys::tt_status {
    // SAFETY: `user` is ours, and what tt lends is valid during the call.
    guarded(ctx, || unsafe { closure::<H>(user).start(&GradBucket(&*bucket)) })
}

unsafe extern "C" fn finish<H: BucketHook>(
    user: *mut c_void,
    ctx: *mut sys::tt_ctx,
    bucket: *const sys::tt_ddp_bucket,
) -> sys::tt_status {
    // SAFETY: `user` is ours, and what tt lends is valid during the call.
    guarded(ctx, || unsafe { closure::<H>(user).finish(&GradBucket(&*bucket)) })
}
