#include "core/cuda_calls.h"

#include "core/device_checks.h"
#include "core/pinned.h"

namespace TT_NS {

static int64_t* place(DeviceChecks& checks, CudaDevice& d) { return checks.place(d); }
static void start(DeviceChecks& checks, CudaDevice& d, int64_t* place,
                  DeviceCheck&& check) noexcept {
  checks.start(d, place, std::move(check));
}

constinit const CudaCalls kCudaCalls = {.open = open_cuda,
                                        .close = close_cuda,
                                        .side_stream = side_stream,
                                        .block = cuda_block,
                                        .copy = cuda_copy,
                                        .wait_for_writer = wait_for_writer,
                                        .mark_used = mark_used,
                                        .fail = fail_cuda,
                                        .fail_memory = fail_device_memory,
                                        .fail_unusable = fail_unusable,
                                        .put = device_alloc_put,
                                        .is_pinned = is_pinned,
                                        .copy_pinned = copy_pinned,
                                        .checks = DeviceChecks::of,
                                        .place = place,
                                        .start = start};

}  // namespace TT_NS
