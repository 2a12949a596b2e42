/* tt_types.h: POD structs and constants of tt's ABI. C99, valid C++98-23. Values are append-only. */
#ifndef TT_TYPES_H
#define TT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status codes: 0 is success; each maps to one exception class of a host language ---- */
typedef int32_t tt_status;
enum {
  TT_OK = 0,
  TT_INVALID_ARG = 1,        /* a value outside its domain, NULL where one is needed */
  TT_SHAPE = 2,              /* shapes that do not fit each other or the operator */
  TT_DTYPE = 3,
  TT_DEVICE = 4,
  TT_INDEX = 5,              /* an index or a dim out of range */
  TT_OOM = 6,                /* the allocator or the memory limit said no */
  TT_IO = 7,
  TT_FORMAT = 8,
  TT_NOT_IMPLEMENTED = 9,    /* a valid call that tt has no kernel or formula for */
  TT_UNSUPPORTED_OPTION = 10,/* an option bit that this library does not know */
  TT_BUFFER_TOO_SMALL = 11,
  TT_BAD_HANDLE = 12,        /* NULL, another type, or (TT_CHECKED) a released handle */
  TT_AUTOGRAD = 13,          /* graph freed, stale saved tensor, in-place on a leaf, … */
  TT_CANCELLED = 14,
  TT_CALLBACK = 15,          /* a callback of the host returned an error or threw */
  TT_ABI = 16,
  TT_INTERNAL = 17
};

/* ---- dtypes ---- */
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
  TT_C128 = 12
};

/* ---- devices ---- */
typedef int32_t tt_device_type;
enum {
  TT_CPU = 1,
  TT_CUDA = 2,
  TT_META = 3,               /* shapes and dtypes only, no data */
  TT_EXT = 4                 /* a backend registered at run time */
};
typedef struct tt_device {
  int32_t type;              /* tt_device_type */
  int32_t index;             /* 0 for TT_CPU and TT_META; TT_EXT: as registered */
} tt_device;

/* ---- memory formats ---- */
typedef int32_t tt_memory_format;
enum {
  TT_CONTIGUOUS = 1,
  TT_PRESERVE = 2,
  TT_CHANNELS_LAST = 3,      /* N, H, W, C of 4 dimensions */
  TT_CHANNELS_LAST_3D = 4    /* N, D, H, W, C of 5 */
};

/* ---- scalars: take part in dtype promotion by their kind ---- */
enum {
  TT_SCALAR_BOOL = 1,        /* i is 0 or 1 */
  TT_SCALAR_INT = 2,         /* i */
  TT_SCALAR_FLOAT = 3,       /* re */
  TT_SCALAR_COMPLEX = 4      /* re, im */
};
typedef struct tt_scalar {
  int32_t kind;              /* TT_SCALAR_… */
  int32_t pad;
  int64_t i;
  double re, im;
} tt_scalar;

/* ---- a mixed index: x[1, :, None, ..., mask] is an array of these ---- */
enum {
  TT_IDX_INT = 1,            /* start */
  TT_IDX_SLICE = 2,          /* start:stop:step, has_* say which are given */
  TT_IDX_NONE = 3,           /* a new dimension of size 1 */
  TT_IDX_ELLIPSIS = 4,
  TT_IDX_TENSOR = 5          /* integer or boolean index tensor */
};
typedef struct tt_tensor tt_tensor;
typedef struct tt_index {
  int32_t kind;              /* TT_IDX_… */
  uint32_t has;              /* bit 0 start, bit 1 stop, bit 2 step (slices) */
  int64_t start, stop, step;
  const tt_tensor *tensor;
} tt_index;

/* ---- opaque handles ---- */
typedef struct tt_runtime tt_runtime;
typedef struct tt_ctx tt_ctx;
typedef struct tt_generator tt_generator;
typedef struct tt_node tt_node;
typedef struct tt_op tt_op;
typedef struct tt_cancel tt_cancel;
typedef struct tt_safetensors tt_safetensors;
typedef struct tt_state_dict tt_state_dict;
typedef struct tt_module tt_module;
typedef struct tt_optimizer tt_optimizer;
typedef struct tt_scheduler tt_scheduler;

