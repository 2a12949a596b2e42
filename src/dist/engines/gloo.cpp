// libtt_gloo: Gloo's TCP transport as an engine. The processes exchange their addresses in a store
// (store.h).
//
// In Gloo, a thread of the device reads all sockets and wakes those who wait; under load, or with
// as many processes as cores, this costs more than the transfers. Here a thread that waits reads
// the sockets itself, one thread at a time (Connection::driven), by Gloo's own code. The device's
// thread connects the processes and finishes what a socket could not take at once.
#include "base/platform.h"
#include "dist/engine.h"
#include "dist/engines/store.h"

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>

#include <condition_variable>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace TT_NS;

namespace {

namespace tcp = gloo::transport::tcp;
using Clock = std::chrono::steady_clock;

// How long a thread that waits asks the sockets before it sleeps: an answer of a process on the
// same machine takes less, and a change of threads takes as much.
constexpr std::chrono::microseconds kSpin{20};

// The sockets that waiting threads read.
struct Poller {
  int sockets = epoll_create1(EPOLL_CLOEXEC);
  int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);  // readable: look at the requests again
  Poller() {
    if (sockets < 0 || bell < 0) throw std::runtime_error("epoll cannot be used");
    add(bell, nullptr);
  }
  ~Poller() {
    ::close(sockets);
    ::close(bell);
  }
  Poller(const Poller&) = delete;
  void add(int fd, void* of) {
    epoll_event e = {};
    e.events = EPOLLIN;
    e.data.ptr = of;
    epoll_ctl(sockets, EPOLL_CTL_ADD, fd, &e);
  }
  void ring() { eventfd_write(bell, 1); }
};

// A connection to another process. Its socket is in the poller once it is connected, and in the
// device's loop as long as bytes wait to be written.
class DrivenPair final : public tcp::Pair {
 public:
  DrivenPair(tcp::Context* context, tcp::Device* device, int rank,
             std::chrono::milliseconds timeout, Poller& poller)
      : tcp::Pair(context, device, rank, timeout), poller_(poller) {}
  ~DrivenPair() override {
    std::lock_guard<std::mutex> lock(m_);
    if (state_ != CLOSED) DrivenPair::changeState(CLOSED);
  }
  // On the thread of the device.
  void handleEvents(int events) override {
    std::unique_lock<std::mutex> lock(m_, std::defer_lock);
    if (!lock_soon(lock)) return;
    if (state_ == CLOSED) return;
    if (state_ != CONNECTED) {
      lock.unlock();
      return tcp::Pair::handleEvents(events);
    }
    handleReadWrite(events);
    if (state_ == CONNECTED && tx_.empty()) {
      device_->unregisterDescriptor(fd_, this);
      in_loop_ = false;
      if (!in_poller_) poller_.add(fd_, this);
      in_poller_ = true;
    }
    poller_.ring();
  }
  // On a thread that waits.
  void read_socket() {
    std::lock_guard<std::mutex> lock(m_);
    if (state_ == CONNECTED) handleReadWrite(EPOLLIN);
  }

 protected:
  // Called when a socket takes no more bytes, too: the device's thread then has it.
  bool write(tcp::Op& op) override {
    const bool done = tcp::Pair::write(op);
    if (!done) in_loop_ = true;
    return done;
  }
  void changeState(state next) noexcept override {
    // Gloo takes the socket out of the device's loop.
    if (next == CLOSED && state_ == CONNECTED && !in_loop_)
      device_->registerDescriptor(fd_, EPOLLIN, this);
    tcp::Pair::changeState(next);
    if (next == CLOSED) poller_.ring();
  }

 private:
  // The device's loop would spin on a socket whose lock it cannot have, and must not wait for ever:
  // the holder may wait for the loop.
  static bool lock_soon(std::unique_lock<std::mutex>& lock) {
    if (lock.try_lock()) return true;
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2'000'000;
    if (until.tv_nsec >= 1'000'000'000) {
      until.tv_nsec -= 1'000'000'000;
      until.tv_sec++;
    }
    if (pthread_mutex_timedlock(lock.mutex()->native_handle(), &until)) return false;
    lock = std::unique_lock<std::mutex>(*lock.release(), std::adopt_lock);
    return true;
  }
  Poller& poller_;
  bool in_loop_ = true;  // guarded by m_, as the next
  bool in_poller_ = false;
};

class DrivenContext final : public tcp::Context {
 public:
  DrivenContext(std::shared_ptr<tcp::Device> device, int rank, int size)
      : tcp::Context(std::move(device), rank, size) {}
  ~DrivenContext() override { pairs_.clear(); }  // they use the poller
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override {
    pairs_[rank].reset(new DrivenPair(this, device_.get(), rank, getTimeout(), poller));
    return pairs_[rank];
  }
  Poller poller;
};

