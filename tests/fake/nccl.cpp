// The functions of NCCL that tt calls, over the streams of the fake devices: the processes of a
// communicator exchange messages in a file that all of them map. Calls may be in progress for a
// while, as those of a communicator that does not block are.
#include "memory.h"
#include "streams.h"

#include "dist/nccl_library.h"
#include "dist/reduce.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace TT_NS;

namespace {

constexpr size_t kPiece = 4096;
constexpr int kInProgressCalls = 3;              // questions that are answered so after each call
constexpr int64_t kMaxTurns = int64_t(1) << 25;  // a minute or so
constexpr int kInvalid = 4;                      // ncclInvalidArgument

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
  Shared* shared;
  std::string path;
  int in_progress = kInProgressCalls;
  Mailbox& box(int from, int to) { return shared->boxes[from * ranks + to]; }
  size_t bytes() const { return sizeof(Shared) + sizeof(Mailbox) * size_t(ranks) * size_t(ranks); }
};

struct Transfer {
  int peer;
  char* data;
  size_t bytes;
  bool sends;
};

// Moves all messages that are not empty, those of one direction and peer in order.
void exchange(Comm& c, std::vector<Transfer> transfers) {
  std::erase_if(transfers, [](const Transfer& t) { return t.bytes == 0; });
  for (int64_t turn = 0; !transfers.empty(); turn++) {
    if (turn > kMaxTurns) _exit(3);  // the other process has gone: no test leaves one behind
    std::vector<bool> busy(size_t(c.ranks) * 2, false);
    for (Transfer& t : transfers) {
      const size_t line = size_t(t.peer) * 2 + t.sends;
      if (busy[line]) continue;
      busy[line] = true;
      Mailbox& box = t.sends ? c.box(c.rank, t.peer) : c.box(t.peer, c.rank);
      if (box.full.load(std::memory_order_acquire) != uint32_t(!t.sends)) continue;
      const size_t n = std::min(t.bytes, kPiece);
      if (t.sends) memcpy(box.data, t.data, n);
      else memcpy(t.data, box.data, n);
      box.full.store(t.sends, std::memory_order_release);
      t.data += n;
      t.bytes -= n;
    }
    std::erase_if(transfers, [](const Transfer& t) { return t.bytes == 0; });
    sched_yield();
  }
}

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

// Every rank gets the messages of all, one behind the other.
std::vector<char> gather_all(Comm& c, const void* mine, size_t bytes) {
  std::vector<char> all(bytes * size_t(c.ranks));
  std::vector<Transfer> transfers;
  memcpy(all.data() + bytes * size_t(c.rank), mine, bytes);
  for (int r = 0; r < c.ranks && bytes; r++) {
    if (r == c.rank) continue;
    transfers.push_back({r, static_cast<char*>(const_cast<void*>(mine)), bytes, true});
    transfers.push_back({r, all.data() + bytes * size_t(r), bytes, false});
  }
  exchange(c, std::move(transfers));
  return all;
}

std::vector<char> reduce_all(Comm& c, const void* mine, size_t n, int type, int op) {
  const size_t bytes = n * size_of(type);
  std::vector<char> all = gather_all(c, mine, bytes);
  for (int r = 1; r < c.ranks; r++)
    reduce_into(reduce_of(op), dtype_of(type), all.data(), all.data() + size_t(r) * bytes,
                int64_t(n));
  if (op == kNcclMean) divide_by(dtype_of(type), all.data(), int64_t(n), c.ranks);
  all.resize(bytes);
  return all;
}

// Transfers between group_start and group_end, which run together.
thread_local int t_depth = 0;
thread_local std::vector<Transfer> t_group;
thread_local Comm* t_comm = nullptr;
thread_local void* t_stream = nullptr;

// Runs body() on the stream. What the ranks' bodies exchange, they exchange in one order.
template <class F> int run(Comm* c, void* stream, F body) {
  c->in_progress = kInProgressCalls;
  fake::enqueue(0, static_cast<fake::Stream*>(stream), [=] {
    fake::Access access;
    body();
  });
  return kNcclInProgress;
}

int transfer(Comm* c, void* stream, Transfer t) {
  if (t.peer < 0 || t.peer >= c->ranks) return kInvalid;
  t_comm = c;
  t_stream = stream;
  t_group.push_back(t);
  if (t_depth) return kNcclSuccess;
  return run(c, stream, [c, all = std::move(t_group)] { exchange(*c, all); });
}

