// The functions of NCCL that tt calls, over the streams of the fake devices: the processes of a
// communicator exchange messages in a file that all of them map. Calls may be in progress for a
// while, as those of a communicator that does not block are.
#include "memory.h"
#include "streams.h"

#include "dist/nccl_library.h"
#include "dist/reduce.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace TT_NS;

namespace {

constexpr size_t kPiece = 4096;
constexpr int kInProgressCalls = 3;  // questions that are answered so after each call
constexpr double kMaxSeconds = 60;   // without any progress
constexpr int kInvalid = 4;          // ncclInvalidArgument

// The place of a message from one rank to another.
struct Mailbox {
  std::atomic<uint32_t> full;
  char data[kPiece];
};

struct Shared {
  std::atomic<int> gone;  // ranks that have given up the communicator
  Mailbox boxes[];        // [from * ranks + to]
};

struct Comm {
  int rank, ranks;
  std::string path;
  Shared* shared = nullptr;
  int in_progress = kInProgressCalls;
  bool finalized = false;
  std::atomic<bool> aborted = false;
  Comm(int rank_, int ranks_, const char* path_) : rank(rank_), ranks(ranks_), path(path_) {}
  ~Comm() {
    if (shared) munmap(shared, bytes());
  }
  Mailbox& box(int from, int to) { return shared->boxes[from * ranks + to]; }
  // Whether another rank has yet to take what this one has sent.
  bool sends() {
    bool any = false;
    for (int r = 0; r < ranks; r++) any |= box(rank, r).full.load() != 0;
    return any;
  }
  size_t bytes() const { return sizeof(Shared) + sizeof(Mailbox) * size_t(ranks) * size_t(ranks); }
};
using CommRef = std::shared_ptr<Comm>;  // owned by its handle and by work that has not ended

struct Transfer {
  int peer;
  char* data;
  size_t bytes;
  bool sends;
};

double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// Messages that are on their way, those of one direction and peer in order.
struct Exchange {
  std::vector<Transfer> transfers;
  double last_s = now_s();  // when something has moved
  double begin_s = 0;

  // Moves what can be moved now. Returns whether all is done.
  bool step(Comm& c) {
    if (now_s() < begin_s) return false;
    std::vector<bool> busy(size_t(c.ranks) * 2, false);
    for (Transfer& t : transfers) {
      const size_t line = size_t(t.peer) * 2 + t.sends;
      if (t.bytes == 0 || busy[line]) continue;
      busy[line] = true;
      Mailbox& box = t.sends ? c.box(c.rank, t.peer) : c.box(t.peer, c.rank);
      if (box.full.load(std::memory_order_acquire) != uint32_t(!t.sends)) continue;
      const size_t n = std::min(t.bytes, kPiece);
      if (t.sends) memcpy(box.data, t.data, n);
      else memcpy(t.data, box.data, n);
      box.full.store(t.sends, std::memory_order_release);
      t.data += n;
      t.bytes -= n;
      last_s = now_s();
    }
    std::erase_if(transfers, [](const Transfer& t) { return t.bytes == 0; });
    if (transfers.empty() || now_s() - last_s < kMaxSeconds) return transfers.empty();
    const Transfer& t = transfers[0];
    fprintf(stderr, "fake NCCL: rank %d: %zu bytes %s rank %d do not move\n", c.rank, t.bytes,
            t.sends ? "to" : "from", t.peer);
    _exit(3);  // no test leaves a process behind
  }
};

size_t size_of(int type) {
  switch (type) {
    case kNcclI8:
    case kNcclU8: return 1;
    case kNcclF16:
    case kNcclBF16: return 2;
    case kNcclI32:
    case kNcclF32: return 4;
    default: return 8;
  }
}
Dtype dtype_of(int type) {
  switch (type) {
    case kNcclI8: return Dtype::kI8;
    case kNcclI32: return Dtype::kI32;
    case kNcclI64: return Dtype::kI64;
    case kNcclF16: return Dtype::kF16;
    case kNcclBF16: return Dtype::kBF16;
    case kNcclF32: return Dtype::kF32;
    case kNcclF64: return Dtype::kF64;
    default: return Dtype::kU8;
  }
}
ReduceOp reduce_of(int op) {
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMax, ReduceOp::kMin,
                               ReduceOp::kMean};
  return kOps[op];
}

