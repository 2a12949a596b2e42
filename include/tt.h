/* tt.h: the C API of tt, an embeddable deep-learning core. C99, valid C++98-23.

   Two objects instead of global state: a tt_runtime (shared, thread-safe: allocator, threads, memory limit, devices)
   and a tt_ctx (cheap, one thread at a time, may move between threads: error record, grad mode, generator, scopes).
   Modes (grad mode, anomaly mode) belong to one ctx: setting one changes no other ctx.

   Errors. Every fallible call takes a tt_ctx first and returns a tt_status; 0 is success. On failure outs are NULL and
   inputs are unchanged, and tt_ctx_error tells what was wrong. The exceptions to "unchanged": a failing tt_backward may have
   accumulated some leaves; a cancelled or device-failed in-place or _into call leaves the values of its target unspecified; what
   a callback of the failing call has done stays done.

   Ownership. `T **out` is owned by the caller: release it. Pointers returned by value are borrowed. _release(NULL) is fine and
   legal from any thread. While a scope is open on the ctx its outs belong to the scope: do not release them.

   Threads may use the same objects as long as none changes them. What they may also do at once: set, take away and accumulate
   gradients; add and remove hooks of tensors and nodes; run backward (one that meets another thread's in a node fails with
   AUTOGRAD); draw from a tt_generator (each draw has numbers of its own). Memory that one thread writes while another uses it
   holds unspecified numbers. Modules, optimizers, schedulers and state dicts are changed by one thread at a time.

   Callbacks get the running call's ctx and may call tt with it. They must not leave by longjmp or pthread_exit. `drop` runs
   exactly once, also when the registering call fails, on any thread, and may only call _release functions. A C++ exception that
   leaves a callback fails the call with TT_CALLBACK (of an allocator: TT_OOM); one that leaves drop, a deleter, free or a logger
   is caught and dropped. */
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
const char *tt_version(void);                    /* "0.1.0" */
const char *tt_build_info(void);                 /* one line: version, compiler, ISAs, BLAS and its core type once loaded, SLEEF */
const char *tt_status_name(tt_status s);         /* "SHAPE", … */
const char *tt_dtype_name(tt_dtype d);           /* "float32", …; NULL if unknown */
int64_t tt_dtype_size(tt_dtype d);               /* bytes of an element; 0 if unknown */

/* ---- runtime ---- */
typedef struct tt_runtime_opts {
  size_t struct_size;
  const tt_allocator *allocator;                 /* NULL: the C allocator. Copied */
  const tt_executor *executor;                   /* NULL: tt's own threads. Copied */
  const tt_logger *logger;                       /* NULL: silent. Copied */
  int64_t memory_limit;                          /* bytes; 0: none */
  int32_t threads;                               /* 0 or 1: only the calling thread */
  int32_t isa;                                   /* 0: the best of this CPU; 1 baseline, 2 avx2, 3 avx512 (at most the best) */
  int32_t queue_drops;                           /* 1: drops and deleters of what a release ends wait for tt_runtime_poll, for hosts
                                                    that cannot be called from every thread. What waits when rt goes runs then */
  int32_t pad;
} tt_runtime_opts;
tt_status tt_runtime_new(const tt_runtime_opts *opts, tt_runtime **out);   /* opts may be NULL */
void tt_runtime_retain(tt_runtime *rt);
void tt_runtime_release(tt_runtime *rt);         /* its memory goes with its last object */
int64_t tt_runtime_poll(tt_runtime *rt);         /* runs queued drops on this thread, outside calls; returns how many */

/* ---- ctx ---- */
tt_status tt_ctx_new(tt_runtime *rt, tt_ctx **out);                        /* NULL: a private runtime */
void tt_ctx_retain(tt_ctx *c);
void tt_ctx_release(tt_ctx *c);
const tt_error *tt_ctx_error(const tt_ctx *c);                             /* borrowed; code 0 before the first failure */
tt_status tt_ctx_runtime(tt_ctx *c, tt_runtime **out);
tt_status tt_set_num_threads(tt_ctx *c, int32_t n);
int32_t tt_num_threads(const tt_ctx *c);
tt_status tt_set_memory_limit(tt_ctx *c, int64_t bytes);                   /* 0: none */
tt_status tt_memory(tt_ctx *c, const tt_device *device, tt_memory_stats *out); /* device NULL: the CPU */
/* What is alive in the runtime, by kind, and tensors by all that is told of them. bytes: of the elements of tensors, also where
   several share memory; the object alone of others. Rows by bytes, the most first. No other thread may use the runtime meanwhile. */
typedef struct tt_live_row {
  const char *kind;              /* "tensor", "node", "module", "optimizer", "scheduler", "state dict", "file", "generator", … */
  tt_dtype dtype;                /* from here on: of tensors, else 0 */
  tt_device device;
  int32_t requires_grad;
  int32_t ndim;
  int32_t pad;
  int64_t shape[8];              /* of more dims: the first 8 */
  int64_t count, bytes;
} tt_live_row;
tt_status tt_runtime_live(tt_ctx *c, tt_live_row *rows, int64_t cap, int64_t *n); /* *n rows; cap too small: BUFFER_TOO_SMALL */
tt_status tt_trim(tt_ctx *c);                                              /* gives cached memory back */
tt_status tt_ctx_isa(tt_ctx *c, int32_t *out);                             /* 1 baseline, 2 avx2, 3 avx512 */

/* Gradients are recorded while enabled (the default). This is a mode of the ctx alone: other ctxs,
   hence other threads, keep theirs, and a new ctx starts enabled. *previous may be NULL. */
tt_status tt_set_grad_enabled(tt_ctx *c, int32_t enabled, int32_t *previous);
int32_t tt_grad_enabled(const tt_ctx *c);

