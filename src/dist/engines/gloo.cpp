// libtt_gloo: Gloo's TCP transport as an engine. The processes exchange their addresses in a store
// (store.h). Gloo ends all its connections when a wait times out; a watchdog aborts the wait first.
#include "dist/engine.h"
#include "dist/engines/store.h"

#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <condition_variable>
#include <list>
#include <string.h>
#include <thread>

using namespace TT_NS;

namespace {

using Clock = std::chrono::steady_clock;
using Buffer = gloo::transport::UnboundBuffer;

// Aborts waits whose time is over. Its thread looks at them now and then: to wake it for each wait
// would cost more than most waits take, above all on a busy machine.
class Watchdog {
 public:
  struct Entry {
    Buffer* buffer;
    bool receives;
    Clock::time_point deadline;
  };
  Watchdog() : thread_([this] { run(); }) {}
  ~Watchdog() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  std::list<Entry>::iterator add(const Entry& e) {
    std::lock_guard<std::mutex> lock(mutex_);
    entries_.push_front(e);
    used_ = true;
    if (asleep_) changed_.notify_one();
    asleep_ = false;
    return entries_.begin();
  }
  void remove(std::list<Entry>::iterator at) {
    std::lock_guard<std::mutex> lock(mutex_);
    entries_.erase(at);
  }

