/* tt.h: the C API of tt, an embeddable deep-learning core. C99, valid C++98-23.

   There is no global state. A tt_runtime is shared by threads: it owns the allocator, the threads,
   the memory limit and the devices. A tt_ctx belongs to one thread at a time and may move between
   threads: it owns the error record, the grad mode, the generator and the scopes. Modes (grad mode,
   anomaly mode) belong to one ctx: setting one changes no other ctx.

   Errors. A function that can fail takes a tt_ctx first and returns a tt_status; 0 is success. On
   failure its output pointers are NULL and its inputs are unchanged; tt_ctx_error has the error.
   There are three exceptions: a failing tt_backward may have accumulated some gradients; a
   cancelled in-place or _into call, or one that failed on a device, leaves unspecified values in
   its target; what a callback of the failing call did is not undone.

   Ownership. The caller owns what it receives through a `T **out` and must release it. A pointer
   that is returned is borrowed; @borrowed says for how long. _release(NULL) does nothing, and
   _release may be called from any thread. While a scope is open on the ctx, the scope owns the
   outputs: do not release them.

   Threads may use the same object as long as none of them changes it. In addition, at the same time
   they may set, clear and accumulate gradients, add and remove hooks of tensors and nodes, run
   backward (one that meets another thread's in a node fails with TT_AUTOGRAD) and draw from a
   tt_generator (each draw gets numbers of its own). Memory that one thread writes while another one
   uses it holds unspecified numbers. A module, an optimizer, a scheduler or a state dict must be
   changed by one thread at a time; forward in training mode changes a module (tt_module_freeze
   ends that).

   Callbacks receive the ctx of the running call and may call tt with it. They must not leave by
   longjmp or pthread_exit. `drop` is called exactly once, on any thread, also if the call that
   registers the callback fails; it may only call _release functions. A C++ exception that leaves a
   callback fails the call with TT_CALLBACK, and the text of a std::exception is that of the error's
   cause (one that leaves an allocator: TT_OOM); one that leaves drop, a deleter, free or a logger
   is caught and dropped.

   Stack. A call needs up to 64 kB of the calling thread's stack, in addition to what its callbacks
   need. tt's own threads have stacks of their own.

   The comment before a function describes it; the bindings share these texts. In them
   @null NAME: …  the parameter NAME, the output *NAME or what is `returned` may be NULL
   @borrowed …    how long the returned pointer is valid
   @number NAME   this int32_t is a number; any other int32_t is a flag, 0 or 1
   @c …           what only concerns C

   `opts` may always be NULL. A field of it counts if its bit is set in `set`; otherwise its default
   counts. A list of unknown length is written to outs[cap] and its length to *n_outs; if cap is too
   small, the call fails with TT_BUFFER_TOO_SMALL and *n_outs is still set. Text works the same way;
   *n is its length without the final 0. */
#ifndef TT_H
#define TT_H

#ifdef TT_PREFIX_HEADER
#include TT_PREFIX_HEADER
#endif
#include "tt_types.h"
#include "tt_ops.h"
#include "tt_nn.h"
#include "tt_optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library ---- */

/* Returns the version of the library, such as "0.1.0".
   @borrowed forever */
const char *tt_version(void);

/* Returns one line: version, compiler, instruction sets, BLAS with its core type once it is loaded,
   SLEEF.
   @borrowed forever */
const char *tt_build_info(void);

/* Returns the name of a status, such as "SHAPE".
   @borrowed forever */
const char *tt_status_name(tt_status s);

/* Returns the name of a dtype, such as "float32".
   @null returned: the dtype is unknown
   @borrowed forever */
const char *tt_dtype_name(tt_dtype d);

/* Returns the size of an element in bytes, 0 if the dtype is unknown. */
int64_t tt_dtype_size(tt_dtype d);

/* ---- runtime ---- */

/* Options of tt_runtime_new. The callbacks must stay valid until the last object of the runtime is
   released. */
typedef struct tt_runtime_opts {
  size_t struct_size;
  const tt_allocator *allocator; /* allocates all memory; copied. Default: the C allocator */
  const tt_executor *executor;   /* runs loops in parallel; copied. Default: tt's own threads */
  const tt_logger *logger;       /* receives log messages; copied. Default: none */
  int64_t memory_limit;          /* bytes that the runtime may hold; 0: no limit */
  int32_t threads;               /* number of threads that compute, at most 1024; 0 or 1: the
                                    calling one only */
  int32_t isa;                   /* instruction set: 1 baseline, 2 avx2 (ARM: sve256, neon),
                                    3 avx512, at most the best of this CPU; 0: the best */
  int32_t queue_drops;           /* 1: drops and deleters wait for a poll of the runtime, for
                                    applications that cannot be called from every thread */
  int32_t pad;
} tt_runtime_opts;

/* Makes a runtime. */
tt_status tt_runtime_new(const tt_runtime_opts *opts, tt_runtime **out);

/* Adds and drops a reference. The memory of the runtime is freed with its last object; queued drops
   run when the runtime is released. */
void tt_runtime_retain(tt_runtime *rt);
void tt_runtime_release(tt_runtime *rt);

/* Runs queued drops on this thread and returns their number. Call it outside of other calls. */
int64_t tt_runtime_poll(tt_runtime *rt);

/* ---- ctx ---- */

/* Makes a ctx of a runtime.
   @null rt: the ctx gets a new runtime of its own */
tt_status tt_ctx_new(tt_runtime *rt, tt_ctx **out);

/* Adds and drops a reference. */
void tt_ctx_retain(tt_ctx *c);
void tt_ctx_release(tt_ctx *c);

/* Returns the last error of the ctx; its code is 0 before the first failure.
   @borrowed until the next failing call of the ctx */
const tt_error *tt_ctx_error(const tt_ctx *c);

/* Sets the error of the ctx and returns its code: a callback that fails says why by
   `return tt_ctx_set_error(ctx, TT_IO, "level 3 is missing")`, which becomes the cause of the error
   of the call that it ends, also where that is on another thread, as of a loader. The error of a
   call of tt is set already. code: TT_OK counts as TT_CALLBACK. The message is copied. */
tt_status tt_ctx_set_error(tt_ctx *c, tt_status code, const char *message);

/* Returns the runtime of the ctx. */
tt_status tt_ctx_runtime(tt_ctx *c, tt_runtime **out);

/* Sets the number of threads that compute in the runtime, 1 to 1024.
   @number n */
tt_status tt_set_num_threads(tt_ctx *c, int32_t n);

/* Returns the number of threads that compute in the runtime.
   @number returned */
int32_t tt_num_threads(const tt_ctx *c);

/* Limits the bytes that the runtime may hold; calls that need more fail with TT_OOM. 0: no
   limit. */
tt_status tt_set_memory_limit(tt_ctx *c, int64_t bytes);

/* Reports the memory of the runtime on a device.
   @null device: the CPU */
tt_status tt_memory(tt_ctx *c, const tt_device *device, tt_memory_stats *out);

/* Live objects of one kind. Tensors have one row for each combination of dtype, device,
   requires_grad and shape. */
typedef struct tt_live_row {
  const char *kind;      /* "tensor", "node", "module", "optimizer", "generator", … */
  tt_dtype dtype;        /* of tensors; 0 for anything else */
  tt_device device;      /* of tensors */
  int32_t requires_grad; /* of tensors */
  int32_t ndim;          /* of tensors */
  int32_t pad;
  int64_t shape[8];      /* of tensors; the first 8 sizes */
  int64_t count, bytes;  /* objects, and the bytes of their elements or of themselves; memory that
                            several tensors share counts for each of them */
} tt_live_row;

/* Lists live objects, those with the most bytes first. No other thread may use the runtime during
   the call. */
tt_status tt_runtime_live(tt_ctx *c, tt_live_row *rows, int64_t cap, int64_t *n);

/* Returns cached memory to the allocator. */
tt_status tt_trim(tt_ctx *c);

/* Returns the instruction set of the kernels: 1 baseline, 2 avx2 (ARM: sve256, neon), 3 avx512.
   @number out */
tt_status tt_ctx_isa(tt_ctx *c, int32_t *out);

/* Sets the dtype of floating-point numbers and tensors that are given none: TT_F16, TT_BF16, TT_F32
   (at first) or TT_F64. Complex numbers then have TT_C128 for TT_F64, else TT_C64. */
tt_status tt_ctx_set_default_dtype(tt_ctx *c, tt_dtype dtype);
tt_status tt_ctx_default_dtype(tt_ctx *c, tt_dtype *out);

/* Sets how tensors are printed. At first: precision 4 (digits after the point, at most 17),
   threshold 1000 (tensors with more elements are summarized), edgeitems 3 (items shown at each end
   of a dimension then), linewidth 80 (characters), sci_mode -1 (1: scientific notation, 0: never,
   -1: by the magnitudes of the elements). */
tt_status tt_ctx_set_print_options(tt_ctx *c, int64_t precision, int64_t threshold,
                                   int64_t edgeitems, int64_t linewidth, int32_t sci_mode);

/* Options of tt_ctx_set_cuda_math: in which precision CUDA devices compute, whether results must
   have the same bits in every run, and which of NVIDIA's libraries serve. Kernels of tt serve where
   a library is absent, has no algorithm or is not wanted. */
typedef struct tt_cuda_math_opts {
  uint64_t set;
  int32_t matmul_tf32;     /* 1: libraries may round the factors of products of float32 to TF32, 10
                              bits behind the point, which is several times as fast; default 0 */
  int32_t conv_tf32;       /* the same for convolutions; default 0 */
  int32_t deterministic;   /* 0: libraries may add in another order in each run; default 1 */
  int32_t cublaslt;        /* 0: tt's kernels compute products, not cuBLASLt; default 1 */
  int32_t cudnn;           /* 0: tt's kernels compute convolutions, not cuDNN; default 1 */
  int32_t cudnn_attention; /* 0: tt's kernels compute attention, not cuDNN; default 1 */
  int32_t cusolver;        /* 0: tt's kernels decompose matrices, not cuSOLVER; default 1 */
  int32_t cufft;           /* 0: tt's kernels compute Fourier transforms, not cuFFT; default 1 */
} tt_cuda_math_opts;
#define TT_CUDA_MATH_MATMUL_TF32 (UINT64_C(1) << 0)
#define TT_CUDA_MATH_CONV_TF32 (UINT64_C(1) << 1)
#define TT_CUDA_MATH_DETERMINISTIC (UINT64_C(1) << 2)
#define TT_CUDA_MATH_CUBLASLT (UINT64_C(1) << 3)
#define TT_CUDA_MATH_CUDNN (UINT64_C(1) << 4)
#define TT_CUDA_MATH_CUDNN_ATTENTION (UINT64_C(1) << 5)
#define TT_CUDA_MATH_CUSOLVER (UINT64_C(1) << 6)
#define TT_CUDA_MATH_CUFFT (UINT64_C(1) << 7)

/* Sets how CUDA devices compute what the ctx calls, backward included. Graphs keep it with each
   operator that they record, so that their plans compute as the recorded calls. The CPU ignores it.
   @null opts: the defaults */
tt_status tt_ctx_set_cuda_math(tt_ctx *c, const tt_cuda_math_opts *opts);

/* ---- modes of a ctx ---- */

/* Sets whether operators record gradients, and returns the previous setting. A new ctx records.
   @null previous: it is not needed */
tt_status tt_set_grad_enabled(tt_ctx *c, int32_t enabled, int32_t *previous);

/* Returns whether operators record gradients. */
int32_t tt_grad_enabled(const tt_ctx *c);

/* Sets anomaly mode, and returns the previous setting. In anomaly mode backward fails at the first
   operator whose gradient has nan, and names the forward operator.
   @null previous: it is not needed */
tt_status tt_set_anomaly_enabled(tt_ctx *c, int32_t enabled, int32_t *previous);

/* Returns whether anomaly mode is on. */
int32_t tt_anomaly_enabled(const tt_ctx *c);

/* ---- scopes ---- */

/* Opens a scope: outputs made while it is open are borrowed from it. */
tt_status tt_scope_push(tt_ctx *c);

/* Closes the innermost scope and releases its outputs except keep[0 … n). These move to the outer
   scope or, if there is none, to the caller: each entry of keep moves one reference that the scope
   holds. A handle that is listed again, one of an outer scope and one of the caller stay. */
tt_status tt_scope_pop(tt_ctx *c, tt_tensor *const *keep, int64_t n);

/* ---- cancellation ---- */

/* Makes a token that can cancel calls; it is not set. */
tt_status tt_cancel_new(tt_ctx *c, tt_cancel **out);

/* Adds and drops a reference. */
void tt_cancel_retain(tt_cancel *k);
void tt_cancel_release(tt_cancel *k);

/* Requests cancellation; callable from any thread. Calls under the token fail with TT_CANCELLED
   from the next kernel, or part of a long one, on. What a call commits (a step, loaded values,
   running statistics) is committed as a whole. */
void tt_cancel_request(tt_cancel *k);

/* Sets the token that calls of the ctx obey.
   @null k: none */
tt_status tt_ctx_set_cancel(tt_ctx *c, tt_cancel *k);

/* A status other than 0 ends the call. */
typedef tt_status (*tt_poll_fn)(void *user, tt_ctx *ctx);

/* Sets a callback that decides whether the running call goes on: it is called on the thread of the
   call, at most every 50 ms and before other callbacks. If it fails, the call fails with
   TT_CALLBACK. It must not change what the call works on.
   @null fn: no callback */
tt_status tt_ctx_set_poll(tt_ctx *c, tt_poll_fn fn, void *user, void (*drop)(void *user));

/* ---- random numbers: Philox4x32-10 ----
   Every ctx has a generator. Calls of the ctx draw from it unless they are given another one. The
   ctxs of a runtime draw different numbers, which follow from the seed of the runtime: the one that
   tt_runtime_manual_seed set or, if there is none, one from the system's entropy, read when it is
   first needed. The n-th ctx (1, 2, …) that is made after the seed was set starts with the seed of
   the runtime XOR the n-th output of SplitMix64 started at 0. A program that seeds its runtime and
   then makes its ctxs in a fixed order thus draws the same numbers in every run. tt_manual_seed
   changes one existing ctx; tt_runtime_manual_seed only ctxs that are made later. A process made by
   fork continues with copies of its parent's generators. */

/* Sets the seed of the runtime. Ctxs that are made later count from 1 again. */
tt_status tt_runtime_manual_seed(tt_runtime *rt, uint64_t seed);

/* Returns the seed of the runtime and the number of ctxs made since it was set. */
tt_status tt_runtime_rng_state(tt_runtime *rt, uint64_t state[2]);

/* Restores a state that tt_runtime_rng_state returned. */
tt_status tt_runtime_set_rng_state(tt_runtime *rt, const uint64_t state[2]);

/* Makes a generator with a seed. */
tt_status tt_generator_new(tt_ctx *c, uint64_t seed, tt_generator **out);

/* Adds and drops a reference. */
void tt_generator_retain(tt_generator *g);
void tt_generator_release(tt_generator *g);

/* Returns the generator of the ctx. */
tt_status tt_ctx_generator(tt_ctx *c, tt_generator **out);

/* Seeds the generator of the ctx: it then draws the numbers of a new generator with this seed. */
tt_status tt_manual_seed(tt_ctx *c, uint64_t seed);

/* Returns the seed of a generator and its offset: how many 128-bit blocks draws have taken. */
tt_status tt_generator_state(tt_ctx *c, const tt_generator *g, uint64_t state[2]);

/* Restores the state of a generator: its seed and its offset. */
tt_status tt_generator_set_state(tt_ctx *c, tt_generator *g, const uint64_t state[2]);

/* ---- devices ---- */

/* Parses the name of a device: "cpu", "meta", "cuda", "cuda:1", a backend's name, "ext:1". */
tt_status tt_device_parse(tt_ctx *c, const char *text, tt_device *out);

/* Loads the library that computes on CUDA devices. Without this call, the first use of a CUDA
   device loads libtt_cuda.so, from the directory of libtt or from the path of the loader; a program
   that links libtt.a must call it before it uses such a device.
   @null path: libtt_cuda.so */
tt_status tt_load_cuda(tt_ctx *c, const char *path);

/* Returns the number of devices of a type.
   @number out */
tt_status tt_device_count(tt_ctx *c, tt_device_type type, int32_t *out);

/* Waits for the work of a device and reports work that failed.
   @null device: all devices */
tt_status tt_synchronize(tt_ctx *c, const tt_device *device);

/* Returns facts about a CUDA device.
   @null device: the first one */
tt_status tt_device_get_properties(tt_ctx *c, const tt_device *device, tt_device_properties *out);

/* Reports the memory of the runtime on a CUDA device.
   @null device: the first one */
tt_status tt_device_memory_stats(tt_ctx *c, const tt_device *device, tt_device_memory *out);

/* Sets max_allocated and max_reserved of a CUDA device to the present values.
   @null device: the first one */