/* Scopes: outs made while one is open are borrowed from it. pop releases them but for keep[0…n), which move to the outer scope
   or, if there is none, to the caller. Each entry of keep moves one reference that the scope holds; a handle listed again, an
   outer scope's and the caller's own stay where they are. */
tt_status tt_scope_push(tt_ctx *c);
tt_status tt_scope_pop(tt_ctx *c, tt_tensor *const *keep, int64_t n);

/* Cancelling: calls of the ctx fail with TT_CANCELLED between two kernels or parts of a long one once the token is set, from any
   thread. What one call commits (a step, loaded values, running statistics) is whole: it waits for that. */
tt_status tt_cancel_new(tt_ctx *c, tt_cancel **out);
void tt_cancel_retain(tt_cancel *k);
void tt_cancel_release(tt_cancel *k);
void tt_cancel_request(tt_cancel *k);
tt_status tt_ctx_set_cancel(tt_ctx *c, tt_cancel *k);                      /* NULL: none */
/* Asks the host whether to go on, on the thread of the running call: where the token is asked, at most every 50 ms, and before
   other callbacks. A status other than 0 ends the call with CALLBACK. fn must not change what the call works on. fn NULL: none. */
typedef tt_status (*tt_poll_fn)(void *user, tt_ctx *ctx);
tt_status tt_ctx_set_poll(tt_ctx *c, tt_poll_fn fn, void *user, void (*drop)(void *user));

/* ---- random numbers: Philox4x32-10 ----
   Every ctx has a generator of its own. Calls of the ctx draw from it unless they are given another.
   The ctxs of a runtime draw different numbers, which follow from the seed of the runtime: the one
   that tt_runtime_manual_seed set or, if there is none, one from the system's entropy, read when it
   is first needed. The n-th ctx (1, 2, …) made since the seed was set starts with the generator
   whose seed is the runtime's XOR the n-th output of SplitMix64 started at 0. A program that seeds
   its runtime and then makes its ctxs in a fixed order thus draws the same numbers in every run.
   tt_manual_seed reseeds one existing ctx; tt_runtime_manual_seed concerns only ctxs made later.
   A process made by fork goes on with copies of its parent's generators. */
tt_status tt_runtime_manual_seed(tt_runtime *rt, uint64_t seed);           /* later ctxs count from 1 again */
tt_status tt_runtime_rng_state(tt_runtime *rt, uint64_t state[2]);         /* seed, ctxs made since it was set */
tt_status tt_runtime_set_rng_state(tt_runtime *rt, const uint64_t state[2]); /* as tt_runtime_rng_state gave it */
tt_status tt_generator_new(tt_ctx *c, uint64_t seed, tt_generator **out);
void tt_generator_retain(tt_generator *g);
void tt_generator_release(tt_generator *g);
tt_status tt_ctx_generator(tt_ctx *c, tt_generator **out);                 /* the ctx's own */
tt_status tt_manual_seed(tt_ctx *c, uint64_t seed);                        /* the ctx draws as tt_generator_new of seed */
tt_status tt_generator_state(tt_ctx *c, const tt_generator *g, uint64_t state[2]);     /* seed, offset */
tt_status tt_generator_set_state(tt_ctx *c, tt_generator *g, const uint64_t state[2]);

/* ---- devices ---- */
tt_status tt_device_parse(tt_ctx *c, const char *text, tt_device *out);    /* "cpu", "meta", "cuda", "cuda:1", a backend's name, "ext:1" */
tt_status tt_load_cuda(tt_ctx *c, const char *path);                       /* opens a backend library; NULL: libtt_cuda.so */
tt_status tt_device_count(tt_ctx *c, tt_device_type type, int32_t *out);
tt_status tt_synchronize(tt_ctx *c, const tt_device *device);              /* NULL: all; reports work that failed */

/* A device of the host, for all ctxs of the runtime: memory and operators of its own, through callbacks. Tensors on it cannot meet those
   of another runtime. Views, allocation, gradients and operators made of others (matmul is made of matmul_stack) need no
   backend; every other operator asks compute, by the name that tt_ctx_trace_dispatch shows, with the arguments as they were
   passed, unchecked. It sets n_outs new tensors (owned; tt_empty with its device and tt_tensor_data), or writes into the arguments
   that an in-place or _into operator changes; it may use tt, unrecorded. TT_NOT_IMPLEMENTED declines what it does not know,
   wrong arguments too: tt then copies the arguments to the CPU, runs the operator there and copies the results back. 0-dim
   and index tensors among the arguments may be CPU tensors. Callbacks come from the threads of the calls that need them, several
   at once if there are several ctxs. A compute that calls the operator it is asked for is asked again. */
typedef struct tt_backend_def {
  size_t struct_size;
  const char *name;              /* of the device: [a-z_][a-z0-9_]*, at most 31 bytes; copied */
  void *user;
  /* Memory: an address, to which tt adds offsets for views; NULL: no room. From any thread; they must not call tt. free gets
     back every block, if need be after the runtime has been released. */
  void *(*alloc)(void *user, int64_t bytes);
  void (*free)(void *user, void *p, int64_t bytes);
  /* kind 1: host to device, 2: device to host, 3: within the device. Done when it returns. */
  tt_status (*copy)(void *user, tt_ctx *ctx, void *dst, const void *src, int64_t bytes, int32_t kind);
  tt_status (*compute)(void *user, tt_ctx *ctx, const tt_op *op, const tt_value *args, int64_t n_args, tt_tensor **outs, int64_t n_outs); /* NULL: declines all */
  void (*drop)(void *user);      /* may be NULL; after the last free */
} tt_backend_def;
tt_status tt_backend_register(tt_ctx *c, const tt_backend_def *def, tt_device *out); /* *out is {TT_EXT, index}; at most 8 per runtime */

