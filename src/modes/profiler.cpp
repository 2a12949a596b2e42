#include "modes/profiler.h"

#include "base/arith.h"
#include "dispatch/call.h"
#include "modes/clock.h"
#include "modes/event_ring.h"
#include "modes/memory_log.h"

#include <algorithm>
#include <string.h>

namespace TT_NS {

static_assert(kLastingKeys == (bit(kKeyCapture) | bit(kKeyTrace) | bit(kKeyProfile)));
static_assert(kKeptKeys == (kLastingKeys | bit(kKeyAutocast)));

namespace {

// The sums of one kind and name.
struct Row {
  const void* key;  // the OpInfo of an operator, else the name
  ProfileSum sum;
  int64_t open;  // running events: only the outermost of a recursion adds to the totals
};

// A running event.
struct Frame {
  int64_t id;
  Event* event;  // its place in the ring, which a newer event may have taken; NULL: none
  int64_t row;   // -1: none
  int64_t begin;
  int64_t inner_ns;  // time of the events inside, but for kernels
  int64_t bytes;     // allocated less released inside
  double inner_flops;
  double own_flops;  // negative: those of the events inside count
  EventKind kind;
};

// The number of a module among those of its type, in the order of their first calls.
struct Numbered {
  const void* module;
  const void* type;  // stored name
  const char* name;
};

constexpr int64_t kRows = 2048;              // a power of two
constexpr int64_t kMaxRows = kRows / 4 * 3;  // further names have no row
constexpr int64_t kMaxDepth = 512;           // deeper events are not recorded
constexpr int64_t kMaxModules = 1024;        // further modules have no number

struct Profiler : EventSink {
  Ctx* ctx;
  bool running;
  bool added;  // the ring has events that are not in the order of their begins
  ProfilerOptions options;
  Clock clock;
  int64_t last_id;
  int64_t depth;
  Frame frames[kMaxDepth];
  EventRing ring;
  NameTable names;
  int64_t n_modules;
  Numbered modules[kMaxModules];
  Ref<MemoryLog> memory;
  int64_t n_rows;
  int16_t slot[kRows];  // hash table: index of a row + 1
  Row rows[kMaxRows];
  ProfileRow sorted[kMaxRows];
};

Profiler* of(Ctx& c) { return static_cast<Profiler*>(c.profiler); }
Profiler& of(EventSink& s) { return static_cast<Profiler&>(s); }

// Returns the row of a key, added at its first event; -1 if the table is full.
int64_t row_of(Profiler& p, EventKind kind, const void* key, const char* name) {
  auto h = (uint64_t(uintptr_t(key)) + uint64_t(kind)) * 0x9e3779b97f4a7c15u >> 32;
  for (;; h++) {
    int16_t& s = p.slot[h & (kRows - 1)];
    if (s && p.rows[s - 1].key == key && p.rows[s - 1].sum.kind == kind) return s - 1;
    if (s) continue;
    if (p.n_rows == kMaxRows) return -1;
    p.rows[p.n_rows] = Row{key, {name, kind, 0, 0, 0, 0, 0, 0}, 0};
    s = int16_t(p.n_rows + 1);
    return p.n_rows++;
  }
}

const char* stored_name(Profiler& p, const char* name) {
  return static_cast<const char*>(p.names.find_or_add(name, int64_t(strlen(name)), p.ctx->heap));
}

// "Linear_2": the type and the number of a module, as in PyTorch's traces.
const char* module_name(Profiler& p, const char* type, const void* module) {
  const char* stored = stored_name(p, type);
  int64_t number = 0;
  for (int64_t i = 0; i < p.n_modules; i++) {
    const Numbered& m = p.modules[i];
    if (m.type != stored) continue;
    if (m.module == module) return m.name;
    number++;
  }
  if (!stored || p.n_modules == kMaxModules) return stored;
  char text[256];
  const FmtArg args[] = {stored, number};
  format_to(text, int64_t(sizeof text), "{}_{}", {args, 2});
  const char* name = stored_name(p, text);
  if (name) p.modules[p.n_modules++] = {module, stored, name};
  return name;
}

// Begins an event; returns its id, 0 if it is not recorded.
int64_t push(Profiler& p, EventKind kind, const void* key, const char* name) {
  if (p.depth == kMaxDepth) return 0;
  const int64_t parent = p.depth ? p.frames[p.depth - 1].id : 0;
  Frame& f = p.frames[p.depth++];
  f = Frame{.id = ++p.last_id,
            .event = nullptr,
            .row = row_of(p, kind, key, name),
            .begin = 0,
            .inner_ns = 0,
            .bytes = 0,
            .inner_flops = 0,
            .own_flops = -1,
            .kind = kind};
  if (f.row >= 0) p.rows[f.row].open++;
  if (p.options.events) f.event = p.ring.push(p.ctx->heap);
  f.begin = p.clock.now();
  if (f.event)
    *f.event = Event{.id = f.id,
                     .parent = parent,
                     .begin = f.begin,
                     .end = 0,
                     .name = name,
                     .bytes = 0,
                     .flops = 0,
                     .shapes = nullptr,
                     .n_shapes = 0,
                     .kind = kind};
  return f.id;
}

void pop(Profiler& p) {
  const int64_t now = p.clock.now();
  const Frame f = p.frames[--p.depth];
  const int64_t total = now - f.begin;
  const double flops = f.own_flops >= 0 ? f.own_flops : f.inner_flops;
  if (p.depth) {
    Frame& outer = p.frames[p.depth - 1];
    if (f.kind != EventKind::kKernel) outer.inner_ns += total;
    outer.inner_flops += flops;
    outer.bytes += f.bytes;
  }
  if (f.event && f.event->id == f.id) {
    f.event->end = now;
    f.event->bytes = f.bytes;
    f.event->flops = flops;
  }
  if (f.row < 0) return;
  Row& r = p.rows[f.row];
  r.sum.calls++;
  r.sum.self_ns += total - f.inner_ns;
  if (--r.open) return;
  r.sum.total_ns += total;
  r.sum.bytes += f.bytes;
  r.sum.flops += flops;
}

// Ends an event and those inside it; does nothing if it is not running.
void pop_to(Profiler& p, int64_t id) {
  int64_t at = p.depth;
  while (at > 0 && p.frames[at - 1].id > id) at--;
  if (!id || !at || p.frames[at - 1].id != id) return;
  while (p.depth >= at) pop(p);
}

int64_t begin_event(EventSink& sink, EventKind kind, const char* name,
                    const void* object) noexcept {
  Profiler& p = of(sink);
  if (!p.running) return 0;
  if (kind == EventKind::kModule && !p.options.modules) return 0;
  if (kind == EventKind::kModule && object) name = module_name(p, name, object);
  else if (kind != EventKind::kKernel) name = stored_name(p, name);
  return name ? push(p, kind, name, name) : 0;
}

void end_event(EventSink& sink, int64_t id) noexcept { pop_to(of(sink), id); }

void released(MemoryLog& log, int64_t bytes) noexcept {
  Profiler* p = tls.ctx ? of(*tls.ctx) : nullptr;
  if (p && p->memory.get() == &log && p->running && p->depth)
    p->frames[p->depth - 1].bytes -= bytes;
}

// ---- operators ----

template <class F> void each_tensor(const Value& v, const F& f) {
  if (v.kind == Value::kTensor) f(v.tensor);
  if (v.kind == Value::kTensorList)
    for (int64_t i = 0; i < v.n; i++)
      if (v.tensors[i]) f(v.tensors[i]);
}

// Stores the sizes of the arguments: for each tensor, and for each other argument, the number of
// its dimensions and their sizes.
void record_shapes(Profiler& p, Frame& f, const OpInfo& op, const Value* args) {
  constexpr int kMaxSizes = 128;
  int64_t sizes[kMaxSizes];
  int n = 0;
  bool fits = true;
  for (int64_t i = 0; i < op.schema->n_args; i++) {
    if (args[i].kind != Value::kTensor && args[i].kind != Value::kTensorList) {
      fits &= n < kMaxSizes;
      if (fits) sizes[n++] = 0;
      continue;
    }
    each_tensor(args[i], [&](const Tensor* t) {
      fits &= n + 1 + t->ndim <= kMaxSizes;
      if (!fits) return;
      sizes[n++] = t->ndim;
      for (int64_t size : t->sizes()) sizes[n++] = size;
    });
  }
  if (!fits) return;
  const void* stored = p.names.find_or_add(sizes, n * int64_t(sizeof(int64_t)), p.ctx->heap);
  f.event->shapes = static_cast<const int64_t*>(stored);
  f.event->n_shapes = stored ? n : 0;
}

bool is_argument(const OpInfo& op, const Value* args, const Storage* s) {
  bool found = false;
  for (int64_t i = 0; i < op.schema->n_args && !found; i++)
    each_tensor(args[i], [&](const Tensor* t) { found |= t->storage == s; });
  return found;
}

class OpEvent {
 public:
  OpEvent(Profiler& p, const OpInfo& op, const Value* args)
      : p_(p), op_(op), args_(args), id_(push(p, EventKind::kOp, &op, op.name())) {
    if (id_ && p.options.shapes && top().event) record_shapes(p, top(), op, args);
  }
  ~OpEvent() { pop_to(p_, id_); }  // runs on failure, too
  OpEvent(const OpEvent&) = delete;