tt_status tt_device_reset_peak(tt_ctx *c, const tt_device *device);

/* Returns whether kernels of a CUDA device can access the memory of another one. */
tt_status tt_device_can_access_peer(tt_ctx *c, const tt_device *device, const tt_device *peer,
                                    int32_t *out);

/* Copies a tensor of the CPU to pinned memory: copies from there to CUDA devices do not wait, and
   neither do those of tt_copy_non_blocking. The memory is reused after the copies that use it. A
   tensor in pinned memory is returned as it is. No gradient.
   @null device: for the first CUDA device */
tt_status tt_pin_memory(tt_ctx *c, const tt_tensor *t, const tt_device *device, tt_tensor **out);

/* Copies src to dst without waiting, if one of them is in pinned memory and the other one on a CUDA
   device, both are contiguous and have the same shape and dtype; otherwise as tt_copy_. The values
   of a pinned dst are there when the stream on which the ctx computes has been synchronised. No
   gradient. */
tt_status tt_copy_non_blocking(tt_ctx *c, tt_tensor *dst, const tt_tensor *src);

/* ---- streams and events of CUDA devices ----
   The work of a stream is done in order, beside that of other streams. A device has a stream of its
   own, on which all ctxs compute. A ctx that sets another one orders it after what the ctx has
   computed so far. An operator waits, on its stream, for the last stream that wrote its arguments,
   and memory is reused only after all streams that use it are done with it. The application itself
   orders in-place writes to a tensor that another stream still reads, by tt_stream_wait_stream or
   an event. */

/* A queue of work on a CUDA device. */
typedef struct tt_stream tt_stream;

/* A point in the work of a stream. */
typedef struct tt_event tt_event;

/* Makes a stream; a device has at most 31. A lower priority value is served first; 0 is the
   default.
   @null device: the first CUDA device
   @number priority */
tt_status tt_stream_new(tt_ctx *c, const tt_device *device, int32_t priority, tt_stream **out);

/* Makes a tt_stream of a stream of the application: a cudaStream_t of the device, which must live
   until the last reference is dropped and is then left as it is. It counts among the 31.
   @null device: the first CUDA device */
tt_status tt_stream_import(tt_ctx *c, const tt_device *device, void *handle, tt_stream **out);

/* Adds and drops a reference. Work that the stream has is completed. */
void tt_stream_retain(tt_stream *s);
void tt_stream_release(tt_stream *s);

/* Returns the stream on which the ctx computes.
   @null device: the first CUDA device */
tt_status tt_stream_current(tt_ctx *c, const tt_device *device, tt_stream **out);

/* Returns the device's own stream.
   @null device: the first CUDA device */
tt_status tt_stream_default(tt_ctx *c, const tt_device *device, tt_stream **out);

/* Computes on the stream from now on, for operators of the ctx on its device. */
tt_status tt_stream_set(tt_ctx *c, tt_stream *s);

/* Returns whether the stream has no work left. */
tt_status tt_stream_query(tt_ctx *c, tt_stream *s, int32_t *out);

/* Waits for the work of the stream and reports work that failed. */
tt_status tt_stream_synchronize(tt_ctx *c, tt_stream *s);

/* Lets the later work of s wait for the event. Returns at once. */
tt_status tt_stream_wait_event(tt_ctx *c, tt_stream *s, tt_event *e);

/* Lets the later work of s wait for what `other` has to do so far. Returns at once. */
tt_status tt_stream_wait_stream(tt_ctx *c, tt_stream *s, tt_stream *other);

/* Returns the index of the stream's device.
   @number returned */
int32_t tt_stream_device_index(const tt_stream *s);

/* Returns the cudaStream_t, to share the stream with other libraries.
   @null returned: s is NULL, or the device library has one stream
   @borrowed while s is held */
void *tt_stream_handle(const tt_stream *s);

/* Makes an event. timing 1: it can be compared with others by tt_event_elapsed.
   @null device: the first CUDA device */
tt_status tt_event_new(tt_ctx *c, const tt_device *device, int32_t timing, tt_event **out);

/* Adds and drops a reference. */
void tt_event_retain(tt_event *e);
void tt_event_release(tt_event *e);

/* Records an event: it happens when the stream has done the work that it has now. Recording it
   again replaces the earlier time.
   @null s: the stream on which the ctx computes */
tt_status tt_event_record(tt_ctx *c, tt_event *e, tt_stream *s);

/* Returns whether the event has happened; one that was never recorded has. */
tt_status tt_event_query(tt_ctx *c, tt_event *e, int32_t *out);

/* Waits for the event and reports work that failed. */
tt_status tt_event_synchronize(tt_ctx *c, tt_event *e);

/* Returns the milliseconds from one event to another. Both must have happened. */
tt_status tt_event_elapsed(tt_ctx *c, tt_event *start, tt_event *stop, double *out);

/* A device of the application, for all ctxs of the runtime: its memory and its operators are
   callbacks, which run on the threads of the calls that need them, several at once if there are
   several ctxs. Its tensors cannot be used together with those of another runtime.

   Views, allocation, gradients and composite operators (matmul calls matmul_stack) need no backend.
   Every other operator calls compute, with the name that tt_ctx_trace_dispatch shows and the
   arguments as they were passed, unchecked. compute may use tt; nothing is recorded. It sets n_outs
   new tensors (owned), or writes into the arguments that an in-place or _into operator changes.
   TT_NOT_IMPLEMENTED declines an operator that it does not know, or arguments that are wrong: tt
   then copies the arguments to the CPU, runs the operator there and copies the results back. 0-dim
   and index tensors among the arguments may be CPU tensors. If compute calls the operator that it
   is computing, it is called again. */
typedef struct tt_backend_def {
  size_t struct_size;
  const char *name; /* of the device: [a-z_][a-z0-9_]*, at most 31 bytes; copied */
  void *user;
  /* Returns memory, NULL if there is none; tt adds offsets to the address for views. Called from
     any thread; must not call tt. */
  void *(*alloc)(void *user, int64_t bytes);
  /* Takes back a block. Every block comes back, some possibly after the runtime was released.
     Called from any thread; must not call tt. */
  void (*free)(void *user, void *p, int64_t bytes);
  /* Copies memory; it is copied when the function returns. kind 1: CPU to device, 2: device to CPU,
     3: within the device. */
  tt_status (*copy)(void *user, tt_ctx *ctx, void *dst, const void *src, int64_t bytes,
                    int32_t kind);
  /* Computes an operator; NULL declines all of them. */
  tt_status (*compute)(void *user, tt_ctx *ctx, const tt_op *op, const tt_value *args,
                       int64_t n_args, tt_tensor **outs, int64_t n_outs);
  void (*drop)(void *user); /* may be NULL; called after the last free */
} tt_backend_def;

/* Registers a device of the application; a runtime has at most 8. Returns {TT_EXT, index}. */
tt_status tt_backend_register(tt_ctx *c, const tt_backend_def *def, tt_device *out);

/* ---- tensors from and to memory of the application ---- */

/* Copies row-major data into a new CPU tensor. */
tt_status tt_tensor_from_data(tt_ctx *c, const void *data, tt_dtype dtype, const int64_t *shape,
                              int64_t ndim, tt_tensor **out);

/* Makes a tensor over memory of the application, without a copy. deleter(user) is called once, when
   the last tensor over the memory is released, also if this call fails. If writable is 0, in-place
   operators refuse the tensor.
   @null strides: row-major; otherwise they count elements */
tt_status tt_tensor_import(tt_ctx *c, void *data, tt_dtype dtype, const int64_t *shape,
                           int64_t ndim, const int64_t *strides, int32_t writable,
                           void (*deleter)(void *user), void *user, tt_tensor **out);

/* Exports a tensor by DLPack, without a copy. major 0 gives a DLManagedTensor, 1 a
   DLManagedTensorVersioned. The receiver calls its deleter, on any thread, which releases t.
   @number major */
tt_status tt_tensor_to_dlpack(tt_ctx *c, const tt_tensor *t, int32_t major, void **out);

/* Imports a DLPack tensor, without a copy. Its deleter is called when the memory is no longer used;
   if the call fails, the caller keeps *managed.
   @number major */
tt_status tt_tensor_from_dlpack(tt_ctx *c, void *managed, int32_t major, tt_tensor **out);

/* Makes a 0-dim tensor of a number. dtype 0: bool, int64, float32 or complex64 by its kind. */
tt_status tt_scalar_tensor(tt_ctx *c, const tt_scalar *value, tt_dtype dtype, tt_tensor **out);

/* Copies all elements, row-major, into dst, whose size must be exactly that of the elements. */
tt_status tt_tensor_read(tt_ctx *c, const tt_tensor *t, void *dst, int64_t bytes);

/* Returns the value of a tensor of one element; a uint64 from 2^63 on as the int64 of its bits. */
tt_status tt_item(tt_ctx *c, const tt_tensor *t, tt_scalar *out);

/* Returns the value of a tensor of one element as a double. */
tt_status tt_item_f64(tt_ctx *c, const tt_tensor *t, double *out);

/* Returns the value of a tensor of one element as an integer, without its fraction. */
tt_status tt_item_i64(tt_ctx *c, const tt_tensor *t, int64_t *out);

/* Returns 1 in *out if both tensors have the same shape and equal elements, else 0. nan equals
   nothing; elements of different dtypes are compared as tt_eq does. */
tt_status tt_equal(tt_ctx *c, const tt_tensor *t, const tt_tensor *other, int32_t *out);

/* Returns 1 in *out if |t - other| <= atol + rtol * |other|, or equality, holds for all elements of
   the broadcast tensors, else 0: tt_isclose for all. PyTorch's defaults are rtol 1e-5, atol 1e-8,
   equal_nan 0 (nan equals nothing). The dtypes must be equal, the tolerances not negative. */
tt_status tt_allclose(tt_ctx *c, const tt_tensor *t, const tt_tensor *other, double rtol,
                      double atol, int32_t equal_nan, int32_t *out);

/* Prints the tensor as PyTorch does. */
tt_status tt_tensor_print(tt_ctx *c, const tt_tensor *t, char *buffer, int64_t cap, int64_t *n);

/* ---- tensors: facts. All of these return 0 or NULL for NULL ---- */

/* Adds and drops a reference. */
void tt_tensor_retain(tt_tensor *t);
void tt_tensor_release(tt_tensor *t);

/* Returns the dtype of the elements. */
tt_dtype tt_tensor_dtype(const tt_tensor *t);

/* Returns the device of the elements. */
tt_device_type tt_tensor_device_type(const tt_tensor *t);

/* Returns the index of the device.
   @number returned */
int32_t tt_tensor_device_index(const tt_tensor *t);

/* Returns the number of dimensions. */
int64_t tt_tensor_ndim(const tt_tensor *t);

/* Returns the number of elements. */
int64_t tt_tensor_numel(const tt_tensor *t);

/* Returns the size of each dimension.
   @borrowed while the tensor is alive and keeps its shape */
const int64_t *tt_tensor_shape(const tt_tensor *t);

/* Returns the stride of each dimension, in elements.
   @borrowed while the tensor is alive and keeps its strides */
const int64_t *tt_tensor_strides(const tt_tensor *t);

/* Returns the size of a dimension, 0 if it is out of range. A negative one counts from the last. */
int64_t tt_tensor_size(const tt_tensor *t, int64_t dim);

/* Returns the position of the first element in the storage, in elements. */
int64_t tt_tensor_offset(const tt_tensor *t);

/* Returns the address of the first element.
   @null returned: the tensor has no data, on the meta device
   @borrowed while the storage is alive */
void *tt_tensor_data(const tt_tensor *t);

/* Returns the size of the storage in bytes. */
int64_t tt_tensor_storage_bytes(const tt_tensor *t);

/* Returns the address of the storage.
   @null returned: the tensor has no data, on the meta device
   @borrowed while the storage is alive */
void *tt_tensor_storage_data(const tt_tensor *t);

/* Returns the number of in-place writes to the storage so far. A tensor of tt_tensor_variable_data
   counts only the writes through it and its views, which other tensors do not count. */
uint32_t tt_tensor_version(const tt_tensor *t);

/* Returns whether the elements are row-major and without gaps. */
int32_t tt_tensor_is_contiguous(const tt_tensor *t);

/* Returns whether the tensor is in pinned memory. */
int32_t tt_tensor_is_pinned(const tt_tensor *t);

/* Returns whether the tensor may be written; memory that was imported or mapped as read-only may
   not. */
int32_t tt_tensor_is_writable(const tt_tensor *t);

/* Returns whether autograd treats the tensor as a view of another one. */
int32_t tt_tensor_is_view(const tt_tensor *t);

/* Returns whether the tensor is a leaf: not the result of a recorded operator. */
int32_t tt_tensor_is_leaf(const tt_tensor *t);

/* Returns whether gradients are computed for the tensor: it is a leaf that asks for one, or follows
   from such a leaf. */
int32_t tt_tensor_requires_grad(const tt_tensor *t);

/* What the functions above tell of a tensor. */
typedef struct tt_tensor_info {
  int64_t numel;
  void *data; /* NULL without data, on the meta device */
  tt_dtype dtype;
  int32_t ndim;
  tt_device device;
  int32_t is_contiguous, is_writable, requires_grad; /* 0 or 1 */
  int64_t shape[8];                                  /* sizes of the first dimensions */
  int64_t strides[8];
} tt_tensor_info;

/* Describes a tensor in one call, for languages in which a call costs more than what it does.
   Anything but a tensor gives zeros. */
void tt_tensor_get_info(const tt_tensor *t, tt_tensor_info *out);

/* Returns the tensor of which autograd treats self as a view.
   @null out: self is no view */
tt_status tt_tensor_base(tt_ctx *c, const tt_tensor *self, tt_tensor **out);

/* Returns another tensor over the memory of self, without history. In-place writes through it or
   its views do not invalidate what graphs have saved of self: their gradients use the values that
   the memory has during backward. */
tt_status tt_tensor_variable_data(tt_ctx *c, const tt_tensor *self, tt_tensor **out);

/* Replaces the storage, shape and dtype of a leaf by those of src. A result of an operator keeps
   its shape, dtype and device, which src must have. Handles stay valid. A view of a tensor without
   a gradient becomes a tensor of its own; other views, tensors of vmap and duals are refused.
   A graph that needs the leaf in its former shape, dtype or device fails with TT_AUTOGRAD in
   backward. */
tt_status tt_tensor_set_data(tt_ctx *c, tt_tensor *leaf, const tt_tensor *src);

/* ---- state dicts: named tensors, such as the state of a module or an optimizer ---- */

/* Makes an empty state dict. */
tt_status tt_state_dict_new(tt_ctx *c, tt_state_dict **out);

/* Adds and drops a reference. */
void tt_state_dict_retain(tt_state_dict *state);
void tt_state_dict_release(tt_state_dict *state);

/* Returns the number of tensors. */
int64_t tt_state_dict_size(const tt_state_dict *state);

/* Returns the name of the i-th tensor.
   @null returned: there is no i-th tensor
   @borrowed until the state dict is changed */
const char *tt_state_dict_name(const tt_state_dict *state, int64_t i);

/* Returns the position of a name; fails with TT_INDEX if it is absent. */
tt_status tt_state_dict_find(tt_ctx *c, const tt_state_dict *state, const char *name, int64_t *out);

/* Returns the i-th tensor. */
tt_status tt_state_dict_get(tt_ctx *c, const tt_state_dict *state, int64_t i, tt_tensor **out);

/* Sets the tensor of a name: replaces it, or appends a new one. */
tt_status tt_state_dict_set(tt_ctx *c, tt_state_dict *state, const char *name,
                            const tt_tensor *tensor);

/* Returns how the tensors are arranged in the torch.save file that they were loaded from, or the
   metadata of their GGUF file, as JSON.
   @null returned: they were loaded from neither
   @borrowed until the state dict is released */
const char *tt_state_dict_structure(const tt_state_dict *state);

/* ---- modules: trees of layers. tt_nn.h has the constructors of the layers ---- */

/* A function of tensors. Sets up to cap results (owned) and *n_outs. */
typedef tt_status (*tt_fn)(void *user, tt_ctx *ctx, const tt_tensor *const *inputs, int64_t n,
                           tt_tensor **outs, int64_t cap, int64_t *n_outs);

/* Adds and drops a reference. */
void tt_module_retain(tt_module *m);
void tt_module_release(tt_module *m);

/* Returns the class of the module, such as "Linear".
   @borrowed while the module is alive */
const char *tt_module_type(const tt_module *m);

/* Runs the module. A wrong number of inputs fails with TT_INVALID_ARG, which names the right one.
   @c An input that is optional may be NULL. */
tt_status tt_module_forward(tt_ctx *c, tt_module *m, const tt_tensor *const *inputs, int64_t n,
                            tt_tensor **outs, int64_t cap, int64_t *n_outs);