/* ---- tensors from and to host memory ---- */
/* Copies row-major data into a new CPU tensor. */
tt_status tt_tensor_from_data(tt_ctx *c, const void *data, tt_dtype dtype, const int64_t *shape, int64_t ndim, tt_tensor **out);
/* Wraps host memory without a copy. strides in elements, NULL: row-major. deleter(user) runs once, when the last tensor over
   the memory goes, also if this call fails. writable 0: in-place operators refuse it. */
tt_status tt_tensor_import(tt_ctx *c, void *data, tt_dtype dtype, const int64_t *shape, int64_t ndim, const int64_t *strides,
                           int32_t writable, void (*deleter)(void *user), void *user, tt_tensor **out);
/* DLPack, without a copy. major 0: a DLManagedTensor, 1: a DLManagedTensorVersioned. to: the receiver calls its deleter, on any thread,
   which releases t. from: the tensor calls the deleter when its memory is no longer used; if the call fails, *managed stays yours. */
tt_status tt_tensor_to_dlpack(tt_ctx *c, const tt_tensor *t, int32_t major, void **out);
tt_status tt_tensor_from_dlpack(tt_ctx *c, void *managed, int32_t major, tt_tensor **out);
/* A 0-dim tensor; dtype 0: bool, int64, float32 or complex64 by the scalar's kind. */
tt_status tt_scalar_tensor(tt_ctx *c, const tt_scalar *value, tt_dtype dtype, tt_tensor **out);
/* Writes all elements, row-major, into dst of `bytes` bytes (exactly numel * element size). */
tt_status tt_tensor_read(tt_ctx *c, const tt_tensor *t, void *dst, int64_t bytes);
/* The value of a tensor of one element. */
tt_status tt_item(tt_ctx *c, const tt_tensor *t, tt_scalar *out);
tt_status tt_item_f64(tt_ctx *c, const tt_tensor *t, double *out);
tt_status tt_item_i64(tt_ctx *c, const tt_tensor *t, int64_t *out);
/* Text as PyTorch prints it. *n gets the length without the closing 0; text of more than cap - 1 bytes: BUFFER_TOO_SMALL. */
tt_status tt_tensor_print(tt_ctx *c, const tt_tensor *t, char *buffer, int64_t cap, int64_t *n);

/* ---- tensors: facts. All return 0 or NULL for NULL ---- */
void tt_tensor_retain(tt_tensor *t);
void tt_tensor_release(tt_tensor *t);
tt_dtype tt_tensor_dtype(const tt_tensor *t);
tt_device_type tt_tensor_device_type(const tt_tensor *t);
int32_t tt_tensor_device_index(const tt_tensor *t);
int64_t tt_tensor_ndim(const tt_tensor *t);
int64_t tt_tensor_numel(const tt_tensor *t);
const int64_t *tt_tensor_shape(const tt_tensor *t);
const int64_t *tt_tensor_strides(const tt_tensor *t);   /* in elements */
int64_t tt_tensor_size(const tt_tensor *t, int64_t dim); /* dim may be negative; 0 if out of range */
int64_t tt_tensor_offset(const tt_tensor *t);           /* of the first element in the storage */
void *tt_tensor_data(const tt_tensor *t);               /* the first element; NULL on META */
int64_t tt_tensor_storage_bytes(const tt_tensor *t);
void *tt_tensor_storage_data(const tt_tensor *t);
uint32_t tt_tensor_version(const tt_tensor *t);         /* counts in-place writes to the storage */
int32_t tt_tensor_is_contiguous(const tt_tensor *t);
int32_t tt_tensor_is_writable(const tt_tensor *t);      /* 0: over memory that was imported as read-only */
int32_t tt_tensor_is_view(const tt_tensor *t);          /* of a base, in the sense of autograd */
int32_t tt_tensor_is_leaf(const tt_tensor *t);
int32_t tt_tensor_requires_grad(const tt_tensor *t);
/* leaf gets the storage, shape and dtype of src; handles to leaf stay valid. A graph that needs leaf in the shape, dtype or
   device that it had fails with AUTOGRAD in backward. */
tt_status tt_tensor_set_data(tt_ctx *c, tt_tensor *leaf, const tt_tensor *src);

/* ---- named tensors: the state of a module or an optimizer, the contents of a checkpoint ---- */
tt_status tt_state_dict_new(tt_ctx *c, tt_state_dict **out);
void tt_state_dict_retain(tt_state_dict *state);
void tt_state_dict_release(tt_state_dict *state);
int64_t tt_state_dict_size(const tt_state_dict *state);
const char *tt_state_dict_name(const tt_state_dict *state, int64_t i);     /* borrowed, until the next set; NULL if there is no i */
tt_status tt_state_dict_find(tt_ctx *c, const tt_state_dict *state, const char *name, int64_t *out); /* the index; INDEX if absent */
tt_status tt_state_dict_get(tt_ctx *c, const tt_state_dict *state, int64_t i, tt_tensor **out);
tt_status tt_state_dict_set(tt_ctx *c, tt_state_dict *state, const char *name, const tt_tensor *tensor); /* replaces, or appends */
const char *tt_state_dict_structure(const tt_state_dict *state);           /* what tt_torch_load found beside the tensors; NULL of others. Borrowed, until released */

