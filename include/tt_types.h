/* tt_types.h: structs and constants of tt's ABI. C99, valid C++98-23. Values are only added, never
   changed. */
#ifndef TT_TYPES_H
#define TT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call: 0 is success. Bindings turn each other status into an exception. */
typedef int32_t tt_status;
enum {
  TT_OK = 0,
  TT_INVALID_ARG = 1,         /* a value is outside its domain */
  TT_SHAPE = 2,               /* shapes do not fit each other or the operator */
  TT_DTYPE = 3,               /* the operator does not support the dtype */
  TT_DEVICE = 4,              /* tensors are on different devices, or a device does not exist */
  TT_INDEX = 5,               /* an index or a dimension is out of range */
  TT_OOM = 6,                 /* memory or the memory limit is exhausted */
  TT_IO = 7,                  /* reading or writing failed */
  TT_FORMAT = 8,              /* a file is malformed */
  TT_NOT_IMPLEMENTED = 9,     /* tt has no kernel or formula for a valid call */
  TT_UNSUPPORTED_OPTION = 10, /* the library does not know an option bit */
  TT_BUFFER_TOO_SMALL = 11,   /* a result does not fit the memory given for it */
  TT_BAD_HANDLE = 12,         /* a handle is NULL, of another type or (TT_CHECKED) released */
  TT_AUTOGRAD = 13,           /* a graph was freed, a saved tensor overwritten, a leaf written, … */
  TT_CANCELLED = 14,          /* the cancel token of the ctx was set */
  TT_CALLBACK = 15,           /* a callback of the application failed */
  TT_ABI = 16,                /* a library of another version */
  TT_INTERNAL = 17,           /* a defect of tt */
  TT_LINALG = 18,             /* a matrix is singular, not positive definite, or has no result */
  TT_DISTRIBUTED = 19         /* a process of a group failed, did not answer, or disagrees */
};

/* The type of a tensor's elements. */
typedef int32_t tt_dtype;
enum {
  TT_BOOL = 1,
  TT_U8 = 2,
  TT_I8 = 3,
  TT_I16 = 4,
  TT_I32 = 5,
  TT_I64 = 6,
  TT_F16 = 7,
  TT_BF16 = 8,
  TT_F32 = 9,
  TT_F64 = 10,
  TT_C64 = 11,
  TT_C128 = 12,
  /* Stored, moved, converted and compared, with bit operations and products: no other arithmetic,
     and no common dtype with other integers. */
  TT_U16 = 13,
  TT_U32 = 14,
  TT_U64 = 15
};

/* The kind of a device. */
typedef int32_t tt_device_type;
enum {
  TT_CPU = 1,
  TT_CUDA = 2,
  TT_META = 3, /* shapes and dtypes only, no data */
  TT_EXT = 4   /* a device of the application */
};
/* A device. */
typedef struct tt_device {
  int32_t type;  /* tt_device_type */
  int32_t index; /* 0 for TT_CPU and TT_META; TT_EXT: as registered */
} tt_device;

/* Facts about a CUDA device. */
typedef struct tt_device_properties {
  const char *name;               /* of the product; valid for ever */
  int32_t major, minor;           /* compute capability */
  int32_t multi_processor_count;
  int32_t warp_size;              /* threads of a warp */
  int32_t max_threads_per_multi_processor;
  int32_t is_integrated;          /* 1: shares its memory with the CPU */
  int64_t total_memory;           /* bytes */
  int64_t shared_memory_per_block;        /* bytes */
  int64_t shared_memory_per_block_optin;  /* bytes that a kernel may ask for */
  int64_t l2_cache_size;          /* bytes */
} tt_device_properties;

/* The memory of a runtime on a CUDA device, in bytes. */
typedef struct tt_device_memory {
  int64_t allocated;     /* of live blocks */
  int64_t max_allocated; /* largest `allocated` since it was reset */
  int64_t reserved;      /* taken from the device, caches included */
  int64_t max_reserved;  /* largest `reserved` since it was reset */
  int64_t limit;         /* of `reserved`; 0: none */
  int64_t free;          /* what the device has left, for all processes; 0: unknown */
  int64_t total;         /* what the device has; 0: unknown */
  int64_t allocations;   /* blocks handed out so far */
  int64_t retries;       /* times that cached memory was given back to make room */
  int64_t failures;      /* allocations that failed */
} tt_device_memory;