/* Runs a module with one input and one output. */
tt_status tt_module_call(tt_ctx *c, tt_module *m, const tt_tensor *input, tt_tensor **out);

/* Sets training mode for the module and all modules below it. A new module is in training mode. */
tt_status tt_module_train(tt_ctx *c, tt_module *m, int32_t on);

/* Returns whether the module is in training mode. */
int32_t tt_module_training(const tt_module *m);

/* Ends all changes of the module and of all modules below it, for threads that use it at the same
   time: sets evaluation mode, and whatever would change a module fails with TT_INVALID_ARG from now
   on. Copies can be changed. A module with hooks cannot be frozen. Values of tensors are not
   protected. Forward of a module of the application is called on the threads of the calls. */
tt_status tt_module_freeze(tt_ctx *c, tt_module *m);

/* Returns whether the module is frozen. */
int32_t tt_module_frozen(const tt_module *m);

/* Sets whether the parameters of the module and of all modules below it require gradients. */
tt_status tt_module_requires_grad_(tt_ctx *c, tt_module *m, int32_t on);

/* Clears the gradients of all parameters. */
tt_status tt_module_zero_grad(tt_ctx *c, tt_module *m);

/* Moves the tensors of the module and of all modules below it to a device, and converts floating
   and complex ones to a dtype. Handles to the tensors stay valid.
   @null device: they stay where they are
   @null dtype: they keep theirs (0 in C) */
tt_status tt_module_to(tt_ctx *c, tt_module *m, const tt_device *device, tt_dtype dtype);

/* Copies the module and all modules below it, without hooks. Tensors and modules that are shared
   inside stay shared. */
tt_status tt_module_copy(tt_ctx *c, const tt_module *m, tt_module **out);

/* Moves the parameters of m, a copy of model, towards those of model: m += share * (model - m).
   share 1 - decay keeps an exponential moving average; 1 / (n + 1) in update n, from 0 on, the mean
   of all models so far (Izmailov et al. 2018). Buffers are copied or, with use_buffers, averaged.
   Fails, and changes nothing, if names or shapes of both differ. */
tt_status tt_module_average(tt_ctx *c, tt_module *m, const tt_module *model, double share,
                            int32_t use_buffers);

typedef struct tt_averaged_model_opts {
  uint64_t set;
  double decay;        /* of an exponential moving average, in [0, 1]; default: the mean of all */
  int32_t use_buffers; /* 1: averages buffers, too; default 0: copies them */
} tt_averaged_model_opts;
#define TT_AVERAGED_MODEL_DECAY (UINT64_C(1) << 0)
#define TT_AVERAGED_MODEL_USE_BUFFERS (UINT64_C(1) << 1)

/* Makes an AveragedModel of torch.optim.swa_utils: a module whose child `module` is a copy of the
   model, which it calls, with averages of the model's parameters (Izmailov et al. 2018). The buffer
   n_averaged is the number of updates. */
tt_status tt_averaged_model(tt_ctx *c, const tt_module *model, const tt_averaged_model_opts *opts,
                            tt_module **out);

/* Adds the parameters of the model to the averages of an AveragedModel. The first update copies
   them. Fails, and changes nothing, if names or shapes differ. */
tt_status tt_averaged_model_update_parameters(tt_ctx *c, tt_module *m, const tt_module *model);

/* One pass over the data, in which the application calls a module for each batch. */
typedef tt_status (*tt_epoch_fn)(void *user, tt_ctx *ctx);

/* Recomputes the running statistics of all batch normalisations in the module as means over the
   batches for which the callback calls the module: they are reset first, and the module is in
   training mode during the callback, which is called once and records no gradients. As
   torch.optim.swa_utils.update_bn: for a model whose parameters are averages. If the callback
   fails, the statistics are as before. */
tt_status tt_module_update_bn(tt_ctx *c, tt_module *m, tt_epoch_fn fn, void *user,
                              void (*drop)(void *user));

/* Sets or adds a parameter: a leaf under a name without dots. requires_grad stays as it is. An
   absent buffer of this name becomes the parameter.
   @null tensor: the parameter is declared, but absent */
tt_status tt_module_register_parameter(tt_ctx *c, tt_module *m, const char *name,
                                       const tt_tensor *tensor);

/* Sets or adds a buffer: a tensor that is no parameter. A state dict has it only if it is
   persistent. An absent parameter of this name becomes the buffer.
   @null tensor: the buffer is declared, but absent */
tt_status tt_module_register_buffer(tt_ctx *c, tt_module *m, const char *name,
                                    const tt_tensor *tensor, int32_t persistent);

/* Sets or adds a child under a name without dots. A child may have several parents, but must not be
   above itself. */
tt_status tt_module_register_module(tt_ctx *c, tt_module *m, const char *name, tt_module *child);

/* Adds a child whose name is the number of children so far: "0", "1", … */
tt_status tt_module_append(tt_ctx *c, tt_module *m, tt_module *child);

/* Returns the number of children. */
int64_t tt_module_num_children(const tt_module *m);

/* Returns the name of the i-th child.
   @null returned: there is no i-th child
   @borrowed until the children change */
const char *tt_module_child_name(const tt_module *m, int64_t i);

/* Returns the i-th child. */
tt_status tt_module_child(tt_ctx *c, const tt_module *m, int64_t i, tt_module **out);

/* Returns the module at a path such as "layers.0"; fails with TT_INDEX if it is absent. */
tt_status tt_module_get_submodule(tt_ctx *c, const tt_module *m, const char *path, tt_module **out);

/* Returns the parameter or buffer at a path such as "0.weight" (TT_INDEX: there is none).
   @null out: it is declared, but absent */
tt_status tt_module_get_tensor(tt_ctx *c, const tt_module *m, const char *path, tt_tensor **out);

/* Lists the parameters, each once, even if it has several names. */
tt_status tt_module_parameters(tt_ctx *c, const tt_module *m, tt_tensor **outs, int64_t cap,
                               int64_t *n_outs);

/* Lists the parameters, each once, under its first name. */
tt_status tt_module_named_parameters(tt_ctx *c, const tt_module *m, tt_state_dict **out);

/* Lists the buffers by name. */
tt_status tt_module_named_buffers(tt_ctx *c, const tt_module *m, tt_state_dict **out);

/* Returns the parameters and persistent buffers under all their names. They share memory with the
   module. */
tt_status tt_module_state_dict(tt_ctx *c, const tt_module *m, tt_state_dict **out);

typedef struct tt_module_load_state_dict_opts {
  uint64_t set;
  int32_t strict; /* default 1: fails if names are missing or unknown */
} tt_module_load_state_dict_opts;
#define TT_MODULE_LOAD_STATE_DICT_STRICT (UINT64_C(1) << 0)

/* Copies the values of a state dict into the module. Everything is checked before the first value
   is written. */
tt_status tt_module_load_state_dict(tt_ctx *c, tt_module *m, const tt_state_dict *state,
                                    const tt_module_load_state_dict_opts *opts);

/* Prints the tree of modules as PyTorch does. */
tt_status tt_module_print(tt_ctx *c, const tt_module *m, char *buffer, int64_t cap, int64_t *n);

/* A replacement (owned) replaces the tensor at its index; NULL keeps the tensor. */
typedef tt_status (*tt_module_pre_hook)(void *user, tt_ctx *ctx, tt_module *m,
                                        const tt_tensor *const *inputs, int64_t n,
                                        tt_tensor **replacements);
typedef tt_status (*tt_module_hook)(void *user, tt_ctx *ctx, tt_module *m,
                                    const tt_tensor *const *inputs, int64_t n_inputs,
                                    const tt_tensor *const *outs, int64_t n_outs,
                                    tt_tensor **replacements);

/* Registers a callback that sees the inputs before forward and may replace them. Returns the id of
   the hook, which removes it later. */
tt_status tt_module_register_forward_pre_hook(tt_ctx *c, tt_module *m, tt_module_pre_hook fn,
                                              void *user, void (*drop)(void *user), int64_t *id);

/* Registers a callback that sees inputs and outputs after forward and may replace the outputs.
   Returns the id of the hook. */
tt_status tt_module_register_forward_hook(tt_ctx *c, tt_module *m, tt_module_hook fn, void *user,
                                          void (*drop)(void *user), int64_t *id);

/* Registers a callback that sees the gradients of the module's outputs in backward, before those of
   its inputs are computed, and may replace them. It applies to calls that are recorded from now on;
   an output without a gradient has NULL. Returns the id of the hook.
   @c Inputs and outputs that need a gradient pass as copies; the graph keeps the module alive. */
tt_status tt_module_register_full_backward_pre_hook(tt_ctx *c, tt_module *m, tt_module_pre_hook fn,
                                                    void *user, void (*drop)(void *user),
                                                    int64_t *id);

/* Registers a callback that sees the gradients of the module's outputs and of its inputs in
   backward, and may replace those of the inputs by tensors of the same shape and dtype. It applies
   to calls that are recorded from now on. An output without a gradient has NULL. If no input needs
   a gradient, all inputs have NULL; otherwise an input without one has zeros. Returns the id of the
   hook. */
tt_status tt_module_register_full_backward_hook(tt_ctx *c, tt_module *m, tt_module_hook fn,
                                                void *user, void (*drop)(void *user), int64_t *id);

/* Removes a hook by the id that registering it returned. */
tt_status tt_module_remove_hook(tt_ctx *c, tt_module *m, int64_t id);

/* A module of the application. It may be a child of tt's containers and have parameters and
   children of its own. */
typedef struct tt_module_def {
  size_t struct_size;
  const char *name; /* of the class, for printing and messages; copied */
  void *user;
  /* Sets outs (owned) and, unless it is 1, *n_outs. */
  tt_status (*forward)(void *user, tt_ctx *ctx, tt_module *m, const tt_tensor *const *inputs,
                       int64_t n_inputs, tt_tensor **outs, int64_t cap, int64_t *n_outs);
  /* Copies the user pointer for tt_module_copy; NULL: the module cannot be copied. */
  tt_status (*copy)(void *user, tt_ctx *ctx, void **new_user);
  void (*drop)(void *user); /* may be NULL */
} tt_module_def;

/* Makes a module whose forward is the application's. */
tt_status tt_module_new_custom(tt_ctx *c, const tt_module_def *def, tt_module **out);

typedef struct tt_nn_multihead_attention_forward_opts {
  uint64_t set;
  const tt_tensor *key_padding_mask; /* mask (N, S) or (S): bool (true ignores) or float (added) */
  int32_t need_weights;              /* default 1; 0 is faster */
  const tt_tensor *attn_mask;        /* mask (L, S) or (N * heads, L, S): bool or float */
  int32_t average_attn_weights;      /* default 1: the mean of the heads' weights */
  int32_t is_causal;                 /* default 0; 1: attn_mask is the causal mask */
} tt_nn_multihead_attention_forward_opts;
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_KEY_PADDING_MASK (UINT64_C(1) << 0)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_NEED_WEIGHTS (UINT64_C(1) << 1)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_ATTN_MASK (UINT64_C(1) << 2)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_AVERAGE_ATTN_WEIGHTS (UINT64_C(1) << 3)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_IS_CAUSAL (UINT64_C(1) << 4)

/* Runs a MultiheadAttention with options. Hooks of the module are not called.
   @null weights: need_weights is 0 */
tt_status tt_nn_multihead_attention_forward(tt_ctx *c, tt_module *m, const tt_tensor *query,
                                            const tt_tensor *key, const tt_tensor *value,
                                            const tt_nn_multihead_attention_forward_opts *opts,
                                            tt_tensor **out, tt_tensor **weights);

/* Returns the log probabilities (N, n_classes) of all classes for the input (N, in_features) of an
   AdaptiveLogSoftmaxWithLoss. Hooks of the module are not called. */
tt_status tt_nn_adaptive_log_softmax_with_loss_log_prob(tt_ctx *c, tt_module *m,
                                                        const tt_tensor *input, tt_tensor **out);

/* Returns the most probable class of each row of the input of an AdaptiveLogSoftmaxWithLoss. It
   computes the clusters for the rows that need them. Hooks of the module are not called. */
tt_status tt_nn_adaptive_log_softmax_with_loss_predict(tt_ctx *c, tt_module *m,
                                                       const tt_tensor *input, tt_tensor **out);

typedef struct tt_nn_triplet_margin_with_distance_loss_opts {
  uint64_t set;
  double margin;     /* the required difference of the distances, positive; default 1 */
  int32_t swap;      /* 1: d(positive, negative) where it is less than d(anchor, negative) */
  int64_t reduction; /* 0: the loss of each pair; 1: their mean; 2: their sum; default 1 */
} tt_nn_triplet_margin_with_distance_loss_opts;
#define TT_NN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_MARGIN (UINT64_C(1) << 0)
#define TT_NN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_SWAP (UINT64_C(1) << 1)
#define TT_NN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_REDUCTION (UINT64_C(1) << 2)

/* Makes a module that computes max(0, d(anchor, positive) - d(anchor, negative) + margin), where
   d is a function of the application: it gets two tensors and returns a distance for each pair of
   vectors. Copies of the module share the function.
   @null fn: the Euclidean distance */
tt_status tt_nn_triplet_margin_with_distance_loss(
    tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
    const tt_nn_triplet_margin_with_distance_loss_opts *opts, tt_module **out);

/* ---- files of tensors: safetensors ---- */

typedef struct tt_safetensors_save_opts {
  uint64_t set;
  const char *const *metadata; /* key, value, key, value …: texts kept beside the tensors */
  int64_t n_metadata;          /* entries of metadata, twice the pairs */
} tt_safetensors_save_opts;
#define TT_SAFETENSORS_SAVE_METADATA (UINT64_C(1) << 0)

/* Writes tensors under names to a safetensors file. A new file is written, synced and renamed to
   path, so that after a crash, path holds the old file or the new one. complex128 is refused: the
   format does not have it. */
tt_status tt_safetensors_save(tt_ctx *c, const char *path, const char *const *names,
                              tt_tensor *const *tensors, int64_t n,
                              const tt_safetensors_save_opts *opts);

/* Opens a safetensors file and checks its header; TT_FORMAT names the byte and the reason. A tensor
   is read when it is asked for. */
tt_status tt_safetensors_open(tt_ctx *c, const char *path, tt_safetensors **out);

/* Opens a safetensors file and maps it into memory: its tensors are read-only, and the system reads
   them from the disk when they are used. The file must not be truncated while it is mapped: the
   system would end the process. */
tt_status tt_safetensors_map(tt_ctx *c, const char *path, tt_safetensors **out);

/* Adds and drops a reference. */
void tt_safetensors_retain(tt_safetensors *f);
void tt_safetensors_release(tt_safetensors *f);

/* Returns the number of tensors. */
int64_t tt_safetensors_size(const tt_safetensors *f);

/* Returns the name of the i-th tensor, in the order of the file.
   @null returned: there is no i-th tensor
   @borrowed until the file is released */
const char *tt_safetensors_name(const tt_safetensors *f, int64_t i);

/* Returns the position of a name; fails with TT_INDEX if it is absent. */
tt_status tt_safetensors_find(tt_ctx *c, const tt_safetensors *f, const char *name, int64_t *out);

/* Returns the i-th tensor, on the CPU. */
tt_status tt_safetensors_get(tt_ctx *c, const tt_safetensors *f, int64_t i, tt_tensor **out);

/* Returns the number of pairs of metadata. */
int64_t tt_safetensors_metadata_size(const tt_safetensors *f);

/* Returns the key of the i-th pair of metadata.
   @null returned: there is no i-th pair
   @borrowed until the file is released */
const char *tt_safetensors_metadata_key(const tt_safetensors *f, int64_t i);

/* Returns the value of the i-th pair of metadata.
   @null returned: there is no i-th pair
   @borrowed until the file is released */
const char *tt_safetensors_metadata_value(const tt_safetensors *f, int64_t i);

/* ---- arrays of other programs: NumPy, IDX, CSV ----
   A file is checked whole: TT_FORMAT names the byte or the line and the reason. Tensors are on the
   CPU. */

/* Loads the array of a NumPy file (.npy). Its order in memory and its dtype are kept; arrays of
   records and of Python objects are refused. */
tt_status tt_npy_load(tt_ctx *c, const char *path, tt_tensor **out);

/* Loads the arrays of an archive of np.savez or np.savez_compressed (.npz) by their names; its
   entries are stored or deflated. */
tt_status tt_npz_load(tt_ctx *c, const char *path, tt_state_dict **out);

/* Loads the array of an IDX file, such as those of MNIST, also compressed by gzip. */
tt_status tt_idx_load(tt_ctx *c, const char *path, tt_tensor **out);

/* Loads a text of rows of numbers as [rows, columns]. Every row must have as many fields; empty
   lines do not count. skip_rows: lines at the start that are no numbers. dtype: a real one.
   @null delimiter: a comma
   @null dtype: that of floating-point numbers (0 in C) */
