// libtt_mpi: MPI as an engine. Every call of MPI is made under one lock, and none of them blocks:
// waiting is polling, so that each wait has a timeout.
#include "base/platform.h"
#include "dist/engine.h"

#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

using namespace TT_NS;

namespace {

struct Connection {
  MPI_Comm comm;
  int rank, size;
};
struct Request {
  MPI_Request mpi;
  int peer;
  bool receives;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
bool g_finalize;  // MPI was initialised here, and no transfer has been given up

struct Guard {
  Guard() { pthread_mutex_lock(&g_lock); }
  ~Guard() { pthread_mutex_unlock(&g_lock); }
  Guard(const Guard&) = delete;
};

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

int32_t failed(DistFailure* why, int peer, const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(code, text, &n);
  why->peer = peer;
  snprintf(why->text, sizeof why->text, "%s failed: %.400s", call, text);
  return kDistFailed;
}

// A process that ends without MPI_Finalize makes mpirun end the whole job.
void finalize_at_exit() {
  int done = 0;
  MPI_Finalized(&done);
  if (g_finalize && !done) MPI_Finalize();
}

int32_t initialise(DistFailure* why) {
  int ready = 0;
  MPI_Initialized(&ready);
  int level = MPI_THREAD_SINGLE;
  if (ready) {
    MPI_Query_thread(&level);
  } else {
    // Open MPI's own plug-ins expect its symbols to be global.
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) && info.dli_fname)
      dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS) return failed(why, -1, "MPI_Init_thread", code);
    g_finalize = true;
    atexit(finalize_at_exit);
  }
  if (level >= MPI_THREAD_SERIALIZED) return kDistOk;
  snprintf(why->text, sizeof why->text,
           "MPI was initialised for one thread: must be MPI_THREAD_SERIALIZED at least");
  return kDistFailed;
}

int32_t open_connection(const DistOpen* what, void** out, int32_t* rank, int32_t* size,
                        DistFailure* why) {
  Guard guard;
  why->peer = -1;
  if (int32_t status = initialise(why)) return status;
  auto* c = static_cast<Connection*>(malloc(sizeof(Connection)));
  if (!c) return kDistFailed;
  MPI_Comm_rank(MPI_COMM_WORLD, &c->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &c->size);
  const bool other_rank = what->rank >= 0 && what->rank != c->rank;
  const bool other_size = what->size >= 0 && what->size != c->size;
  if (other_rank || other_size) {
    snprintf(why->text, sizeof why->text,
             "rank %d of %d was asked for, but mpirun started this process as rank %d of %d",
             what->rank, what->size, c->rank, c->size);
    free(c);
    return kDistFailed;
  }
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &c->comm);
  if (code != MPI_SUCCESS) {
    free(c);
    return failed(why, -1, "MPI_Comm_dup", code);
  }
  MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
  *out = c;
  *rank = c->rank;
  *size = c->size;
  return kDistOk;
}

// MPI_Comm_free is collective: a process that leaves early would make the others wait.
void close_connection(void* connection) { free(connection); }
void abort_connection(void*) {}

int tag_of(int32_t channel, int32_t tag) { return channel << 16 | tag; }

int32_t started(Request* r, int code, const char* call, void** request, DistFailure* why) {
  if (code != MPI_SUCCESS) {
    const int peer = r->peer;
    free(r);
    return failed(why, peer, call, code);
  }
  *request = r;
  return kDistOk;
}

Request* new_request(int peer, bool receives, DistFailure* why) {
  auto* r = static_cast<Request*>(malloc(sizeof(Request)));
  why->peer = peer;
  if (r) {
    r->mpi = MPI_REQUEST_NULL;
    r->peer = peer;
    r->receives = receives;
  } else {
    snprintf(why->text, sizeof why->text, "out of memory");
  }
  return r;
}

int32_t send(void* connection, int32_t peer, int32_t channel, int32_t tag, const void* data,
             size_t bytes, void** request, DistFailure* why) {
  auto* c = static_cast<Connection*>(connection);
  Request* r = new_request(peer, false, why);
  if (!r) return kDistFailed;
  Guard guard;
  const int code =
      MPI_Isend(data, int(bytes), MPI_BYTE, peer, tag_of(channel, tag), c->comm, &r->mpi);
  return started(r, code, "MPI_Isend", request, why);
}

int32_t receive(void* connection, int32_t peer, int32_t channel, int32_t tag, void* data,
                size_t bytes, void** request, DistFailure* why) {
  auto* c = static_cast<Connection*>(connection);
  Request* r = new_request(peer, true, why);
  if (!r) return kDistFailed;
  Guard guard;
  const int from = peer < 0 ? MPI_ANY_SOURCE : peer;
  const int code =
      MPI_Irecv(data, int(bytes), MPI_BYTE, from, tag_of(channel, tag), c->comm, &r->mpi);
  return started(r, code, "MPI_Irecv", request, why);
}

// Returns true if the request has ended, with its code.
bool test(Request* r, int* code) {
  Guard guard;
  int done = 0;
  MPI_Status status;
  *code = MPI_Test(&r->mpi, &done, &status);
  if (done && *code == MPI_SUCCESS && r->receives) r->peer = status.MPI_SOURCE;
  return done || *code != MPI_SUCCESS;
}

int32_t wait(void*, void* request, int64_t timeout_ns, DistFailure* why) {
  auto* r = static_cast<Request*>(request);
  // Limits of time, not of turns: between busy processes one sched_yield takes milliseconds.
  constexpr int64_t kSpinNs = 20000;
  constexpr int64_t kYieldNs = 1000000;
  const int64_t begin = now_ns();
  int code = MPI_SUCCESS;
  while (!test(r, &code)) {
    const int64_t waited = now_ns() - begin;
    if (waited > timeout_ns) return kDistTimeout;
    if (waited < kSpinNs) continue;
    if (waited < kYieldNs) {
      sched_yield();
    } else {
      const timespec pause = {0, 50000};
      nanosleep(&pause, nullptr);
    }
  }
  const int peer = r->peer;
  free(r);
  why->peer = peer;
  return code == MPI_SUCCESS ? int32_t(kDistOk) : failed(why, peer, "MPI_Test", code);
}

int32_t cancel(void*, void* request) {
  auto* r = static_cast<Request*>(request);
  {
    Guard guard;
    g_finalize = false;  // it would wait for the transfer
    if (r->receives) MPI_Cancel(&r->mpi);
  }
  const int64_t begin = now_ns();
  int code = MPI_SUCCESS;
  while (now_ns() - begin < 50000000) {
    if (test(r, &code)) {
      free(r);
      return 0;
    }
    sched_yield();
  }
  return 1;  // the request is left to MPI
}

const DistEngine kEngine = {
    kDistBuildId, "mpi", open_connection, close_connection, abort_connection, send,
    receive,      wait,  cancel};

}  // namespace

extern "C" TT_EXPORTED int32_t tt_dist_engine(uint64_t build_id, const DistEngine** out) {
  *out = &kEngine;
  return build_id == kDistBuildId ? TT_OK : TT_ABI;
}