Comm* comm_of(void* c) { return static_cast<Comm*>(c); }

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
  auto* c = new Comm{rank, ranks, nullptr, id.bytes};
  const int file = open(id.bytes, O_RDWR);
  const bool fits = file >= 0 && ftruncate(file, off_t(c->bytes())) == 0;
  void* memory =
      fits ? mmap(nullptr, c->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    delete c;
    return 2;
  }
  c->shared = static_cast<Shared*>(memory);
  *out = c;
  return kNcclInProgress;
}
EXPORT int ncclCommAbort(void* comm) {
  Comm* c = comm_of(comm);
  const bool last = ++c->shared->gone == c->ranks;
  munmap(c->shared, c->bytes());
  if (last) unlink(c->path.c_str());
  delete c;
  return kNcclSuccess;
}
EXPORT int ncclCommGetAsyncError(void* comm, int* result) {
  // TT_FAKE_NCCL: what a test wants of the communicators
  const char* wanted = getenv("TT_FAKE_NCCL");
  Comm* c = comm_of(comm);
  *result = c->in_progress > 0 ? kNcclInProgress : kNcclSuccess;
  if (wanted && !strcmp(wanted, "hang")) *result = kNcclInProgress;
  if (wanted && !strcmp(wanted, "fail")) *result = 6;  // ncclRemoteError
  c->in_progress--;
  return kNcclSuccess;
}
EXPORT const char* ncclGetErrorString(int result) {
  if (result == 6) return "remote process exited or there was a network error";
  return result == kInvalid ? "invalid argument" : "unhandled system error";
}
EXPORT int ncclAllReduce(const void* in, void* out, size_t n, int type, int op, void* comm,
                         void* stream) {
  Comm* c = comm_of(comm);
  return run(c, stream, [=] {
    const std::vector<char> all = reduce_all(*c, in, n, type, op);
    memcpy(out, all.data(), all.size());
  });
}
EXPORT int ncclReduce(const void* in, void* out, size_t n, int type, int op, int root, void* comm,
                      void* stream) {
  Comm* c = comm_of(comm);
  return run(c, stream, [=] {
    const std::vector<char> all = reduce_all(*c, in, n, type, op);
    if (c->rank == root) memcpy(out, all.data(), all.size());
  });
}
EXPORT int ncclBroadcast(const void* in, void* out, size_t n, int type, int root, void* comm,
                         void* stream) {
  Comm* c = comm_of(comm);
  return run(c, stream, [=] {
    const size_t bytes = n * size_of(type);
    const std::vector<char> all = gather_all(*c, in, bytes);
    memmove(out, all.data() + bytes * size_t(root), bytes);
  });
}
EXPORT int ncclAllGather(const void* in, void* out, size_t n, int type, void* comm, void* stream) {
  Comm* c = comm_of(comm);
  return run(c, stream, [=] {
    const std::vector<char> all = gather_all(*c, in, n * size_of(type));
    memcpy(out, all.data(), all.size());
  });
}
EXPORT int ncclReduceScatter(const void* in, void* out, size_t n, int type, int op, void* comm,
                             void* stream) {
  Comm* c = comm_of(comm);
  return run(c, stream, [=] {
    const std::vector<char> all = reduce_all(*c, in, n * size_t(c->ranks), type, op);
    const size_t bytes = n * size_of(type);
    memcpy(out, all.data() + bytes * size_t(c->rank), bytes);
  });
}
EXPORT int ncclSend(const void* in, size_t n, int type, int peer, void* comm, void* stream) {
  char* data = static_cast<char*>(const_cast<void*>(in));
  return transfer(comm_of(comm), stream, {peer, data, n * size_of(type), true});
}
EXPORT int ncclRecv(void* out, size_t n, int type, int peer, void* comm, void* stream) {
  return transfer(comm_of(comm), stream, {peer, static_cast<char*>(out), n * size_of(type), false});
}
EXPORT int ncclGroupStart() {
  t_depth++;
  return kNcclSuccess;
}
EXPORT int ncclGroupEnd() {
  if (--t_depth || t_group.empty()) return kNcclSuccess;
  Comm* c = t_comm;
  return run(c, t_stream, [c, all = std::move(t_group)] { exchange(*c, all); });
}