 private:
  void run() {
    constexpr auto kTick = std::chrono::milliseconds(20);
    constexpr int kIdleTicks = 100;  // without a wait: the thread sleeps until there is one
    std::unique_lock<std::mutex> lock(mutex_);
    int idle = 0;
    while (!stopping_) {
      idle = used_ || !entries_.empty() ? 0 : idle + 1;
      used_ = false;
      abort_late();
      asleep_ = idle > kIdleTicks;
      if (asleep_) changed_.wait(lock);
      else changed_.wait_for(lock, kTick);
    }
  }
  void abort_late() {
    const auto now = Clock::now();
    for (Entry& e : entries_) {
      if (e.deadline > now) continue;
      // The wait may not have begun: it is aborted at each tick until the entry is removed.
      if (e.receives) e.buffer->abortWaitRecv();
      else e.buffer->abortWaitSend();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry> entries_;
  bool used_ = false;    // an entry was added since the last tick
  bool asleep_ = false;  // the thread must be woken for an entry
  bool stopping_ = false;
  std::thread thread_;  // the last field: it uses the others
};

struct Connection {
  std::shared_ptr<gloo::rendezvous::Context> context;
  int rank, size;
  Watchdog watchdog;
};

struct Request {
  std::unique_ptr<Buffer> buffer;
  int peer;
  bool receives;
};

void describe(DistFailure* why, int peer, const char* text) {
  why->peer = peer;
  snprintf(why->text, sizeof why->text, "%s", text);
}

// Runs f; an exception becomes a failure.
template <class F> int32_t guarded(DistFailure* why, int peer, F f) noexcept {
  try {
    return f();
  } catch (const std::exception& e) {
    describe(why, peer, e.what());
  } catch (...) {
    describe(why, peer, "unknown exception");
  }
  return kDistFailed;
}

// The address that a process listens at: the interface that reaches the store.
gloo::transport::tcp::attr device_address(const Store& store) {
  gloo::transport::tcp::attr attr;
  attr.hostname = store.local_address();
  return attr;
}

// All processes must have the same size; each rank must be there once.
void check_members(Store& store, const DistOpen& what) {
  store.claim("size" + std::to_string(what.rank), std::to_string(what.size), what.rank);
  for (int r = 0; r < what.size; r++) {
    const std::string theirs = store.read("size" + std::to_string(r), r);
    if (theirs != std::to_string(what.size))
      throw std::runtime_error("rank " + std::to_string(r) + " has the world size " + theirs +
                               ", this process (rank " + std::to_string(what.rank) + ") " +
                               std::to_string(what.size));
  }
}

int32_t open_connection(const DistOpen* what, void** out, int32_t* rank, int32_t* size,
                        DistFailure* why) {
  return guarded(why, -1, [&] {
    std::unique_ptr<Store> store = open_store(*what);
    check_members(*store, *what);
    auto c = std::make_unique<Connection>();
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(device_address(*store));
    c->context = std::make_shared<gloo::rendezvous::Context>(what->rank, what->size);
    c->context->setTimeout(
        std::chrono::milliseconds(std::max<int64_t>(1, what->timeout_ns / 1000000)));
    c->context->connectFullMesh(*store, device);
    store->finish();
    c->rank = what->rank;
    c->size = what->size;
    *rank = c->rank;
    *size = c->size;
    *out = c.release();
    return int32_t(kDistOk);
  });
}

void close_connection(void* connection) {
  auto* c = static_cast<Connection*>(connection);
  DistFailure why;
  guarded(&why, -1, [&] {
    delete c;
    return int32_t(kDistOk);
  });
}

void abort_connection(void* connection) {
  auto* c = static_cast<Connection*>(connection);
  for (int r = 0; r < c->size; r++) {
    DistFailure why;
    guarded(&why, r, [&] {
      if (r != c->rank) c->context->getPair(r)->close();
      return int32_t(kDistOk);
    });
  }
}

uint64_t slot_of(int32_t channel, int32_t tag) { return uint64_t(channel) << 16 | uint64_t(tag); }

int32_t start(Connection* c, int32_t peer, int32_t channel, int32_t tag, void* data, size_t bytes,
              bool receives, void** request, DistFailure* why) {
  return guarded(why, peer, [&] {
    auto r = std::make_unique<Request>();
    r->buffer = c->context->createUnboundBuffer(data, bytes);
    r->peer = peer;
    r->receives = receives;
    const uint64_t slot = slot_of(channel, tag);
    if (receives) r->buffer->recv(peer, slot, 0, bytes);
    else r->buffer->send(peer, slot, 0, bytes);
    *request = r.release();
    return int32_t(kDistOk);
  });
}
int32_t send(void* connection, int32_t peer, int32_t channel, int32_t tag, const void* data,
             size_t bytes, void** request, DistFailure* why) {
  return start(static_cast<Connection*>(connection), peer, channel, tag, const_cast<void*>(data),
               bytes, false, request, why);
}
int32_t receive(void* connection, int32_t peer, int32_t channel, int32_t tag, void* data,
                size_t bytes, void** request, DistFailure* why) {
  return start(static_cast<Connection*>(connection), peer, channel, tag, data, bytes, true, request,
               why);
}

// Ends a request whose transfer is over or is given up.
void end(Request* r) noexcept {
  DistFailure why;
  guarded(&why, r->peer, [&] {
    delete r;
    return int32_t(kDistOk);
  });
}

int32_t wait(void* connection, void* request, int64_t timeout_ns, DistFailure* why) {
  auto* c = static_cast<Connection*>(connection);
  auto* r = static_cast<Request*>(request);
  const int32_t status = guarded(why, r->peer, [&] {
    constexpr auto kLong = std::chrono::milliseconds(int64_t(1) << 40);
    const auto entry = c->watchdog.add(
        {r->buffer.get(), r->receives, Clock::now() + std::chrono::nanoseconds(timeout_ns)});
    struct Remove {
      Watchdog& watchdog;
      std::list<Watchdog::Entry>::iterator at;
      ~Remove() { watchdog.remove(at); }
    } remove{c->watchdog, entry};
    const bool done = r->receives ? r->buffer->waitRecv(kLong) : r->buffer->waitSend(kLong);
    return int32_t(done ? kDistOk : kDistTimeout);
  });
  if (status != kDistTimeout) end(r);
  return status;
}

int32_t cancel(void*, void* request) {
  end(static_cast<Request*>(request));  // waits until Gloo's thread has left the memory
  return 0;
}

const DistEngine kEngine = {
    kDistBuildId, "gloo", open_connection, close_connection, abort_connection, send,
    receive,      wait,   cancel};

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t tt_dist_engine(uint64_t build_id,
                                                                         const DistEngine** out) {
  *out = &kEngine;
  return build_id == kDistBuildId ? TT_OK : TT_ABI;
}