/* An order of dimensions in memory. */
typedef int32_t tt_memory_format;
enum {
  TT_CONTIGUOUS = 1,
  TT_PRESERVE = 2,
  TT_CHANNELS_LAST = 3,   /* N, H, W, C of 4 dimensions */
  TT_CHANNELS_LAST_3D = 4 /* N, D, H, W, C of 5 */
};

/* A number, which takes part in dtype promotion by its kind alone. */
enum {
  TT_SCALAR_BOOL = 1,   /* i is 0 or 1 */
  TT_SCALAR_INT = 2,    /* i */
  TT_SCALAR_FLOAT = 3,  /* re */
  TT_SCALAR_COMPLEX = 4 /* re, im */
};
typedef struct tt_scalar {
  int32_t kind; /* TT_SCALAR_… */
  int32_t pad;
  int64_t i;
  double re, im;
} tt_scalar;

/* ---- handles ---- */

/* A tensor: dtype, shape, strides, and memory that other tensors may share. */
typedef struct tt_tensor tt_tensor;
/* What contexts share: allocator, threads, memory limit, devices, custom operators. */
typedef struct tt_runtime tt_runtime;
/* The state of one thread at a time: error record, modes, generator, scopes. */
typedef struct tt_ctx tt_ctx;
/* A source of random numbers: Philox4x32-10, equal on every device. */
typedef struct tt_generator tt_generator;
/* A recorded operator. */
typedef struct tt_node tt_node;
/* An operator by name. */
typedef struct tt_op tt_op;
/* A token that cancels calls, from any thread. */
typedef struct tt_cancel tt_cancel;
/* An open safetensors file. */
typedef struct tt_safetensors tt_safetensors;
/* Named tensors: the state of a module or an optimizer, the contents of a checkpoint. */
typedef struct tt_state_dict tt_state_dict;
/* A layer, or a tree of layers. */
typedef struct tt_module tt_module;
/* Parameters in groups, the rule that updates them, and its state. */
typedef struct tt_optimizer tt_optimizer;
/* A schedule of learning rates; it holds its optimizer. */
typedef struct tt_scheduler tt_scheduler;
/* Samples by index, each a list of tensors. */
typedef struct tt_dataset tt_dataset;
/* An order of samples. */
typedef struct tt_sampler tt_sampler;
/* Batches of a dataset, made ahead by threads. */
typedef struct tt_loader tt_loader;
/* A captured graph of operators. */
typedef struct tt_graph tt_graph;
/* Processes that communicate. */
typedef struct tt_group tt_group;
/* A collective call or a transfer of a group, which runs or is done. */
typedef struct tt_work tt_work;
/* Data-parallel training of a module over a group. */
typedef struct tt_ddp tt_ddp;
/* A graph that is ready to run. */
typedef struct tt_plan tt_plan;

/* ---- a mixed index: x[1, :, None, ..., mask] is an array of these ---- */

enum {
  TT_IDX_INT = 1,   /* start */
  TT_IDX_SLICE = 2, /* start:stop:step, as far as `has` says that they are given */
  TT_IDX_NONE = 3,  /* a new dimension of size 1 */
  TT_IDX_ELLIPSIS = 4,
  TT_IDX_TENSOR = 5 /* integer or boolean index tensor */
};
/* Bit 0 of `has` of all tensors, while a capture is on: tt_index_get does not read their numbers;
   its result is a copy, and each run of the graph reads its own. */
typedef struct tt_index {
  int32_t kind; /* TT_IDX_… */
  uint32_t has; /* slices: bit 0 start, 1 stop, 2 step; TENSOR: bit 0, see above */
  int64_t start, stop, step;
  const tt_tensor *tensor;
} tt_index;

/* ---- tagged values of the generic call (tt_op_call) ---- */

