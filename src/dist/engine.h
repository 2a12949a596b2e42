// DistEngine: the POD table that a communication library (libtt_gloo, libtt_mpi) fills: it connects
// processes and moves bytes between two of them. Collectives are built on it (collectives.cpp). No
// Tensor, exception or allocation of tt crosses it.
#pragma once

#include "tt_types.h"

#ifndef TT_NS
#define TT_NS tt
#endif

namespace TT_NS {

// What to connect. rank and size are -1 where the engine knows them itself (mpirun).
struct DistOpen {
  int32_t rank, size;
  const char* rendezvous;  // where the processes meet: "tcp://host:port", "file:///path" or ""
  int64_t timeout_ns;
};

// A sentence about a failure, zero-terminated. `peer` is the rank that it is about, -1 if none; of
// a receive without failure, the rank that has sent.
struct DistFailure {
  int32_t peer;
  char text[508];
};

enum DistStatus : int32_t { kDistOk = 0, kDistTimeout = 1, kDistFailed = 2 };

// Messages between two processes with the same channel and tag arrive in the order of sending. A
// message is received with exactly the number of bytes that was sent. Thread-safe.
constexpr int32_t kMaxDistChannels = 2048;
constexpr int32_t kMaxDistTag = 65535;
constexpr size_t kMaxDistMessage = size_t(1) << 28;

struct DistEngine {
  uint64_t build_id;  // always the first field: the only one that may be read from a library of
                      // another build
  const char* name;
  // Connects this process with all others; sets rank and size.
  int32_t (*open)(const DistOpen* what, void** connection, int32_t* rank, int32_t* size,
                  DistFailure* why);
  void (*close)(void* connection);
  // Makes operations of other processes that wait for this one fail, where the engine can.
  void (*abort)(void* connection);
  // Start a transfer; the memory must stay valid until the request has ended.
  int32_t (*send)(void* connection, int32_t peer, int32_t channel, int32_t tag, const void* data,
                  size_t bytes, void** request, DistFailure* why);
  // receive: from any rank if peer is -1.
  int32_t (*receive)(void* connection, int32_t peer, int32_t channel, int32_t tag, void* data,
                     size_t bytes, void** request, DistFailure* why);
  // Waits for a transfer. The request has ended unless the result is kDistTimeout.
  int32_t (*wait)(void* connection, void* request, int64_t timeout_ns, DistFailure* why);
  // Ends a request early. Returns 1 if its memory may still be read or written.
  int32_t (*cancel)(void* connection, void* request);
};

// The only symbol that a library exports. If build_id is not its own, it returns TT_ABI and sets
// *out to a table in which only build_id is valid.
using DistEntry = int32_t (*)(uint64_t build_id, const DistEngine** out);
constexpr char kDistEntryName[] = "tt_dist_engine";

// Identity shared by libtt and its engines; the number counts changes of meaning.
constexpr uint64_t kDistBuildId = (uint64_t(2) << 32) | (sizeof(DistEngine) << 16) |
                                  (sizeof(DistOpen) << 8) | (sizeof(DistFailure) & 255);

}  // namespace TT_NS