tt_status tt_csv_load(tt_ctx *c, const char *path, const char *delimiter, int64_t skip_rows,
                      tt_dtype dtype, tt_tensor **out);

/* ---- files of torch.save: .pt, .pth ----
   Such a file holds named tensors and a structure, which is JSON: null, true, false, integers,
   text; {"tensor": name}, {"parameter": name} (an nn.Parameter); {"list": […]}, {"tuple": […]},
   {"size": [integers]} (a torch.Size); {"dict": [[key, value], …]}, the same as "ordered" (an
   OrderedDict) and as "counter"; {"float": "0x1.8p+1"} (also inf, -inf, nan), {"dtype": "float32"},
   {"device": "cuda:0"}. Containers are nested at most 200 deep. A state dict is {"ordered":
   [["fc.weight", {"tensor": "fc.weight"}], …]}. */

/* Loads all tensors of a file of torch.save (.pt, .pth) to the CPU, and its structure. Each tensor
   is named by the path of its first place ("model.fc.weight", "groups.0"; "tensor" if it is the
   whole content). Tensors that share memory in the file share it; views and requires_grad are kept.
   No code of the file is run; TT_FORMAT names the byte and the reason. */
tt_status tt_torch_load(tt_ctx *c, const char *path, tt_state_dict **out);

/* Writes a file that torch.load reads, also with weights_only. After a crash, path holds the old
   file or the new one. structure names each of the tensors.
   @null structure: a state dict, an OrderedDict of the tensors without their requires_grad */
tt_status tt_torch_save(tt_ctx *c, const char *path, const tt_state_dict *tensors,
                        const char *structure);

/* ---- files of GGML: .gguf, versions 2 and 3 ----
   Tensors of floating and integer types have these dtypes. Those of packed types are the uint8
   bytes of their rows, which tt_blockwise_linear and tt_dequantize_blockwise take if
   tt_blockformat has the type. Sizes are in the order of tt, the reverse of the file's. The
   structure (tt_state_dict_structure) is JSON: {"version": 3, "metadata": {key: value, …},
   "types": {name: "f32", …}}, where a value is a number, a truth value, a text, a list of these,
   or {"float": "inf"} (also -inf, nan). */

/* Loads all tensors of a GGUF file to the CPU, and its metadata. TT_FORMAT names the byte and the
   reason. */
tt_status tt_gguf_load(tt_ctx *c, const char *path, tt_state_dict **out);

/* Maps a GGUF file into memory: its tensors are read-only, and the system reads them from the disk
   when they are used. The file must not be truncated while tensors of it exist: the system would
   end the process. */
tt_status tt_gguf_map(tt_ctx *c, const char *path, tt_state_dict **out);

/* ---- event files of TensorBoard ----
   Each call appends one value under a tag, at a step, to the file of a path; the first creates it,
   in a folder that exists. TensorBoard shows files whose names contain "tfevents". A negative
   global_step is no step. As torch.utils.tensorboard. */

/* Appends a number, as float32. */
tt_status tt_tensorboard_add_scalar(tt_ctx *c, const char *path, const char *tag,
                                    double scalar_value, int64_t global_step);

/* Appends a text, which TensorBoard renders as Markdown. */
tt_status tt_tensorboard_add_text(tt_ctx *c, const char *path, const char *tag,
                                  const char *text_string, int64_t global_step);

/* Appends a histogram of values in TensorFlow's bins, whose edges are powers of 1.1. */
tt_status tt_tensorboard_add_histogram(tt_ctx *c, const char *path, const char *tag,
                                       const tt_tensor *values, int64_t global_step);

/* Appends an image (C, H, W) of 1, 3 or 4 channels: uint8, or floating-point numbers in [0, 1]. */
tt_status tt_tensorboard_add_image(tt_ctx *c, const char *path, const char *tag,
                                   const tt_tensor *img_tensor, int64_t global_step);

/* ---- checkpoints: the state of a training in one file ---- */

/* What a checkpoint saves or restores; NULL parts are left out. */
typedef struct tt_checkpoint {
  size_t struct_size;
  tt_module *module;       /* its state dict */
  tt_optimizer *optimizer; /* its state and the values of its groups */
  tt_scheduler *scheduler; /* its state */
  tt_generator *generator; /* its seed and offset */
  tt_state_dict *extra;    /* tensors of the application; a load sets those that the file has */
} tt_checkpoint;

/* Saves a training, from which it continues as if it had not stopped, to a safetensors file. After
   a crash, path holds the old file or the new one. */
tt_status tt_checkpoint_save(tt_ctx *c, const char *path, const tt_checkpoint *parts);

/* Restores all parts of a checkpoint or none: everything is checked before anything is changed.
   Parts of the file that are not asked for are ignored. */
tt_status tt_checkpoint_load(tt_ctx *c, const char *path, const tt_checkpoint *parts);

/* ---- mixed indexing: x[1, ::2, None, ..., mask] ---- */

/* Returns the elements at a mixed index. Numbers in tensors are read. */
tt_status tt_index_get(tt_ctx *c, const tt_tensor *self, const tt_index *index, int64_t n,
                       tt_tensor **out);

/* Writes value to the elements at a mixed index. */
tt_status tt_index_set(tt_ctx *c, tt_tensor *self, const tt_index *index, int64_t n,
                       const tt_tensor *value);

/* ---- autograd ---- */

/* Sets whether a leaf requires gradients: operators on it are then recorded. */
tt_status tt_requires_grad_(tt_ctx *c, tt_tensor *self, int32_t on);

/* Keeps the gradient of a tensor that is not a leaf, too. */
tt_status tt_retain_grad(tt_ctx *c, tt_tensor *self);

/* Returns the accumulated gradient.
   @null out: there is none yet */
tt_status tt_tensor_grad(tt_ctx *c, const tt_tensor *self, tt_tensor **out);

/* Replaces the accumulated gradient.
   @null grad: clears it */
tt_status tt_tensor_set_grad(tt_ctx *c, tt_tensor *self, const tt_tensor *grad);

typedef struct tt_backward_opts {
  uint64_t set;
  const tt_tensor *gradient;      /* of self; default 1 (self must have one element) */
  int32_t retain_graph;           /* keeps the graph for another backward; default create_graph */
  int32_t create_graph;           /* records the gradients, too; default 0 */
  const tt_tensor *const *inputs; /* the only leaves to accumulate into; default: all */
  int64_t n_inputs;
} tt_backward_opts;
#define TT_BACKWARD_GRADIENT (UINT64_C(1) << 0)
#define TT_BACKWARD_RETAIN_GRAPH (UINT64_C(1) << 1)
#define TT_BACKWARD_CREATE_GRAPH (UINT64_C(1) << 2)
#define TT_BACKWARD_INPUTS (UINT64_C(1) << 3)

/* Computes the gradients of self and adds them to those of the leaves. */
tt_status tt_backward(tt_ctx *c, const tt_tensor *self, const tt_backward_opts *opts);

/* Computes the gradients of several tensors at once and adds them to those of the leaves.
   gradients[i] is that of tensors[i].
   @null gradients: all are 1
   @c NULL items of gradients are 1. */
tt_status tt_backward_all(tt_ctx *c, const tt_tensor *const *tensors,
                          const tt_tensor *const *gradients, int64_t n,
                          const tt_backward_opts *opts);

typedef struct tt_grad_opts {
  uint64_t set;
  const tt_tensor *const *grad_outputs; /* the gradient of each output; NULL items are 1 */
  int64_t n_grad_outputs;
  int32_t retain_graph; /* keeps the graph for another backward; default create_graph */
  int32_t create_graph; /* records the gradients, too; default 0 */
  int32_t allow_unused; /* default 0; 1: an unused input has NULL */
} tt_grad_opts;
#define TT_GRAD_GRAD_OUTPUTS (UINT64_C(1) << 0)
#define TT_GRAD_RETAIN_GRAPH (UINT64_C(1) << 1)
#define TT_GRAD_CREATE_GRAPH (UINT64_C(1) << 2)
#define TT_GRAD_ALLOW_UNUSED (UINT64_C(1) << 3)

/* Returns the gradients of outputs with respect to inputs, all or none. */
tt_status tt_grad(tt_ctx *c, const tt_tensor *const *outputs, int64_t n_outputs,
                  const tt_tensor *const *inputs, int64_t n_inputs, const tt_grad_opts *opts,
                  tt_tensor **grads);

/* ---- hooks of tensors and nodes ---- */

/* A callback that fails makes backward fail with TT_CALLBACK. A replacement (owned) replaces the
   gradient at its index; NULL keeps the gradient. */
typedef tt_status (*tt_grad_hook)(void *user, tt_ctx *ctx, const tt_tensor *grad,
                                  tt_tensor **replacement);
typedef tt_status (*tt_node_hook)(void *user, tt_ctx *ctx, tt_tensor *const *grads, int64_t n,
                                  tt_tensor **replacements);
typedef tt_status (*tt_accumulate_hook)(void *user, tt_ctx *ctx, const tt_tensor *leaf);

/* Registers a callback that sees the gradient of self before it is accumulated or passed on, and
   may replace it. Returns the id of the hook, which removes it later. */
tt_status tt_register_hook(tt_ctx *c, tt_tensor *self, tt_grad_hook fn, void *user,
                           void (*drop)(void *user), int64_t *id);

/* Registers a callback that sees a leaf after a gradient has been accumulated into it. Returns the
   id of the hook. */
tt_status tt_register_accumulate_hook(tt_ctx *c, tt_tensor *leaf, tt_accumulate_hook fn, void *user,
                                      void (*drop)(void *user), int64_t *id);

/* Removes a hook by the id that registering it returned. */
tt_status tt_remove_hook(tt_ctx *c, tt_tensor *self, int64_t id);

/* Returns the recorded operator that made the tensor.
   @null out: the tensor is a leaf */
tt_status tt_tensor_grad_fn(tt_ctx *c, const tt_tensor *self, tt_node **out);

/* Returns the name of the forward operator.
   @borrowed while the node is alive */
const char *tt_node_name(const tt_node *n);

/* Returns the number of differentiable inputs. */
int64_t tt_node_num_inputs(const tt_node *n);

/* Returns the node of an input.
   @null out: the input is a leaf, or needs no gradient */
tt_status tt_node_next(tt_ctx *c, const tt_node *n, int64_t input, tt_node **out);

/* Returns the leaf that an input is: backward accumulates its gradient.
   @null out: the input was recorded, too, or needs no gradient */
tt_status tt_node_leaf(tt_ctx *c, const tt_node *n, int64_t input, tt_tensor **out);

/* Describes the node, what it saved for its gradient included, as JSON whose numbers may be inf and
   nan. The members are "name";
   "outputs": for each input, which output of its operator it is;
   "results": the sizes of each output of this operator, null of those without a gradient;
   "held": whether a backward of another thread holds the node: no saved value can be read then;
   "released": whether backward has freed what was saved;
   "saved": values by name, null if absent, held or freed. A tensor is {"tensor": i}, a list of them
   {"tensors": [i, n]}, where i is the (first) number for tt_node_saved, a complex number
   {"complex": [re, im]}, a dtype {"dtype": code}, a device {"device": [type, index]}.
   Nodes of tt_function_apply also have "user", that of their tt_function_def, as a number, and
   "tensors": the number of tensors that forward saved, which tt_node_saved numbers from 0. */
tt_status tt_node_describe(tt_ctx *c, const tt_node *node, char *buffer, int64_t cap, int64_t *n);

/* Returns a tensor that the node saved. Fails with TT_AUTOGRAD if backward has freed it, a backward
   of another thread holds the node, or it was written since.
   @null out: it is absent */
tt_status tt_node_saved(tt_ctx *c, const tt_node *n, int64_t i, tt_tensor **out);

/* Registers a callback that sees gradients in backward and may replace them: if pre is set, those
   of the operator's outputs before its formula runs, otherwise those of its inputs afterwards.
   Returns the id of the hook. */
tt_status tt_node_register_hook(tt_ctx *c, tt_node *n, int32_t pre, tt_node_hook fn, void *user,
                                void (*drop)(void *user), int64_t *id);

/* Removes a hook by the id that registering it returned. */
tt_status tt_node_remove_hook(tt_ctx *c, tt_node *n, int64_t id);

/* Adds and drops a reference. */
void tt_node_retain(tt_node *n);
void tt_node_release(tt_node *n);

/* ---- functions of the application with their own gradient ---- */

typedef struct tt_function tt_function; /* one call of such a function */

typedef struct tt_function_def {
  size_t struct_size;
  const char *name;
  void *user;
  /* Sets outs (owned); an input as a result shares its memory. It runs without recording. */
  tt_status (*forward)(void *user, tt_ctx *ctx, tt_function *f, const tt_tensor *const *inputs,
                       int64_t n_inputs, tt_tensor **outs, int64_t n_outs);
  /* Sets one gradient (owned, or NULL) per input. grads may hold NULL. */
  tt_status (*backward)(void *user, tt_ctx *ctx, tt_function *f, tt_tensor *const *grads,
                        int64_t n_outs, tt_tensor **input_grads, int64_t n_inputs);
  void (*drop)(void *user); /* may be NULL */
  /* Sets one tangent (owned, or NULL for 0) per output, after forward. tangents may hold NULL. May
     be NULL: then tangents are the gradient of backward. */
  tt_status (*jvp)(void *user, tt_ctx *ctx, tt_function *f, tt_tensor *const *tangents,
                   int64_t n_inputs, tt_tensor **out_tangents, int64_t n_outs);
  /* Sets outs (owned) for all samples of a vmap at once, along dimension 0, by operators that are
     recorded. samples[i] is input i for all of them; NULL if they share the input, shared[i]. May
     be NULL: then forward and backward run on one sample's shapes. */
  tt_status (*vmap)(void *user, tt_ctx *ctx, tt_function *f, int64_t size,
                    tt_tensor *const *samples, int64_t n_inputs, tt_tensor *const *shared,
                    tt_tensor **outs, int64_t n_outs);
} tt_function_def;

/* Calls a function of the application and records it. */
tt_status tt_function_apply(tt_ctx *c, const tt_function_def *def, const tt_tensor *const *inputs,
                            int64_t n_inputs, tt_tensor **outs, int64_t n_outs);

/* Saves tensors in forward for backward and jvp. */
tt_status tt_function_save(tt_ctx *c, tt_function *f, const tt_tensor *const *tensors, int64_t n);

/* Returns the i-th saved tensor in backward or jvp. In jvp only inputs and results have tangents of
   outer transforms. */
tt_status tt_function_saved(tt_ctx *c, tt_function *f, int64_t i, tt_tensor **out);

/* ---- transforms of functions ---- */

/* Calls a function once and multiplies its Jacobian matrices from the left: grads[i] is the sum of
   cotangents[r] * (the Jacobian matrix of result r and input i). Gradients of integers are NULL. A
   NULL cotangent contributes nothing. Without cotangents (n_cotangents 0) the first result must
   have one element, and its cotangent is 1. The call leaves no trace in .grad; its results are
   recorded if tensors that require a gradient take part. It may be nested, also in tt_vmap.
   @null cotangents: none
   @c outs and n_outs get the results; grads has room for n_inputs. */
tt_status tt_vjp(tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
                 const tt_tensor *const *inputs, int64_t n_inputs,
                 const tt_tensor *const *cotangents, int64_t n_cotangents, tt_tensor **outs,
                 int64_t cap, int64_t *n_outs, tt_tensor **grads);

/* Calls a function once and multiplies its Jacobian matrices from the right: products[r] is the sum
   of (the Jacobian matrix of result r and input i) * tangents[i]. A NULL tangent is 0. Products of
   integers are NULL. It is computed in forward mode, along with the call.
   @c outs and n_outs get the results; products has room for cap, too. */
tt_status tt_jvp(tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
                 const tt_tensor *const *inputs, const tt_tensor *const *tangents, int64_t n_inputs,
                 tt_tensor **outs, tt_tensor **products, int64_t cap, int64_t *n_outs);

/* Opens a level of dual tensors on this ctx, which do not nest. Until the matching
   tt_dual_level_pop, operators compute the tangents of their results along with the results, as
   tt_jvp does, without a function. */
tt_status tt_dual_level_push(tt_ctx *c);

/* Closes the level. Its dual tensors lose their tangents. */
tt_status tt_dual_level_pop(tt_ctx *c);

/* Returns a dual tensor of the open level: a view of primal with a tangent, which has the shape and
   dtype of primal. It requires a gradient if primal does. */
tt_status tt_make_dual(tt_ctx *c, const tt_tensor *primal, const tt_tensor *tangent,
                       tt_tensor **out);

/* Returns a tensor without its tangent at the open level, and the tangent, NULL if it has none. */
tt_status tt_unpack_dual(tt_ctx *c, const tt_tensor *self, tt_tensor **primal, tt_tensor **tangent);