enum {
  TT_VAL_NONE = 0,
  TT_VAL_TENSOR = 1,    /* tensor */
  TT_VAL_TENSORS = 2,   /* tensors, n; NULL items are allowed where the schema says Tensor?[] */
  TT_VAL_SCALAR = 3,    /* scalar; also accepted as TT_VAL_INT, FLOAT or BOOL if it is one */
  TT_VAL_INT = 4,       /* i */
  TT_VAL_FLOAT = 5,     /* f */
  TT_VAL_BOOL = 6,      /* i */
  TT_VAL_INTS = 7,      /* ints, n */
  TT_VAL_STR = 8,       /* str, n bytes */
  TT_VAL_GENERATOR = 9, /* generator */
  TT_VAL_DEVICE = 10,   /* device */
  TT_VAL_INDEX = 11     /* index, n: a mixed index */
};
typedef struct tt_value {
  int32_t tag; /* TT_VAL_… */
  int32_t pad;
  int64_t n;   /* length of tensors, ints, str, index */
  int64_t i;
  double f;
  tt_scalar scalar;
  tt_device device;
  tt_tensor *tensor;
  tt_tensor *const *tensors;
  const int64_t *ints;
  const char *str;
  tt_generator *generator;
  const tt_index *index;
} tt_value;

/* An error of a ctx. It is borrowed from the ctx and valid until its next failing call. */
typedef struct tt_error {
  tt_status code;
  int32_t arg_index;            /* position of the wrong argument; -1: not one argument */
  const char *op;               /* name of the function or operator, "" if none */
  const char *arg;              /* name of the wrong argument, "" if none */
  const char *message;          /* a sentence; data, never a format string */
  int32_t ndim[2];              /* dimensions of the wrong shapes; -1: not set */
  int64_t shape[2][8];          /* the wrong shapes; at most 8 sizes are kept */
  tt_dtype dtype[2];            /* the wrong dtypes; 0: not set */
  const struct tt_error *cause; /* the error inside a callback, or NULL */
} tt_error;

/* ---- hooks of the application. Every struct starts with its size ---- */

/* Memory of the application. Called from any thread. */
typedef struct tt_allocator {
  size_t struct_size;
  void *user;
  /* Returns size bytes aligned to align (a power of two), or NULL. A misaligned block is none. */
  void *(*alloc)(void *user, size_t size, size_t align);
  /* Takes memory back; size and align are those of the alloc call. */
  void (*free)(void *user, void *p, size_t size, size_t align);
} tt_allocator;

/* Computes the indices [begin, end). */
typedef void (*tt_range_fn)(void *body_ctx, int64_t begin, int64_t end);
/* Threads of the application. */
typedef struct tt_executor {
  size_t struct_size;
  void *user;
  /* Returns the number of threads. */
  int32_t (*num_threads)(void *user);
  /* Covers [0, n) by calls of body, each with a range of at most grain indices: every index exactly
     once, in any order, on any threads or on one. Returns when all are done: 0, or an error. */
  int32_t (*parallel_for)(void *user, int64_t n, int64_t grain, tt_range_fn body, void *body_ctx);
} tt_executor;

enum { TT_LOG_DEBUG = 1, TT_LOG_INFO = 2, TT_LOG_WARNING = 3, TT_LOG_ERROR = 4 };
/* Receives the messages of a runtime. DEBUG: its start, and calls that fail, with the message of
   their status. INFO: device libraries that are opened, and their messages. WARNING: memory that is
   not available. Called on the thread of the call that it is about; must not call tt. */
typedef struct tt_logger {
  size_t struct_size;
  void *user;
  void (*log)(void *user, int32_t level, const char *message);
} tt_logger;

/* The memory of a runtime, in bytes. */
typedef struct tt_memory_stats {
  int64_t in_use;       /* held by live objects */
  int64_t reserved;     /* taken from the allocator, caches included */
  int64_t peak;         /* largest `reserved` so far */
  int64_t limit;        /* 0: none */
  int64_t live_tensors;
  int64_t live_nodes;
  int64_t live_handles; /* tensor handles that the application owns */
} tt_memory_stats;

#ifdef __cplusplus
}
#endif
#endif
