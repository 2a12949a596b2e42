// An engine in C++ that keeps its memory and its threads to itself:  engine [UPDATES]
//
// A turret learns to lead its target. Each frame asks a network where to aim, by a plan, which
// allocates nothing. Meanwhile a job of the engine trains a copy of the network with a Context of
// its own; between two frames the engine takes over the weights of a job that is done. All memory
// comes from the engine's heap, all loops run on its workers. At the end the engine checks that tt
// started no thread, that frames allocated nothing, and that the heap is empty.
#include "tt.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

namespace {

// ---- the engine: a heap and workers ----

struct Heap {
  std::atomic<int64_t> bytes{0}, blocks{0};
};
thread_local int64_t allocations;  // by this thread

void* heap_alloc(void* user, size_t size, size_t align) {
  Heap* heap = static_cast<Heap*>(user);
  void* p = ::operator new(size, std::align_val_t(align), std::nothrow);
  if (!p) return nullptr;
  heap->bytes += int64_t(size);
  heap->blocks++;
  allocations++;
  return p;
}
void heap_free(void* user, void* p, size_t size, size_t align) {
  Heap* heap = static_cast<Heap*>(user);
  heap->bytes -= int64_t(size);
  heap->blocks--;
  ::operator delete(p, std::align_val_t(align));
}

// Jobs run in the order in which they come. A loop is a job that helps the thread that began it.
class Workers {
 public:
  explicit Workers(int n) {
    for (int i = 0; i < n; i++) threads_.emplace_back([this] { work(); });
  }
  ~Workers() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  void submit(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
  }
  // The thread that calls it works along, and waits only for ranges that have begun: helpers that
  // come later find nothing left, so that a loop of a job ends also if every worker is busy.
  void parallel_for(int64_t n, int64_t grain, tt_range_fn body, void* body_ctx) {
    auto loop = std::make_shared<Loop>();
    loop->n = n;
    loop->left = n;
    auto help = [=] {
      for (int64_t begin; (begin = loop->next.fetch_add(grain)) < n;) {
        const int64_t end = std::min(n, begin + grain);
        body(body_ctx, begin, end);
        if ((loop->left -= end - begin) == 0) loop->left.notify_all();
      }
    };
    for (size_t i = 0; i < threads_.size(); i++) submit(help);
    help();
    for (int64_t left; (left = loop->left) != 0;) loop->left.wait(left);
    loops_++;
  }
  int32_t threads() const { return int32_t(threads_.size()) + 1; }
  int64_t loops() const { return loops_; }

 private:
  struct Loop {
    int64_t n = 0;
    std::atomic<int64_t> next{0}, left{0};
  };
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::atomic<int64_t> loops_{0};
  bool stop_ = false;
};

int32_t workers_threads(void* user) { return static_cast<Workers*>(user)->threads(); }
int32_t workers_loop(void* user, int64_t n, int64_t grain, tt_range_fn body, void* body_ctx) {
  static_cast<Workers*>(user)->parallel_for(n, grain, body, body_ctx);
  return 0;
}

// Threads of this process; 0 where the system does not say.
int threads_of_process() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  return error ? 0 : int(std::distance(begin(tasks), end(tasks)));
}

// ---- the task: a target at p with velocity v is hit by a shot of speed 1 in direction a ----

constexpr int64_t kBatch = 1024, kHidden = 128;

struct Target {
  float state[4];  // position and velocity
  float aim[2];    // the direction that hits
};
Target draw_target() {
  Target t;
  auto uniform = [] { return float(std::rand()) / float(RAND_MAX); };
  const float angle = 6.2831853F * uniform();
  const float distance = 0.5F + uniform();
  t.state[0] = distance * std::cos(angle);
  t.state[1] = distance * std::sin(angle);
  t.state[2] = uniform() - 0.5F;
  t.state[3] = uniform() - 0.5F;
  // |p + v time| = time, the positive root
  const float pp = distance * distance;
  const float pv = t.state[0] * t.state[2] + t.state[1] * t.state[3];
  const float slower = 1 - t.state[2] * t.state[2] - t.state[3] * t.state[3];
  const float time = (pv + std::sqrt(pv * pv + slower * pp)) / slower;
  for (int i = 0; i < 2; i++) t.aim[i] = (t.state[i] + time * t.state[2 + i]) / time;
  return t;
}

tt::Module network(tt::Context& c) {
  auto layer = [&](auto f, auto... a) { return c.make<tt::Module>(f, a...); };
  return c.sequential({
      layer(tt_nn_linear, 4, kHidden, nullptr),
      layer(tt_nn_tanh),
      layer(tt_nn_linear, kHidden, kHidden, nullptr),
      layer(tt_nn_tanh),
      layer(tt_nn_linear, kHidden, 2, nullptr),
  });
}

// Trains on a worker. Between jobs it belongs to the thread of the frames.
struct Trainer {
  tt::Context c;
  tt::Module net, loss_of;
  tt::Optimizer adam;
  double loss = 0;
  std::string error;
  std::atomic<bool> busy{false};

