/* The objects of a program: pools of handles, each of which must be released. */
#include "dlpack.h"
#include "program.h"

/* ---- tensors ---- */

static int scope_of(const Program* p) { return p->nested ? 0 : p->depth[p->at]; }

static void clear_slot(Program* p, Slot* s) {
  tt_tensor* old = s->t;
  const int own = s->depth == 0;
  (void)p;
  memset(s, 0, sizeof *s);
  if (own) tt_tensor_release(old);
}

/* While a callback runs, its caller may be using objects of the pools: nothing is added or
   removed then. */
void keep_tensor(Program* p, tt_tensor* t) {
  Slot* s = &p->tensors[below(p, kTensors)];
  const int depth = scope_of(p);
  if (!t) return;
  if ((p->nested && s->t) || p->polled || tt_tensor_numel(t) > kMaxNumel) {
    if (!depth) tt_tensor_release(t);
    return;
  }
  clear_slot(p, s);
  s->t = t;
  s->ctx = p->at;
  s->depth = depth;
}

static double any_element(Program* p, tt_dtype d) {
  if (d == TT_BOOL) return below(p, 2);
  if (d == TT_F32 || d == TT_F64)
    return one_in(p, 30) ? any_real(p) : (below(p, 2001) - 1000) / 500.0;
  return below(p, 4);
}
tt_tensor* made_tensor(Program* p, tt_dtype d, const int64_t* shape, int64_t ndim) {
  double f64[512];
  float f32[512];
  int64_t i64[512];
  uint8_t flags[512];
  tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
  tt_tensor *t = NULL, *out = NULL;
  int64_t n = 1, i;
  for (i = 0; i < ndim; i++) n *= shape[i];
  if (n < 0 || n > 512) return NULL;
  for (i = 0; i < n; i++) {
    const double v = any_element(p, d);
    f64[i] = v;
    f32[i] = (float)v;
    i64[i] = (int64_t)(v == v && v < 100 && v > -100 ? v : 0);
    flags[i] = v != 0;
  }
  switch (d) {
    case TT_F64: CALL(tt_tensor_from_data(p->c, f64, TT_F64, shape, ndim, &out)); break;
    case TT_I64: CALL(tt_tensor_from_data(p->c, i64, TT_I64, shape, ndim, &out)); break;
    case TT_BOOL: CALL(tt_tensor_from_data(p->c, flags, TT_BOOL, shape, ndim, &out)); break;
    default: CALL(tt_tensor_from_data(p->c, f32, TT_F32, shape, ndim, &out));
  }
  if (!out || d == TT_F64 || d == TT_F32 || d == TT_I64 || d == TT_BOOL) return out;
  t = out;
  out = NULL;
  CALL(tt_to(p->c, t, &to, &out));
  if (!scope_of(p)) tt_tensor_release(t);
  return out;
}
/* Into a free place: objects picked for a call must stay. A callback may have filled the last
   one meanwhile. */
static tt_tensor* new_tensor(Program* p, tt_dtype d) {
  int64_t shape[8];
  const int ndim = any_shape(p, shape);
  tt_tensor* t = made_tensor(p, d, shape, ndim);
  int i = p->polled ? kTensors : 0;
  while (i < kTensors && p->tensors[i].t) i++;
  if (i == kTensors) {
    drop_copy(p, t);
    return p->tensors[below(p, kTensors)].t;
  }
  p->tensors[i].t = t;
  p->tensors[i].ctx = p->at;
  p->tensors[i].depth = scope_of(p);
  return t;
}
tt_tensor* any_tensor(Program* p) {
  tt_tensor* t = p->tensors[below(p, kTensors)].t;
  if (one_in(p, 150)) return NULL;
  if (one_in(p, 300)) return (tt_tensor*)p->c;
  if (one_in(p, 300)) return (tt_tensor*)any_module(p);
  return t ? t : new_tensor(p, any_dtype(p));
}
tt_tensor* private_copy(Program* p, const tt_tensor* t) {
  tt_tensor *bare = NULL, *out = NULL;
  CALL(tt_detach(p->c, t, &bare));
  CALL(tt_clone(p->c, bare, NULL, &out));
  drop_copy(p, bare);
  return out;
}
void drop_copy(Program* p, tt_tensor* t) {
  if (!scope_of(p)) tt_tensor_release(t);
}
static int same_shape(const tt_tensor* a, const tt_tensor* b) {
  return tt_tensor_ndim(a) == tt_tensor_ndim(b) &&
         memcmp(tt_tensor_shape(a), tt_tensor_shape(b), (size_t)tt_tensor_ndim(a) * 8) == 0;
}
tt_tensor* tensor_like(Program* p, const tt_tensor* t) {
  const int first = below(p, kTensors);
  int i;
  if (!tt_tensor_dtype(t) || one_in(p, 3)) return any_tensor(p);
  for (i = 0; i < kTensors; i++) {
    tt_tensor* other = p->tensors[(first + i) % kTensors].t;
    if (other && same_shape(other, t)) return other;
  }
  return any_tensor(p);
}
tt_tensor* integer_tensor(Program* p) {
  const int first = below(p, kTensors);
  int i;
  for (i = 0; i < kTensors && !one_in(p, 20); i++) {
    tt_tensor* t = p->tensors[(first + i) % kTensors].t;
    if (tt_tensor_dtype(t) == TT_I64) return t;
  }
  return new_tensor(p, TT_I64);
}
tt_tensor* leaf_tensor(Program* p) {
  const int first = below(p, kTensors);
  int i;
  for (i = 0; i < kTensors && !one_in(p, 10); i++) {
    tt_tensor* t = p->tensors[(first + i) % kTensors].t;
    if (tt_tensor_is_leaf(t) && tt_tensor_requires_grad(t)) return t;
  }
  return any_tensor(p);
}
/* The scope of that depth of the current ctx was popped: its tensors are released except
   kept[0…n), which moved to the outer scope. */
