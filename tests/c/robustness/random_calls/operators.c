/* Operators by name, all of the manifest, with arguments made from their schemas. */
#include "program.h"

enum { kMaxOps = 1200, kMaxArgs = 16 };

typedef struct Arg {
  char type[24];
  int optional; /* it has a default, or may be none */
} Arg;
typedef struct Op {
  char name[80];
  Arg args[kMaxArgs];
  int n;
} Op;
static Op ops[kMaxOps];
static int64_t n_ops;

int64_t num_operators(void) { return n_ops; }

/* ---- reading the manifest and the schemas ---- */

/* "name(self: Tensor, k: Int = 1) -> Tensor": types and whether they may be left out. */
static void read_args(Op* op, const char* schema) {
  const char* at = strchr(schema, '(') + 1;
  int brackets = 0;
  while (*at && *at != ')' && op->n < kMaxArgs) {
    Arg* a = &op->args[op->n++];
    const char* type = strchr(at, ':') + 2;
    size_t n = strcspn(type, " ,)");
    if (n >= sizeof a->type) n = sizeof a->type - 1;
    memcpy(a->type, type, n);
    a->optional = strchr(a->type, '?') != NULL || strncmp(type + n, " =", 2) == 0;
    for (at = type; *at && (brackets || (*at != ',' && *at != ')')); at++) {
      brackets += *at == '[';
      brackets -= *at == ']';
    }
    if (*at == ',') at += 2;
  }
}
static void add_operator(tt_ctx* c, const char* name) {
  const tt_op* op;
  if (tt_op_find(c, name, &op) || n_ops == kMaxOps) return;
  snprintf(ops[n_ops].name, sizeof ops[n_ops].name, "%s", name);
  read_args(&ops[n_ops], tt_op_schema(op));
  n_ops++;
}
void find_operators(tt_ctx* c) {
  static const char* const kVariants[] = {"", "_", "_into"};
  static const char kKey[] = "{\"name\":\"";
  const char* at = tt_manifest();
  int v;
  n_ops = 0;
  while ((at = strstr(at, kKey))) {
    const char* name = at + sizeof kKey - 1;
    for (v = 0; v < 3; v++) {
      char full[80];
      snprintf(full, sizeof full, "%.*s%s", (int)strcspn(name, "\""), name, kVariants[v]);
      add_operator(c, full);
    }
    at = name;
  }
}

/* ---- arguments ---- */

/* What the values of one call point to. */
typedef struct Room {
  int64_t ints[kMaxArgs][8];
  tt_tensor* tensors[kMaxArgs][4];
  tt_index indices[kMaxArgs][4];
} Room;

static void set_ints(Program* p, tt_value* v, int64_t* list, int sizes) {
  int64_t i;
  v->tag = one_in(p, 6) ? TT_VAL_INT : TT_VAL_INTS;
  v->n = below(p, 5);
  v->i = sizes ? size_or_not(p) : small_int(p);
  v->ints = list;
  for (i = 0; i < v->n; i++) list[i] = sizes ? size_or_not(p) : small_int(p);
}
static void set_tensors(Program* p, tt_value* v, tt_tensor** list, int may_be_null) {
  int64_t i;
  v->tag = TT_VAL_TENSORS;
  v->n = below(p, 5);
  v->tensors = list;
  for (i = 0; i < v->n; i++) {
    list[i] = i ? tensor_like(p, list[0]) : any_tensor(p);
    if (may_be_null && one_in(p, 3)) list[i] = NULL;
    if (may_be_null && list[i] && one_in(p, 2)) list[i] = integer_tensor(p);
  }
}
static int64_t set_index(Program* p, tt_index* list) {
  int64_t n = below(p, 4), i;
  for (i = 0; i < n; i++) {
    tt_index* x = &list[i];
    memset(x, 0, sizeof *x);
    x->kind = one_in(p, 50) ? (int32_t)small_int(p) : 1 + below(p, 5);
    x->has = (uint32_t)below(p, 8);
    x->start = small_int(p);
    x->stop = small_int(p);
    x->step = one_in(p, 5) ? small_int(p) : 1 + below(p, 2);
    x->tensor = x->kind == TT_IDX_TENSOR ? integer_tensor(p) : NULL;
  }
  return n;
}
static void set_text(Program* p, tt_value* v) {
  static const char* const kTexts[] = {
      "ij,jk->ik", "ij,ij->", "i,i->i", "...ij->...ji", "bij,bjk->bik", "same",    "valid",     "",
      "ij,,->",    "i->iii",  "linear", "ii->i",        "->",           "a b,c->", "ij->ij->ij"};
  v->tag = TT_VAL_STR;
  v->str = kTexts[below(p, sizeof kTexts / sizeof *kTexts)];
  v->n = (int64_t)strlen(v->str);
}

static int is(const Arg* a, const char* type) { return strncmp(a->type, type, strlen(type)) == 0; }