/* ---- modules: trees of layers. The constructors of the layers are in tt_nn.h ---- */
void tt_module_retain(tt_module *m);
void tt_module_release(tt_module *m);
const char *tt_module_type(const tt_module *m);                            /* "Linear"; borrowed */
/* forward: inputs may hold NULL where an input is optional; INVALID_ARG tells how many a module takes. call: one in, one out. */
tt_status tt_module_forward(tt_ctx *c, tt_module *m, const tt_tensor *const *inputs, int64_t n, tt_tensor **outs, int64_t cap, int64_t *n_outs);
tt_status tt_module_call(tt_ctx *c, tt_module *m, const tt_tensor *input, tt_tensor **out);
/* Of the module and all below it: training mode (a new module has it on), gradients of the parameters (off: frozen), moves (device
   NULL, dtype 0: keep; a dtype is for floating and complex tensors; handles to the tensors stay valid). */
tt_status tt_module_train(tt_ctx *c, tt_module *m, int32_t on);
int32_t tt_module_training(const tt_module *m);
tt_status tt_module_requires_grad_(tt_ctx *c, tt_module *m, int32_t on);
tt_status tt_module_zero_grad(tt_ctx *c, tt_module *m);                    /* gradients become absent */
tt_status tt_module_to(tt_ctx *c, tt_module *m, const tt_device *device, tt_dtype dtype);
tt_status tt_module_copy(tt_ctx *c, const tt_module *m, tt_module **out);  /* deep; what is shared inside stays shared. Without hooks */
/* A name that the module has is replaced; names hold no dot. tensor NULL: declared, but absent. Parameters are leaves; requires_grad
   stays as it is. persistent 0: no part of the state dict. A child may have several parents, but not itself below it. */
tt_status tt_module_register_parameter(tt_ctx *c, tt_module *m, const char *name, const tt_tensor *tensor);
tt_status tt_module_register_buffer(tt_ctx *c, tt_module *m, const char *name, const tt_tensor *tensor, int32_t persistent);
tt_status tt_module_register_module(tt_ctx *c, tt_module *m, const char *name, tt_module *child);
tt_status tt_module_append(tt_ctx *c, tt_module *m, tt_module *child);     /* under the number of its children so far: "0", "1", … */
int64_t tt_module_num_children(const tt_module *m);
const char *tt_module_child_name(const tt_module *m, int64_t i);           /* borrowed; NULL if there is no i */
tt_status tt_module_child(tt_ctx *c, const tt_module *m, int64_t i, tt_module **out);
tt_status tt_module_get_submodule(tt_ctx *c, const tt_module *m, const char *path, tt_module **out); /* "layers.0"; INDEX if absent */
tt_status tt_module_get_tensor(tt_ctx *c, const tt_module *m, const char *path, tt_tensor **out);    /* "layers.0.weight"; *out NULL: declared, but absent */
/* Each parameter once, also if it has several names. The state dict: parameters and persistent buffers under all their names. */
tt_status tt_module_parameters(tt_ctx *c, const tt_module *m, tt_tensor **outs, int64_t cap, int64_t *n_outs);
tt_status tt_module_named_parameters(tt_ctx *c, const tt_module *m, tt_state_dict **out);
tt_status tt_module_named_buffers(tt_ctx *c, const tt_module *m, tt_state_dict **out);
tt_status tt_module_state_dict(tt_ctx *c, const tt_module *m, tt_state_dict **out);
typedef struct tt_module_load_state_dict_opts {
  uint64_t set;
  int32_t strict;                /* default 1: fails if names are missing or unknown */
} tt_module_load_state_dict_opts;
#define TT_MODULE_LOAD_STATE_DICT_STRICT (UINT64_C(1) << 0)
/* Copies the values; everything is checked before the first is written. */
tt_status tt_module_load_state_dict(tt_ctx *c, tt_module *m, const tt_state_dict *state, const tt_module_load_state_dict_opts *opts);
/* The tree as PyTorch prints it; buffer as in tt_tensor_print. */
tt_status tt_module_print(tt_ctx *c, const tt_module *m, char *buffer, int64_t cap, int64_t *n);
/* Before forward, on its inputs; after it, on its results. A replacement (owned) takes the place of the tensor at its index. */
typedef tt_status (*tt_module_pre_hook)(void *user, tt_ctx *ctx, tt_module *m, const tt_tensor *const *inputs, int64_t n, tt_tensor **replacements);
typedef tt_status (*tt_module_hook)(void *user, tt_ctx *ctx, tt_module *m, const tt_tensor *const *inputs, int64_t n_inputs,
                                    const tt_tensor *const *outs, int64_t n_outs, tt_tensor **replacements);
tt_status tt_module_register_forward_pre_hook(tt_ctx *c, tt_module *m, tt_module_pre_hook fn, void *user, void (*drop)(void *user), int64_t *id);
tt_status tt_module_register_forward_hook(tt_ctx *c, tt_module *m, tt_module_hook fn, void *user, void (*drop)(void *user), int64_t *id);
/* In backward, of a call that was recorded while the module had such hooks. Pre: on the gradients of its results, as they come. Then, on those
   (inputs) and on the gradients of the module's inputs (outs, which replacements of the same shape and dtype replace). NULL: no gradient came
   to that result; of inputs, all are NULL if none needs a gradient, else an input that got none has zeros. Inputs and results that need a
   gradient pass as copies; the graph keeps the module alive. */
tt_status tt_module_register_full_backward_pre_hook(tt_ctx *c, tt_module *m, tt_module_pre_hook fn, void *user, void (*drop)(void *user), int64_t *id);
tt_status tt_module_register_full_backward_hook(tt_ctx *c, tt_module *m, tt_module_hook fn, void *user, void (*drop)(void *user), int64_t *id);
tt_status tt_module_remove_hook(tt_ctx *c, tt_module *m, int64_t id);
/* A module of the host, which may stand inside tt's containers and have parameters and children of its own. forward sets outs
   (owned) and, unless it is 1, *n_outs. */
