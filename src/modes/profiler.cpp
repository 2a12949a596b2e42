#include "modes/profiler.h"

#include "base/os.h"
#include "dispatch/call.h"

#include <string.h>

namespace TT_NS {

static_assert(kWatchKeys == (bit(kKeyTrace) | bit(kKeyProfile)));

namespace {

struct Row {
  const OpInfo* op;
  ProfileRow counts;
  int64_t
      open;  // calls in progress: only the outermost call of a recursive operator adds to the total
};

// One running operator call, on the stack of the handler.
struct Frame {
  Frame* parent;
  int64_t row;       // -1: not profiled
  int64_t child_ns;  // time spent in operators that this one called
};

constexpr int64_t kRows =
    1024;  // a power of two; operators beyond three quarters of it are not profiled

struct Profiler : CtxPart {
  bool running;
  int64_t generation;  // a start invalidates the calls in progress
  Frame* top;
  int64_t n_rows;
  int16_t slot[kRows];  // hash table: index of a row + 1
  Row rows[kRows / 4 * 3];
  ProfileRow sorted[kRows / 4 * 3];
};

Profiler* of(Ctx& c) { return static_cast<Profiler*>(c.profiler); }

// Returns the row of op, added at its first call; -1 if the table is full.
int64_t row_of(Profiler& p, const OpInfo* op) {
  auto h = uint64_t(uintptr_t(op)) * 0x9e3779b97f4a7c15u >> 32;
  for (;; h++) {
    int16_t& s = p.slot[h & (kRows - 1)];
    if (s && p.rows[s - 1].op == op) return s - 1;
    if (s) continue;
    if (p.n_rows == kRows / 4 * 3) return -1;
    p.rows[p.n_rows] = Row{op, {op->name(), 0, 0, 0}, 0};
    s = int16_t(p.n_rows + 1);
    return p.n_rows++;
  }
}

class Measure {
 public:
  Measure(Profiler& p, const OpInfo* op)
      : p_(p), generation_(p.generation), frame_{p.top, row_of(p, op), 0}, start_(os_now_ns()) {
    p.top = &frame_;
    if (frame_.row >= 0) p.rows[frame_.row].open++;
  }
  ~Measure() {  // runs on failure, too
    if (p_.generation != generation_) return;
    const int64_t total = os_now_ns() - start_;
    p_.top = frame_.parent;
    if (frame_.parent) frame_.parent->child_ns += total;
    if (frame_.row < 0) return;
    Row& r = p_.rows[frame_.row];
    r.counts.calls++;
    r.counts.self_ns += total - frame_.child_ns;
    if (--r.open == 0) r.counts.total_ns += total;
  }
  Measure(const Measure&) = delete;

 private:
  Profiler& p_;
  int64_t generation_;
  Frame frame_;
  int64_t start_;
};

void profile_slot(Call c, const Value* args, TensorList& outs) {
  Profiler* p = of(ctx());
  c.keys &= ~bit(kKeyProfile);
  if (!p || !p->running) return c.op->call_boxed(c, args, outs);
  Measure measure(*p, c.op);
  c.op->call_boxed(c, args, outs);
}

void destroy(CtxPart* part) noexcept { mem_free(static_cast<Profiler*>(part), sizeof(Profiler)); }

}  // namespace

void profiler_start(Ctx& c) {
  Profiler* p = of(c);
  if (!p) {
    p = static_cast<Profiler*>(mem_alloc(sizeof(Profiler)));
    memset(static_cast<void*>(p), 0, sizeof *p);
    p->destroy_fn = destroy;
    c.profiler = p;
  }
  p->generation++;
  p->top = nullptr;
  p->n_rows = 0;
  p->running = true;
  memset(p->slot, 0, sizeof p->slot);
  __atomic_store_n(&fallbacks[kKeyProfile], &profile_slot, __ATOMIC_RELAXED);
  c.include |= bit(kKeyProfile);
}

void profiler_stop(Ctx& c) noexcept {
  if (Profiler* p = of(c)) p->running = false;
  c.include &= ~bit(kKeyProfile);
}

Span<const ProfileRow> profiler_rows(Ctx& c) noexcept {
  Profiler* p = of(c);
  if (!p) return {};
  int64_t n = 0;
  for (int64_t i = 0; i < p->n_rows; i++) {
    if (!p->rows[i].counts.calls) continue;
    int64_t at = n++;
    for (; at > 0 && p->sorted[at - 1].total_ns < p->rows[i].counts.total_ns; at--)
      p->sorted[at] = p->sorted[at - 1];
    p->sorted[at] = p->rows[i].counts;
  }
  return {p->sorted, n};
}

}  // namespace TT_NS
