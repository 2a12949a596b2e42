// NcclLibrary: the functions of NVIDIA's NCCL that tt calls, declared here so that nothing of NCCL
// is needed to build tt. Numbers are those of nccl.h (2.14 and later).
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef TT_NS
#define TT_NS tt
#endif

namespace TT_NS {

enum NcclResult : int { kNcclSuccess = 0, kNcclInProgress = 7 };
enum NcclType : int {
  kNcclI8 = 0,
  kNcclU8 = 1,
  kNcclI32 = 2,
  kNcclI64 = 4,
  kNcclF16 = 6,
  kNcclF32 = 7,
  kNcclF64 = 8,
  kNcclBF16 = 9,
};
enum NcclOp : int {
  kNcclSum = 0,
  kNcclProduct = 1,
  kNcclMax = 2,
  kNcclMin = 3,
  kNcclMean = 4,
};

// Identifies a communicator that is being made.
struct NcclId {
  char bytes[128];
};

// The first fields of ncclConfig_t, which version 2.14 had.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;  // calls return while they are in progress
};

struct NcclLibrary {
  int (*get_version)(int* version);
  int (*get_unique_id)(NcclId* id);
  int (*init_rank)(void** comm, int ranks, NcclId id, int rank, NcclConfig* config);
  int (*finalize)(void* comm);  // sends what others have not received yet
  int (*destroy)(void* comm);   // after finalize
  int (*abort)(void* comm);     // frees the communicator, whatever it does
  int (*async_error)(void* comm, int* result);
  const char* (*error_string)(int result);
  const char* (*last_error)(void* comm);  // what the library has logged last, of any communicator
  int (*all_reduce)(const void* in, void* out, size_t n, int type, int op, void* comm,
                    void* stream);
  int (*reduce)(const void* in, void* out, size_t n, int type, int op, int root, void* comm,
                void* stream);
  int (*broadcast)(const void* in, void* out, size_t n, int type, int root, void* comm,
                   void* stream);
  int (*all_gather)(const void* in, void* out, size_t n_in, int type, void* comm, void* stream);
  int (*reduce_scatter)(const void* in, void* out, size_t n_out, int type, int op, void* comm,
                        void* stream);
  int (*send)(const void* in, size_t n, int type, int peer, void* comm, void* stream);
  int (*receive)(void* out, size_t n, int type, int peer, void* comm, void* stream);
  int (*group_start)();
  int (*group_end)();
  bool opened() const { return all_reduce != nullptr; }
};

// Opens NCCL: by its path, or libnccl.so.2 on the path of the loader. Fails with IO or ABI.
NcclLibrary open_nccl(const char* path);

}  // namespace TT_NS
