// Collectives and transfers of tensors on CUDA devices, by NCCL. A group of the backend "nccl" has
// a connection of another engine, too: on it the ranks agree on each call, as for tensors on the
// CPU, and exchange what NCCL needs to connect.
#pragma once

#include "dist/wire.h"

namespace TT_NS {

// Fails with DTYPE or NOT_IMPLEMENTED where NCCL lacks the reduction.
void check_nccl_reduce(ReduceOp op, Dtype dtype);

// A lane's communicator: of all ranks, or of this rank and another one. usable: nothing has failed,
// so that other ranks may still receive what this one has sent; for a while this waits for them.
void free_comm(NcclComm* c, bool usable) noexcept;

// Runs a job, on whose call the ranks have agreed, and waits until the device has done it. The
// application may continue as soon as w.result is set.
void run_on_device(Group& g, Work& w, Wire& wire);

}  // namespace TT_NS