/* Returns the Jacobian matrices of a function: item r * n_inputs + i is that of result r and input
   i, of shape result.shape + input.shape. It takes a backward pass per element of the results. */
tt_status tt_jacobian(tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
                      const tt_tensor *const *inputs, int64_t n_inputs, tt_tensor **outs,
                      int64_t cap, int64_t *n_outs);

/* Returns the matrices of second derivatives of a function, whose first result has one element:
   item i * n_inputs + j has the shape inputs[i].shape + inputs[j].shape. */
tt_status tt_hessian(tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
                     const tt_tensor *const *inputs, int64_t n_inputs, tt_tensor **outs,
                     int64_t cap, int64_t *n_outs);

#define TT_NOT_BATCHED INT64_MIN /* in in_dims: every sample gets the whole input */

typedef struct tt_vmap_opts {
  uint64_t set;
  const int64_t *in_dims; /* the dimension of each input that counts samples; default 0 */
  int64_t n_in_dims;
  const int64_t *out_dims; /* where each result has that dimension; default 0 */
  int64_t n_out_dims;
  int32_t randomness; /* @number of random operators: 0 an error, 1 the same numbers for all
                         samples, 2 different ones; default 0 */
} tt_vmap_opts;
#define TT_VMAP_IN_DIMS (UINT64_C(1) << 0)
#define TT_VMAP_OUT_DIMS (UINT64_C(1) << 1)
#define TT_VMAP_RANDOMNESS (UINT64_C(1) << 2)

/* Calls a function once for a batch of samples. The function gets tensors of the shape of one
   sample, whose operators act on all samples at once; where an operator has no rule for that, it is
   called for each sample. Their elements cannot be read in the function. */
tt_status tt_vmap(tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
                  const tt_tensor *const *inputs, int64_t n_inputs, const tt_vmap_opts *opts,
                  tt_tensor **outs, int64_t cap, int64_t *n_outs);

/* Calls a module with other tensors in the place of the parameters and buffers of their names. Only
   this thread may use the module meanwhile. */
tt_status tt_functional_call(tt_ctx *c, tt_module *m, const tt_state_dict *with,
                             const tt_tensor *const *inputs, int64_t n, tt_tensor **outs,
                             int64_t cap, int64_t *n_outs);

/* Exchanges the parameters and buffers of a module with the tensors of their names in a state dict,
   all or none. A second call with the same state dict restores them. Only this thread may use the
   module meanwhile. */
tt_status tt_module_exchange_tensors(tt_ctx *c, tt_module *m, tt_state_dict *with);

/* Calls a function, and keeps none of the tensors that its operators need for backward: the first
   that is read calls the function again, with the same inputs, random numbers and autocast (Chen et
   al. 2016, as torch.utils.checkpoint with use_reentrant=False). Gradients of any order, those of
   parameters that the function uses among them, are as without a checkpoint. Reading fails with
   TT_CALLBACK if the second call saves other shapes or dtypes, or another number of tensors. fn may
   be called on any thread that runs backward; drop runs once nothing can call it.
   @c outs and n_outs get the results. */
tt_status tt_checkpoint_function(tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
                                 const tt_tensor *const *inputs, int64_t n_inputs,
                                 tt_tensor **outs, int64_t cap, int64_t *n_outs);

/* As tt_checkpoint_function, but keeps the results of some operators, so that the second call has
   them without computing: those of matrix products, for example, which cost more than the others.
   An operator is one that the function calls (tt_op_find) or one of which that consists. Views, and
   operators that write to their arguments, are always called again. Results that are kept must not
   be written to: reading fails with TT_CALLBACK then. (create_selective_checkpoint_contexts of
   torch.utils.checkpoint.) */
tt_status tt_selective_checkpoint_function(tt_ctx *c, tt_fn fn, void *user,
                                           void (*drop)(void *user),
                                           const tt_tensor *const *inputs, int64_t n_inputs,
                                           const tt_op *const *ops, int64_t n_ops, tt_tensor **outs,
                                           int64_t cap, int64_t *n_outs);

/* ---- hooks on the tensors that backward needs ---- */

typedef struct tt_saved_tensors_def {
  size_t struct_size;
  void *user;
  /* Sets what is kept instead of t. It runs without recording, and may keep t. */
  tt_status (*pack)(void *user, tt_ctx *ctx, const tt_tensor *t, void **packed);
  /* Sets *out (owned) to a tensor of the shape and dtype of t. */
  tt_status (*unpack)(void *user, tt_ctx *ctx, void *packed, tt_tensor **out);
  void (*drop_packed)(void *packed); /* once for each thing that is kept; may be NULL */
  void (*drop)(void *user);          /* may be NULL */
} tt_saved_tensors_def;

/* Until the matching tt_saved_tensors_pop, operators on this ctx keep the tensors that their
   gradients need in the form that pack gives them. The innermost pair of functions counts. */
tt_status tt_saved_tensors_push(tt_ctx *c, const tt_saved_tensors_def *def);
tt_status tt_saved_tensors_pop(tt_ctx *c);

/* ---- mixed precision ---- */

/* Switches autocast on or off for tensors on a type of device, TT_CPU or TT_CUDA, until the
   matching tt_autocast_pop: matrix products and convolutions compute in dtype (0: bfloat16 on the
   CPU, float16 on CUDA), and losses in float32. float64 is left alone. cache: the casts of leaves
   that require a gradient are kept until the outermost pop. Backward runs without autocast, in the
   dtypes of forward.
   @number dtype */
tt_status tt_autocast_push(tt_ctx *c, tt_device_type type, int32_t enabled, tt_dtype dtype,
                           int32_t cache);

/* Restores what the matching tt_autocast_push has changed. */
tt_status tt_autocast_pop(tt_ctx *c);

/* Drops the casts of leaves. */
tt_status tt_autocast_clear_cache(tt_ctx *c);

/* Returns whether autocast is on for a type of device. */
int32_t tt_autocast_enabled(const tt_ctx *c, tt_device_type type);

/* Returns the dtype that autocast computes in. */
tt_dtype tt_autocast_dtype(const tt_ctx *c, tt_device_type type);

/* Returns whether the casts of leaves are kept. */
int32_t tt_autocast_cache_enabled(const tt_ctx *c);

/* ---- operators by name ---- */

/* Returns all operators with their schemas and forms, as JSON.
   @borrowed forever */
const char *tt_manifest(void);

/* Finds an operator by name, built-in or registered; fails with TT_NOT_IMPLEMENTED without one.
   @c *out is borrowed while the runtime is alive. */
tt_status tt_op_find(tt_ctx *c, const char *name, const tt_op **out);

/* Returns the name of an operator, which is that of its C function without tt_.
   @borrowed while the runtime is alive */
const char *tt_op_name(const tt_op *op);

/* Returns the schema of an operator: its arguments and results.
   @borrowed while the runtime is alive */
const char *tt_op_schema(const tt_op *op);

/* Calls an operator with one value per argument of its schema. TT_VAL_NONE, and arguments missing
   at the end, stand for defaults. */
tt_status tt_op_call(tt_ctx *c, const tt_op *op, const tt_value *args, int64_t n_args,
                     tt_tensor **outs, int64_t cap, int64_t *n_outs);

/* An operator of the application; it is found, called, profiled and traced like a built-in one. */
typedef struct tt_op_def {
  size_t struct_size;
  const char *schema; /* "name(x: Tensor, k: Int) -> Tensor": types as in tt_op_schema's texts, but
                         no Tensor!, no Enum, no list as a result. A result of type IndexTensor or
                         BoolTensor has no gradient */
  void *user;
  /* Sets outs (owned; an input may be returned). It runs without recording. */
  tt_status (*compute)(void *user, tt_ctx *ctx, const tt_value *args, int64_t n_args,
                       tt_tensor **outs, int64_t n_outs);
  /* Sets one gradient (owned, or NULL) per tensor argument, in order; NULL: the results have no
     gradient. Arguments and results have the values of the call: backward fails if one of them was
     written since. */
  tt_status (*backward)(void *user, tt_ctx *ctx, tt_tensor *const *grads, int64_t n_outs,
                        const tt_value *args, int64_t n_args, tt_tensor *const *results,
                        tt_tensor **input_grads, int64_t n_inputs);
  void (*drop)(void *user);
} tt_op_def;

/* Registers an operator with the runtime. */
tt_status tt_op_register(tt_ctx *c, const tt_op_def *def);

/* ---- optimizers: tt_optim.h has the constructors ----
   An optimizer holds its parameters in groups, each with its own values (lr, weight_decay, …; beta1
   and beta2 for betas). A constructor that is given no parameters makes an optimizer without
   groups, to which they are added. Parameters are counted through all groups, in order. The state
   of a parameter has PyTorch's names: exp_avg, exp_avg_sq, momentum_buffer, step, … */

/* Adds and drops a reference. */
void tt_optim_retain(tt_optimizer *opt);
void tt_optim_release(tt_optimizer *opt);

/* Adds a group of parameters with the values that the constructor was given. A parameter that is in
   a group already fails with TT_INVALID_ARG. */
tt_status tt_optim_add_param_group(tt_ctx *c, tt_optimizer *opt, tt_tensor *const *params,
                                   int64_t n);

/* Updates every parameter that has a gradient, all or none: everything is checked before anything
   is written. LBFGS needs tt_optim_step_closure. */
tt_status tt_optim_step(tt_ctx *c, tt_optimizer *opt);

/* Sets *loss (owned). */
typedef tt_status (*tt_optim_closure)(void *user, tt_ctx *ctx, tt_tensor **loss);

/* Calls a callback that clears the gradients, computes the loss and runs backward, then updates the
   parameters. Gradients are recorded during the callback. Returns the loss. LBFGS calls it several
   times and returns the first loss; its state is that of parameter 0: numbers, the vectors d and
   prev_flat_grad, and the lists old_dirs.0 …, old_stps.0 …, ro.0 … */
tt_status tt_optim_step_closure(tt_ctx *c, tt_optimizer *opt, tt_optim_closure fn, void *user,
                                void (*drop)(void *user), tt_tensor **loss);

/* Clears the gradients of all parameters or, if set_to_none is not set, fills them with 0. */
tt_status tt_optim_zero_grad(tt_ctx *c, tt_optimizer *opt, int32_t set_to_none);

/* Returns the number of groups. */
int64_t tt_optim_num_groups(const tt_optimizer *opt);

/* Returns the number of parameters in all groups. */
int64_t tt_optim_num_params(const tt_optimizer *opt);

/* Returns the number of parameters in a group, 0 if there is no such group. */
int64_t tt_optim_group_size(const tt_optimizer *opt, int64_t group);

/* Returns a parameter by its number, counted through all groups. */
tt_status tt_optim_param(tt_ctx *c, const tt_optimizer *opt, int64_t param, tt_tensor **out);

/* Returns a value of a group by name; flags are 0 or 1. Schedulers keep initial_lr, max_lr, min_lr,
   base_momentum and max_momentum there; until one is set it is absent, and the call fails with
   TT_INDEX. */
tt_status tt_optim_get_f64(tt_ctx *c, const tt_optimizer *opt, int64_t group, const char *name,
                           double *out);

/* Sets a value of a group by name; flags are 0 or 1. */
tt_status tt_optim_set_f64(tt_ctx *c, tt_optimizer *opt, int64_t group, const char *name,
                           double value);

/* Returns a state of a parameter by name: exp_avg, momentum_buffer, step, … It is shared with the
   optimizer; step is a copy, in float32.
   @null out: there is none yet */
tt_status tt_optim_get_state(tt_ctx *c, const tt_optimizer *opt, int64_t param, const char *name,
                             tt_tensor **out);

/* Replaces a state of a parameter by a copy of value, in the parameter's dtype, device and layout.
   @null value: removes it */
tt_status tt_optim_set_state(tt_ctx *c, tt_optimizer *opt, int64_t param, const char *name,
                             const tt_tensor *value);

/* Returns the i-th tensor of the whole state and its name, such as "state.3.exp_avg"; fails with
   TT_INDEX past the end.
   @c The name is written to name[cap]; 96 bytes are always enough. */
tt_status tt_optim_tensor_at(tt_ctx *c, const tt_optimizer *opt, int64_t i, char *name, int64_t cap,
                             tt_tensor **out);

/* Returns the i-th number of the whole state and its name, such as "state.3.step" or
   "param_groups.0.lr"; fails with TT_INDEX past the end.
   @c The name is written to name[cap]; 96 bytes are always enough. */
tt_status tt_optim_number_at(tt_ctx *c, const tt_optimizer *opt, int64_t i, char *name, int64_t cap,
                             double *out);

/* Returns the number of tensors of the whole state. */
int64_t tt_optim_num_tensors(const tt_optimizer *opt);

/* Returns the number of numbers of the whole state. */
int64_t tt_optim_num_numbers(const tt_optimizer *opt);

/* Sets a tensor of the state by a name that tensor_at returned. */
tt_status tt_optim_load_tensor(tt_ctx *c, tt_optimizer *opt, const char *name,
                               const tt_tensor *value);

/* Sets a number of the state by a name that number_at returned. */
tt_status tt_optim_load_number(tt_ctx *c, tt_optimizer *opt, const char *name, double value);

typedef struct tt_clip_grad_norm_opts {
  uint64_t set;
  double norm_type;           /* positive or infinity; default 2 */
  int32_t error_if_nonfinite; /* default 0; 1: a norm that is nan or infinite is an error, and
                                 nothing is clipped */
} tt_clip_grad_norm_opts;
#define TT_CLIP_GRAD_NORM_NORM_TYPE (UINT64_C(1) << 0)
#define TT_CLIP_GRAD_NORM_ERROR_IF_NONFINITE (UINT64_C(1) << 1)

/* Clips the gradient norm to max_norm and returns the norm before clipping: that of the gradients
   of all parameters as one vector. They are multiplied by max_norm / (norm + 1e-6) where that is
   less than 1. Parameters without a gradient are skipped. */
tt_status tt_clip_grad_norm_(tt_ctx *c, tt_tensor *const *params, int64_t n, double max_norm,
                             const tt_clip_grad_norm_opts *opts, tt_tensor **total);

/* Clips each element of the gradients of the parameters to [-clip_value, clip_value]. */
tt_status tt_clip_grad_value_(tt_ctx *c, tt_tensor *const *params, int64_t n, double clip_value);

/* Multiplies the gradients of the parameters by factor, and returns whether one of them has an
   element that is inf or nan. Mixed precision does this before a step whose loss was multiplied by
   1 / factor. Parameters without a gradient are skipped. */
tt_status tt_unscale_grads_(tt_ctx *c, tt_tensor *const *params, int64_t n, double factor,
                            int32_t *found_inf);

/* ---- gradient scaling: for losses in float16 ---- */

/* Multiplies losses by a scale and divides gradients by it before a step. A step whose gradients
   have inf or nan is skipped and lowers the scale; a long run of other steps raises it. */
typedef struct tt_grad_scaler tt_grad_scaler;

typedef struct tt_grad_scaler_new_opts {
  uint64_t set;
  double init_scale;       /* default 65536 */
  double growth_factor;    /* of the scale after growth_interval steps; above 1; default 2 */
  double backoff_factor;   /* of the scale after inf or nan; below 1; default 0.5 */
  int64_t growth_interval; /* steps; default 2000 */
  int32_t disabled;        /* 1: losses are not scaled and no step is skipped; default 0 */
} tt_grad_scaler_new_opts;
#define TT_GRAD_SCALER_NEW_INIT_SCALE (UINT64_C(1) << 0)
#define TT_GRAD_SCALER_NEW_GROWTH_FACTOR (UINT64_C(1) << 1)
#define TT_GRAD_SCALER_NEW_BACKOFF_FACTOR (UINT64_C(1) << 2)
#define TT_GRAD_SCALER_NEW_GROWTH_INTERVAL (UINT64_C(1) << 3)
#define TT_GRAD_SCALER_NEW_DISABLED (UINT64_C(1) << 4)

/* Makes a gradient scaler. */
tt_status tt_grad_scaler_new(tt_ctx *c, const tt_grad_scaler_new_opts *opts, tt_grad_scaler **out);

/* Adds and drops a reference. */
void tt_grad_scaler_retain(tt_grad_scaler *s);
void tt_grad_scaler_release(tt_grad_scaler *s);

/* Returns a loss multiplied by the scale: call backward on it. */
tt_status tt_grad_scaler_scale(tt_ctx *c, tt_grad_scaler *s, const tt_tensor *loss,
                               tt_tensor **out);

/* Divides the gradients of the optimizer's parameters by the scale, for example before clipping;
   otherwise the step does it. May be called once per optimizer between two updates. */
tt_status tt_grad_scaler_unscale(tt_ctx *c, tt_grad_scaler *s, tt_optimizer *opt);

/* Divides the gradients of parameters by the scale, for an optimizer of the application's own.
   Returns whether one of them has inf or nan. */