typedef struct tt_module_def {
  size_t struct_size;
  const char *name;              /* of the type, for printing and messages; copied */
  void *user;
  tt_status (*forward)(void *user, tt_ctx *ctx, tt_module *m, const tt_tensor *const *inputs, int64_t n_inputs, tt_tensor **outs, int64_t cap, int64_t *n_outs);
  tt_status (*copy)(void *user, tt_ctx *ctx, void **new_user); /* for tt_module_copy; NULL: it cannot be copied */
  void (*drop)(void *user);      /* may be NULL */
} tt_module_def;
tt_status tt_module_new_custom(tt_ctx *c, const tt_module_def *def, tt_module **out);

/* The forward of a MultiheadAttention with options; it does not run the module's hooks. *weights may be NULL without need_weights. */
typedef struct tt_nn_multihead_attention_forward_opts {
  uint64_t set;
  const tt_tensor *key_padding_mask; /* bool (true: left out) or floating (added): (N, S) or (S) */
  int32_t need_weights;              /* default 1; 0 is faster */
  const tt_tensor *attn_mask;        /* bool or floating: (L, S) or (N * heads, L, S) */
  int32_t average_attn_weights;      /* default 1: over the heads */
  int32_t is_causal;                 /* default 0; 1: attn_mask is the causal one */
} tt_nn_multihead_attention_forward_opts;
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_KEY_PADDING_MASK (UINT64_C(1) << 0)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_NEED_WEIGHTS (UINT64_C(1) << 1)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_ATTN_MASK (UINT64_C(1) << 2)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_AVERAGE_ATTN_WEIGHTS (UINT64_C(1) << 3)
#define TT_NN_MULTIHEAD_ATTENTION_FORWARD_IS_CAUSAL (UINT64_C(1) << 4)
tt_status tt_nn_multihead_attention_forward(tt_ctx *c, tt_module *m, const tt_tensor *query, const tt_tensor *key, const tt_tensor *value,
                                            const tt_nn_multihead_attention_forward_opts *opts, tt_tensor **out, tt_tensor **weights);

/* ---- files of tensors: safetensors ---- */
/* Writes tensors[i] under names[i]: into a new file beside path, which is synced and then takes path's place in one step, so that a
   crash leaves the old file or the new one. Tensors of any device and strides; not complex128, which the format lacks. */
typedef struct tt_safetensors_save_opts {
  uint64_t set;
  const char *const *metadata; /* key, value, key, value …: texts kept beside the tensors */
  int64_t n_metadata;          /* entries of metadata, twice the pairs */
} tt_safetensors_save_opts;
#define TT_SAFETENSORS_SAVE_METADATA (UINT64_C(1) << 0)
tt_status tt_safetensors_save(tt_ctx *c, const char *path, const char *const *names, tt_tensor *const *tensors, int64_t n,
                              const tt_safetensors_save_opts *opts);
/* Opens a file and checks its header; FORMAT names the byte and the reason. Tensors are read when they are asked for. */
tt_status tt_safetensors_open(tt_ctx *c, const char *path, tt_safetensors **out);
/* The same, but the tensors lie in the file as mapped into memory: read-only, without a copy, read from the disk as they are touched.
   Nobody may cut the file meanwhile: the system would stop the process. */
tt_status tt_safetensors_map(tt_ctx *c, const char *path, tt_safetensors **out);
void tt_safetensors_retain(tt_safetensors *f);
void tt_safetensors_release(tt_safetensors *f);
int64_t tt_safetensors_size(const tt_safetensors *f);                      /* the number of tensors; 0 for NULL */
const char *tt_safetensors_name(const tt_safetensors *f, int64_t i);       /* in the order of the file; NULL if there is no i. Borrowed */
tt_status tt_safetensors_find(tt_ctx *c, const tt_safetensors *f, const char *name, int64_t *out); /* the index; INDEX if absent */
tt_status tt_safetensors_get(tt_ctx *c, const tt_safetensors *f, int64_t i, tt_tensor **out);      /* a new tensor on the CPU */
int64_t tt_safetensors_metadata_size(const tt_safetensors *f);             /* pairs */
const char *tt_safetensors_metadata_key(const tt_safetensors *f, int64_t i);
const char *tt_safetensors_metadata_value(const tt_safetensors *f, int64_t i);

/* ---- PyTorch's files: what torch.save writes, as .pt or .pth ---- */
/* Their contents are named tensors and a structure, JSON text that says how these stand in lists, dicts …: null, true, false, ints, texts;
   {"tensor": name}, {"parameter": name} (an nn.Parameter); {"list": […]}, {"tuple": […]}, {"size": [ints]} (a torch.Size); {"dict": [[key, value], …]}, the
   same as "ordered" (an OrderedDict) and "counter"; {"float": "0x1.8p+1"} (also inf, -inf, nan), {"dtype": "float32"}, {"device": "cuda:0"}. At most 200
   containers in one another. A state dict is {"ordered": [["fc.weight", {"tensor": "fc.weight"}], …]}. */
/* All tensors of a file, on the CPU, each under the path of its first place ("model.fc.weight", "groups.0"; "tensor" if it is all), and its structure
   (tt_state_dict_structure). Tensors that share memory in the file share it; views and requires_grad stay. The pickle inside is read by a machine that
   calls nothing and knows what stands above alone; FORMAT names the byte and the reason of what is not as it should be. */
tt_status tt_torch_load(tt_ctx *c, const char *path, tt_state_dict **out);
/* Writes such a file, as by tt_safetensors_save: after a crash path is the old file or the new one; torch.load (weights_only too) reads it. structure names
   each of the tensors; NULL: a state dict, an OrderedDict of the tensors without their requires_grad. */