// Transfers between group_start and group_end, which run together.
thread_local int t_depth = 0;
thread_local std::vector<Transfer> t_group;
thread_local void* t_comm = nullptr;
thread_local void* t_stream = nullptr;

CommRef& comm_of(void* c) { return *static_cast<CommRef*>(c); }

// Moves the transfers on the stream, then calls end().
template <class F> int run(void* comm, void* stream, std::vector<Transfer> transfers, F end) {
  const CommRef c = comm_of(comm);
  c->in_progress = kInProgressCalls;
  auto exchange = std::make_shared<Exchange>(Exchange{std::move(transfers)});
  const bool receives = std::any_of(exchange->transfers.begin(), exchange->transfers.end(),
                                    [](const Transfer& t) { return !t.sends; });
  const char* wanted = getenv("TT_FAKE_NCCL");
  if (wanted && !strcmp(wanted, "slow") && receives) exchange->begin_s = now_s() + 0.3;
  fake::enqueue_steps(static_cast<fake::Stream*>(stream), [=] {
    fake::Access access;
    if (c->aborted) return true;
    if (!exchange->step(*c)) return false;
    end();
    return true;
  });
  return kNcclInProgress;
}

// Every rank gets the messages of all, one behind the other, and calls end(their memory).
template <class F> int gather_all(void* comm, void* stream, const void* mine, size_t bytes, F end) {
  const CommRef c = comm_of(comm);
  auto all = std::make_shared<std::vector<char>>(bytes * size_t(c->ranks));
  char* from = static_cast<char*>(const_cast<void*>(mine));
  std::vector<Transfer> transfers;
  for (int r = 0; r < c->ranks; r++) {
    if (r == c->rank) continue;
    transfers.push_back({r, from, bytes, true});
    transfers.push_back({r, all->data() + bytes * size_t(r), bytes, false});
  }
  return run(comm, stream, std::move(transfers), [=] {
    memcpy(all->data() + bytes * size_t(c->rank), from, bytes);
    end(all->data());
  });
}

// The same with their reduction.
template <class F>
int reduce_all(void* comm, void* stream, const void* mine, size_t n, int type, int op, F end) {
  const size_t bytes = n * size_of(type);
  const int ranks = comm_of(comm)->ranks;
  return gather_all(comm, stream, mine, bytes, [=](char* all) {
    for (int r = 1; r < ranks; r++)
      reduce_into(reduce_of(op), dtype_of(type), all, all + size_t(r) * bytes, int64_t(n));
    if (op == kNcclMean) divide_by(dtype_of(type), all, int64_t(n), ranks);
    end(all);
  });
}

int transfer(void* comm, void* stream, Transfer t) {
  if (t.peer < 0 || t.peer >= comm_of(comm)->ranks) return kInvalid;
  t_comm = comm;
  t_stream = stream;
  t_group.push_back(t);
  if (t_depth) return kNcclSuccess;
  return run(comm, stream, std::exchange(t_group, {}), [] {});
}

}  // namespace

