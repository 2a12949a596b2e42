#include "streams.h"

#include "fake.h"

#include <sched.h>
#include <time.h>

#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fake {

namespace {

struct Mark {  // one recording of an event
  bool done = false;
  double ms = 0;
  Stream* by = nullptr;
};
using MarkRef = std::shared_ptr<Mark>;

struct Job {
  std::function<bool()> body;  // returns whether it is done: else it is called again
  MarkRef before;              // not until this is done
};

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
}

}  // namespace

using Bodies = std::vector<std::function<void()>>;

struct Stream {
  int32_t device;
  bool freed = false;
  std::deque<Job> jobs;
  bool captures = false, spoilt = false;
  Bodies captured = {};
};
struct Graph {
  std::shared_ptr<const Bodies> bodies;
};
struct Event {
  MarkRef mark = std::make_shared<Mark>();
  int asked = 0;  // times that it had not happened
};

namespace {

struct Scheduler {
  std::recursive_mutex lock;
  uint64_t order = 0;
  std::vector<Stream*> streams;
  Stream* own[TT_FAKE_DEVICES] = {};
  std::vector<std::unique_ptr<Event>> events;  // with those that a lost device never gave back

  uint64_t chance() {  // splitmix64
    uint64_t z = order += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  bool ready(const Stream& s) {
    return !s.jobs.empty() && (!s.jobs.front().before || s.jobs.front().before->done);
  }
  bool run_one(Stream& s) {
    Job job = std::move(s.jobs.front());
    s.jobs.pop_front();
    if (!job.body || job.body()) return true;
    s.jobs.push_front(std::move(job));
    return false;
  }
  // Runs the next job of s, and before it what it waits for. Returns false if one of them waits for
  // another thread or process.
  bool advance(Stream& s) {
    if (order > 1) run_some();
    std::vector<Stream*> path{&s};
    while (!path.empty()) {
      Stream& top = *path.back();
      if (top.jobs.empty()) {
        path.pop_back();
      } else if (ready(top)) {
        if (!run_one(top)) return false;
        path.pop_back();
      } else {
        path.push_back(top.jobs.front().before->by);
      }
    }
    return true;
  }
  // Runs jobs of streams that nobody waits for.
  void run_some() {
    for (uint64_t n = chance() % 4; n > 0 && !streams.empty(); n--) {
      Stream& s = *streams[chance() % streams.size()];
      if (ready(s)) run_one(s);
    }
  }
  // Returns false as advance() does.
  bool drain(Stream& s) {
    while (!s.jobs.empty())
      if (!advance(s)) return false;
    if (s.freed) forget(&s);
    return true;
  }
  template <class F> bool drain_all(const F& chosen) {
    for (Stream* s : std::vector<Stream*>(streams))
      if (chosen(*s) && !drain(*s)) return false;
    return true;
  }
  void forget(Stream* s) {
    for (size_t i = 0; i < streams.size(); i++)
      if (streams[i] == s) streams.erase(streams.begin() + int64_t(i--));
    delete s;
  }
};
Scheduler& scheduler() {
  static Scheduler* s = new Scheduler;  // never destroyed: see memory.cpp
  return *s;
}
using Guard = std::lock_guard<std::recursive_mutex>;

// Calls done() until it returns true. Other threads get the lock between: what a stream waits for
// may be theirs to enqueue.
template <class F> void repeat(const F& done) {
  for (;;) {
    {
      Guard l(scheduler().lock);
      if (done()) return;
    }
    sched_yield();
  }
}

Stream& stream_or_own(int32_t device, Stream* s) { return s ? *s : *default_stream(device); }

}  // namespace

void set_late(uint64_t order) {
  Scheduler& q = scheduler();
  repeat([&] {
    const bool done = q.drain_all([](const Stream&) { return true; });
    if (done) q.order = order;
    return done;
  });
}
bool is_late() {
  Guard l(scheduler().lock);
  return scheduler().order != 0;
}

Stream* new_stream(int32_t device) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  q.streams.push_back(new Stream{.device = device, .jobs = {}});
  return q.streams.back();
}
void free_stream(Stream* s) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  s->freed = true;
  if (s->jobs.empty()) q.forget(s);
}
Stream* default_stream(int32_t device) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  if (!q.own[device]) q.own[device] = new_stream(device);
  return q.own[device];
}