static void set_value(Program* p, const Arg* a, int i, Room* room, tt_value* v) {
  const tt_tensor* first = room->tensors[0][0];
  if (strstr(a->type, "Tensor[]") || strstr(a->type, "Tensor?[]")) {
    set_tensors(p, v, room->tensors[i], strchr(a->type, '?') != NULL);
  } else if (strstr(a->type, "Tensor")) {
    v->tag = TT_VAL_TENSOR;
    if (is(a, "Index")) v->tensor = integer_tensor(p);
    else v->tensor = i && !one_in(p, 3) ? tensor_like(p, first) : any_tensor(p);
    room->tensors[i][0] = v->tensor;
  } else if (is(a, "Scalar")) {
    v->tag = TT_VAL_SCALAR;
    v->scalar = any_scalar(p);
  } else if (is(a, "Float")) {
    v->tag = TT_VAL_FLOAT;
    v->f = any_real(p);
  } else if (is(a, "Bool")) {
    v->tag = TT_VAL_BOOL;
    v->i = below(p, 2);
  } else if (is(a, "Int[]") || is(a, "Dims")) {
    set_ints(p, v, room->ints[i], 0);
  } else if (is(a, "Size") || is(a, "Shape")) {
    set_ints(p, v, room->ints[i], 1);
  } else if (is(a, "DType")) {
    v->tag = TT_VAL_INT;
    v->i = any_dtype(p);
  } else if (is(a, "Device")) {
    v->tag = TT_VAL_DEVICE;
    v->device = any_device(p);
  } else if (is(a, "Generator")) {
    v->tag = TT_VAL_GENERATOR;
    v->generator = any_generator(p);
  } else if (is(a, "Str")) {
    set_text(p, v);
  } else if (is(a, "Index[]")) {
    v->tag = TT_VAL_INDEX;
    v->n = set_index(p, room->indices[i]);
    v->index = room->indices[i];
  } else { /* Int, Dim, Index, Enum, MemoryFormat */
    v->tag = TT_VAL_INT;
    v->i = small_int(p);
  }
}
/* Another kind of value than the schema says. */
static void spoil(Program* p, tt_value* v) {
  v->tag = below(p, 13);
  if (v->tag == TT_VAL_TENSORS && !v->tensors) v->n = below(p, 2);
  if (v->tag == TT_VAL_INTS && !v->ints) v->n = below(p, 2) - 1;
  if (v->tag == TT_VAL_STR && !v->str) v->n = below(p, 2) - 1;
  if (v->tag == TT_VAL_INDEX && !v->index) v->n = below(p, 2);
}

void call_operator(Program* p) {
  const Op* op = &ops[below(p, (int)n_ops)];
  tt_value args[kMaxArgs];
  tt_tensor* outs[16];
  Room room;
  const tt_op* handle;
  char what[120];
  int64_t n = 0, i;
  memset(args, 0, sizeof args);
  memset(&room, 0, sizeof room);
  if (tt_op_find(p->c, op->name, &handle)) return; /* the allocator may refuse */
  for (i = 0; i < op->n; i++) {
    if (op->args[i].optional && !one_in(p, 3)) continue;
    set_value(p, &op->args[i], (int)i, &room, &args[i]);
    if (one_in(p, 150)) spoil(p, &args[i]);
  }
  snprintf(what, sizeof what, "operator %s", op->name);
  {
    const int64_t cap = one_in(p, 100) ? below(p, 3) : 16;
    const Watch w = begin_call(p, what, 1);
    if (end_call(p, w, tt_op_call(p->c, handle, args, op->n - one_in(p, 200), outs, cap, &n)))
      return;
  }
  for (i = 0; i < n; i++) {
    /* Uninitialised memory must not influence the program. */
    void* data = strstr(op->name, "empty") ? tt_tensor_storage_data(outs[i]) : NULL;
    if (data) memset(data, 0, (size_t)tt_tensor_storage_bytes(outs[i]));
    keep_tensor(p, outs[i]);
  }
}

void act_tensor(Program* p) {
  tt_tensor *t = any_tensor(p), *other = tensor_like(p, t), *out = NULL;
  tt_to_opts to = {.set = TT_TO_DEVICE, .device = any_device(p)};
  tt_index index[4];
  const int64_t n_index = set_index(p, index);
  const tt_scalar s = any_scalar(p);
  const double real = any_real(p);
  const tt_dtype d = any_dtype(p);
  char text[200];
  double value;
  int64_t n;
  switch (below(p, 12)) {
    case 0: CALL(tt_index_get(p->c, t, index, n_index, &out)); break;
    case 1: ATOMIC(tt_index_set(p->c, t, index, n_index, other)); break;
    case 2: CALL(tt_add(p->c, t, other, &out)); break;
    case 3: CALL(tt_mul(p->c, t, other, &out)); break;
    case 4: ATOMIC(tt_add_(p->c, t, other)); break;
    case 5: ATOMIC(tt_mul_f64_(p->c, t, real)); break;
    case 6: CALL(tt_item_f64(p->c, t, &value)); break;
    case 7: CALL(tt_tensor_print(p->c, t, text, sizeof text, &n)); break;
    case 8: ATOMIC(tt_tensor_set_data(p->c, t, other)); break;
    case 9: CALL(tt_detach(p->c, t, &out)); break;
    case 10: CALL(tt_scalar_tensor(p->c, &s, d, &out)); break;
    default: CALL(tt_to(p->c, t, &to, &out));
  }
  keep_tensor(p, out);
}
