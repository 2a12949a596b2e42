#include "dist/nccl.h"

#include "base/os.h"

#include <string.h>

namespace TT_NS {

struct NcclComm {
  const NcclLibrary* library;
  void* handle;  // NULL: not connected, or given up
  CudaDevice* device;
  int32_t peer;  // the other rank of a pair; -1: all ranks of the group
  Ref<DeviceStream> stream;
};

NcclLibrary open_nccl(const char* path) {
  const char* names[] = {path ? path : "libnccl.so.2", nullptr};
  void* library = os_dlopen(names);
  if (!library)
    fail_arg(TT_IO, "backend",
             "cannot open the library \"{}\" of the backend \"nccl\" (searched: {}): {}", names[0],
             path ? "this path" : "the path of the loader", os_dlerror());
  NcclLibrary l = {};
  const struct {
    const char* name;
    void* place;
  } functions[] = {
      {"ncclGetVersion", &l.get_version},
      {"ncclGetUniqueId", &l.get_unique_id},
      {"ncclCommInitRankConfig", &l.init_rank},
      {"ncclCommFinalize", &l.finalize},
      {"ncclCommDestroy", &l.destroy},
      {"ncclCommAbort", &l.abort},
      {"ncclCommGetAsyncError", &l.async_error},
      {"ncclGetErrorString", &l.error_string},
      {"ncclGetLastError", &l.last_error},
      {"ncclAllReduce", &l.all_reduce},
      {"ncclReduce", &l.reduce},
      {"ncclBroadcast", &l.broadcast},
      {"ncclAllGather", &l.all_gather},
      {"ncclReduceScatter", &l.reduce_scatter},
      {"ncclSend", &l.send},
      {"ncclRecv", &l.receive},
      {"ncclGroupStart", &l.group_start},
      {"ncclGroupEnd", &l.group_end},
  };
  for (const auto& f : functions) {
    void* found = os_dlsym(library, f.name);
    if (!found)
      fail_arg(TT_ABI, "backend",
               "\"{}\" does not export {}: the backend \"nccl\" needs NCCL 2.14 or later", names[0],
               f.name);
    memcpy(f.place, &found, sizeof found);
  }
  return l;
}

namespace {

// ---- elements and reductions ----

struct Elements {
  NcclType type;
  int64_t each;  // of this type, for an element of the dtype
};

Elements elements_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kI8: return {kNcclI8, 1};
    case Dtype::kI32: return {kNcclI32, 1};
    case Dtype::kI64: return {kNcclI64, 1};
    case Dtype::kF16: return {kNcclF16, 1};
    case Dtype::kBF16: return {kNcclBF16, 1};
    case Dtype::kF32: return {kNcclF32, 1};
    case Dtype::kF64: return {kNcclF64, 1};
    case Dtype::kC64: return {kNcclF32, 2};
    case Dtype::kC128: return {kNcclF64, 2};
    default: return {kNcclU8, item_size(dtype)};
  }
}

NcclOp op_of(ReduceOp op, Dtype dtype) {
  const bool truth = dtype == Dtype::kBool;  // bytes of 0 and 1
  switch (op) {
    case ReduceOp::kSum: return truth ? kNcclMax : kNcclSum;
    case ReduceOp::kProduct: return truth ? kNcclMin : kNcclProduct;
    case ReduceOp::kMean: return kNcclMean;
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd: return kNcclMin;
    default: return kNcclMax;
  }
}

// ---- communicators ----

[[noreturn]] void give_up(Group& g, NcclComm& c, const char* text) {
  if (c.handle) c.library->abort(c.handle);
  c.handle = nullptr;
  fail_broken(g, text);
}

void check_nccl(Group& g, NcclComm& c, int result) {
  if (result == kNcclSuccess || result == kNcclInProgress) return;
  char text[400];
  const char* reason = c.library->last_error(c.handle);
  if (!reason) reason = "";
  const char* between = *reason ? ": " : "";
  const FmtArg args[] = {c.library->error_string(result), g.peer(g.rank), between, reason};
  format_to(text, int64_t(sizeof text), "NCCL fails with \"{}\" on rank {}{}{}", args);
  give_up(g, c, text);
}