tt_status tt_grad_scaler_unscale_list(tt_ctx *c, tt_grad_scaler *s, tt_tensor *const *params,
                                      int64_t n, int32_t *out);

/* Takes the optimizer's step unless a gradient has inf or nan. Returns whether it was taken. */
tt_status tt_grad_scaler_step(tt_ctx *c, tt_grad_scaler *s, tt_optimizer *opt, int32_t *out);

/* Returns 1 if gradients of the optimizer had inf or nan when they were divided by the scale since
   the last update, 0 if they had none, -1 if they were not divided. */
tt_status tt_grad_scaler_found_inf(tt_ctx *c, const tt_grad_scaler *s, tt_optimizer *opt,
                                   int64_t *out);

/* Ends an iteration: lowers the scale if a gradient had inf or nan, and raises it after
   growth_interval iterations in a row without one. new_scale, if it is not 0, becomes the scale
   instead. */
tt_status tt_grad_scaler_update(tt_ctx *c, tt_grad_scaler *s, double new_scale);

/* Returns the scale; 1 if scaling is disabled. */
double tt_grad_scaler_get_scale(const tt_grad_scaler *s);

/* Returns scale, growth factor, backoff factor, growth interval and the number of steps since the
   scale changed. */
tt_status tt_grad_scaler_state(tt_ctx *c, tt_grad_scaler *s, double state[5]);

/* Restores what tt_grad_scaler_state returned. */
tt_status tt_grad_scaler_set_state(tt_ctx *c, tt_grad_scaler *s, const double state[5]);

/* ---- schedulers of learning rates: tt_optim.h has the constructors ----
   A scheduler holds its optimizer. */

/* Adds and drops a reference. */
void tt_scheduler_retain(tt_scheduler *s);
void tt_scheduler_release(tt_scheduler *s);

/* Sets *factor for a group at an epoch. */
typedef tt_status (*tt_lr_lambda_fn)(void *user, tt_ctx *ctx, int64_t epoch, int64_t group,
                                     double *factor);

/* Makes a scheduler that multiplies the initial learning rate of each group by the factor that a
   callback computes from the epoch and the group. last_epoch -1 starts a new schedule. */
tt_status tt_lr_lambda(tt_ctx *c, tt_optimizer *optimizer, tt_lr_lambda_fn fn, void *user,
                       void (*drop)(void *user), int64_t last_epoch, tt_scheduler **out);

/* Makes a scheduler that multiplies the current learning rate of each group by the factor that a
   callback computes from the epoch and the group. last_epoch -1 starts a new schedule. */
tt_status tt_lr_multiplicative(tt_ctx *c, tt_optimizer *optimizer, tt_lr_lambda_fn fn, void *user,
                               void (*drop)(void *user), int64_t last_epoch, tt_scheduler **out);

/* Advances to the next epoch, after a step of the optimizer. In a capture the step is recorded:
   each run of the graph repeats it. */
tt_status tt_scheduler_step(tt_ctx *c, tt_scheduler *s);

/* Moves to a given epoch, by the closed form if the schedule has one. */
tt_status tt_scheduler_step_to(tt_ctx *c, tt_scheduler *s, int64_t epoch);

/* Advances ReduceLROnPlateau by the metric of an epoch, such as its loss. Fails with
   TT_NOT_IMPLEMENTED in a capture: the metric changes with each step. */
tt_status tt_scheduler_step_metric(tt_ctx *c, tt_scheduler *s, double metric);

/* Returns the number of steps taken, less one. */
int64_t tt_scheduler_last_epoch(const tt_scheduler *s);

/* Returns the last learning rate of each group. */
tt_status tt_scheduler_get_last_lr(tt_ctx *c, const tt_scheduler *s, double *lrs, int64_t cap,
                                   int64_t *n);

/* Returns the number of numbers of the whole state. */
int64_t tt_scheduler_num_numbers(const tt_scheduler *s);

/* Returns the i-th number of the whole state and its name, such as "last_epoch" or "base_lrs.0";
   "2.last_epoch" belongs to the third scheduler of a chain. Fails with TT_INDEX past the end.
   @c The name is written to name[cap]; 96 bytes are always enough. */
tt_status tt_scheduler_number_at(tt_ctx *c, const tt_scheduler *s, int64_t i, char *name,
                                 int64_t cap, double *out);

/* Sets a number of the state by a name that number_at returned. */
tt_status tt_scheduler_load_number(tt_ctx *c, tt_scheduler *s, const char *name, double value);

/* ---- data: datasets, samplers, loaders ----
   A dataset and a loader may be released from any thread. The order of a sampler follows from its
   state: seed, epoch and position, the number of indices of the epoch that were returned. */

/* Makes a dataset whose sample i is row i of each tensor. The tensors are shared, not copied. */
tt_status tt_dataset_tensors(tt_ctx *c, const tt_tensor *const *tensors, int64_t n,
                             tt_dataset **out);

/* Sets the tensors of a sample: outs[0 … *n_outs) (owned). At the end of a stream *n_outs is 0. */
typedef tt_status (*tt_sample_fn)(void *user, tt_ctx *ctx, int64_t index, tt_tensor **outs,
                                  int64_t cap, int64_t *n_outs);

/* Makes a dataset of samples that a callback makes. With workers it is called on their threads, for
   several samples at once, with their ctxs. */
tt_status tt_dataset_map(tt_ctx *c, int64_t size, tt_sample_fn fn, void *user,
                         void (*drop)(void *user), tt_dataset **out);

/* Makes a dataset of the samples that a callback makes one after the other, until it sets none. It
   is called on any thread, but never twice at once; index counts the samples of the epoch. */
tt_status tt_dataset_stream(tt_ctx *c, tt_sample_fn fn, void *user, void (*drop)(void *user),
                            tt_dataset **out);

/* Makes a dataset of the samples of several datasets, one after the other. */
tt_status tt_dataset_concat(tt_ctx *c, const tt_dataset *const *datasets, int64_t n,
                            tt_dataset **out);

/* Makes a dataset of chosen samples of another one. */
tt_status tt_dataset_subset(tt_ctx *c, const tt_dataset *d, const int64_t *indices, int64_t n,
                            tt_dataset **out);

/* Returns the number of samples; -1 for a stream, whose length is unknown. */
int64_t tt_dataset_size(const tt_dataset *d);

/* Returns a sample. */
tt_status tt_dataset_get(tt_ctx *c, const tt_dataset *d, int64_t index, tt_tensor **outs,
                         int64_t cap, int64_t *n_outs);

/* Adds and drops a reference. */
void tt_dataset_retain(tt_dataset *d);
void tt_dataset_release(tt_dataset *d);

/* Makes a sampler of the indices 0, 1, …, n - 1. */
tt_status tt_sampler_sequential(tt_ctx *c, int64_t n, tt_sampler **out);

/* Makes a sampler of random indices below n. Without replacement each epoch is a permutation; with
   replacement each index is drawn from all of them. num_samples: the length of an epoch, -1: n. A
   length above n takes several permutations. */
tt_status tt_sampler_random(tt_ctx *c, int64_t n, int32_t replacement, int64_t num_samples,
                            int64_t seed, tt_sampler **out);

/* Makes a sampler that draws num_samples indices in each epoch by weights, which need not sum to
   1. */
tt_status tt_sampler_weighted(tt_ctx *c, const double *weights, int64_t n, int64_t num_samples,
                              int32_t replacement, int64_t seed, tt_sampler **out);

/* Makes a sampler of given indices: in their order or, if shuffle is set, permuted in each
   epoch. */
tt_status tt_sampler_subset(tt_ctx *c, const int64_t *indices, int64_t n, int32_t shuffle,
                            int64_t seed, tt_sampler **out);

/* Makes the sampler of one of `size` processes. It takes the positions rank, rank + size, … of an
   order of the indices below n, which is the same in all processes and, if shuffle is set, another
   permutation in each epoch. All processes get the same number of indices: the last ones are
   dropped if drop_last is set, otherwise the first ones are repeated. */
tt_status tt_sampler_distributed(tt_ctx *c, int64_t n, int32_t rank, int32_t size, int32_t shuffle,
                                 int32_t drop_last, int64_t seed, tt_sampler **out);

/* Returns the number of indices of an epoch. */
int64_t tt_sampler_length(const tt_sampler *s);

/* Returns the next indices, at most cap of them. If there are none, the epoch has ended; the next
   call begins another one. */
tt_status tt_sampler_next(tt_ctx *c, tt_sampler *s, int64_t *indices, int64_t cap, int64_t *n);

/* Returns seed, epoch and position. */
tt_status tt_sampler_state(tt_ctx *c, tt_sampler *s, int64_t state[3]);

/* Sets seed, epoch and position. */
tt_status tt_sampler_set_state(tt_ctx *c, tt_sampler *s, const int64_t state[3]);

/* Adds and drops a reference. */
void tt_sampler_retain(tt_sampler *s);
void tt_sampler_release(tt_sampler *s);

typedef struct tt_loader_opts {
  uint64_t set;
  int64_t batch_size; /* samples of a batch; default 1 */
  int64_t workers;    /* threads of tt that make batches ahead, each with a ctx; default 0: next
                         makes them, and tt_loader_work on threads of the application */
  int64_t prefetch;   /* batches that are kept ahead, for each worker; default 2 */
  int32_t drop_last;  /* 1: leaves out a last batch that is shorter; default 0 */
  int32_t pad;
} tt_loader_opts;
#define TT_LOADER_BATCH_SIZE (UINT64_C(1) << 0)
#define TT_LOADER_WORKERS (UINT64_C(1) << 1)
#define TT_LOADER_PREFETCH (UINT64_C(1) << 2)
#define TT_LOADER_DROP_LAST (UINT64_C(1) << 3)

/* Makes a loader. It shares the sampler and moves it ahead of what it has returned.
   @null sampler: all samples in order */
tt_status tt_loader_new(tt_ctx *c, tt_dataset *dataset, tt_sampler *sampler,
                        const tt_loader_opts *opts, tt_loader **out);

/* Returns the next batch: each tensor of its samples stacked along a new first dimension. If there
   are no tensors, the epoch has ended; the next call begins another one. Batches have the order of
   the sampler for every number of workers. If a sample cannot be made, the call fails with its
   error, and the next call returns the batch after it. One thread at a time may call it, and the
   callback that makes samples of this loader must not. */
tt_status tt_loader_next(tt_ctx *c, tt_loader *l, tt_tensor **outs, int64_t cap, int64_t *n_outs);

/* Makes a batch ahead on the calling thread, if one is wanted: for threads of the application,
   each with its own ctx. Returns whether it made one.
   @number out */
tt_status tt_loader_work(tt_ctx *c, tt_loader *l, int32_t *out);

/* Returns the number of batches of an epoch; -1 for a stream, whose length is unknown. */
int64_t tt_loader_length(const tt_loader *l);

/* Returns seed, epoch and position of the batches that were returned; those made ahead do not
   count. */
tt_status tt_loader_state(tt_ctx *c, tt_loader *l, int64_t state[3]);

/* Continues where a loader of the same dataset, sampler and batch_size was: also in the middle of
   an epoch. Batches made ahead are dropped. */
tt_status tt_loader_set_state(tt_ctx *c, tt_loader *l, const int64_t state[3]);

/* Adds and drops a reference. Dropping the last one waits for the samples that workers make. */
void tt_loader_retain(tt_loader *l);
void tt_loader_release(tt_loader *l);

/* ---- graphs ----
   A capture records the operators that touch memory, of forward, backward and optimizers alike,
   while the ctx computes as usual. A graph is such a record; only edits change it. It may be read
   and released from any thread. */

/* Options of tt_capture_begin. */
typedef struct tt_capture_opts {
  uint64_t set;
  int32_t allow_reads; /* 1: the application may read elements of tensors; what it decides by them
                          is frozen into the graph; default 0: such a read fails */
  int32_t deferred;    /* 1: operators compute nothing but shapes, and optimizers do not step.
                          Tensors that operators make and that are held at the end become state:
                          each run of a plan writes them; default 0 */
} tt_capture_opts;
#define TT_CAPTURE_ALLOW_READS (UINT64_C(1) << 0)
#define TT_CAPTURE_DEFERRED (UINT64_C(1) << 1)

/* Begins a capture on the ctx. The inputs are the tensors that differ between runs of the graph.
   Other tensors that exist already are its state, if operators write them, or its constants.
   @null opts: the defaults */
tt_status tt_capture_begin(tt_ctx *c, const tt_tensor *const *inputs, int64_t n,
                           const tt_capture_opts *opts);

/* Ends the capture and returns the graph that computes the outputs and writes the state. The
   capture also ends if this fails. */
tt_status tt_capture_end(tt_ctx *c, const tt_tensor *const *outputs, int64_t n, tt_graph **out);

/* Ends the capture, if there is one, without a graph. */
tt_status tt_capture_drop(tt_ctx *c);

/* What a graph consists of. Its parts are named by their positions, from 0. */
typedef struct tt_graph_info {
  int64_t n_nodes;    /* calls of operators, in the order in which they run */
  int64_t n_values;   /* tensors that nodes read and make */
  int64_t n_storages; /* blocks of memory that values are views of */
  int64_t n_inputs, n_outputs;
  const int32_t *inputs;  /* values; borrowed from the graph, as all pointers below */
  const int32_t *outputs; /* values */
} tt_graph_info;

/* Describes a graph. */
tt_status tt_graph_get_info(tt_ctx *c, const tt_graph *g, tt_graph_info *out);

/* A call of an operator. */
typedef struct tt_graph_node {
  const tt_op *op;     /* of tt_op_find; internal operators, too */
  const char *name;    /* of the operator */
  const char *schema;  /* as tt_op_schema */
  int64_t n_args;
  int64_t n_outs;      /* results, then the arguments that it writes, as they are afterwards */
  int64_t n_results;   /* how many of the outs are results */
  const int32_t *outs; /* values; -1: absent */
  const char *scope;   /* the composite operator that it is part of; NULL: none */
} tt_graph_node;

/* Describes node i. */
tt_status tt_graph_get_node(tt_ctx *c, const tt_graph *g, int64_t i, tt_graph_node *out);

/* The tag of numbers that were drawn for a node, beside TT_VAL_… */
#define TT_VAL_GRAPH_DRAW 12

/* An argument of a node. */
typedef struct tt_graph_arg {
  const char *name;      /* in the schema */
  int32_t tag;           /* TT_VAL_…; TT_VAL_GRAPH_DRAW: numbers drawn for the node */
  int32_t pad;
  int64_t n_values;      /* of a tensor 1, of lists their length, of an index its tensors */
  const int32_t *values; /* -1: an absent item */
  int64_t i;             /* of an integer, a bool, an enumeration, a dtype; of a draw its number */
  double f;
  tt_scalar scalar;
  tt_device device;
  int64_t n;             /* length of ints, str, index */
  const int64_t *ints;
  const char *str;
  const tt_index *index; /* its tensors are NULL: values has them */
} tt_graph_arg;

/* Describes argument i of a node. */
tt_status tt_graph_get_arg(tt_ctx *c, const tt_graph *g, int64_t node, int64_t i,
                           tt_graph_arg *out);

/* A value: a view of a storage, whose contents are those after some number of writes. */
typedef struct tt_graph_value {
  int64_t storage;
  int64_t version;             /* increases with each write into the storage */
  int64_t node;                /* the node that made it; -1: it comes from outside */
  int64_t out;                 /* which of the node's outs it is; -1: another view of one of them */
  int64_t offset;              /* bytes */
  int64_t ndim;
  const int64_t *sizes;
  const int64_t *strides;      /* in elements */
  tt_dtype dtype;
  int32_t pad;
} tt_graph_value;

/* Describes value i. */
tt_status tt_graph_get_value(tt_ctx *c, const tt_graph *g, int64_t i, tt_graph_value *out);

/* The roles of storages. */
enum {
  TT_GRAPH_INPUT = 0,    /* given by each run */
  TT_GRAPH_STATE = 1,    /* from outside, written by nodes: parameters in training */
  TT_GRAPH_CONSTANT = 2, /* from outside, only read: parameters in inference */
  TT_GRAPH_MADE = 3      /* made by a node */
};
typedef struct tt_graph_storage {
  int32_t role; /* TT_GRAPH_… */
  int32_t pad;
  int64_t bytes;
  tt_device device;
  const tt_tensor *tensor; /* a tensor with this memory; NULL for TT_GRAPH_MADE */
} tt_graph_storage;

/* Describes storage i. */
tt_status tt_graph_get_storage(tt_ctx *c, const tt_graph *g, int64_t i, tt_graph_storage *out);

/* Writes the graph as text, one line for each node, and a zero after it. *n gets the length of the
   text. */
tt_status tt_graph_print(tt_ctx *c, const tt_graph *g, char *buffer, int64_t cap, int64_t *n);

/* As tt_graph_print, in the language of Graphviz. */
tt_status tt_graph_dot(tt_ctx *c, const tt_graph *g, char *buffer, int64_t cap, int64_t *n);