void forget_scope(Program* p, int depth, tt_tensor* const* kept, int64_t n) {
  int used[16] = {0};
  int i;
  int64_t k;
  for (i = 0; i < kTensors; i++) {
    Slot* s = &p->tensors[i];
    if (!s->t || s->ctx != p->at || s->depth != depth) continue;
    for (k = 0; k < n && (used[k] || kept[k] != s->t); k++) {}
    if (k < n) {
      used[k] = 1;
      s->depth = depth - 1;
    } else {
      memset(s, 0, sizeof *s);
    }
  }
}

/* ---- the others: an object that comes into a pool takes another's place ---- */

#define POOL(Type, Name, Plural, kSize, release) \
  Type* any_##Name(Program* p) {                 \
    if (one_in(p, 150)) return NULL;             \
    if (one_in(p, 300)) return (Type*)p->c;      \
    return p->Plural[below(p, kSize)];           \
  }                                              \
  void keep_##Name(Program* p, Type* o) {        \
    Type** place = &p->Plural[below(p, kSize)];  \
    if (p->nested && *place) place = NULL;       \
    if (place) {                                 \
      Type* old = *place;                        \
      if (!o) return;                            \
      *place = o;                                \
      release(old);                              \
    } else {                                     \
      release(o);                                \
    }                                            \
  }
POOL(tt_module, module, modules, kModules, tt_module_release)
POOL(tt_state_dict, dict, dicts, kDicts, tt_state_dict_release)

tt_optimizer* any_optimizer(Program* p) {
  return one_in(p, 100) ? (tt_optimizer*)any_module(p) : p->optimizers[below(p, kOptimizers)];
}
tt_generator* any_generator(Program* p) {
  return one_in(p, 100) ? (tt_generator*)any_module(p) : p->generators[below(p, kGenerators)];
}

static void drop_capsule(Program* p, int i) {
  void* capsule = p->capsules[i];
  p->capsules[i] = NULL;
  if (!capsule) return;
  if (p->capsule_major[i]) ((Versioned*)capsule)->deleter(capsule);
  else ((Managed*)capsule)->deleter(capsule);
}

void release_something(Program* p) {
  const int i = below(p, 200);
  if (p->nested) return;
#define LET_GO(place, release) \
  do {                         \
    release(place);            \
    (place) = NULL;            \
  } while (0)
  if (i < kTensors) clear_slot(p, &p->tensors[i]);
  else if (i < 50) LET_GO(p->modules[i % kModules], tt_module_release);
  else if (i < 60) LET_GO(p->optimizers[i % kOptimizers], tt_optim_release);
  else if (i < 70) LET_GO(p->schedulers[i % kSchedulers], tt_scheduler_release);
  else if (i < 80) LET_GO(p->dicts[i % kDicts], tt_state_dict_release);
  else if (i < 90) LET_GO(p->generators[i % kGenerators], tt_generator_release);
  else if (i < 100) LET_GO(p->nodes[i % kNodes], tt_node_release);
  else if (i < 110) LET_GO(p->files[i % kFiles], tt_safetensors_release);
  else if (i < 120) drop_capsule(p, i % kCapsules);
}

void release_all(Program* p) {
  int i;
  for (i = 0; i < kCtxs; i++) {
    p->at = i;
    p->c = p->ctxs[i];
    for (; p->depth[i]; p->depth[i]--) {
      if (tt_scope_pop(p->c, NULL, 0)) program_fails(p, "a scope cannot be popped", "");
      forget_scope(p, p->depth[i], NULL, 0);
    }
  }
  for (i = 0; i < kTensors; i++) clear_slot(p, &p->tensors[i]);
  for (i = 0; i < kSchedulers; i++) LET_GO(p->schedulers[i], tt_scheduler_release);
  for (i = 0; i < kOptimizers; i++) LET_GO(p->optimizers[i], tt_optim_release);
  for (i = 0; i < kModules; i++) LET_GO(p->modules[i], tt_module_release);
  for (i = 0; i < kDicts; i++) LET_GO(p->dicts[i], tt_state_dict_release);
  for (i = 0; i < kGenerators; i++) LET_GO(p->generators[i], tt_generator_release);
  for (i = 0; i < kNodes; i++) LET_GO(p->nodes[i], tt_node_release);
  for (i = 0; i < kFiles; i++) LET_GO(p->files[i], tt_safetensors_release);
  for (i = 0; i < kCapsules; i++) drop_capsule(p, i);
}
