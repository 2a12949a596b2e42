// The emulation of a device: a scheduler of fibers. A fiber runs threads of the block one after the
// other until one of them waits; then the next takes over. Threads wait at a barrier of the block,
// or for the other lanes of a warp (Meeting).
//
// This file is never instrumented by ThreadSanitizer: what it knows of the kernel's threads is told
// to it here (EMU_TSAN), and the scheduler's own accesses are not theirs.
#include "kernels/cuda/emu/emu.h"

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/emu/fiber.h"
#include "kernels/cuda/matmul/wgmma.h"
#include "tt_types.h"

namespace TT_NS::emu {

__thread const Thread* t_self = nullptr;

float widen_bf16(uint16_t h) noexcept {
  const uint32_t bits = uint32_t(h) << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
float widen_f16(uint16_t h) noexcept {
  const int exponent = h >> 10 & 31;
  const int fraction = h & 1023;
  float f = exponent ? __builtin_ldexpf(float(fraction + 1024), exponent - 25)
                     : __builtin_ldexpf(float(fraction), -24);
  if (exponent == 31) f = fraction ? __builtin_nanf("") : __builtin_inff();
  return h & 0x8000 ? -f : f;
}

namespace {

// Whether the running kernel has waited. All fibers write it: this file is not checked for races.
__thread bool t_has_waited = false;

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxGridX = 0x7fffffff, kMaxGridYZ = 65535, kMaxBlockZ = 64;
constexpr size_t kMaxArguments = 32764;
constexpr size_t kMaxStatic = 48 * 1024, kMaxShared = 227 * 1024;
constexpr size_t kSmallestShared = 99 * 1024;  // of sm_86 and sm_89
constexpr size_t kRedzone = 64;
constexpr unsigned char kUnset = 0xff, kCanary = 0xa5;
constexpr size_t kArenaBytes = 512 * 1024;
// The address of dynamic shared memory, which a device aligns to 16 bytes only.
constexpr uint32_t kSharedAddress = 1024 + 128 + 48;
constexpr int kGroupThreads = 128;  // of a warpgroup

// Lanes of a warp that wait for each other.
struct Meeting {
  uint32_t mask, arrived, left;
  bool complete;
  const char* operation;
  Where where;
  uint64_t value[32];
  char happens_before;
};

// The sums of products that are not complete; the thread's own are nans.
struct Sums {
  float* to;
  int products;
  float value[kMostSums];
};

enum State { kUnstarted, kRunning, kAtBarrier, kAtMeeting, kDone };

struct Running {
  Thread known;
  State state = kUnstarted;
  Fiber* fiber = nullptr;
  Where where = {};
  const char* operation = nullptr;
  std::deque<AsyncCopy> copies = {};  // not complete
  int groups = 0;                     // of copies
  std::deque<Product> products = {};  // not complete
  std::vector<Sums> sums = {};
  int product_groups = 0;
  size_t begun = 0;  // products
  bool fenced = false;
  uint32_t fences = 0;     // of operands
  uint32_t published = 0;  // of these, before a barrier
};

// While it lives, ThreadSanitizer ignores what this file does in the name of a kernel's thread.
struct Unseen {
  Unseen() { fiber_ignore(true); }
  ~Unseen() { fiber_ignore(false); }
  Unseen(const Unseen&) = delete;
};

struct SharedArray {
  const void* key;
  char* at;
  size_t bytes;
};

class Scheduler {
 public:
  int32_t run(const Launch& launch);
  uint32_t exchange(uint32_t mask, uint64_t value, const char* operation, Where where,
                    uint64_t* all);
  int barrier(int value, Where where);
  void begin_copy(AsyncCopy copy);
  void end_group();
  bool next_copy(int pending, AsyncCopy* copy);
  void mark_written(const void* p, size_t bytes);
  void publish_operands();
  const void* operand_place(uint32_t address);
  uint32_t shared_address(const void* p);
  void begin_product(Product p, Where where);
  void fence_products();
  void end_product_group();
  bool next_product(int pending, Product* product, float* sums);
  void end_product(const Product& product, const float* sums);
  [[noreturn]] void fault(const char* what);
  void* shared(const void* key, size_t bytes, size_t alignment);
  void* shared_dynamic() { return arena_; }

  char text[1024] = "";
  uint64_t order = kForward;

 private:
  const char* refusal() const;
  void run_block(dim3 block);
  void place_threads(dim3 block);
  void open_arena();
  void close_arena();
  void work();
  static void body(void* scheduler) { static_cast<Scheduler*>(scheduler)->work(); }
  Running* next_unstarted();
  void resume(Running& t);
  void wait();
  void finish(Running& t);
  void open_barrier_if_full();
  Sums* sums_of(const float* to);
  void check_operand(uint64_t operand, bool across);
  void check_products();
  void check_warpgroups();
  void complete(Meeting& m, int warp);
  void report_deadlock();
  void describe(const char* what, const Running* t);
  std::vector<int> permutation(size_t n);
  Fiber* take_fiber();
  void give_fiber(Fiber* f);

  const Launch* launch_ = nullptr;
  std::vector<Running> threads_;
  std::vector<int> turn_;  // the order in which threads start and resume
  size_t started_ = 0;
  size_t done_ = 0, at_barrier_ = 0;
  int barrier_sum_[2] = {};
  int phase_ = 0;  // parity of the barriers passed
  char barrier_happens_before_[2];
  char launch_happens_before_, end_happens_before_;
  std::deque<int> ready_;
  std::vector<std::vector<std::unique_ptr<Meeting>>> meetings_;
  Running* running_ = nullptr;
  bool failed_ = false;
  std::vector<Fiber*> idle_;
  std::vector<SharedArray> arrays_;
  char* arena_ = nullptr;
  std::vector<char*> arenas_;
  size_t arena_used_ = 0;
  // For each word of dynamic shared memory: the writing thread + 1, plus 2048 times its fences.
  std::vector<uint32_t> writers_;
  size_t most_shared_ = 0;     // bytes of a block of the launch
  bool has_products_ = false;  // of a warpgroup
  // The right operands of the products that each warpgroup has begun.
  std::vector<std::vector<uint64_t>> products_begun_;
  std::mt19937_64 random_;
};

Scheduler& scheduler() {
  static thread_local Scheduler* s = new Scheduler;  // fibers outlive thread-local destructors
  return *s;
}

uint64_t volume(dim3 d) { return uint64_t(d.x) * d.y * d.z; }

const char* Scheduler::refusal() const {
  const dim3 g = launch_->grid;
  const dim3 b = launch_->block;
  if (volume(b) == 0 || volume(g) == 0) return "a grid or block is empty";
  if (volume(b) > kMaxThreads) return "more than 1024 threads in a block";
  const uintptr_t bounds = launch_->address & -launch_->address;
  if (volume(b) > bounds) return "more threads in a block than __launch_bounds__ of the kernel";
  if (b.z > kMaxBlockZ) return "more than 64 threads in z";
  if (g.x > kMaxGridX || g.y > kMaxGridYZ || g.z > kMaxGridYZ) return "too many blocks";
  if (launch_->shared_bytes > kMaxShared) return "more than 227 kB of shared memory";
  if (launch_->argument_bytes > kMaxArguments) return "more than 32764 bytes of arguments";
  return nullptr;
}

void Scheduler::describe(const char* what, const Running* t) {
  if (failed_) return;
  failed_ = true;
  int n = snprintf(text, sizeof text, "emulated device: %s", what);
  if (t) {
    const Thread& k = t->known;
    n += snprintf(text + n, sizeof text - size_t(n), "; block (%u,%u,%u), thread (%u,%u,%u)",
                  k.block.x, k.block.y, k.block.z, k.index.x, k.index.y, k.index.z);
  }
  if (n < int(sizeof text)) snprintf(text + n, sizeof text - size_t(n), "; in %s", launch_->kernel);
}

std::vector<int> Scheduler::permutation(size_t n) {
  std::vector<int> p(n);
  for (size_t i = 0; i < n; i++) p[i] = int(i);
  if (order == kBackward) std::reverse(p.begin(), p.end());
  else if (order != kForward) std::shuffle(p.begin(), p.end(), random_);
  return p;
}

int32_t Scheduler::run(const Launch& launch) {
  const Unseen unseen;
  launch_ = &launch;
  failed_ = false;
  running_ = nullptr;
  if (const char* why = refusal()) {
    describe(why, nullptr);
    return TT_DEVICE;
  }
  random_.seed(order);
  most_shared_ = launch.shared_bytes;
  has_products_ = false;
  fiber_release(&launch_happens_before_);
  const uint64_t blocks = volume(launch.grid);
  const bool turned = order == kBackward;
  for (uint64_t i = 0; i < blocks && !failed_; i++) {
    const uint64_t b = turned ? blocks - 1 - i : i;
    const uint64_t row = b / launch.grid.x;
    run_block({unsigned(b % launch.grid.x), unsigned(row % launch.grid.y),
               unsigned(row / launch.grid.y)});
  }
  if (most_shared_ > kSmallestShared && !has_products_)
    describe("more than 99 kB of shared memory without products of a warpgroup", nullptr);
  fiber_acquire(&end_happens_before_);
  if (kFibersAreChecked) {
    for (char* a : arenas_) free(a);
    arenas_.clear();
  }
  fiber_end_of_launch();
  t_self = nullptr;
  return failed_ ? TT_DEVICE : TT_OK;
}

void Scheduler::place_threads(dim3 block) {
  const dim3 size = launch_->block;
  const size_t n = size_t(volume(size));
  threads_.assign(n, Running{});
  for (size_t i = 0; i < n; i++) {
    const unsigned row = unsigned(i) / size.x;
    threads_[i].known = {
        {unsigned(i) % size.x, row % size.y, row / size.y}, block, size, launch_->grid, int(i)};
  }
  turn_ = permutation(n);
  started_ = done_ = at_barrier_ = 0;
  phase_ = 0;
  barrier_sum_[0] = barrier_sum_[1] = 0;
  ready_.clear();
  meetings_.clear();
  meetings_.resize((n + 31) / 32);
  products_begun_.clear();
  products_begun_.resize(n / kGroupThreads);
}

// The races of two blocks are told apart only if they do not share the arena.
void Scheduler::open_arena() {
  if (arenas_.empty() || kFibersAreChecked)
    arenas_.push_back(static_cast<char*>(aligned_alloc(256, kArenaBytes)));
  arena_ = arenas_.back();
  arrays_.clear();
  const size_t dynamic = launch_->shared_bytes;
  arena_used_ = (dynamic + 15) / 16 * 16 + kRedzone;
  memset(arena_, kUnset, dynamic);
  memset(arena_ + dynamic, kCanary, arena_used_ - dynamic);
  arrays_.push_back({nullptr, arena_, dynamic});
  writers_.assign((dynamic + 3) / 4, 0);
  fiber_poison(arena_ + dynamic, kArenaBytes - dynamic);
}

void Scheduler::close_arena() {
  fiber_unpoison(arena_, kArenaBytes);
  for (const SharedArray& a : arrays_)
    for (size_t i = 0; i < kRedzone - 16; i++)
      if (static_cast<unsigned char>(a.at[a.bytes + i]) != kCanary)
        describe("a kernel wrote behind a shared array", nullptr);
}

void* Scheduler::shared(const void* key, size_t bytes, size_t alignment) {
  const Unseen unseen;
  for (const SharedArray& a : arrays_)
    if (a.key == key) return a.at;
  const size_t from = (arena_used_ + alignment - 1) / alignment * alignment;
  size_t fixed = bytes;
  for (const SharedArray& a : arrays_) fixed += a.key ? a.bytes : 0;
  if (fixed > kMaxStatic) fault("more than 48 kB of shared arrays");
  if (launch_->shared_bytes <= device::kUsualShared && fixed + launch_->shared_bytes > kMaxStatic)
    fault("more than 48 kB of shared memory that the launch has not asked for");
  if (from + bytes + kRedzone > kArenaBytes || fixed + launch_->shared_bytes > kMaxShared)
    fault("more than 227 kB of shared memory");
  most_shared_ = std::max(most_shared_, fixed + launch_->shared_bytes);
  char* at = arena_ + from;
  arena_used_ = from + bytes + kRedzone;
  fiber_unpoison(at, bytes + kRedzone);
  memset(at, kUnset, bytes);
  memset(at + bytes, kCanary, kRedzone);
  fiber_poison(at + bytes, kRedzone);
  arrays_.push_back({key, at, bytes});
  return at;
}

Fiber* Scheduler::take_fiber() {
  if (idle_.empty()) return fiber_new(body, this);
  Fiber* f = idle_.back();
  idle_.pop_back();
  return f;
}
void Scheduler::give_fiber(Fiber* f) { idle_.push_back(f); }

Running* Scheduler::next_unstarted() {
  if (failed_ || started_ == threads_.size()) return nullptr;
  return &threads_[size_t(turn_[started_++])];
}

// What a fiber does: threads until there is none left to start.
void Scheduler::work() {
  const Unseen unseen;
  for (;;) {
    Running* t = running_;
    if (!t) t = next_unstarted();
    while (t) {
      running_ = t;
      t->fiber = fiber_current();
      t->state = kRunning;
      t_self = &t->known;
      fiber_acquire(&launch_happens_before_);
      fiber_ignore(false);
      t_has_waited = !launch_->early;
      launch_->run(launch_->closure);
      if (!t_has_waited) fault("a kernel that starts early does not wait");
      check_products();
      fiber_ignore(true);
      fiber_release(&end_happens_before_);
      finish(*running_);
      t = kFibersAreChecked ? nullptr : next_unstarted();
    }
    running_ = nullptr;
    Fiber* self = fiber_current();
    if (!kFibersAreChecked) give_fiber(self);
    fiber_ignore(false);
    fiber_switch(nullptr, kFibersAreChecked);
    fiber_ignore(true);
  }
}

void Scheduler::finish(Running& t) {
  t.state = kDone;
  done_++;
  const int warp = t.known.linear / 32;
  auto& meetings = meetings_[size_t(warp)];
  for (size_t i = 0; i < meetings.size(); i++)
    if (!meetings[i]->complete) complete(*meetings[i], warp);
  open_barrier_if_full();
}

void Scheduler::resume(Running& t) {
  running_ = &t;
  t.state = kRunning;
  t_self = &t.known;
  fiber_switch(t.fiber, false);
}

// Lets others run until this thread is made ready.
void Scheduler::wait() {
  Running* me = running_;
  fiber_switch(nullptr, false);
  running_ = me;
}

void Scheduler::run_block(dim3 block) {
  place_threads(block);
  open_arena();
  while (!failed_ && done_ < threads_.size()) {
    if (!ready_.empty()) {
      Running& t = threads_[size_t(ready_.front())];
      ready_.pop_front();
      resume(t);
    } else if (started_ < threads_.size()) {
      running_ = kFibersAreChecked ? next_unstarted() : nullptr;
      fiber_switch(take_fiber(), false);
    } else {
      report_deadlock();
    }
  }
  if (failed_) {
    for (Running& t : threads_)
      if (t.fiber && t.state != kDone) fiber_abandon(t.fiber);
  }
  check_warpgroups();
  close_arena();
}

void Scheduler::report_deadlock() {
  int n_waiting = 0;
  const Running* first = nullptr;
  for (const Running& t : threads_) {
    if (t.state != kAtBarrier && t.state != kAtMeeting) continue;
    n_waiting++;
    if (!first || (t.state == kAtMeeting && first->state == kAtBarrier)) first = &t;
  }
  char what[400];
  snprintf(what, sizeof what, "deadlock: %d of %d threads wait, one of them for %s at %s:%d",
           n_waiting, int(threads_.size()), first->operation, first->where.file, first->where.line);
  describe(what, first);
}

void Scheduler::fault(const char* what) {
  describe(what, running_);
  fiber_switch(nullptr, false);
  abort();  // an abandoned fiber never runs again
}

// ---- barriers ----

void Scheduler::open_barrier_if_full() {
  if (at_barrier_ == 0 || at_barrier_ + done_ < threads_.size()) return;
  at_barrier_ = 0;
  phase_ ^= 1;
  barrier_sum_[phase_] = 0;
  for (int i : turn_) {
    Running& t = threads_[size_t(i)];
    if (t.state != kAtBarrier) continue;
    t.state = kRunning;
    ready_.push_back(i);
  }
}

int Scheduler::barrier(int value, Where where) {
  const Unseen unseen;
  Running& me = *running_;
  for (const Running& t : threads_)
    if (t.state == kAtBarrier && (t.where.line != where.line || t.where.file != where.file)) {
      char what[400];
      snprintf(what, sizeof what, "threads of a block are at two barriers, %s:%d and %s:%d",
               t.where.file, t.where.line, where.file, where.line);
      fault(what);
    } else if (t.state == kAtBarrier) {
      break;
    }
  const int mine = phase_;
  barrier_sum_[mine] += value;
  me.state = kAtBarrier;
  me.where = where;
  me.operation = "__syncthreads";
  me.published = me.fences;
  at_barrier_++;
  fiber_release(&barrier_happens_before_[mine]);
  open_barrier_if_full();
  wait();
  fiber_acquire(&barrier_happens_before_[mine]);
  return barrier_sum_[mine];
}

// ---- warps ----

void Scheduler::complete(Meeting& m, int warp) {
  uint32_t needed = m.mask;
  for (int lane = 0; lane < 32; lane++) {
    const size_t i = size_t(warp) * 32 + size_t(lane);
    if (i >= threads_.size() || threads_[i].state == kDone) needed &= ~(1u << lane);
  }
  if ((needed & ~m.arrived) != 0) return;
  m.complete = true;
  for (int i : turn_) {
    Running& t = threads_[size_t(i)];
    if (i / 32 != warp || !(m.arrived >> (i % 32) & 1) || t.state != kAtMeeting) continue;
    t.state = kRunning;
    ready_.push_back(i);
  }
}

uint32_t Scheduler::exchange(uint32_t mask, uint64_t value, const char* operation, Where where,
                             uint64_t* all) {
  const Unseen unseen;
  Running& me = *running_;
  const int warp = me.known.linear / 32;
  const uint32_t bit = 1u << (me.known.linear % 32);
  if (!(mask & bit)) fault("the mask of a warp's operation lacks the calling lane");
  auto& meetings = meetings_[size_t(warp)];
  Meeting* m = nullptr;
  for (auto& known : meetings)
    if (!known->complete && known->mask == mask && !(known->arrived & bit)) m = known.get();
  if (!m) {
    meetings.emplace_back(new Meeting{mask, 0, 0, false, operation, where, {}, 0});
    m = meetings.back().get();
  }
  if (strcmp(m->operation, operation) != 0 || m->where.line != where.line) {
    char what[400];
    snprintf(what, sizeof what, "lanes of a warp are at %s (line %d) and at %s (line %d)",
             m->operation, m->where.line, operation, where.line);
    fault(what);
  }
  m->arrived |= bit;
  m->value[me.known.linear % 32] = value;
  me.state = kAtMeeting;
  me.where = where;
  me.operation = operation;
  fiber_release(&m->happens_before);
  complete(*m, warp);
  wait();
  fiber_acquire(&m->happens_before);
  memcpy(all, m->value, sizeof m->value);
  const uint32_t arrived = m->arrived;
  m->left |= bit;
  if (m->left == m->arrived)
    for (size_t i = 0; i < meetings.size(); i++)
      if (meetings[i].get() == m) {
        meetings.erase(meetings.begin() + ptrdiff_t(i));
        break;
      }
  return arrived;
}

// ---- copies ----

void Scheduler::begin_copy(AsyncCopy copy) {
  const Unseen unseen;
  copy.group = running_->groups;
  running_->copies.push_back(copy);
}
void Scheduler::end_group() {
  const Unseen unseen;
  running_->groups++;
}
bool Scheduler::next_copy(int pending, AsyncCopy* copy) {
  const Unseen unseen;
  auto& copies = running_->copies;
  if (copies.empty() || copies.front().group >= running_->groups - pending) return false;
  *copy = copies.front();
  copies.pop_front();
  return true;
}

// ---- products of a warpgroup ----

uint32_t Scheduler::shared_address(const void* p) {
  return kSharedAddress + uint32_t(static_cast<const char*>(p) - arena_);
}
void Scheduler::mark_written(const void* p, size_t bytes) {
  const Unseen unseen;
  const size_t first = size_t(static_cast<const char*>(p) - arena_) / 4;
  for (size_t i = first; i < first + bytes / 4 && i < writers_.size(); i++)
    writers_[i] = uint32_t(running_->known.linear + 1) | running_->fences << 11;
}
void Scheduler::publish_operands() {
  const Unseen unseen;
  running_->fences++;
}
const void* Scheduler::operand_place(uint32_t address) {
  const Unseen unseen;
  const size_t at = address - kSharedAddress;  // large below it
  if (at / 4 >= writers_.size()) fault("a product reads outside of dynamic shared memory");
  const uint32_t number = writers_[at / 4] & 2047;
  const uint32_t before = writers_[at / 4] >> 11;
  if (!number) fault("a product reads what neither store_operand nor a copy has written");
  const Running& writer = threads_[number - 1];
  if (writer.fences <= before) fault("a product reads what was written without fence_operands");
  if (&writer != running_ && writer.published <= before)
    fault("a product reads what another thread wrote without a barrier after fence_operands");
  return arena_ + at;
}

void Scheduler::check_operand(uint64_t operand, bool across) {
  if (operand >> 62 != 1 || (operand & 0x3fffc000c000c000) != 0 || !(operand >> 32 & 0x3fff))
    fault("an operand of a product is not one of operand_along, operand_across");
  const uint32_t first = uint32_t(operand & 0x3fff) << 4;
  if (first % device::kOperandAlignment & (across ? 0x3ff : 0x390))
    fault("an operand of a product begins at a multiple of 1024 bytes, or 32 bytes along it");
}
Sums* Scheduler::sums_of(const float* to) {
  for (Sums& s : running_->sums)
    if (s.to == to) return &s;
  return nullptr;
}
void Scheduler::begin_product(Product p, Where where) {
  const Unseen unseen;
  Running& me = *running_;
  const size_t group = size_t(me.known.linear / kGroupThreads);
  if (group >= products_begun_.size()) fault("a product needs four warps");
  if (!me.fenced) fault("a group of products begins without fence_registers");
  auto& begun = products_begun_[group];
  if (me.begun == begun.size()) begun.push_back(p.b);
  if (begun[me.begun++] != p.b) {
    char what[400];
    snprintf(what, sizeof what, "threads of a warpgroup begin different products, one at %s:%d",
             where.file, where.line);
    fault(what);
  }
  has_products_ = true;
  if (!p.in_registers) check_operand(p.a, p.a_across);
  check_operand(p.b, p.b_across);
  Sums* s = sums_of(p.to);
  if (!s) {
    me.sums.push_back({p.to, 0, {}});
    s = &me.sums.back();
    memcpy(s->value, p.to, sizeof(float) * size_t(p.columns / 2));
    memset(p.to, kUnset, sizeof(float) * size_t(p.columns / 2));
  }
  s->products++;
  p.group = me.product_groups;
  me.products.push_back(p);
}
void Scheduler::fence_products() { running_->fenced = true; }
void Scheduler::end_product_group() {
  running_->product_groups++;
  running_->fenced = false;
}
bool Scheduler::next_product(int pending, Product* product, float* sums) {
  const Unseen unseen;
  auto& products = running_->products;
  if (products.empty() || products.front().group >= running_->product_groups - pending)
    return false;
  *product = products.front();
  products.pop_front();
  memcpy(sums, sums_of(product->to)->value, sizeof(float) * size_t(product->columns / 2));
  return true;
}
void Scheduler::end_product(const Product& product, const float* sums) {
  const Unseen unseen;
  auto& all = running_->sums;
  Sums* const s = sums_of(product.to);
  const size_t bytes = sizeof(float) * size_t(product.columns / 2);
  memcpy(s->value, sums, bytes);
  if (--s->products) return;
  memcpy(s->to, sums, bytes);
  all.erase(all.begin() + (s - all.data()));
}
void Scheduler::check_products() {
  const Unseen unseen;
  const Running& me = *running_;
  if (!me.products.empty()) fault("a thread ends before its products are complete");
}
void Scheduler::check_warpgroups() {
  for (size_t group = 0; group < products_begun_.size(); group++)
    for (size_t t = group * kGroupThreads; t < (group + 1) * kGroupThreads; t++)
      if (threads_[t].begun != products_begun_[group].size())
        describe("a thread ends without a product of its warpgroup", &threads_[t]);
}

// ---- mma ----

// Fragments by lane, with group = lane / 4 and pair = lane % 4: register r of a holds row
// group + 8 (r & 1), columns 2 pair + 8 (r >> 1) and the next; register r of b rows 2 pair + 8 r
// and the next, column group; d[r] row group + 8 (r >> 1), column 2 pair + (r & 1).
void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const char* name,
         float (*widen)(uint16_t)) {
  uint64_t a_low[32], a_high[32], b_all[32];
  const Where here = {name, 0};
  const uint32_t all = 0xffffffffu;
  uint32_t present = exchange(all, a[0] | uint64_t(a[1]) << 32, name, here, a_low);
  present &= exchange(all, a[2] | uint64_t(a[3]) << 32, name, here, a_high);
  present &= exchange(all, b[0] | uint64_t(b[1]) << 32, name, here, b_all);
  if (present != all) fault("mma.sync needs all lanes of the warp");
  const int group = lane() / 4;
  const int pair = lane() % 4;
  for (int r = 0; r < 4; r++) {
    const int row = group + 8 * (r >> 1);
    const int column = 2 * pair + (r & 1);
    float sum = d[r];
    for (int k = 0; k < 16; k++) {
      const uint64_t* a_words = k < 8 ? a_low : a_high;
      const uint64_t a_both = a_words[row % 8 * 4 + k % 8 / 2];
      const uint64_t b_both = b_all[column * 4 + k % 8 / 2];
      const uint16_t x = uint16_t(a_both >> (32 * (row / 8) + 16 * (k % 2)));
      const uint16_t y = uint16_t(b_both >> (32 * (k / 8) + 16 * (k % 2)));
      sum += widen(x) * widen(y);
    }
    d[r] = sum;
  }
}

}  // namespace

const LateStreams* late_streams = nullptr;
int32_t run(const Launch& launch) noexcept { return scheduler().run(launch); }
const char* last_fault() noexcept { return scheduler().text; }
void set_order(uint64_t order) noexcept { scheduler().order = order; }
void barrier(Where where) noexcept { scheduler().barrier(0, where); }
int barrier_sum(int value, Where where) noexcept { return scheduler().barrier(value, where); }
uint32_t exchange(uint32_t mask, uint64_t value, const char* operation, Where where,
                  uint64_t (&all)[32]) noexcept {
  return scheduler().exchange(mask, value, operation, where, all);
}
void begin_copy(void* to, const void* from, bool present, int bytes) noexcept {
  scheduler().begin_copy({to, from, present, bytes, 0});
}
void end_group() noexcept { scheduler().end_group(); }
bool next_copy(int pending, AsyncCopy* copy) noexcept {
  return scheduler().next_copy(pending, copy);
}
void mark_written(const void* p, size_t bytes) noexcept { scheduler().mark_written(p, bytes); }
void publish_operands() noexcept { scheduler().publish_operands(); }
const void* operand_place(uint32_t address) noexcept { return scheduler().operand_place(address); }
uint32_t shared_address(const void* p) noexcept { return scheduler().shared_address(p); }
void begin_product(const Product& product, Where where) noexcept {
  scheduler().begin_product(product, where);
}
void fence_products() noexcept { scheduler().fence_products(); }
void end_product_group() noexcept { scheduler().end_product_group(); }
bool next_product(int pending, Product* product, float* sums) noexcept {
  return scheduler().next_product(pending, product, sums);
}
void end_product(const Product& product, const float* sums) noexcept {
  scheduler().end_product(product, sums);
}
void fault(const char* what) noexcept { scheduler().fault(what); }
void* shared(const void* key, size_t bytes, size_t alignment) noexcept {
  return scheduler().shared(key, bytes, alignment);
}
void* shared_dynamic() noexcept { return scheduler().shared_dynamic(); }

}  // namespace TT_NS::emu

namespace TT_NS::device {

void wait_for_previous() noexcept { emu::t_has_waited = true; }

void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) noexcept {
  emu::mma(d, a, b, "mma_bf16", emu::widen_bf16);
}
void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) noexcept {
  emu::mma(d, a, b, "mma_f16", emu::widen_f16);
}

}  // namespace TT_NS::device

// g++ calls this where -fsanitize=alignment finds that a pointer is not aligned as its type is. A
// device reports that when it has lost all its work.
struct Misaligned {
  const char* file;
  uint32_t line, column;
  const void* type;
  uint8_t log2_alignment, kind;
};
extern "C" [[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(const Misaligned* here,
                                                                   const void* p) {
  using namespace TT_NS::emu;
  char what[400];
  snprintf(what, sizeof what, "%p is not aligned to %d bytes at %s:%u", p,
           1 << here->log2_alignment, here->file, here->line);
  if (t_self) fault(what);
  fprintf(stderr, "%s\n", what);  // the code of the host
  abort();
}