tt_status tt_torch_save(tt_ctx *c, const char *path, const tt_state_dict *tensors, const char *structure);

/* ---- checkpoints: the state of a training in one file, from which it goes on as if it had not stopped ---- */
typedef struct tt_checkpoint {
  size_t struct_size;
  tt_module *module;             /* NULL items are no part of it */
  tt_optimizer *optimizer;
  tt_scheduler *scheduler;
  tt_generator *generator;
  tt_state_dict *extra;          /* the host's own tensors; a load sets those that the file has */
} tt_checkpoint;
/* A safetensors file, written as by tt_safetensors_save: after a crash path is the old file or the new one. */
tt_status tt_checkpoint_save(tt_ctx *c, const char *path, const tt_checkpoint *parts);
/* All parts or none: what does not fit is found before anything is changed. Parts that the file has beyond those asked for are passed over. */
tt_status tt_checkpoint_load(tt_ctx *c, const char *path, const tt_checkpoint *parts);

/* ---- mixed indexing: x[1, ::2, None, ..., mask] ---- */
tt_status tt_index_get(tt_ctx *c, const tt_tensor *self, const tt_index *index, int64_t n, tt_tensor **out);
tt_status tt_index_set(tt_ctx *c, tt_tensor *self, const tt_index *index, int64_t n, const tt_tensor *value);

/* ---- autograd ---- */
tt_status tt_requires_grad_(tt_ctx *c, tt_tensor *self, int32_t on);
tt_status tt_retain_grad(tt_ctx *c, tt_tensor *self);
tt_status tt_tensor_grad(tt_ctx *c, const tt_tensor *self, tt_tensor **out);      /* *out NULL: none yet */
tt_status tt_tensor_set_grad(tt_ctx *c, tt_tensor *self, const tt_tensor *grad);  /* NULL: none */
typedef struct tt_backward_opts {
  uint64_t set;
  const tt_tensor *gradient;     /* of self; default: 1 (self must have one element) */
  int32_t retain_graph;          /* default: create_graph */
  int32_t create_graph;          /* default 0 */
  const tt_tensor *const *inputs; /* accumulate into these only; default: all leaves */
  int64_t n_inputs;
} tt_backward_opts;
#define TT_BACKWARD_GRADIENT (UINT64_C(1) << 0)
#define TT_BACKWARD_RETAIN_GRAPH (UINT64_C(1) << 1)
#define TT_BACKWARD_CREATE_GRAPH (UINT64_C(1) << 2)
#define TT_BACKWARD_INPUTS (UINT64_C(1) << 3)
/* Adds the gradients of self to the leaves' grad. */
tt_status tt_backward(tt_ctx *c, const tt_tensor *self, const tt_backward_opts *opts);
/* The same of several results at once: gradients[i] is that of tensors[i], or NULL: 1. */
tt_status tt_backward_all(tt_ctx *c, const tt_tensor *const *tensors, const tt_tensor *const *gradients, int64_t n, const tt_backward_opts *opts);
typedef struct tt_grad_opts {
  uint64_t set;
  const tt_tensor *const *grad_outputs; /* one per output, NULL items: 1 */
  int64_t n_grad_outputs;
  int32_t retain_graph;          /* default: create_graph */
  int32_t create_graph;          /* default 0: the results have no history */
  int32_t allow_unused;          /* default 0; 1: unused inputs get NULL */
} tt_grad_opts;
#define TT_GRAD_GRAD_OUTPUTS (UINT64_C(1) << 0)
#define TT_GRAD_RETAIN_GRAPH (UINT64_C(1) << 1)
#define TT_GRAD_CREATE_GRAPH (UINT64_C(1) << 2)
#define TT_GRAD_ALLOW_UNUSED (UINT64_C(1) << 3)
/* The gradients of outputs with respect to inputs: grads[0 … n_inputs), owned, all or none. */
tt_status tt_grad(tt_ctx *c, const tt_tensor *const *outputs, int64_t n_outputs, const tt_tensor *const *inputs, int64_t n_inputs,
                  const tt_grad_opts *opts, tt_tensor **grads);

/* Anomaly mode (off at first): a backward fails at the first operator whose gradient has nan, and names the forward operator. */
tt_status tt_set_anomaly_enabled(tt_ctx *c, int32_t enabled, int32_t *previous);
int32_t tt_anomaly_enabled(const tt_ctx *c);

/* Hooks. A callback returns 0, or a status that fails the backward with CALLBACK. */
typedef tt_status (*tt_grad_hook)(void *user, tt_ctx *ctx, const tt_tensor *grad, tt_tensor **replacement);
typedef tt_status (*tt_node_hook)(void *user, tt_ctx *ctx, tt_tensor *const *grads, int64_t n, tt_tensor **replacements);
typedef tt_status (*tt_accumulate_hook)(void *user, tt_ctx *ctx, const tt_tensor *leaf);
/* On the gradient of self, before it is accumulated or passed on; *replacement (owned) takes its place. */
tt_status tt_register_hook(tt_ctx *c, tt_tensor *self, tt_grad_hook fn, void *user, void (*drop)(void *user), int64_t *id);
/* After a leaf's gradient has been accumulated. */
tt_status tt_register_accumulate_hook(tt_ctx *c, tt_tensor *leaf, tt_accumulate_hook fn, void *user, void (*drop)(void *user), int64_t *id);
tt_status tt_remove_hook(tt_ctx *c, tt_tensor *self, int64_t id);
/* Nodes: the recorded operators. pre 1: before the formula, on the gradients of its outputs; 0: after it, on those of its inputs. */
tt_status tt_tensor_grad_fn(tt_ctx *c, const tt_tensor *self, tt_node **out);     /* *out NULL: a leaf */
const char *tt_node_name(const tt_node *n);                                       /* of the forward operator */
int64_t tt_node_num_inputs(const tt_node *n);
tt_status tt_node_next(tt_ctx *c, const tt_node *n, int64_t input, tt_node **out); /* NULL: a leaf or nothing */
tt_status tt_node_register_hook(tt_ctx *c, tt_node *n, int32_t pre, tt_node_hook fn, void *user, void (*drop)(void *user), int64_t *id);
tt_status tt_node_remove_hook(tt_ctx *c, tt_node *n, int64_t id);
void tt_node_retain(tt_node *n);
void tt_node_release(tt_node *n);