/* Passes of tt_graph_optimize. */
#define TT_PASS_DCE (UINT64_C(1) << 0)  /* removes calls whose results nothing needs */
#define TT_PASS_CSE (UINT64_C(1) << 1)  /* merges calls that compute the same */
#define TT_PASS_FOLD (UINT64_C(1) << 2) /* computes calls whose arguments are constants, once:
                                           writing the constants later has no effect */
#define TT_PASS_NORM (UINT64_C(1) << 3) /* puts batch normalizations with constant statistics into
                                           the weights of the convolutions before them: freezes
                                           these as TT_PASS_FOLD does, and rounds differently */
#define TT_PASS_POOL (UINT64_C(1) << 4)   /* puts relu behind the max pooling that follows it */
#define TT_PASS_SLICES (UINT64_C(1) << 5) /* writes gradients of slices side by side, in place of
                                             sums with zeros */
#define TT_PASS_EPILOGUES (UINT64_C(1) << 6) /* moves elementwise calls behind the product whose
                                                result they read, so that plans compute them on its
                                                rows as these are finished */

/* Options of tt_graph_optimize. */
typedef struct tt_graph_optimize_opts {
  uint64_t set;
  uint64_t passes; /* TT_PASS_…; default: all that keep every bit and freeze nothing, which are
                      TT_PASS_DCE, TT_PASS_CSE, TT_PASS_POOL, TT_PASS_SLICES and
                      TT_PASS_EPILOGUES */
} tt_graph_optimize_opts;
#define TT_GRAPH_OPTIMIZE_PASSES (UINT64_C(1) << 0)

/* Makes an optimized copy of a graph, which has the same inputs and outputs.
   @null opts: the defaults */
tt_status tt_graph_optimize(tt_ctx *c, const tt_graph *g, const tt_graph_optimize_opts *opts,
                            tt_graph **out);

/* Writes <dir>/<name>.c and <dir>/<name>.h: C99 that computes the outputs of the graph from its
   inputs, for machines without tt. It needs libm only, never allocates, and contains the tensors
   from outside the graph as constants; the header states the size of its memory. Fails with
   TT_NOT_IMPLEMENTED, which names the operator, for what has no counterpart in C: dtypes other than
   float32, integers and bool, random numbers, and graphs with state. name: an identifier of C */
tt_status tt_graph_export_c(tt_ctx *c, const tt_graph *g, const char *dir, const char *name);

/* Options of tt_graph_export_c_with. */
typedef struct tt_graph_export_c_opts {
  uint64_t set;
  int32_t blob; /* 1: the tensors from outside the graph are in <dir>/<name>.bin, whose bytes the
                   function takes as an argument; default: 0, constants of the source */
  int32_t pad;
} tt_graph_export_c_opts;
#define TT_GRAPH_EXPORT_C_BLOB (UINT64_C(1) << 0)

/* As tt_graph_export_c, with options.
   @null opts: the defaults */
tt_status tt_graph_export_c_with(tt_ctx *c, const tt_graph *g, const char *dir, const char *name,
                                 const tt_graph_export_c_opts *opts);

/* Options of tt_graph_quantize. */
typedef struct tt_graph_quantize_opts {
  uint64_t set;
  int32_t histogram; /* 1: activations get the range whose rounding has the smallest squared error;
                        default: 0, from the smallest to the largest number of the samples */
  int32_t per_row;   /* 1: linear layers take the range of each row from the row itself, in each
                        run, and no samples; default: 0 */
} tt_graph_quantize_opts;
#define TT_GRAPH_QUANTIZE_HISTOGRAM (UINT64_C(1) << 0)
#define TT_GRAPH_QUANTIZE_PER_ROW (UINT64_C(1) << 1)

/* Makes a copy of a graph that computes convolutions of images and linear layers in 8-bit integers,
   where their weight is a constant: int8 weights with a scale for each output, uint8 activations
   with a scale and a zero point, float32 between them. Runs the graph on the samples to find the
   ranges of activations. Batch normalizations should be put into convolutions first (TT_PASS_NORM).
   samples: inputs of runs, one run after the other; n: a multiple of the number of inputs
   @null opts: the defaults */
tt_status tt_graph_quantize(tt_ctx *c, const tt_graph *g, const tt_tensor *const *samples,
                            int64_t n, const tt_graph_quantize_opts *opts, tt_graph **out);

/* Writes the graph as an ONNX model of opset 20, with inputs in0, in1, … and outputs out0, out1, …,
   to a file that replaces path. Fails with TT_NOT_IMPLEMENTED, which names the operator, for what
   has no counterpart: random numbers, complex numbers, state that the graph writes. */
tt_status tt_graph_export_onnx(tt_ctx *c, const tt_graph *g, const char *path);

/* As tt_graph_export_onnx, with a dimension of any size. other: the same computation, captured with
   another size of it; the first size of an input in which the graphs differ is the dimension. dim:
   its name in the model, such as "batch". Every other number that differs must be a multiple of
   that size, or one plus a constant; otherwise the call fails with TT_NOT_IMPLEMENTED, which names
   the operator. */
tt_status tt_graph_export_onnx_dynamic(tt_ctx *c, const tt_graph *g, const tt_graph *other,
                                       const char *dim, const char *path);

/* As tt_graph_export_onnx, with several dimensions of any size. n: 1 to 3. dims: their names in the
   model, in the order in which they come first among the inputs. others: the same computation,
   captured with other sizes, 2^n - 1 graphs whose sizes are in general position, such as all pairs
   of two sizes of each of two dimensions. Every other number that differs must be a sum of products
   of the sizes. */
tt_status tt_graph_export_onnx_dims(tt_ctx *c, const tt_graph *g, const tt_graph *const *others,
                                    int64_t n_others, const char *const *dims, int64_t n,
                                    const char *path);

/* Makes a graph of the same computation for another size of one dimension. g and other: graphs of
   it for two sizes, whose first input with different sizes says which dimension that is; other
   numbers that differ are taken to grow linearly with the size. Storages that are no inputs must be
   the same. Fails with TT_NOT_IMPLEMENTED if the computation depends on the size otherwise. */
tt_status tt_graph_resize(tt_ctx *c, const tt_graph *g, const tt_graph *other, int64_t size,
                          tt_graph **out);

/* Options of tt_graph_load_onnx. */
typedef struct tt_graph_load_onnx_opts {
  uint64_t set;
  int64_t dynamic; /* size of the dimensions of inputs that have no number; default: 1 */
} tt_graph_load_onnx_opts;
#define TT_GRAPH_LOAD_ONNX_DYNAMIC (UINT64_C(1) << 0)

/* Reads an ONNX model of opset 7 or later as a graph: initializers become constants. The file is
   not trusted. Fails with TT_FORMAT if it is no model, and with TT_NOT_IMPLEMENTED, which names the
   node, for operators without a counterpart and for shapes that depend on the contents of inputs.
   Tensors may be in other files, whose paths are below the model's folder.
   @null opts: the defaults */
tt_status tt_graph_load_onnx(tt_ctx *c, const char *path, const tt_graph_load_onnx_opts *opts,
                             tt_graph **out);

/* Makes a copy of a graph, to edit it. */
tt_status tt_graph_copy(tt_ctx *c, const tt_graph *g, tt_graph **out);

/* Lists the nodes that read a value, in order. tt_graph_get_info tells whether it is an output. */
tt_status tt_graph_users(tt_ctx *c, const tt_graph *g, int32_t value, int64_t *nodes, int64_t cap,
                         int64_t *n);

/* ---- edits of graphs ----
   A graph on the CPU is edited by one thread. An edit fails if anything but the caller holds the
   graph, such as a plan: edit a copy then. After each edit the shapes of the nodes behind it are
   computed anew, and the graph is verified; an edit that fails changes nothing. Numbers of values
   stay valid; those of nodes behind the edit move. */

/* Inserts a call of an operator before node `before` (the number of nodes: at the end). A composite
   operator becomes several nodes. args are as tt_graph_get_arg returns them; name and pad are
   ignored, a number may have any tag of numbers, and arguments missing at the end have their
   defaults. Returns the values of the results. Operators that write arguments are refused. */
tt_status tt_graph_insert(tt_ctx *c, tt_graph *g, int64_t before, const tt_op *op,
                          const tt_graph_arg *args, int64_t n_args, int32_t *outs, int64_t cap,
                          int64_t *n);

/* Puts `with` in place of `value` in the outputs and in the nodes behind the one that makes
   `with`. */
tt_status tt_graph_replace_uses(tt_ctx *c, tt_graph *g, int32_t value, int32_t with);

/* Removes a node. Fails if another node or an output reads what it makes or writes. */
tt_status tt_graph_remove(tt_ctx *c, tt_graph *g, int64_t node);

/* Sets the values that are the outputs. */
tt_status tt_graph_set_outputs(tt_ctx *c, tt_graph *g, const int32_t *outputs, int64_t n);

/* Writes the graph to a file (.ttg) that replaces path: safetensors with the memory from outside as
   tensors and operators, shapes, optimizers and schedulers as text in the metadata. Inputs have no
   contents in it. Fails with TT_NOT_IMPLEMENTED for graphs on devices, and for schedules that call
   the application. */
tt_status tt_graph_save(tt_ctx *c, const tt_graph *g, const char *path);

/* Reads a graph from such a file. The file is not trusted: everything in it is checked, and the
   shapes of all results are computed anew. State and constants are new tensors of the graph. */
tt_status tt_graph_load(tt_ctx *c, const char *path, tt_graph **out);

/* As tt_graph_load, with the operators of a list, which tt_graph_emit_ops writes: a static program
   that calls this function instead contains only these operators. Graphs with steps of optimizers
   are refused. */
tt_status tt_graph_load_with(tt_ctx *c, const char *path, const tt_op *const *ops, int64_t n,
                             tt_graph **out);

/* Writes a C file that defines the list of the operators of the graph:
   `const tt_op *const <name>_ops[]` and `const long <name>_n_ops`. It is compiled with the program
   and linked with libtt.a of this build, whose names of operators it contains. name: an identifier
   of C */
tt_status tt_graph_emit_ops(tt_ctx *c, const tt_graph *g, const char *path, const char *name);

/* Adds and drops a reference. */
void tt_graph_retain(tt_graph *g);
void tt_graph_release(tt_graph *g);

/* ---- groups of processes ----
   A backend is a library that is opened when a group needs it: "gloo" (libtt_gloo.so), "mpi"
   (libtt_mpi.so) or "nccl" (libnccl.so.2). With "nccl", tensors on CUDA devices go by NCCL, those
   on the CPU by gloo, or by mpi if rank and size are -1. Every rank of a group makes the same
   calls in the same order; ranks that make different ones, or with other shapes or dtypes, all
   get an error that names two of them. A rank that fails, or does not answer within the timeout
   of the group, gives the others TT_DISTRIBUTED, which names it; the group, and those of the same
   tt_group_new, cannot be used any more then.

   A call starts work, which runs on a thread of tt. *work is that work; if work is NULL, the call
   waits for the end. Tensors must not be used until then. A result is bit-equal on all ranks and
   in every run (NCCL promises neither). Tensors are on the CPU or, with "nccl", on the CUDA
   device that the group's first call of this kind has used; those that a call writes are
   contiguous. For tensors on a device, to wait means that the device's current stream waits: a
   failure of NCCL that comes later is that of the next call. NCCL does not reduce int16, uint16,
   uint32, uint64, products of complex numbers and bits of integers. */

/* How elements of several ranks become one. On bool a sum is "or", a product "and". */
enum {
  TT_REDUCE_SUM = 1,
  TT_REDUCE_MEAN = 2, /* of floating and complex numbers */
  TT_REDUCE_MIN = 3,  /* of real numbers; nan wins */
  TT_REDUCE_MAX = 4,
  TT_REDUCE_PRODUCT = 5,
  TT_REDUCE_BAND = 6, /* bits of integers and bool */
  TT_REDUCE_BOR = 7,
  TT_REDUCE_BXOR = 8
};

typedef struct tt_group_opts {
  uint64_t set;
  int64_t timeout_ms;  /* of everything that waits for another process; default 1800000 */
  const char *library; /* path of the backend's library; default: libtt_<backend>.so, beside libtt
                          or on the path of the loader; for "nccl" libnccl.so.2 on that path */
} tt_group_opts;
#define TT_GROUP_TIMEOUT_MS (UINT64_C(1) << 0)
#define TT_GROUP_LIBRARY (UINT64_C(1) << 1)

/* Connects this process with the others of a group. rendezvous is where they meet:
   "tcp://host:port", which rank 0 serves, or "file:///path", a new directory that all see. MPI
   knows rank and size, which may then be -1, and needs no rendezvous. A group of one process needs
   no backend.
   @null backend: size is 1
   @null rendezvous: the backend needs none
   @number rank
   @number size */
tt_status tt_group_new(tt_ctx *c, const char *backend, int32_t rank, int32_t size,
                       const char *rendezvous, const tt_group_opts *opts, tt_group **out);

/* Makes a group for each color, of the ranks that pass it, in the order of their keys. All ranks
   of the group call it.
   @null out: color is negative */
tt_status tt_group_split(tt_ctx *c, tt_group *g, int64_t color, int64_t key, tt_group **out);

/* Returns the rank of this process.
   @number returned */
int32_t tt_group_rank(const tt_group *g);

/* Returns the number of processes.
   @number returned */
int32_t tt_group_size(const tt_group *g);

/* Returns the name of the backend, "" for a group of one process without one.
   @null returned: g is NULL
   @borrowed while the group is alive */
const char *tt_group_backend(const tt_group *g);

/* Adds and drops a reference. Dropping the last one waits for the work of the group. */
void tt_group_retain(tt_group *g);
void tt_group_release(tt_group *g);

/* Waits until all ranks have called it.
   @null work: waits */
tt_status tt_group_barrier(tt_ctx *c, tt_group *g, tt_work **work);

/* Replaces the tensor, on all ranks, by the reduction of the tensors of all ranks.
   @null work: waits
   @number op */
tt_status tt_group_all_reduce(tt_ctx *c, tt_group *g, tt_tensor *tensor, int32_t op,
                              tt_work **work);

/* Replaces the tensor, on the rank root, by the reduction of the tensors of all ranks. The tensors
   of the other ranks stay.
   @null work: waits
   @number op
   @number root */
tt_status tt_group_reduce(tt_ctx *c, tt_group *g, tt_tensor *tensor, int32_t op, int32_t root,
                          tt_work **work);

/* Replaces the tensor, on all ranks, by that of the rank root.
   @null work: waits
   @number root */
tt_status tt_group_broadcast(tt_ctx *c, tt_group *g, tt_tensor *tensor, int32_t root,
                             tt_work **work);

/* Writes the inputs of all ranks to output, one after the other.
   @null work: waits */
tt_status tt_group_all_gather(tt_ctx *c, tt_group *g, const tt_tensor *input, tt_tensor *output,
                              tt_work **work);

/* Reduces the inputs of all ranks and writes one part of the result to the output of each rank, in
   order.
   @null work: waits
   @number op */
tt_status tt_group_reduce_scatter(tt_ctx *c, tt_group *g, const tt_tensor *input,
                                  tt_tensor *output, int32_t op, tt_work **work);

/* Sends part r of the input to rank r; part r of the output comes from rank r.
   @null work: waits */
tt_status tt_group_all_to_all(tt_ctx *c, tt_group *g, const tt_tensor *input, tt_tensor *output,
                              tt_work **work);

/* Writes the inputs of all ranks to the output of the rank root, one after the other.
   @null output: this is not the root
   @null work: waits
   @number root */
tt_status tt_group_gather(tt_ctx *c, tt_group *g, const tt_tensor *input, tt_tensor *output,
                          int32_t root, tt_work **work);

/* Writes part r of the input of the rank root to the output of rank r.
   @null input: this is not the root
   @null work: waits
   @number root */
tt_status tt_group_scatter(tt_ctx *c, tt_group *g, const tt_tensor *input, tt_tensor *output,
                           int32_t root, tt_work **work);

/* Sends a tensor to another rank, which receives it with the same tag, 0 to 32765. Transfers to a
   rank run in the order of the calls, beside collectives.
   @null work: waits until the tensor may be changed
   @number peer
   @number tag */
tt_status tt_group_send(tt_ctx *c, tt_group *g, const tt_tensor *tensor, int32_t peer, int32_t tag,
                        tt_work **work);

/* Receives a tensor of this shape and dtype from another rank, or, if peer is -1, from the first
   that sends with this tag; tt_work_source tells which. NCCL needs a rank.
   @null work: waits
   @number peer
   @number tag */
tt_status tt_group_recv(tt_ctx *c, tt_group *g, tt_tensor *tensor, int32_t peer, int32_t tag,
                        tt_work **work);

