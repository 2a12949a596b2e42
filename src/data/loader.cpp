#include "data/loader.h"

#include "base/arith.h"
#include "base/os_thread.h"

#include <string.h>

namespace TT_NS {

namespace {

// Holds the loader's mutex; wait() gives it up until something has changed.
class Turn {
 public:
  explicit Turn(Loader& l) : l_(l) { l_.mutex.lock(); }
  ~Turn() { l_.mutex.unlock(); }
  Turn(const Turn&) = delete;
  void wait() noexcept {
    const uint32_t seen = l_.changed;
    l_.mutex.unlock();
    os_wait(&l_.changed, seen);
    l_.mutex.lock();
  }
  void tell() noexcept {
    atomic_fetch_add(&l_.changed, 1, kRelease);
    os_wake(&l_.changed, INT32_MAX);
  }

 private:
  Loader& l_;
};

// A batch that this thread makes.
struct Claim {
  int64_t number;
  int64_t first;  // sample of a stream
  SmallVec<int64_t, 64> indices;
};

LoaderSlot& slot_of(Loader& l, int64_t number) { return l.ring[number % l.ring.size()]; }

bool can_claim(const Loader& l) {
  return l.running && !l.exhausted && !l.stopping && !l.streaming &&
         l.claimed < l.delivered + l.ring.size();
}

// The error's message without the name of the call, which loader_next writes in front again.
const char* message_of(const tt_error& e) noexcept {
  if (!e.message) return "";
  const size_t n = strlen(tls.op);
  return strncmp(e.message, tls.op, n) == 0 && e.message[n] == ':' ? e.message + n + 2 : e.message;
}

void store_error(LoaderSlot& slot) noexcept {
  const tt_error& e = tls.error->view;
  slot.state = LoaderSlot::kFailed;
  slot.code = e.code ? e.code : tt_status(TT_INTERNAL);
  const FmtArg text[] = {message_of(e)};
  format_to(slot.message, int64_t(sizeof slot.message), "{}", {text, 1});
  slot.cause_code = e.cause ? e.cause->code : tt_status(TT_OK);
  const FmtArg cause[] = {e.cause ? e.cause->message : ""};
  format_to(slot.cause, int64_t(sizeof slot.cause), "{}", {cause, 1});
}
[[noreturn]] void fail_as_stored(const LoaderSlot& slot) {
  if (slot.cause_code) {
    const FmtArg cause[] = {slot.cause};
    set_error(tls.error, slot.cause_code, "", "", "{}", {cause, 1});
    error_to_cause(tls.error);
  }
  fail(slot.code, "{}", Span<const char>{slot.message, int64_t(strlen(slot.message))});
}

// Takes the indices of the next batch. Returns false if there is none. The caller has checked
// can_claim.
bool claim(Loader& l, Claim* c) {
  c->number = l.claimed;
  c->first = l.start.position + l.claimed * l.options.batch_size;
  LoaderSlot& slot = slot_of(l, l.claimed);
  if (l.dataset->is_stream()) {
    l.streaming = true;
  } else {
    int64_t n = 0;
    try {
      c->indices.resize(l.options.batch_size);
      n = sampler_next(*l.sampler, c->indices.data(), l.options.batch_size);
      c->indices.resize(n);
    } catch (...) {
      store_error(slot);
      l.claimed++;
      l.exhausted = true;
      return false;
    }
    if (!n || (n < l.options.batch_size && l.options.drop_last)) {
      l.exhausted = true;
      return false;
    }
  }
  slot.state = LoaderSlot::kClaimed;
  l.claimed++;
  l.in_flight++;
  return true;
}

// Runs without the lock.
TensorList make(Loader& l, const Claim& c) {
  if (!l.dataset->is_stream()) return batch_of(*l.dataset, c.indices.span());
  TensorList batch = batch_of_stream(*l.dataset, c.first, l.options.batch_size);
  const bool whole = batch.size() && batch[0]->size(0) == l.options.batch_size;
  return whole || !l.options.drop_last ? std::move(batch) : TensorList();
}

// Makes a claimed batch and puts it into its slot. The caller holds the turn.
void make_claimed(Loader& l, Turn& turn, const Claim& c) {
  LoaderSlot made;
  l.mutex.unlock();
  try {
    made.batch = make(l, c);
    made.state = LoaderSlot::kReady;
  } catch (...) {
    store_error(made);
  }
  l.mutex.lock();
  l.in_flight--;
  if (l.dataset->is_stream()) {
    l.streaming = false;
    const bool whole = made.batch.size() && made.batch[0]->size(0) == l.options.batch_size;
    if (made.state == LoaderSlot::kReady && !whole) l.exhausted = true;
    if (made.state == LoaderSlot::kReady && !made.batch.size()) l.claimed--;
    else slot_of(l, c.number) = std::move(made);
  } else {
    slot_of(l, c.number) = std::move(made);
  }
  turn.tell();
}

// ---- workers ----

void delete_loader(Loader* l) noexcept {
  for (LoaderWorker& w : l->workers)
    if (w.ctx) Ref<Ctx>::adopt(w.ctx).reset();
  Runtime* rt = l->rt;
  l->tag = 0;
  l->~Loader();
  mem_retire(l, sizeof *l);
  Ref<Runtime>::adopt(rt).reset();
}

// Joins all workers but the calling one.
void join_workers(Loader* l) noexcept {
  for (LoaderWorker& w : l->workers) {
    if (!w.started) continue;
    if (tls.ctx == w.ctx) os_thread_detach(&w.thread);
    else os_thread_join(&w.thread);
    w.started = false;
  }
}

void run_worker(void* arg) {
  auto& w = *static_cast<LoaderWorker*>(arg);
  Loader& l = *w.loader;
  tls.ctx = w.ctx;
  tls.error = &w.ctx->error;
  tls.op = "loader";
  bool usable = true;
  try {
    ctx_rebind(w.ctx);
  } catch (...) {
    usable = false;  // others make the batches
  }
  tls.heap = w.ctx->heap;
  bool last = false;
  {
    Turn turn(l);
    while (!l.stopping) {
      Claim c;
      if (!usable || !can_claim(l)) turn.wait();
      else if (claim(l, &c)) make_claimed(l, turn, c);
      else turn.tell();
    }
    last = l.orphaned;
    l.orphaned = false;
  }
  if (last) {
    join_workers(&l);
    tls.ctx = nullptr;
    return delete_loader(&l);
  }
  tls.ctx = nullptr;
}

bool on_a_worker(const Loader& l) {
  for (const LoaderWorker& w : l.workers)
    if (w.ctx && w.ctx == tls.ctx) return true;
  return false;
}

void start_workers(Loader& l) {
  for (LoaderWorker& w : l.workers) {
    w.ctx = ctx_new(l.rt);
    if (!w.ctx) fail_oom(0);
  }
  for (LoaderWorker& w : l.workers) {
    if (int error = os_thread_start(&w.thread, run_worker, &w))
      fail(TT_INTERNAL, "a thread cannot be started (errno {})", error);
    w.started = true;
  }
}

// Begins an epoch, unless one is running.
void begin(Loader& l) {
  if (l.running) return;
  l.start = sampler_state(*l.sampler);
  l.claimed = l.delivered = 0;
  l.exhausted = false;
  l.running = true;
}

void end_epoch(Loader& l) {
  l.running = false;
  SamplerState next = {l.start.seed, l.start.epoch + 1, 0};
  sampler_set_state(*l.sampler, next);
}

void check_process(const Loader& l) {
  if (l.workers.size() && l.pid != os_pid())
    fail_arg(TT_INVALID_ARG, "loader", "the workers of the loader are in the process that forked");
}

}  // namespace

void Loader::destroy(Loader* l) noexcept {
  const bool here = l->pid == os_pid();  // a forked child has no workers
  if (!here)
    for (LoaderWorker& w : l->workers) w.started = false;
  {
    Turn turn(*l);
    l->stopping = true;
    l->orphaned = on_a_worker(*l);
    turn.tell();
    if (l->orphaned) return;
  }
  join_workers(l);
  delete_loader(l);
}

Ref<Loader> new_loader(Ref<Dataset> dataset, Ref<Sampler> sampler, const LoaderOptions& options) {
  if (options.batch_size < 1 || options.batch_size > int64_t(1) << 40)
    fail_arg(TT_INVALID_ARG, "batch_size", "batch_size is {}: must be 1 to 2^40",
             options.batch_size);
  if (options.workers < 0 || options.workers > kMaxWorkers)
    fail_arg(TT_INVALID_ARG, "workers", "workers is {}: must be 0 to {}", options.workers,
             kMaxWorkers);
  if (options.prefetch < 1 || options.prefetch > 1024)
    fail_arg(TT_INVALID_ARG, "prefetch", "prefetch is {}: must be 1 to 1024", options.prefetch);
  if (dataset->is_stream() && sampler)
    fail_arg(TT_INVALID_ARG, "sampler", "the dataset is a stream: it has no order");
  if (!sampler) sampler = sequential_sampler(dataset->is_stream() ? INT64_MAX : dataset->size());
  auto* l = new (mem_alloc(sizeof(Loader))) Loader{};
  l->tag = kTagLoader;
  l->refs = 1;
  l->rt = ctx().rt;
  ref_inc(&l->rt->refs);
  l->dataset = std::move(dataset);
  l->sampler = std::move(sampler);
  l->options = options;
  l->pid = os_pid();
  Ref<Loader> made = Ref<Loader>::adopt(l);
  l->start = sampler_state(*l->sampler);
  l->ring.resize(options.prefetch * max<int64_t>(1, options.workers));
  l->workers.resize(options.workers, LoaderWorker{l, nullptr, {}, false});
  start_workers(*l);
  return made;
}

TensorList loader_next(Loader& l, int64_t cap, int64_t* n) {
  check_process(l);
  if (on_a_worker(l))
    fail_arg(TT_INVALID_ARG, "loader", "a sample of the loader asks for its next batch");
  Turn turn(l);
  if (l.next_runs)
    fail_arg(TT_INVALID_ARG, "loader", "another call is waiting for the loader's next batch");
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  } running(l.next_runs);
  const bool fresh = !l.running;
  begin(l);
  if (fresh) turn.tell();
  for (;;) {
    LoaderSlot& slot = slot_of(l, l.delivered);
    if (l.exhausted && l.delivered == l.claimed) {
      end_epoch(l);
      return {};
    }
    const bool there = l.delivered < l.claimed;
    if (there && slot.state == LoaderSlot::kFailed) {
      slot.state = LoaderSlot::kEmpty;
      l.delivered++;
      turn.tell();
      fail_as_stored(slot);
    }
    if (there && slot.state == LoaderSlot::kReady) {
      *n = slot.batch.size();
      if (*n > cap) return {};
      TensorList batch = std::move(slot.batch);
      slot.batch.clear();
      slot.state = LoaderSlot::kEmpty;
      l.delivered++;
      turn.tell();
      return batch;
    }
    Claim c;
    if (!can_claim(l)) turn.wait();
    else if (claim(l, &c)) make_claimed(l, turn, c);
  }
}