// Waits until done() or until NCCL, another lane of the connection, or the timeout ends it.
template <class F> void wait_until(Group& g, Work& w, NcclComm& c, const F& done) {
  constexpr int64_t kBusyNs = 200'000;
  constexpr int64_t kNapNs = 50'000;
  constexpr int64_t kTickNs = 50'000'000;
  const int64_t begin = os_now_ns();
  int64_t last_tick = begin;
  for (;;) {
    int state = kNcclSuccess;
    check_nccl(g, c, c.library->async_error(c.handle, &state));
    check_nccl(g, c, state);
    if (state != kNcclInProgress && done()) return;
    const int64_t now = os_now_ns();
    if (now - begin > g.timeout_ns) {
      char text[200];
      const FmtArg args[] = {double(g.timeout_ns / 1'000'000) / 1000, g.peer(g.rank)};
      format_to(text, int64_t(sizeof text), "NCCL is not done after {} s on rank {}", args);
      give_up(g, c, text);
    }
    {
      Lock lock(g.connection->mutex);
      if (g.connection->broken) state = -1;
    }
    if (state < 0) give_up(g, c, "the connection failed before");
    if (now - begin < kBusyNs) os_yield();
    else os_sleep(kNapNs);
    if (now - last_tick < kTickNs) continue;
    last_tick = now;
    tick(w);  // a thread that waits may poll the application
  }
}

// The id comes from rank 0, or from the sender of a transfer.
NcclId share_id(Group& g, NcclComm& c, const Job& job, Wire& wire) {
  auto* id = reinterpret_cast<NcclId*>(wire.memory(sizeof(NcclId)));
  const bool sends = job.call == DistCall::kSend;
  if (c.peer >= 0 && !sends) {
    wire.wait(wire.receive(c.peer, id, sizeof *id, user_tag(job)));
  } else if (c.peer < 0 && g.rank) {
    wire.wait(wire.receive(0, id, sizeof *id));
  } else {
    check_nccl(g, c, c.library->get_unique_id(id));
    SmallVec<Transfers, 32> sent;
    if (sends) sent.push_back(wire.send(c.peer, id, sizeof *id, user_tag(job)));
    for (int32_t r = 1; !sends && r < g.size; r++) sent.push_back(wire.send(r, id, sizeof *id));
    for (const Transfers& t : sent) wire.wait(t);
  }
  return *id;
}

NcclComm& connect(Group& g, Work& w, CudaDevice& d, int32_t peer, Wire& wire) {
  Lane& lane = g.lanes[lane_of(w.job.call)];
  for (NcclComm* c : lane.comms) {
    if (c->peer != peer || !c->handle) continue;
    if (c->device == &d) return *c;
    char text[160];
    const FmtArg args[] = {g.peer(g.rank), d.index, c->device->index};
    format_to(text, int64_t(sizeof text),
              "rank {} uses cuda:{}: its first call of this group was for cuda:{}", args);
    fail_broken(g, text);
  }
  lane.comms.reserve(lane.comms.size() + 1);
  auto* c = new (mem_alloc(sizeof(NcclComm)))
      NcclComm{&g.connection->nccl, nullptr, &d, peer, new_stream(d, 0)};
  lane.comms.push_back(c);
  const NcclId id = share_id(g, *c, w.job, wire);
  NcclConfig config;
  const int ranks = peer < 0 ? g.size : 2;
  const int pair_rank = w.job.call == DistCall::kSend ? 0 : 1;
  const int rank = peer < 0 ? g.rank : pair_rank;
  check_nccl(g, *c, c->library->init_rank(&c->handle, ranks, id, rank, &config));
  wait_until(g, w, *c, [] { return true; });
  return *c;
}

// ---- jobs ----

// Part r of a tensor goes to rank r, or comes from there.
void exchange_parts(Group& g, NcclComm& c, const Tensor* in, const Tensor* out, int32_t root,
                    DistCall call) {
  const NcclLibrary& l = *c.library;
  const Tensor& whole = call == DistCall::kScatter || !out ? *in : *out;
  const Tensor* part = call == DistCall::kScatter ? out : in;
  const Elements e = elements_of((in ? in : out)->dtype);
  const int64_t numel = call == DistCall::kAllToAll ? whole.numel / g.size : part->numel;
  const int64_t bytes = numel * part->item_size();
  const auto n = size_t(numel * e.each);
  const auto at = [&](const Tensor* t, int32_t r) { return t->data + r * bytes; };
  const bool is_root = g.rank == root;
  void* stream = c.stream->handle;
  check_nccl(g, c, l.group_start());
  for (int32_t r = 0; r < g.size; r++) {
    const bool sends = call == DistCall::kAllToAll || (call == DistCall::kScatter && is_root);
    const bool receives = call == DistCall::kAllToAll || (call == DistCall::kGather && is_root);
    if (sends) check_nccl(g, c, l.send(at(in, r), n, e.type, r, c.handle, stream));
    if (receives) check_nccl(g, c, l.receive(at(out, r), n, e.type, r, c.handle, stream));
  }
  if (call == DistCall::kGather)
    check_nccl(g, c, l.send(in->data, n, e.type, root, c.handle, stream));
  if (call == DistCall::kScatter)
    check_nccl(g, c, l.receive(out->data, n, e.type, root, c.handle, stream));
  check_nccl(g, c, l.group_end());
}