void enqueue(int32_t device, Stream* s, std::function<void()> body) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  Stream& stream = stream_or_own(device, s);
  if (stream.captures) return stream.captured.push_back(std::move(body));
  if (!q.order) return body();
  const auto at_once = [body = std::move(body)] {
    body();
    return true;
  };
  stream.jobs.push_back({at_once, nullptr});
  if (q.order > 1) q.run_some();
}
void enqueue_steps(Stream* s, std::function<bool()> step) {
  Scheduler& q = scheduler();
  bool late;
  {
    Guard l(q.lock);
    late = q.order != 0;
    if (late) s->jobs.push_back({step, nullptr});
    if (q.order > 1) q.run_some();
  }
  if (!late) repeat(step);
}
bool is_later(Stream* s) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  return q.order || s->captures;
}
int32_t device_of(Stream* s) { return s->device; }
bool is_done(int32_t device, Stream* s) {
  Guard l(scheduler().lock);
  return stream_or_own(device, s).jobs.empty();
}
void wait(int32_t device, Stream* s) {
  Scheduler& q = scheduler();
  repeat([&] {
    Stream& stream = stream_or_own(device, s);
    stream.spoilt = true;
    return !q.order || q.drain(stream);
  });
}
void wait_device(int32_t device) {
  Scheduler& q = scheduler();
  repeat(
      [&] { return !q.order || q.drain_all([=](const Stream& s) { return s.device == device; }); });
}

Event* new_event() {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  q.events.push_back(std::make_unique<Event>());
  return q.events.back().get();
}
void free_event(Event* e) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  std::erase_if(q.events, [e](const auto& own) { return own.get() == e; });
}
void record(int32_t device, Event* e, Stream* s) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  e->mark = std::make_shared<Mark>();
  e->asked = 0;
  e->mark->by = &stream_or_own(device, s);
  e->mark->by->spoilt = true;
  enqueue(device, s, [mark = e->mark] {
    mark->done = true;
    mark->ms = now_ms();
  });
}
void let_wait(int32_t device, Stream* s, Event* e) {
  Scheduler& q = scheduler();
  Guard l(q.lock);
  if (q.order && !e->mark->done && e->mark->by)
    stream_or_own(device, s).jobs.push_back({nullptr, e->mark});
}
bool has_happened(Event* e) {
  constexpr int kPatience = 16;  // a device goes on by itself while someone asks again and again
  Scheduler& q = scheduler();
  Guard l(q.lock);
  if (e->mark->by && !e->mark->done && ++e->asked > kPatience) q.advance(*e->mark->by);
  return e->mark->done || !e->mark->by;
}
void wait(Event* e) {
  Scheduler& q = scheduler();
  repeat([&] {
    while (e->mark->by && !e->mark->done)
      if (!q.advance(*e->mark->by)) return false;
    return true;
  });
}
double time_of(Event* e) {
  Guard l(scheduler().lock);
  return e->mark->ms;
}

static int64_t g_graph_launches;

bool begin_capture(Stream* s) {
  Guard l(scheduler().lock);
  if (s->captures) return false;
  s->captures = true;
  s->spoilt = false;
  return true;
}
Graph* end_capture(Stream* s) {
  Guard l(scheduler().lock);
  Bodies bodies = std::move(s->captured);
  s->captured.clear();
  if (!std::exchange(s->captures, false) || s->spoilt) return nullptr;
  return new Graph{std::make_shared<const Bodies>(std::move(bodies))};
}
bool is_capturing(Stream* s) {
  Guard l(scheduler().lock);
  if (s) return s->captures;
  for (const Stream* known : scheduler().streams)
    if (known->captures) return true;
  return false;
}
void spoil_captures() {
  Guard l(scheduler().lock);
  for (Stream* s : scheduler().streams) s->spoilt = true;
}
void launch_graph(Graph* g, Stream* s) {
  Guard l(scheduler().lock);
  g_graph_launches++;
  enqueue(s->device, s, [bodies = g->bodies] {
    for (const auto& body : *bodies) body();
  });
}
void free_graph(Graph* g) { delete g; }
int64_t graph_launches() {
  Guard l(scheduler().lock);
  return g_graph_launches;
}

}  // namespace fake
