// Collectives and transfers of tensors on CUDA devices, by NCCL. A group of the backend "nccl" has
// a connection of another engine, too: on it the ranks agree on each call, as for tensors on the
// CPU, and exchange what NCCL needs to connect.
#pragma once

#include "dist/wire.h"

namespace TT_NS {

// Fails with DTYPE or NOT_IMPLEMENTED where NCCL lacks the reduction.
void check_nccl_reduce(ReduceOp op, Dtype dtype);

// A lane's communicator: of all ranks, or of this rank and another one.
void free_comm(NcclComm* c) noexcept;

// Runs a job, on whose call the ranks have agreed, and waits until the device has done it. The
// application may go on as soon as w.result is there.
void run_on_device(Group& g, Work& w, Wire& wire);

}  // namespace TT_NS