/* Waits until the work is done, and fails as it failed. timeout_ms -1: as long as it takes. */
tt_status tt_work_wait(tt_ctx *c, tt_work *w, int64_t timeout_ms);

/* Returns whether the work is done; tt_work_wait says how. */
tt_status tt_work_test(tt_ctx *c, tt_work *w, int32_t *out);

/* Waits for a receive, and returns the rank that has sent.
   @number out */
tt_status tt_work_source(tt_ctx *c, tt_work *w, int32_t *out);

/* Called with the status of a work, on a thread of tt. Must not call tt. */
typedef void (*tt_work_fn)(void *user, tt_status status);

/* Sets the callback of a work, which is called at its end, or at once if it is done. */
tt_status tt_work_on_done(tt_ctx *c, tt_work *w, tt_work_fn fn, void *user,
                          void (*drop)(void *user));

/* Adds and drops a reference. The work continues without one. */
void tt_work_retain(tt_work *w);
void tt_work_release(tt_work *w);

/* ---- data-parallel training ----
   Every rank has the same module and trains it on data of its own. Backward replaces the gradients
   of parameters by their mean over the ranks: it writes them into buckets, which a thread of tt
   reduces while backward goes on, and waits for them at its end. */

typedef struct tt_ddp_opts {
  uint64_t set;
  int64_t bucket_bytes;           /* default 26214400, at most 1048576 for the first bucket; the
                                     parameter that fills a bucket is its last one */
  int32_t broadcast_buffers;      /* default 1: a forward in training mode begins with the buffers
                                     of rank 0 */
  int32_t find_unused_parameters; /* default 0: a backward that leaves parameters without a gradient
                                     fails. 1: they count as zeros, unless no rank has a gradient */
  tt_dtype compression;           /* of the messages, such as TT_BF16; default: that of the
                                     gradients */
  int32_t pad;
} tt_ddp_opts;
#define TT_DDP_BUCKET_BYTES (UINT64_C(1) << 0)
#define TT_DDP_BROADCAST_BUFFERS (UINT64_C(1) << 1)
#define TT_DDP_FIND_UNUSED_PARAMETERS (UINT64_C(1) << 2)
#define TT_DDP_COMPRESSION (UINT64_C(1) << 3)

/* Begins data-parallel training of a module over a group. All ranks call it. The parameters and
   buffers of rank 0 replace those of the others; modules of other names, shapes or dtypes fail with
   TT_DISTRIBUTED, which names the rank. Parameters added later are not reduced. */
tt_status tt_ddp_new(tt_ctx *c, tt_module *m, tt_group *g, const tt_ddp_opts *opts, tt_ddp **out);

/* Replaces the buffers of the other ranks by those of rank 0, which begins a forward in training
   mode. tt_module_forward on the module does it by itself; models that are called otherwise need
   it. It has no effect while gradients are not recorded or tt_ddp_set_sync is off. */
tt_status tt_ddp_prepare_forward(tt_ctx *c, tt_ddp *d);

/* Sets whether backward reduces gradients; at first it does. While it is off, gradients add up in
   each process; the next backward that reduces them includes these sums. */
tt_status tt_ddp_set_sync(tt_ctx *c, tt_ddp *d, int32_t on);

/* Replaces the gradients that the parameters have by their means over the ranks. All ranks call it,
   after backwards while tt_ddp_set_sync was off, such as those of a captured step, which cannot
   record the reduction. */
tt_status tt_ddp_reduce(tt_ctx *c, tt_ddp *d);

/* A bucket of the gradients of this rank, for a hook; valid while it runs. */
typedef struct tt_ddp_bucket {
  int64_t index; /* of 0 … num_buckets - 1, the order in which backward fills them on all ranks */
  int64_t num_buckets;
  tt_tensor *buffer;           /* the gradients, one after the other: 1-dimensional */
  tt_tensor *const *gradients; /* views of buffer with the shapes of the parameters */
  tt_tensor *const *parameters;
  int64_t num_parameters;
  int32_t failed; /* 1 in finish: backward has failed; wait for what start has begun, and free it */
  int32_t pad;
} tt_ddp_bucket;

/* Called on the thread of backward, without recording gradients. If it fails, backward fails with
   TT_CALLBACK on this rank, and works of the others with TT_DISTRIBUTED, which names this rank. */
typedef tt_status (*tt_ddp_hook)(void *user, tt_ctx *ctx, const tt_ddp_bucket *bucket);

/* Lets the application reduce the gradients instead of tt; opts.compression has no effect then.
   start is called for each bucket as soon as it and those before are full, and may start work of
   this group or of others. finish is called at the end of backward, in the same order, once for
   each start that has succeeded; after a failure it may be as late as the next backward, and its
   result has no effect. The contents of buffer after finish are the gradients. All ranks call the
   same collectives in their hooks. In a group of one process hooks are called, too. All ranks call
   this function, which fails if only some of them have a hook. start NULL: tt reduces again.
   @null start: no hook
   @null finish: start leaves the gradients in buffer */
tt_status tt_ddp_set_hook(tt_ctx *c, tt_ddp *d, tt_ddp_hook start, tt_ddp_hook finish, void *user,
                          void (*drop)(void *user));

/* Adds and drops a reference. Dropping the last one leaves the module and its gradients as they
   are. */
void tt_ddp_retain(tt_ddp *d);
void tt_ddp_release(tt_ddp *d);

/* Lets the layers BatchNorm1d, 2d, 3d and SyncBatchNorm in a module normalize by the mean and the
   variance of the batches of all ranks, wherever they would use those of their batch. Their
   forward and backward are then collective calls, with batches of any size on each rank. A copy of
   the module uses its own batch.
   @null g: each process uses its own batch again */
tt_status tt_group_sync_batch_norm(tt_ctx *c, tt_group *g, tt_module *m);

/* ---- plans of graphs ----
   A plan is a graph as a list of kernel launches in one arena. A run of it allocates nothing,
   dispatches nothing and gives the bits that the operators gave. One thread runs a plan at a time;
   plans of one graph run side by side on several threads where they share no state. */

/* Options of tt_plan_new. */
typedef struct tt_plan_opts {
  uint64_t set;
  void *arena;         /* memory of the application, aligned to 64 bytes, that outlives the plan;
                          default: allocated */
  int64_t arena_bytes; /* its size: at least that of tt_graph_arena_bytes */
} tt_plan_opts;
#define TT_PLAN_ARENA (UINT64_C(1) << 0)
#define TT_PLAN_ARENA_BYTES (UINT64_C(1) << 1)

/* Returns the size of the arena that plans of the graph need. */
tt_status tt_graph_arena_bytes(tt_ctx *c, const tt_graph *g, int64_t *out);

/* Makes a plan of a graph, on the CPU and at most one CUDA device, whose memory is allocated beside
   the arena. There, the second run records launches that are the same in each run as CUDA graphs.
   Fails with TT_NOT_IMPLEMENTED for a graph with an operator that reads elements on the host.
   @null opts: the defaults */
tt_status tt_plan_new(tt_ctx *c, const tt_graph *g, const tt_plan_opts *opts, tt_plan **out);

/* Returns input i of the plan, or output i if `output` is set, as a tensor in the arena: write
   inputs, run, read outputs. Outputs hold the values of the last run. */
tt_status tt_plan_slot(tt_ctx *c, tt_plan *p, int32_t output, int64_t i, tt_tensor **out);

/* Runs the plan, or completes a run that tt_plan_run_for began. State that it writes, such as
   parameters, is written in place. A run that fails or is cancelled leaves state half written. */
tt_status tt_plan_run(tt_ctx *c, tt_plan *p);

/* As tt_plan_run, for ns nanoseconds: no launch begins after them. *done is 1 if the run is
   complete; otherwise the next call continues it. */
tt_status tt_plan_run_for(tt_ctx *c, tt_plan *p, int64_t ns, int32_t *done);

/* Adds and drops a reference. */
void tt_plan_retain(tt_plan *p);
void tt_plan_release(tt_plan *p);

/* ---- compiled functions ----
   A compiled function runs a function of the application once and records it; later calls with
   similar inputs replay the record, without dispatch and with the same bits. It may be a model,
   with gradients, or a whole training step with backward, clipping and the optimizer's step. A
   record serves inputs of the same shapes, strides, dtypes, devices and needs for gradients, under
   the same grad mode, autocast and default dtype, while modules are in the same mode (training or
   evaluation) and the same parameters have gradients. Other calls make another record.

   A record computes with tensors only. Numbers that the function reads from files or clocks,
   printing and other effects on the application happen in recorded calls only; a function that
   reads elements of tensors is not recorded. Learning rates and counts of optimizers are read anew
   in each call; schedulers belong outside. */

typedef struct tt_compiled tt_compiled;

/* Options of tt_compile. */
typedef struct tt_compile_opts {
  uint64_t set;
  int64_t limit; /* largest number of records; once it is reached, a call that no record serves
                    runs the function; default 8 */
  int32_t dynamic; /* 1: once three records differ only in the size of one dimension of the inputs
                      (or five in those of two), and the last one follows from the others, records
                      for further sizes are derived without running the function, which must not
                      branch on these sizes; default 0 */
  int32_t pad;
} tt_compile_opts;
#define TT_COMPILE_LIMIT (UINT64_C(1) << 0)
#define TT_COMPILE_DYNAMIC (UINT64_C(1) << 1)

/* Makes a compiled function. It runs nothing yet.
   @null drop: nothing; user must outlive the compiled function
   @null opts: the defaults */
tt_status tt_compile(tt_ctx *c, tt_fn fn, void *user, void (*drop)(void *user),
                     const tt_compile_opts *opts, tt_compiled **out);

/* Calls a compiled function. The results are the caller's, as those of operators: a result that is
   an input, a parameter or a view of one shares its memory, others have memory of their own.
   Gradients that the function leaves in leaves share the record's memory, which its next call
   overwrites, unless the application has one of them then.
   The function itself runs, unrecorded, if no record is possible: inputs share memory with state
   of a record, a result needs a gradient, a capture, vmap or trace is on, or another thread is in
   a call of this compiled function; tt_compiled_get_info says why. It must reach the memory of
   inputs through these alone: a record takes what it has of an input for the input.
   If cap is too small, the call fails with TT_BUFFER_TOO_SMALL, and *n_outs is the number of
   results; a replay has computed nothing then. An index out of range fails as in the operator;
   parameters may be half written. */
tt_status tt_compiled_call(tt_ctx *c, tt_compiled *f, const tt_tensor *const *inputs, int64_t n,
                           tt_tensor **outs, int64_t cap, int64_t *n_outs);

/* What a compiled function has done. */
typedef struct tt_compiled_info {
  int64_t n_records; /* that can be replayed */
  int64_t n_replays; /* calls that replayed one */
  int64_t n_runs;    /* calls that ran the function */
  const char *reason; /* why the last such call was not recorded; NULL: it was. Borrowed until the
                         next call */
} tt_compiled_info;

/* Describes a compiled function. */
tt_status tt_compiled_get_info(tt_ctx *c, const tt_compiled *f, tt_compiled_info *out);

/* Drops the records; later calls make new ones. */
tt_status tt_compiled_reset(tt_ctx *c, tt_compiled *f);

/* Adds and drops a reference. */
void tt_compiled_retain(tt_compiled *f);
void tt_compiled_release(tt_compiled *f);

/* ---- profiler and dispatch trace ---- */

/* The calls of one operator. */
typedef struct tt_profile_row {
  const char *op;    /* borrowed until the next start */
  int64_t calls;
  int64_t self_ns;   /* nanoseconds without the operators that it called */
  int64_t total_ns;  /* nanoseconds with them */
} tt_profile_row;

/* Starts counting the operators that the ctx calls. */
tt_status tt_profiler_start(tt_ctx *c);

/* Stops counting. */
tt_status tt_profiler_stop(tt_ctx *c);

/* Lists the operators of the last profile, those with the most total time first. They stay until
   the next start. */
tt_status tt_profiler_rows(tt_ctx *c, tt_profile_row *rows, int64_t cap, int64_t *n);

/* The kinds of events. */
enum {
  TT_EVENT_OP = 1,        /* an operator */
  TT_EVENT_KERNEL = 2,    /* a launch of a kernel; bytes and flops are its operator's */
  TT_EVENT_MODULE = 3,    /* forward of a module; "Linear_2" is the third Linear that was called */
  TT_EVENT_NODE = 4,      /* the gradient of an operator, in backward */
  TT_EVENT_MEMORY = 5,    /* memory of a result on the CPU that was allocated or released */
  TT_EVENT_OPTIMIZER = 6, /* a step of an optimizer */
  TT_EVENT_REGION = 7,    /* what tt_profiler_begin marks */
  TT_EVENT_COMMUNICATION = 8 /* a collective or transfer of a group, on a thread of tt; recorded by
                                the ctx that waits for it */
};

/* Options of tt_profiler_start_ex. */
typedef struct tt_profiler_start_opts {
  uint64_t set;
  int64_t capacity;       /* number of events that are kept, the latest ones; default 1048576. Twice
                             as many with profile_memory */
  int32_t record_shapes;  /* 1: events of operators have the shapes of their arguments; default 0 */
  int32_t profile_memory; /* 1: records memory; default 0 */
  int32_t with_flops;     /* 1: counts floating-point operations; default 0 */
  int32_t with_modules;   /* 1: records modules; default 0 */
} tt_profiler_start_opts;
#define TT_PROFILER_START_CAPACITY (UINT64_C(1) << 0)
#define TT_PROFILER_START_RECORD_SHAPES (UINT64_C(1) << 1)
#define TT_PROFILER_START_PROFILE_MEMORY (UINT64_C(1) << 2)
#define TT_PROFILER_START_WITH_FLOPS (UINT64_C(1) << 3)
#define TT_PROFILER_START_WITH_MODULES (UINT64_C(1) << 4)

/* Starts a profile that records events, in addition to the counts of tt_profiler_start. It forgets
   the previous profile. */
tt_status tt_profiler_start_ex(tt_ctx *c, const tt_profiler_start_opts *opts);

/* What one piece of work was and when it ran. */
typedef struct tt_profile_event {
  const char *name;         /* borrowed until the next start */
  int32_t kind;             /* TT_EVENT_… */
  int32_t n_shapes;         /* length of shapes */
  const int64_t *shapes;    /* for each argument of an operator the number of dimensions, then
                               their sizes; 0 for anything but a tensor. Borrowed until the next
                               start */
  int64_t id;               /* increases with each event; 0 for memory */
  int64_t parent;           /* id of the event around it; 0: none */
  int64_t begin_ns, end_ns; /* of a monotonic clock; end_ns is 0 while it runs */
  int64_t bytes;            /* of memory: allocated, negative if released; else allocated less
                               released inside the event */
  int64_t held;             /* of memory: the bytes that the recorded results hold afterwards */
  double flops;             /* with the events inside */
} tt_profile_event;

/* Lists the events of the last profile by their begin. Those that newer ones have replaced are
   missing. */
tt_status tt_profiler_events(tt_ctx *c, tt_profile_event *rows, int64_t cap, int64_t *n);

/* Returns the number of events that newer ones have replaced. */
tt_status tt_profiler_dropped(tt_ctx *c, int64_t *out);

/* The events of one kind and name together. */
typedef struct tt_profile_sum {
  const char *name; /* borrowed until the next start */
  int32_t kind;     /* TT_EVENT_… */
  int32_t pad;
  int64_t calls;
  int64_t self_ns;  /* nanoseconds without the events inside, but with kernels */
  int64_t total_ns; /* nanoseconds with them */
  int64_t bytes;    /* allocated less released */
  double flops;     /* with the events inside */
} tt_profile_sum;

/* Lists the sums of all events of the last profile, replaced ones too, those with the most total
   time first. */
tt_status tt_profiler_sums(tt_ctx *c, tt_profile_sum *rows, int64_t cap, int64_t *n);

/* Begins an event of a kind and a name that the application chooses, and returns its id: 0 if no
   profile records events.
   @number kind */
tt_status tt_profiler_begin(tt_ctx *c, int32_t kind, const char *name, int64_t *out);

/* Ends an event that tt_profiler_begin began, and those inside it. Does nothing for an event that
   has ended. */
tt_status tt_profiler_end(tt_ctx *c, int64_t event);

/* Writes the events of the last profile to a file that chrome://tracing and Perfetto show. A
   failing call leaves the file as it was. */
tt_status tt_profiler_chrome_trace(tt_ctx *c, const char *path);

/* Called before an operator runs, once for each slot that the call passes ("autograd", then "cpu",
   "cuda" or "meta"), with the depth of the call; operators that it calls in turn are one deeper.
   The callback may call tt; these calls are not traced. */
typedef void (*tt_trace_fn)(void *user, const char *op, const char *slot, int32_t depth);

/* Sets a callback that sees every operator call of the ctx.
   @null fn: no callback */
tt_status tt_ctx_trace_dispatch(tt_ctx *c, tt_trace_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