/* A function of the host with its own gradient. forward runs without recording and sets outs (owned); what it passes to
   tt_function_save comes back in backward, which sets one gradient (owned, or NULL) per input; grads may hold NULL. */
typedef struct tt_function tt_function;
typedef struct tt_function_def {
  size_t struct_size;
  const char *name;
  void *user;
  tt_status (*forward)(void *user, tt_ctx *ctx, tt_function *f, const tt_tensor *const *inputs, int64_t n_inputs, tt_tensor **outs, int64_t n_outs);
  tt_status (*backward)(void *user, tt_ctx *ctx, tt_function *f, tt_tensor *const *grads, int64_t n_outs, tt_tensor **input_grads, int64_t n_inputs);
  void (*drop)(void *user);      /* may be NULL */
} tt_function_def;
tt_status tt_function_apply(tt_ctx *c, const tt_function_def *def, const tt_tensor *const *inputs, int64_t n_inputs, tt_tensor **outs, int64_t n_outs);
tt_status tt_function_save(tt_ctx *c, tt_function *f, const tt_tensor *const *tensors, int64_t n);  /* in forward */
tt_status tt_function_saved(tt_ctx *c, tt_function *f, int64_t i, tt_tensor **out);                  /* in backward */

/* ---- operators by name ---- */
const char *tt_manifest(void);                   /* all operators, JSON; never freed */
tt_status tt_op_find(tt_ctx *c, const char *name, const tt_op **out);    /* built-in or registered with the ctx's runtime */
const char *tt_op_name(const tt_op *op);
const char *tt_op_schema(const tt_op *op);
/* args: one per schema argument, TT_VAL_NONE or missing at the end: the default. outs: owned tensors. */
tt_status tt_op_call(tt_ctx *c, const tt_op *op, const tt_value *args, int64_t n_args, tt_tensor **outs, int64_t cap, int64_t *n_outs);
/* A custom operator of the runtime: found, called, profiled and traced like a built-in one. The schema's types are those of
   tt_op_schema's texts but Tensor!, Enum and lists out; results of type IndexTensor or BoolTensor have no gradient. compute
   runs without recording and sets the outs (owned; returning an input is fine). backward may be NULL: the outs have no
   gradient then. What it is given has the values of the call: a tensor written since fails the backward. */
typedef struct tt_op_def {
  size_t struct_size;
  const char *schema;            /* "name(x: Tensor, k: Int) -> Tensor" */
  void *user;
  tt_status (*compute)(void *user, tt_ctx *ctx, const tt_value *args, int64_t n_args, tt_tensor **outs, int64_t n_outs);
  /* One gradient (owned, or NULL) per tensor argument, in order. */
  tt_status (*backward)(void *user, tt_ctx *ctx, tt_tensor *const *grads, int64_t n_outs, const tt_value *args, int64_t n_args,
                        tt_tensor *const *results, tt_tensor **input_grads, int64_t n_inputs);
  void (*drop)(void *user);
} tt_op_def;
tt_status tt_op_register(tt_ctx *c, const tt_op_def *def);

/* ---- optimizers: tt_optim_sgd and the like construct them (tt_optim.h) ----
   An optimizer holds its parameters in groups, each with its own values (lr, weight_decay, …, beta1 and beta2 for betas). With no
   parameters a constructor makes an optimizer without groups, to which they are added. Parameters are counted through all
   groups, in their order; the state of each has PyTorch's names (exp_avg, exp_avg_sq, momentum_buffer, …, step). */
void tt_optim_retain(tt_optimizer *opt);
void tt_optim_release(tt_optimizer *opt);
/* Parameters with the values that the constructor was given; in one group already: INVALID_ARG. */
tt_status tt_optim_add_param_group(tt_ctx *c, tt_optimizer *opt, tt_tensor *const *params, int64_t n);
/* One step on every parameter that has a gradient. All or nothing: what is wrong is found before anything is written. */
tt_status tt_optim_step(tt_ctx *c, tt_optimizer *opt);
/* Calls fn with gradients recorded: it clears them, computes the loss (*loss, owned), runs backward; then the step. */
typedef tt_status (*tt_optim_closure)(void *user, tt_ctx *ctx, tt_tensor **loss);
tt_status tt_optim_step_closure(tt_ctx *c, tt_optimizer *opt, tt_optim_closure fn, void *user, void (*drop)(void *user), tt_tensor **loss);
tt_status tt_optim_zero_grad(tt_ctx *c, tt_optimizer *opt, int32_t set_to_none);  /* 0: fills the gradients with 0 */
int64_t tt_optim_num_groups(const tt_optimizer *opt);
int64_t tt_optim_num_params(const tt_optimizer *opt);                             /* of all groups */
int64_t tt_optim_group_size(const tt_optimizer *opt, int64_t group);              /* parameters of a group; 0 if there is none */
tt_status tt_optim_param(tt_ctx *c, const tt_optimizer *opt, int64_t param, tt_tensor **out);
/* The values of a group by name; flags are 0 or 1. Schedulers keep initial_lr, max_lr, min_lr, base_momentum and max_momentum
   there too, absent (INDEX) until they are set. */