  explicit Trainer(const tt::Runtime& rt) : c(rt) {
    c.run(tt_manual_seed, uint64_t(0));  // the same numbers in every run
    net = network(c);
    loss_of = c.make<tt::Module>(tt_nn_mse_loss, nullptr);
    tt_optim_adam_opts rate = {};
    rate.set = TT_OPTIM_ADAM_LR;
    rate.lr = 0.003;
    adam = c.make<tt::Optimizer>(tt_optim_adam, tt::list(c.parameters(net)), &rate);
  }
  ~Trainer() {
    while (busy) std::this_thread::yield();
  }
  void step(const std::vector<Target>& seen) {
    std::vector<float> states, aims;
    for (const Target& t : seen) {
      states.insert(states.end(), t.state, t.state + 4);
      aims.insert(aims.end(), t.aim, t.aim + 2);
    }
    const tt::Tensor x = c.tensor(states, TT_F32, tt::shape{kBatch, 4});
    const tt::Tensor y = c.tensor(aims, TT_F32, tt::shape{kBatch, 2});
    const tt::Tensor error_of = c(loss_of, tt::list{c(net, x), y});
    c.run(tt_optim_zero_grad, adam, 1);
    c.run(tt_backward, error_of, nullptr);
    c.run(tt_optim_step, adam);
    loss = c.item(error_of);
  }
  // Trains as a job of the workers: the trainer is theirs while it is busy.
  void begin(Workers& workers, const std::vector<Target>& seen) {
    busy = true;
    try {
      workers.submit([this, seen] { job(seen); });
    } catch (...) {
      busy = false;
      throw;
    }
  }
  void job(const std::vector<Target>& seen) noexcept {
    try {
      for (int i = 0; i < 10; i++) step(seen);
    } catch (const std::exception& e) {
      error = e.what();
    }
    busy = false;
  }
};

// ---- the loop ----

struct Turret {
  tt::Module net;
  tt::Plan plan;
  tt::Tensor state, aim;  // of the plan

  explicit Turret(tt::Context& c) : net(network(c)) {
    const tt::NoGrad off(c);
    const tt::Tensor x = c(tt_zeros, tt::shape{1, 4}, nullptr);
    const tt::Graph graph = c.capture({x}, [&] { return tt::list{c(net, x)}; });
    plan = c.make<tt::Plan>(tt_plan_new, graph, nullptr);
    state = c(tt_plan_slot, plan, 0, int64_t(0));
    aim = c(tt_plan_slot, plan, 1, int64_t(0));
  }
  // Returns the miss: the distance between the direction and the one that hits.
  float shoot(tt::Context& c, const Target& t) {
    std::memcpy(tt_tensor_data(state.get()), t.state, sizeof t.state);
    c.run(tt_plan_run, plan);
    float a[2];
    std::memcpy(a, tt_tensor_data(aim.get()), sizeof a);
    return std::hypot(a[0] - t.aim[0], a[1] - t.aim[1]);
  }
};

struct Result {
  int64_t frames = 0;
  int64_t frame_allocations = 0;
  double miss = 1;  // a mean in which old frames fade
};

// Runs frames until the engine has taken over the weights `updates` times.
Result run_frames(tt::Context& c, const tt::Runtime& rt, Workers& workers, int updates) {
  Turret turret(c);
  Trainer trainer(rt);
  Result result;
  std::vector<Target> seen;
  for (int update = 0; update < updates; result.frames++) {
    const int64_t before = allocations;
    const Target target = draw_target();
    result.miss += 0.002 * (double(turret.shoot(c, target)) - result.miss);
    result.frame_allocations += allocations - before;
    if (seen.size() < size_t(kBatch)) seen.push_back(target);
    if (trainer.busy || seen.size() < size_t(kBatch)) continue;
    if (!trainer.error.empty()) throw std::runtime_error(trainer.error);
    const tt::StateDict weights = c.make<tt::StateDict>(tt_module_state_dict, trainer.net);
    c.run(tt_module_load_state_dict, turret.net, weights, nullptr);
    if (update++ % (updates / 10 + 1) == 0)
      std::printf("update %5d, frame %7lld: miss %.3f, loss %.5f\n", update,
                  static_cast<long long>(result.frames), result.miss, trainer.loss);
    trainer.begin(workers, seen);
    seen.clear();
  }
  return result;
}

int run(int updates) {
  Heap heap;
  Workers workers(2);
  const tt_allocator allocator = {sizeof allocator, &heap, heap_alloc, heap_free};
  const tt_executor executor = {sizeof executor, &workers, workers_threads, workers_loop};
  tt_runtime_opts opts = {};
  opts.struct_size = sizeof opts;
  opts.allocator = &allocator;
  opts.executor = &executor;
  const int threads = threads_of_process();
  Result result;
  int threads_after;
  {
    const tt::Runtime rt = tt::Context::new_runtime(&opts);
    tt::Context c(rt);
    result = run_frames(c, rt, workers, updates);
    threads_after = threads_of_process();
  }
  std::printf("%lld frames, miss %.3f\n", static_cast<long long>(result.frames), result.miss);
  std::printf("loops on workers %lld, threads before and after %d and %d\n",
              static_cast<long long>(workers.loops()), threads, threads_after);
  std::printf("allocations in frames %lld, blocks left in the heap %lld\n",
              static_cast<long long>(result.frame_allocations),
              static_cast<long long>(heap.blocks.load()));
  const bool clean = heap.blocks == 0 && heap.bytes == 0 && threads == threads_after;
  return clean && result.frame_allocations == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int updates = argc > 1 ? std::atoi(argv[1]) : 100;
  if (updates < 1) {
    std::fprintf(stderr, "usage: engine [UPDATES]\n");
    return 2;
  }
  try {
    return run(updates);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "engine: %s\n", e.what());
    return 1;
  }
}