bool loader_work(Loader& l) {
  check_process(l);
  Turn turn(l);
  Claim c;
  if (!can_claim(l) || !claim(l, &c)) {
    turn.tell();
    return false;
  }
  make_claimed(l, turn, c);
  return true;
}

SamplerState loader_state(Loader& l) noexcept {
  Turn turn(l);
  if (!l.running) return sampler_state(*l.sampler);
  SamplerState at = l.start;
  const int64_t left = l.sampler->length - at.position;
  at.position += min(left, l.delivered * l.options.batch_size);
  return at;
}

void loader_set_state(Loader& l, const SamplerState& state) {
  check_process(l);
  if (on_a_worker(l))
    fail_arg(TT_INVALID_ARG, "loader", "a sample of the loader sets the loader's state");
  Turn turn(l);
  if (l.next_runs)
    fail_arg(TT_INVALID_ARG, "loader", "another call is waiting for the loader's next batch");
  const SamplerState before = sampler_state(*l.sampler);
  sampler_set_state(*l.sampler, state);
  sampler_set_state(*l.sampler, before);  // checked: nothing fails from here on
  l.exhausted = true;
  while (l.in_flight) turn.wait();
  for (LoaderSlot& slot : l.ring) slot = LoaderSlot();
  l.running = false;
  sampler_set_state(*l.sampler, state);
}

int64_t loader_length(const Loader& l) noexcept {
  if (l.dataset->is_stream()) return -1;
  const int64_t n = l.sampler->length;
  const int64_t size = l.options.batch_size;
  return l.options.drop_last ? n / size : n / size + (n % size != 0);
}

}  // namespace TT_NS