tt_status tt_optim_get_f64(tt_ctx *c, const tt_optimizer *opt, int64_t group, const char *name, double *out);
tt_status tt_optim_set_f64(tt_ctx *c, tt_optimizer *opt, int64_t group, const char *name, double value);
/* The state of a parameter by name: *out is shared with the optimizer (step: a copy, float32), NULL if there is none yet. A set
   one is copied, in the parameter's dtype, device and layout; NULL takes it away. */
tt_status tt_optim_get_state(tt_ctx *c, const tt_optimizer *opt, int64_t param, const char *name, tt_tensor **out);
tt_status tt_optim_set_state(tt_ctx *c, tt_optimizer *opt, int64_t param, const char *name, const tt_tensor *value);
/* The whole state as two lists, for checkpoints: tensors "state.3.exp_avg", numbers "state.3.step" and "param_groups.0.lr". The
   name goes into name[cap]; 96 bytes always do. An index past the end: INDEX. */
tt_status tt_optim_tensor_at(tt_ctx *c, const tt_optimizer *opt, int64_t i, char *name, int64_t cap, tt_tensor **out);
tt_status tt_optim_number_at(tt_ctx *c, const tt_optimizer *opt, int64_t i, char *name, int64_t cap, double *out);
int64_t tt_optim_num_tensors(const tt_optimizer *opt);
int64_t tt_optim_num_numbers(const tt_optimizer *opt);
tt_status tt_optim_load_tensor(tt_ctx *c, tt_optimizer *opt, const char *name, const tt_tensor *value);
tt_status tt_optim_load_number(tt_ctx *c, tt_optimizer *opt, const char *name, double value);

/* Clipping of the gradients of parameters, in place; those without one are passed over. norm: of all gradients as one vector, to
   *total; they are multiplied by max_norm / (total + 1e-6) where that is less than 1. */
typedef struct tt_clip_grad_norm_opts {
  uint64_t set;
  double norm_type;              /* positive or infinity; default 2 */
  int32_t error_if_nonfinite;    /* default 0; 1: a total that is nan or infinite is an error, and nothing is clipped */
} tt_clip_grad_norm_opts;
#define TT_CLIP_GRAD_NORM_NORM_TYPE (UINT64_C(1) << 0)
#define TT_CLIP_GRAD_NORM_ERROR_IF_NONFINITE (UINT64_C(1) << 1)
tt_status tt_clip_grad_norm_(tt_ctx *c, tt_tensor *const *params, int64_t n, double max_norm, const tt_clip_grad_norm_opts *opts, tt_tensor **total);
tt_status tt_clip_grad_value_(tt_ctx *c, tt_tensor *const *params, int64_t n, double clip_value);

/* ---- schedulers of learning rates: tt_lr_step and the like construct them (tt_optim.h). They hold their optimizer ---- */
void tt_scheduler_retain(tt_scheduler *s);
void tt_scheduler_release(tt_scheduler *s);
/* *factor of the learning rate that a group had at the start (lambda), or has now (multiplicative). */
typedef tt_status (*tt_lr_lambda_fn)(void *user, tt_ctx *ctx, int64_t epoch, int64_t group, double *factor);
tt_status tt_lr_lambda(tt_ctx *c, tt_optimizer *optimizer, tt_lr_lambda_fn fn, void *user, void (*drop)(void *user), int64_t last_epoch, tt_scheduler **out);
tt_status tt_lr_multiplicative(tt_ctx *c, tt_optimizer *optimizer, tt_lr_lambda_fn fn, void *user, void (*drop)(void *user), int64_t last_epoch, tt_scheduler **out);
tt_status tt_scheduler_step(tt_ctx *c, tt_scheduler *s);                          /* after the optimizer's */
tt_status tt_scheduler_step_to(tt_ctx *c, tt_scheduler *s, int64_t epoch);        /* by the closed form, where there is one */
int64_t tt_scheduler_last_epoch(const tt_scheduler *s);
tt_status tt_scheduler_get_last_lr(tt_ctx *c, const tt_scheduler *s, double *lrs, int64_t cap, int64_t *n);  /* one per group */
/* The state as a list: "last_epoch", "base_lrs.0", … and "2.last_epoch" of a scheduler's third part. */
int64_t tt_scheduler_num_numbers(const tt_scheduler *s);
tt_status tt_scheduler_number_at(tt_ctx *c, const tt_scheduler *s, int64_t i, char *name, int64_t cap, double *out);
tt_status tt_scheduler_load_number(tt_ctx *c, tt_scheduler *s, const char *name, double value);

/* ---- profiler and dispatch trace ---- */
typedef struct tt_profile_row {
  const char *op;                /* borrowed from the profile */
  int64_t calls;
  int64_t self_ns, total_ns;     /* without and with the operators that it called */
} tt_profile_row;
tt_status tt_profiler_start(tt_ctx *c);
tt_status tt_profiler_stop(tt_ctx *c);
tt_status tt_profiler_rows(tt_ctx *c, tt_profile_row *rows, int64_t cap, int64_t *n); /* by total time; until the next start */
/* fn sees every operator call before it runs: the slots that it passes ("autograd", then "cpu", "cuda" or "meta"), all at the
   call's depth; operators that it calls follow one deeper. fn may call tt, untraced. fn NULL: off. */
typedef void (*tt_trace_fn)(void *user, const char *op, const char *slot, int32_t depth);
tt_status tt_ctx_trace_dispatch(tt_ctx *c, tt_trace_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