/* ---- tagged values of the generic call (tt_op_call) ---- */
enum {
  TT_VAL_NONE = 0,
  TT_VAL_TENSOR = 1,         /* tensor */
  TT_VAL_TENSORS = 2,        /* tensors, n (NULL items allowed where the schema says Tensor?[]) */
  TT_VAL_SCALAR = 3,         /* scalar; goes as TT_VAL_INT, FLOAT or BOOL, too, if it is one */
  TT_VAL_INT = 4,            /* i */
  TT_VAL_FLOAT = 5,          /* f */
  TT_VAL_BOOL = 6,           /* i */
  TT_VAL_INTS = 7,           /* ints, n */
  TT_VAL_STR = 8,            /* str, n bytes */
  TT_VAL_GENERATOR = 9,      /* generator */
  TT_VAL_DEVICE = 10,        /* device */
  TT_VAL_INDEX = 11          /* index, n: a mixed index */
};
typedef struct tt_value {
  int32_t tag;               /* TT_VAL_… */
  int32_t pad;
  int64_t n;                 /* length of tensors, ints, str, index */
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

/* ---- the last error of a ctx: borrowed from it, valid until its next failing call ---- */
typedef struct tt_error {
  tt_status code;
  int32_t arg_index;         /* position of the offending argument, -1: not one argument */
  const char *op;            /* name of the function or operator, "" if none */
  const char *arg;           /* name of the offending argument, "" if none */
  const char *message;       /* the whole sentence; data, never a format string */
  int32_t ndim[2];           /* offending shapes: -1 = not set; at most 8 sizes are kept */
  int64_t shape[2][8];
  tt_dtype dtype[2];         /* offending dtypes: 0 = not set */
  const struct tt_error *cause; /* error inside a callback, or NULL */
} tt_error;

/* ---- hooks of the host: every struct starts with its size ---- */
typedef struct tt_allocator {
  size_t struct_size;
  void *user;
  /* Returns size bytes aligned to align (a power of two) or NULL. Called from any thread. */
  void *(*alloc)(void *user, size_t size, size_t align);
  /* size and align are those of the alloc call. */
  void (*free)(void *user, void *p, size_t size, size_t align);
} tt_allocator;

/* body(body_ctx, begin, end) computes indices [begin, end). */
typedef void (*tt_range_fn)(void *body_ctx, int64_t begin, int64_t end);
typedef struct tt_executor {
  size_t struct_size;
  void *user;
  int32_t (*num_threads)(void *user);
  /* Covers [0, n) by calls of body with ranges of at most grain indices each (the last may be shorter), every
     index exactly once, in any order, on any threads, serially too; returns when all are done: 0, or an error. */
  int32_t (*parallel_for)(void *user, int64_t n, int64_t grain, tt_range_fn body, void *body_ctx);
} tt_executor;

/* What a runtime has to say. DEBUG: its start; calls that fail, with the message of their status. INFO: device libraries that are
   opened, and what they say. WARNING: memory that is not to be had. log comes from the thread of the call it is about and must
   not call tt. */
enum { TT_LOG_DEBUG = 1, TT_LOG_INFO = 2, TT_LOG_WARNING = 3, TT_LOG_ERROR = 4 };
typedef struct tt_logger {
  size_t struct_size;
  void *user;
  void (*log)(void *user, int32_t level, const char *message);
} tt_logger;

/* Memory of a runtime, in bytes. */
typedef struct tt_memory_stats {
  int64_t in_use;            /* held by live objects */
  int64_t reserved;          /* taken from the allocator, caches included */
  int64_t peak;              /* largest `reserved` so far */
  int64_t limit;             /* 0 = none */
  int64_t live_tensors;
  int64_t live_nodes;
  int64_t live_handles;      /* tensor handles the host owns */
} tt_memory_stats;

#ifdef __cplusplus
}
#endif
#endif