  void add_results(const TensorList& outs) {
    if (!id_ || !p_.depth || top().id != id_) return;  // a callback started a new profile
    if (p_.options.flops && op_.schema->flops) top().own_flops = op_.schema->flops(args_, outs);
    if (!p_.options.memory) return;
    for (const TensorRef& t : outs) {
      if (!t || (t->flags & kBorrowedStorage) || is_argument(op_, args_, t->storage)) continue;
      top().bytes += watch_storage(*p_.memory, *t->storage, id_);
    }
  }

 private:
  Frame& top() { return p_.frames[p_.depth - 1]; }
  Profiler& p_;
  const OpInfo& op_;
  const Value* args_;
  int64_t id_;
};

void profile_slot(Call c, const Value* args, TensorList& outs) {
  Profiler* p = of(ctx());
  c.keys &= ~bit(kKeyProfile);
  if (!p || !p->running) return c.op->call_boxed(c, args, outs);
  OpEvent event(*p, *c.op, args);
  c.op->call_boxed(c, args, outs);
  event.add_results(outs);
}

void destroy(CtxPart* part) noexcept {
  auto* p = static_cast<Profiler*>(part);
  if (p->memory) memory_log_close(*p->memory);
  p->~Profiler();
  mem_free(p, sizeof(Profiler));
}

Profiler* new_profiler(Ctx& c) {
  auto* p = new (mem_alloc(sizeof(Profiler))) Profiler();
  p->destroy_fn = destroy;
  p->begin = begin_event;
  p->end = end_event;
  p->ctx = &c;
  return p;
}

void forget(Profiler& p) {
  p.depth = 0;
  p.n_rows = 0;
  p.n_modules = 0;
  p.added = false;
  memset(p.slot, 0, sizeof p.slot);
  p.names.clear();
}

void to_event(const Event& e, ProfileEvent* out) {
  const bool memory = e.kind == EventKind::kMemory;
  *out = ProfileEvent{.name = e.name,
                      .kind = e.kind,
                      .n_shapes = e.n_shapes,
                      .shapes = e.shapes,
                      .id = e.id,
                      .parent = e.parent,
                      .begin_ns = e.begin,
                      .end_ns = e.end,
                      .bytes = e.bytes,
                      .held = memory ? int64_t(e.flops) : 0,
                      .flops = memory ? 0 : e.flops};
}

}  // namespace

void profiler_start(Ctx& c, const ProfilerOptions& options) {
  Profiler* p = of(c);
  if (!p) c.profiler = p = new_profiler(c);
  profiler_stop(c);
  if (options.memory && !p->memory) p->memory = new_memory_log();
  forget(*p);
  p->ring.close();
  p->options = ProfilerOptions();
  p->clock.start();
  if (options.events) p->ring.open(options.capacity);
  if (options.memory) {
    atomic_store(&storage_released, &released, kRelaxed);
    memory_log_open(*p->memory, options.capacity, p->clock);
  }
  p->options = options;
  p->running = true;
  use_mode(kKeyProfile, &profile_slot);
  c.include |= bit(kKeyProfile);
  if (!options.events) return;
  c.events = p;
  c.watched |= kWatchKernels;
}

void profiler_stop(Ctx& c) noexcept {
  c.include &= ~bit(kKeyProfile);
  c.events = nullptr;
  c.watched &= uint8_t(~kWatchKernels);
  Profiler* p = of(c);
  if (!p || !p->running) return;
  while (p->depth) pop(*p);
  p->running = false;
  if (p->memory) memory_log_close(*p->memory);
}

// Such an event is inside no other, and no other is inside it.
void profiler_add(Ctx& c, const char* name, int64_t begin_ns, int64_t end_ns,
                  int64_t bytes) noexcept {
  if (!of(c) || !of(c)->running) return;
  Profiler& p = *of(c);
  const int64_t row = row_of(p, kCommunication, name, name);
  if (row >= 0) {
    ProfileSum& sum = p.rows[row].sum;
    sum.calls++;
    sum.self_ns += end_ns - begin_ns;
    sum.total_ns += end_ns - begin_ns;
    sum.bytes += bytes;
  }
  p.last_id++;
  Event* e = p.options.events ? p.ring.push(c.heap) : nullptr;
  if (!e) return;
  p.added = true;
  *e = Event{.id = p.last_id,
             .parent = 0,
             .begin = begin_ns,
             .end = end_ns,
             .name = name,
             .bytes = bytes,
             .flops = 0,
             .shapes = nullptr,
             .n_shapes = 0,
             .kind = kCommunication};
}

Span<const ProfileRow> profiler_rows(Ctx& c) {
  Profiler* p = of(c);
  if (!p) return {};
  int64_t n = 0;
  for (int64_t i = 0; i < p->n_rows; i++) {
    const ProfileSum& sum = p->rows[i].sum;
    if (sum.kind != EventKind::kOp || !sum.calls) continue;
    p->sorted[n++] = {sum.name, sum.calls, sum.self_ns, sum.total_ns};
  }
  std::sort(p->sorted, p->sorted + n,
            [](const ProfileRow& a, const ProfileRow& b) { return a.total_ns > b.total_ns; });
  return {p->sorted, n};
}

SmallVec<ProfileSum, 1> profiler_sums(Ctx& c) {
  SmallVec<ProfileSum, 1> sums;
  Profiler* p = of(c);
  for (int64_t i = 0; p && i < p->n_rows; i++)
    if (p->rows[i].sum.calls) sums.push_back(p->rows[i].sum);
  std::sort(sums.begin(), sums.end(),
            [](const ProfileSum& a, const ProfileSum& b) { return a.total_ns > b.total_ns; });
  return sums;
}

int64_t profiler_num_events(Ctx& c) {
  Profiler* p = of(c);
  if (!p) return 0;
  if (!p->options.memory) return p->ring.size();
  Lock lock(p->memory->mutex);
  return p->ring.size() + p->memory->ring.size();
}

int64_t profiler_dropped(Ctx& c) {
  Profiler* p = of(c);
  if (!p) return 0;
  if (!p->options.memory) return p->ring.dropped();
  Lock lock(p->memory->mutex);
  return p->ring.dropped() + p->memory->ring.dropped();
}

static int64_t merge(const EventRing& a, const EventRing* b, Span<ProfileEvent> room) {
  const int64_t n_b = b ? b->size() : 0;
  const int64_t n = min(room.n, a.size() + n_b);
  int64_t i = 0;
  int64_t j = 0;
  for (int64_t k = 0; k < n; k++) {
    const bool from_b = j < n_b && (i == a.size() || (*b)[j].begin < a[i].begin);
    to_event(from_b ? (*b)[j++] : a[i++], &room.ptr[k]);
  }
  return n;
}

// Events of other threads come into the ring when the ctx hears of their end.
static int64_t in_order(const Profiler& p, Span<ProfileEvent> room, int64_t n) {
  if (p.added)
    std::sort(room.ptr, room.ptr + n, [](const ProfileEvent& a, const ProfileEvent& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.id < b.id;
    });
  return n;
}

int64_t profiler_events(Ctx& c, Span<ProfileEvent> room) {
  Profiler* p = of(c);
  if (!p) return 0;
  if (!p->options.memory) return in_order(*p, room, merge(p->ring, nullptr, room));
  Lock lock(p->memory->mutex);
  return in_order(*p, room, merge(p->ring, &p->memory->ring, room));
}

}  // namespace TT_NS