void start(Group& g, NcclComm& c, const Job& job) {
  const NcclLibrary& l = *c.library;
  const Tensor* in = job.input.get();
  const Tensor* out = job.output.get();
  const Dtype dtype = (in ? in : out)->dtype;
  const Elements e = elements_of(dtype);
  const NcclOp op = op_of(job.op, dtype);
  const auto count = [&](const Tensor* t) { return size_t(t->numel * e.each); };
  void* stream = c.stream->handle;
  int result = kNcclSuccess;
  switch (job.call) {
    case DistCall::kAllReduce:
      result = l.all_reduce(in->data, out->data, count(in), e.type, op, c.handle, stream);
      break;
    case DistCall::kReduce: {
      void* to = g.rank == job.root ? out->data : nullptr;
      result = l.reduce(in->data, to, count(in), e.type, op, job.root, c.handle, stream);
      break;
    }
    case DistCall::kBroadcast:
      result = l.broadcast(in->data, out->data, count(in), e.type, job.root, c.handle, stream);
      break;
    case DistCall::kAllGather:
      result = l.all_gather(in->data, out->data, count(in), e.type, c.handle, stream);
      break;
    case DistCall::kReduceScatter:
      result = l.reduce_scatter(in->data, out->data, count(out), e.type, op, c.handle, stream);
      break;
    case DistCall::kSend: result = l.send(in->data, count(in), e.type, 1, c.handle, stream); break;
    case DistCall::kReceive:
      result = l.receive(out->data, count(out), e.type, 0, c.handle, stream);
      break;
    default: return exchange_parts(g, c, in, out, job.root, job.call);
  }
  check_nccl(g, c, result);
}

}  // namespace

void check_nccl_reduce(ReduceOp op, Dtype dtype) {
  const bool bits = op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr || op == ReduceOp::kBitXor;
  if (bits && (dtype != Dtype::kBool || op == ReduceOp::kBitXor))
    fail_arg(TT_NOT_IMPLEMENTED, "op", "NCCL has no reduction {} of {}", reduce_op_name(op),
             fmt(dtype));
  const bool unknown = dtype == Dtype::kI16 || is_wide_unsigned(dtype);
  if (unknown || (is_complex(dtype) && op == ReduceOp::kProduct))
    fail_arg(TT_DTYPE, "tensor", "NCCL has no reduction {} of {}", reduce_op_name(op), fmt(dtype));
}

// Returns whether NCCL has finalized the communicator.
static bool finalize(const NcclLibrary& l, void* handle) noexcept {
  constexpr int64_t kPatienceNs = 5'000'000'000, kNapNs = 50'000;
  const int64_t end = os_now_ns() + kPatienceNs;
  int state = l.finalize(handle);
  while (state == kNcclInProgress && os_now_ns() < end) {
    os_sleep(kNapNs);
    if (l.async_error(handle, &state)) return false;
  }
  return state == kNcclSuccess;
}

void free_comm(NcclComm* c, bool usable) noexcept {
  if (c->handle && usable && finalize(*c->library, c->handle)) c->library->destroy(c->handle);
  else if (c->handle) c->library->abort(c->handle);
  c->~NcclComm();
  mem_retire(c, sizeof *c);
}

void run_on_device(Group& g, Work& w, Wire& wire) {
  const Job& job = w.job;
  const Tensor& t = job.output ? *job.output : *job.input;
  CudaDevice& d = runtime_cuda(ctx().rt, t.device.index);
  const DeviceBackend& b = *d.backend;
  const bool transfer = is_transfer(job.call);
  cuda_usable(d);
  cuda_check(d, b.make_current(d.index), "choosing the device");
  NcclComm& c = connect(g, w, d, transfer ? job.root : -1, wire);
  cuda_check(d, b.stream_wait(d.index, c.stream->handle, w.ready->handle), "waiting for an event");
  start(g, c, job);
  wait_until(g, w, c, [] { return true; });  // until all of it is on the stream
  Ref<DeviceEvent> result = new_event(d, false);
  cuda_check(d, b.event_record(d.index, result->handle, c.stream->handle), "recording an event");
  {
    Lock lock(w.mutex);
    w.result = result;
  }
  tick(w);
  wait_until(g, w, c, [&] { return b.event_done(d.index, result->handle) == 1; });
}

}  // namespace TT_NS