// A transfer that is asked for its end instead of waited for.
class Buffer final : public tcp::UnboundBuffer {
 public:
  using tcp::UnboundBuffer::UnboundBuffer;
  bool is_received(int* from) {
    std::lock_guard<std::mutex> lock(m_);
    if (!recvCompletions_) throwIfException();
    *from = recvRank_;
    return recvCompletions_ > 0;
  }
  bool is_sent() {
    std::lock_guard<std::mutex> lock(m_);
    if (!sendCompletions_) throwIfException();
    return sendCompletions_ > 0;
  }
};

struct Connection {
  std::shared_ptr<DrivenContext> context;
  int rank, size;
  std::mutex mutex;  // guards the fields below
  std::condition_variable changed;
  bool driven = false;  // a thread reads the sockets
  int waiting = 0;      // threads that wait for that one
};

struct Request {
  Buffer buffer;
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

// Each process publishes, for each other one, the address at which it expects it.
void connect_all(DrivenContext& context, Store& store, const DistOpen& what) {
  std::vector<char> mine;
  for (int r = 0; r < what.size; r++) {
    if (r == what.rank) continue;
    const std::vector<char> address = context.createPair(r)->address().bytes();
    mine.insert(mine.end(), address.begin(), address.end());
  }
  store.set("address" + std::to_string(what.rank), mine);
  for (int r = 0; r < what.size; r++) {
    if (r == what.rank) continue;
    const std::vector<char> theirs = store.get("address" + std::to_string(r));
    const size_t each = theirs.size() / size_t(what.size - 1);
    const auto begin = theirs.begin() + long(each) * (what.rank - (what.rank > r));
    context.getPair(r)->connect(std::vector<char>(begin, begin + long(each)));
  }
}

int32_t open_connection(const DistOpen* what, void** out, int32_t* rank, int32_t* size,
                        DistFailure* why) {
  return guarded(why, -1, [&] {
    std::unique_ptr<Store> store = open_store(*what);
    check_members(*store, *what);
    auto c = std::make_unique<Connection>();
    auto device = std::static_pointer_cast<tcp::Device>(tcp::CreateDevice(device_address(*store)));
    c->context = std::make_shared<DrivenContext>(device, what->rank, what->size);
    c->context->setTimeout(
        std::chrono::milliseconds(std::max<int64_t>(1, what->timeout_ns / 1000000)));
    connect_all(*c->context, *store, *what);
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
    std::unique_ptr<Request> r(new Request{{c->context, data, bytes}, peer, receives});
    const uint64_t slot = slot_of(channel, tag);
    std::vector<int> others;
    for (int p = 0; peer < 0 && p < c->size; p++)
      if (p != c->rank) others.push_back(p);
    if (peer < 0) r->buffer.recv(others, slot, 0, bytes);
    else if (receives) r->buffer.recv(peer, slot, 0, bytes);
    else r->buffer.send(peer, slot, 0, bytes);
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

bool is_done(Request* r, int* from) {
  return r->receives ? r->buffer.is_received(from) : r->buffer.is_sent();
}

// Reads the sockets that have something, at most once each.
void drive(Connection* c, std::chrono::nanoseconds left) {
  epoll_event events[16];
  const int64_t ms = (left.count() + 999'999) / 1'000'000;
  Poller& poller = c->context->poller;
  const Clock::time_point sleep_at = Clock::now() + kSpin;
  int n = 0;
  do {
    n = epoll_wait(poller.sockets, events, 16, 0);
  } while (!n && Clock::now() < sleep_at);
  if (!n) n = epoll_wait(poller.sockets, events, 16, int(std::min<int64_t>(ms, 1000)));
  for (int i = 0; i < n; i++) {
    eventfd_t rings;
    if (events[i].data.ptr) static_cast<DrivenPair*>(events[i].data.ptr)->read_socket();
    else eventfd_read(poller.bell, &rings);
  }
}

int32_t wait(void* connection, void* request, int64_t timeout_ns, DistFailure* why) {
  auto* c = static_cast<Connection*>(connection);
  auto* r = static_cast<Request*>(request);
  const int32_t status = guarded(why, r->peer, [&] {
    if (is_done(r, &why->peer)) return int32_t(kDistOk);
    const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(timeout_ns);
    std::unique_lock<std::mutex> lock(c->mutex);
    while (!is_done(r, &why->peer)) {
      const std::chrono::nanoseconds left = end - Clock::now();
      if (left.count() <= 0) return int32_t(kDistTimeout);
      if (c->driven) {
        c->waiting++;
        c->changed.wait_for(lock, left);
        c->waiting--;
        continue;
      }
      c->driven = true;
      lock.unlock();
      drive(c, left);
      lock.lock();
      c->driven = false;
      if (c->waiting) c->changed.notify_all();
    }
    return int32_t(kDistOk);
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

extern "C" TT_EXPORTED int32_t tt_dist_engine(uint64_t build_id, const DistEngine** out) {
  *out = &kEngine;
  return build_id == kDistBuildId ? TT_OK : TT_ABI;
}
