/* Programs of seeded random calls of the C API. A program owns pools of objects; an action picks
   some, calls tt with arguments that may be wrong, and adds the results to the pools. */
#ifndef TT_RANDOM_CALLS_PROGRAM_H
#define TT_RANDOM_CALLS_PROGRAM_H

#include "snapshot.h"

enum {
  kTensors = 40,
  kModules = 6,
  kOptimizers = 3,
  kSchedulers = 3,
  kDicts = 4,
  kGenerators = 2,
  kNodes = 3,
  kFiles = 2,
  kCapsules = 2,
  kCtxs = 2,
  kMaxDepth = 3,    /* of scopes */
  kMaxNested = 2,   /* of callbacks */
  kMaxNumel = 3000, /* larger tensors are not kept */
  kLists = 8
};

/* The state of a program in memory shared with the parent process, which reads it if the program
   dies. */
typedef struct Report {
  uint64_t seed;
  int64_t call;
  char what[120];
  int told; /* each call is printed, with its status */
} Report;

/* A tensor and the scope that owns it; depth 0: the program owns a reference. */
typedef struct Slot {
  tt_tensor* t;
  int ctx, depth;
} Slot;

typedef struct Program {
  uint64_t random;
  Report* report;
  tt_runtime* rt;
  tt_ctx* ctxs[kCtxs];
  tt_ctx* watcher;
  tt_ctx* c; /* of the running action */
  int at;    /* its index */
  int depth[kCtxs];
  int nested;        /* callbacks that are running */
  int polled;        /* a poll is one of them */
  int64_t reentered; /* calls made by callbacks */
  int64_t registered, drops;
  int64_t calls, failed;
  Slot tensors[kTensors];
  tt_module* modules[kModules];
  tt_optimizer* optimizers[kOptimizers];
  tt_scheduler* schedulers[kSchedulers];
  tt_state_dict* dicts[kDicts];
  tt_generator* generators[kGenerators];
  tt_node* nodes[kNodes];
  tt_safetensors* files[kFiles];
  void* capsules[kCapsules];
  int capsule_major[kCapsules];
  tt_device ext; /* of the registered device; type 0: none */
  char folder[64];
} Program;

/* ---- chance (chance.c) ---- */
uint64_t any(Program* p);
int below(Program* p, int n);
int one_in(Program* p, int n);
int64_t small_int(Program* p);   /* mostly from -1 to 5, at times any */
int64_t size_or_not(Program* p); /* mostly from 0 to 4 */
double any_real(Program* p);
tt_scalar any_scalar(Program* p);
tt_dtype any_dtype(Program* p);
tt_device any_device(Program* p);
int any_shape(Program* p, int64_t shape[8]); /* the number of dimensions */

/* ---- pools (pools.c) ---- */
tt_tensor* any_tensor(Program* p); /* rarely NULL or a handle of another type */
tt_tensor* tensor_like(Program* p, const tt_tensor* t); /* preferably of its shape */
tt_tensor* integer_tensor(Program* p);
tt_tensor* leaf_tensor(Program* p);
tt_tensor* made_tensor(Program* p, tt_dtype d, const int64_t* shape, int64_t ndim); /* or NULL */
void keep_tensor(Program* p, tt_tensor* t); /* an out of a call on p->c */
/* A copy without history that is in no pool, for a leaf or a module to hold. A tensor of a pool
   could be written in place later and get a history that leads back to its holder; both would
   then live for ever, as in PyTorch. Released by drop_copy. */
tt_tensor* private_copy(Program* p, const tt_tensor* t);
void drop_copy(Program* p, tt_tensor* t);
void keep_module(Program* p, tt_module* m);
tt_module* any_module(Program* p);
tt_optimizer* any_optimizer(Program* p);
tt_generator* any_generator(Program* p);
tt_state_dict* any_dict(Program* p);
void keep_dict(Program* p, tt_state_dict* d);
void forget_scope(Program* p, int depth, tt_tensor* const* kept, int64_t n);
void release_something(Program* p);
void release_all(Program* p);

/* ---- calls (calls.c) ---- */
typedef struct Watch {
  Snapshot* was;
  int64_t reentered;
} Watch;
Watch begin_call(Program* p, const char* what, int atomic);
tt_status end_call(Program* p, Watch w, tt_status s);
/* Records the call, makes an allocation fail at times, and checks status and error record.
   ATOMIC: checks at times, too, that a failing call changed nothing. */
#define CALL(...)                                    \
  do {                                               \
    const Watch w_ = begin_call(p, #__VA_ARGS__, 0); \
    (void)end_call(p, w_, (__VA_ARGS__));            \
  } while (0)
#define ATOMIC(...)                                  \
  do {                                               \
    const Watch w_ = begin_call(p, #__VA_ARGS__, 1); \
    (void)end_call(p, w_, (__VA_ARGS__));            \
  } while (0)
void program_fails(Program* p, const char* why, const char* detail);

/* ---- callbacks of the application (host.c) ---- */
void count_drop(void* user);
tt_status reenter(Program* p, tt_ctx* c); /* a callback's body: calls of its own, a status */
void (*counted_drop(Program* p))(void*);  /* for a registration that follows */
void open_backend(Program* p);

/* ---- actions ---- */
void find_operators(tt_ctx* c); /* all that the manifest names, once */
int64_t num_operators(void);
void call_operator(Program* p);
void act_tensor(Program* p);
void act_autograd(Program* p);
void act_module(Program* p);
void act_training(Program* p);
void act_state(Program* p);
void act_host(Program* p);
void act_ctx(Program* p);

#endif