EXPORT int ncclGetVersion(int* version) {
  *version = 22000;
  return kNcclSuccess;
}
EXPORT int ncclGetUniqueId(NcclId* id) {
  strcpy(id->bytes, "/tmp/tt_fake_nccl.XXXXXX");
  const int file = mkstemp(id->bytes);
  if (file < 0) return 2;  // ncclSystemError
  close(file);
  return kNcclSuccess;
}
EXPORT int ncclCommInitRankConfig(void** out, int ranks, NcclId id, int rank, NcclConfig* config) {
  if (config->magic != 0xcafebeef || config->blocking || rank < 0 || rank >= ranks) return kInvalid;
  auto c = std::make_shared<Comm>(rank, ranks, id.bytes);
  const int file = open(id.bytes, O_RDWR);
  const bool fits = file >= 0 && ftruncate(file, off_t(c->bytes())) == 0;
  void* memory =
      fits ? mmap(nullptr, c->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) return 2;
  c->shared = static_cast<Shared*>(memory);
  *out = new CommRef(std::move(c));
  return kNcclInProgress;
}
static void give_up(CommRef& c) {
  c->aborted = true;
  if (++c->shared->gone == c->ranks) unlink(c->path.c_str());
  delete &c;
}
EXPORT int ncclCommFinalize(void* comm) {
  comm_of(comm)->in_progress = kInProgressCalls;
  comm_of(comm)->finalized = true;
  return kNcclInProgress;
}
EXPORT int ncclCommDestroy(void* comm) {
  CommRef& c = comm_of(comm);
  if (!c->finalized || c->sends()) return kInvalid;
  give_up(c);
  return kNcclSuccess;
}
EXPORT int ncclCommAbort(void* comm) {  // what has been sent is lost, as it may be over a network
  CommRef& c = comm_of(comm);
  for (int r = 0; r < c->ranks; r++) c->box(c->rank, r).full.store(0);
  give_up(c);
  return kNcclSuccess;
}
EXPORT int ncclCommGetAsyncError(void* comm, int* result) {
  // TT_FAKE_NCCL: what a test wants of the communicators
  const char* wanted = getenv("TT_FAKE_NCCL");
  Comm* c = comm_of(comm).get();
  const bool in_progress = c->in_progress > 0 || (c->finalized && c->sends());
  *result = in_progress ? kNcclInProgress : kNcclSuccess;
  if (wanted && !strcmp(wanted, "hang")) *result = kNcclInProgress;
  if (wanted && !strcmp(wanted, "fail")) *result = 6;       // ncclRemoteError
  if (wanted && !strcmp(wanted, "duplicate")) *result = 5;  // ncclInvalidUsage
  c->in_progress--;
  return kNcclSuccess;
}
EXPORT const char* ncclGetErrorString(int result) {
  if (result == 6) return "remote process exited or there was a network error";
  if (result == 5) return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  return result == kInvalid ? "invalid argument" : "unhandled system error";
}
EXPORT const char* ncclGetLastError(void*) {
  const char* wanted = getenv("TT_FAKE_NCCL");
  const bool refused = wanted && !strcmp(wanted, "duplicate");
  return refused ? "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 19000" : "";
}
EXPORT int ncclAllReduce(const void* in, void* out, size_t n, int type, int op, void* comm,
                         void* stream) {
  return reduce_all(comm, stream, in, n, type, op,
                    [=](const char* all) { memcpy(out, all, n * size_of(type)); });
}
EXPORT int ncclReduce(const void* in, void* out, size_t n, int type, int op, int root, void* comm,
                      void* stream) {
  const bool is_root = comm_of(comm)->rank == root;
  return reduce_all(comm, stream, in, n, type, op, [=](const char* all) {
    if (is_root) memcpy(out, all, n * size_of(type));
  });
}
EXPORT int ncclBroadcast(const void* in, void* out, size_t n, int type, int root, void* comm,
                         void* stream) {
  const size_t bytes = n * size_of(type);
  return gather_all(comm, stream, in, bytes,
                    [=](const char* all) { memmove(out, all + bytes * size_t(root), bytes); });
}
EXPORT int ncclAllGather(const void* in, void* out, size_t n, int type, void* comm, void* stream) {
  const size_t bytes = n * size_of(type), ranks = size_t(comm_of(comm)->ranks);
  return gather_all(comm, stream, in, bytes,
                    [=](const char* all) { memcpy(out, all, bytes * ranks); });
}
EXPORT int ncclReduceScatter(const void* in, void* out, size_t n, int type, int op, void* comm,
                             void* stream) {
  const size_t bytes = n * size_of(type);
  const auto ranks = size_t(comm_of(comm)->ranks), rank = size_t(comm_of(comm)->rank);
  return reduce_all(comm, stream, in, n * ranks, type, op,
                    [=](const char* all) { memcpy(out, all + bytes * rank, bytes); });
}
EXPORT int ncclSend(const void* in, size_t n, int type, int peer, void* comm, void* stream) {
  char* data = static_cast<char*>(const_cast<void*>(in));
  return transfer(comm, stream, {peer, data, n * size_of(type), true});
}
EXPORT int ncclRecv(void* out, size_t n, int type, int peer, void* comm, void* stream) {
  return transfer(comm, stream, {peer, static_cast<char*>(out), n * size_of(type), false});
}
EXPORT int ncclGroupStart() {
  t_depth++;
  return kNcclSuccess;
}
EXPORT int ncclGroupEnd() {
  if (--t_depth || t_group.empty()) return kNcclSuccess;
  return run(t_comm, t_stream, std::exchange(t_group, {}), [] {});
}
