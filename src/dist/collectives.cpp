// Collectives over transfers between two processes. Each one first checks that all ranks make the
// same call (check_agreement); afterwards sizes are equal everywhere, and only transport can fail.
// The order of every reduction follows from rank and size alone: results are bit-equal in each run.
#include "dist/nccl.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kSegmentBytes = int64_t(512) << 10;  // of a pipeline
constexpr int64_t kSmallBytes = 16 << 10;              // below: the fewest messages
constexpr int32_t kDirectRanks = 16;                   // up to: each rank sends to each other

int32_t wrap(int64_t rank, int32_t size) { return int32_t(((rank % size) + size) % size); }

// ---- agreement ----

constexpr int kShownDims = 8;

// What must be equal on all ranks.
struct Signature {
  int32_t call, op, root, dtype;
  int32_t ndim;
  int32_t bucket;  // of data-parallel training, from 1
  int32_t device;  // a TT_ device type
  int64_t numel;
  int64_t shape[kShownDims];
  uint64_t sequence;
};

// What a rank knows of the others: the signature of the lowest rank and, if there is one, of a
// lowest rank that differs from it; or a rank that has failed.
struct Knowledge {
  Signature first;
  Signature other;
  int32_t first_rank;
  int32_t other_rank;   // -1: none
  int32_t failed_rank;  // -1: none
  int32_t seen_by;      // the rank that has seen it fail
  char why[128];
};

Signature signature_of(const Group& g, const Job& job) {
  Signature s = {};
  s.call = int32_t(job.call);
  s.op = int32_t(job.op);
  s.root = job.root;
  const bool transfer = is_transfer(job.call);
  if (!transfer) s.bucket = job.tag;
  s.sequence = g.sequence;
  // In gather and scatter only the root has both tensors.
  const bool by_output = job.call == DistCall::kScatter;
  const Tensor* t = by_output ? job.output.get() : job.input.get();
  if (!t) return s;
  s.dtype = int32_t(t->dtype);
  s.device = t->device.type;
  s.numel = t->numel;
  s.ndim = t->ndim;
  for (int32_t d = 0; d < t->ndim && d < kShownDims; d++) s.shape[d] = t->size(d);
  return s;
}

bool equal(const Signature& a, const Signature& b) { return !memcmp(&a, &b, sizeof a); }

void learn(Knowledge& mine, const Knowledge& theirs) {
  if (mine.failed_rank < 0 && theirs.failed_rank >= 0) {
    mine.failed_rank = theirs.failed_rank;
    mine.seen_by = theirs.seen_by;
    memcpy(mine.why, theirs.why, sizeof mine.why);
  }
  const auto add = [&](const Signature& s, int32_t rank) {
    if (rank < 0) return;
    if (rank < mine.first_rank) {
      std::swap(mine.first_rank, rank);
      Signature before = mine.first;
      mine.first = s;
      if (equal(mine.first, before)) return;
      mine.other = before;
      mine.other_rank = rank;
    } else if (!equal(s, mine.first) && (mine.other_rank < 0 || rank < mine.other_rank)) {
      mine.other = s;
      mine.other_rank = rank;
    }
  };
  add(theirs.first, theirs.first_rank);
  add(theirs.other, theirs.other_rank);
}

void describe(char* out, int64_t cap, const Signature& s) {
  const auto call = DistCall(s.call);
  const char* op = "";
  if (call == DistCall::kAllReduce || call == DistCall::kReduce || call == DistCall::kReduceScatter)
    op = reduce_op_name(ReduceOp(s.op));
  if (call == DistCall::kBarrier) {
    const FmtArg args[] = {call_name(call), s.bucket ? " at the end of backward" : ""};
    format_to(out, cap, "{}{}", args);
    return;
  }
  if (call == DistCall::kStop) {
    const bool missing = s.bucket == kStopMissing;
    const FmtArg args[] = {missing ? "backward has left parameters without a gradient"
                                   : "hook of gradients has failed"};
    format_to(out, cap, "nothing: its {}", args);
    return;
  }
  const Ints shape = {s.shape, min<int64_t>(s.ndim, kShownDims)};
  const bool cuda = s.device == TT_CUDA;
  if (s.bucket) {
    const FmtArg args[] = {call_name(call), s.bucket, fmt(Dtype(s.dtype)), shape};
    format_to(out, cap, "{} of bucket {} of gradients ({} {})", args);
  } else if (*op) {
    const FmtArg args[] = {call_name(call), op, fmt(Dtype(s.dtype)), cuda ? "CUDA " : "", shape};
    format_to(out, cap, "{} ({}) of a {} {}tensor {}", args);
  } else {
    const FmtArg args[] = {call_name(call), fmt(Dtype(s.dtype)), cuda ? "CUDA " : "", shape,
                           s.root};
    format_to(out, cap, "{} of a {} {}tensor {} with root {}", args);
  }
}

[[noreturn]] void fail_disagreement(const Group& g, const Knowledge& k) {
  char first[200], other[200];
  describe(first, sizeof first, k.first);
  describe(other, sizeof other, k.other);
  const bool same_text = !strcmp(first, other);
  if (same_text)
    fail(TT_DISTRIBUTED,
         "the ranks are at different calls: rank {} makes its call number {}, rank {} number {}",
         g.members[k.first_rank], k.first.sequence, g.members[k.other_rank], k.other.sequence);
  fail(TT_DISTRIBUTED, "the ranks disagree: rank {} calls {}, rank {} calls {}",
       g.members[k.first_rank], first, g.members[k.other_rank], other);
}

[[noreturn]] void fail_lost(Group& g, const Knowledge& k) {
  char text[400];
  const FmtArg args[] = {g.peer(k.failed_rank), g.peer(k.seen_by), k.why};
  format_to(text, int64_t(sizeof text), "rank {} has failed, seen from rank {}: {}", args);
  fail_broken(g, text, false);
}

}  // namespace

// The exchange of signatures: a caller may leave it to the lane, which continues it.
struct Agreement {
  Wire wire;
  Knowledge* mine = nullptr;
  Knowledge* heard = nullptr;  // of the round that waits; NULL: it has not begun
  Transfers incoming;
  Transfers sent[32];
  int rounds = 0;
  int64_t step = 1;  // 2^rounds
  Agreement(Group& g, Work& w) : wire(g, w, false) {}
  void begin(const Group& g, const Job& job) {
    mine = knowledge();
    mine->first = signature_of(g, job);
    mine->first_rank = g.rank;
    mine->other_rank = mine->failed_rank = -1;
  }
  Knowledge* knowledge() {
    auto* k = reinterpret_cast<Knowledge*>(wire.memory(sizeof(Knowledge)));
    *k = Knowledge{};
    return k;
  }
};

void end_agreement(Work& w) noexcept {
  Agreement* a = w.agreement;
  w.agreement = nullptr;
  if (!a) return;
  a->~Agreement();
  mem_free(a, sizeof *a);
}

namespace {

// Sends what is known to the rank above, and listens to the rank below.
void begin_round(Group& g, Agreement& a, DistFailure* why, int32_t* lost) {
  auto* told = a.knowledge();
  *told = *a.mine;
  const int32_t to = wrap(g.rank + a.step, g.size);
  const int32_t from = wrap(g.rank - a.step, g.size);
  if (!a.wire.try_send(to, told, sizeof *told, kTagCheck, &a.sent[a.rounds], why)) *lost = to;
  if (*lost >= 0 || a.mine->failed_rank >= 0) return;
  a.heard = a.knowledge();
  if (!a.wire.try_receive(from, a.heard, sizeof *a.heard, kTagCheck, &a.incoming, why))
    *lost = from;
}

// All ranks learn from all others in ceil(log2(size)) rounds: in round k each rank tells what it
// knows to the rank 2^k above. A rank that hears nothing says so in the later rounds, whose
// timeouts are longer, so that all name the rank that has failed. Returns false if another rank
// takes longer than `patience`; a further call continues.
bool check_agreement(Group& g, Work& w, int64_t patience) {
  if (!w.agreement) {
    g.sequence++;
    if (g.size == 1) return true;
    w.agreement = new (mem_alloc(sizeof(Agreement))) Agreement(g, w);
    w.agreement->begin(g, w.job);
  }
  Agreement& a = *w.agreement;
  const int64_t grace = min<int64_t>(g.timeout_ns / 4, 3'000'000'000);
  for (; a.step < g.size; a.step *= 2, a.rounds++, a.heard = nullptr) {
    DistFailure why = {-1, ""};
    int32_t lost = -1;
    if (!a.heard) begin_round(g, a, &why, &lost);
    if (lost < 0 && a.heard) {
      const int64_t timeout = g.timeout_ns + a.rounds * grace;
      lost = a.wire.try_wait(a.incoming, min(timeout, patience), &why);
      if (lost >= 0 && patience < timeout && a.wire.is_pending(a.incoming)) return false;
      if (lost < 0) learn(*a.mine, *a.heard);
    }
    if (lost < 0 || a.mine->failed_rank >= 0) continue;
    a.mine->failed_rank = lost;
    a.mine->seen_by = g.rank;
    memcpy(a.mine->why, why.text, sizeof a.mine->why - 1);
  }
  if (a.mine->failed_rank >= 0) {
    // The ranks above must get the message before the connection ends.
    DistFailure why = {-1, ""};
    for (int k = 0; k < a.rounds; k++) a.wire.try_wait(a.sent[k], grace, &why);
    fail_lost(g, *a.mine);
  }
  for (int k = 0; k < a.rounds; k++) a.wire.wait(a.sent[k]);
  if (a.mine->other_rank >= 0) fail_disagreement(g, *a.mine);
  return true;
}

// ---- the ring ----
// The data are `size` chunks. In step t a rank sends chunk rank + shift - t to the rank above it
// and receives the chunk before from the rank below. In the first size - 1 steps of a reduction
// what it receives is added to its own; afterwards one rank has the whole of each chunk. In further
// size - 1 steps the chunks go round. Chunks are cut into segments that follow each other: segment
// s of step t is number t * segments + s, and is sent when that of the step before is ready.

class Ring {
 public:
  Ring(Group& g, Wire& wire, char* data, int64_t numel, int64_t item)
      : g_(g), wire_(wire), data_(data), numel_(numel), item_(item) {
    const int64_t chunk = ceil_div(numel, g.size);
    segment_ = max<int64_t>(1, min<int64_t>(chunk, kSegmentBytes / item));
    segments_ = max<int64_t>(1, ceil_div(chunk, segment_));
  }
  // The chunks are of equal size, which numel / size is.
  void reduce(ReduceOp op, Dtype dtype, int32_t shift) {
    op_ = op;
    dtype_ = dtype;
    shift_ = shift;
    reduce_steps_ = g_.size - 1;
    staging_[0] = wire_.memory(segment_ * item_);
    staging_[1] = wire_.memory(segment_ * item_);
  }
  void run(bool gathers) {
    const int64_t steps = reduce_steps_ + (gathers ? g_.size - 1 : 0);
    total_ = steps * segments_;
    sent_.resize(total_);
    received_.resize(total_);
    for (int64_t j = 0; j < min(segments_, total_); j++) send(j);
    if (total_) receive(0);
    for (int64_t j = 0; j < total_; j++) {
      if (j + 1 < total_) receive(j + 1);
      wire_.wait(received_[j]);
      if (reduces(j)) combine(j);
      if (j + segments_ < total_) send(j + segments_);
    }
    for (const Transfers& t : sent_) wire_.wait(t);
  }

 private:
  struct Part {
    int64_t begin, n;  // elements
  };
  // Segment j % segments of a chunk.
  Part part(int32_t chunk, int64_t j) const {
    const int64_t begin = bound(chunk) + (j % segments_) * segment_;
    return {begin, clamp<int64_t>(bound(chunk + 1) - begin, 0, segment_)};
  }
  int64_t bound(int64_t chunk) const {
    const int64_t each = numel_ / g_.size;
    return chunk * each + min(chunk, numel_ % g_.size);
  }
  bool reduces(int64_t j) const { return j / segments_ < reduce_steps_; }
  Part sent_part(int64_t j) const {
    return part(wrap(g_.rank + shift_ - j / segments_, g_.size), j);
  }
  Part received_part(int64_t j) const {
    return part(wrap(g_.rank + shift_ - j / segments_ - 1, g_.size), j);
  }
  void send(int64_t j) {
    const Part p = sent_part(j);
    sent_[j] = wire_.send(wrap(g_.rank + 1, g_.size), data_ + p.begin * item_, p.n * item_);
  }
  void receive(int64_t j) {
    const Part p = received_part(j);
    char* to = data_ + p.begin * item_;
    if (reduces(j)) {
      to = staging_[j % 2];
    } else if (reduce_steps_) {
      wire_.wait(sent_[j - reduce_steps_ * segments_]);  // the same memory
    }
    received_[j] = wire_.receive(wrap(g_.rank - 1, g_.size), to, p.n * item_);
  }
  void combine(int64_t j) {
    const Part p = received_part(j);
    char* to = data_ + p.begin * item_;
    const bool whole = j / segments_ == reduce_steps_ - 1;
    if (whole && op_ == ReduceOp::kMean) mean_into(dtype_, to, staging_[j % 2], p.n, g_.size);
    else reduce_into(op_, dtype_, to, staging_[j % 2], p.n);
  }

  Group& g_;
  Wire& wire_;
  char* data_;
  int64_t numel_, item_;
  int64_t segment_, segments_;  // elements of a segment; segments of a chunk
  ReduceOp op_ = ReduceOp::kSum;
  Dtype dtype_ = Dtype::kNone;
  int32_t shift_ = 0;
  int64_t reduce_steps_ = 0;
  int64_t total_ = 0;
  char* staging_[2] = {};
  SmallVec<Transfers, 32> sent_, received_;
};

// ---- trees: rank v counts from the root; its parent is v without its lowest bit ----

void broadcast_tree(Group& g, Wire& wire, char* data, int64_t bytes, int32_t root) {
  const int32_t v = wrap(g.rank - root, g.size);
  const int64_t segments = ceil_div(bytes, kSegmentBytes);
  int32_t lowest = v ? (v & -v) : 1;
  while (!v && lowest < g.size) lowest *= 2;
  Transfers incoming;
  SmallVec<Transfers, 32> sent;
  const auto begin = [&](int64_t s) { return data + s * kSegmentBytes; };
  const auto length = [&](int64_t s) {
    return min<int64_t>(kSegmentBytes, bytes - s * kSegmentBytes);
  };
  const auto listen = [&](int64_t s) {
    if (v) incoming = wire.receive(wrap(v - lowest + root, g.size), begin(s), length(s));
  };
  if (segments) listen(0);
  for (int64_t s = 0; s < segments; s++) {
    wire.wait(incoming);
    if (s + 1 < segments) listen(s + 1);
    for (int32_t child = lowest / 2; child; child /= 2)
      if (v + child < g.size)
        sent.push_back(wire.send(wrap(v + child + root, g.size), begin(s), length(s)));
  }
  for (const Transfers& t : sent) wire.wait(t);
}

// data is changed on all ranks; the root has the result.
void reduce_tree(Group& g, Wire& wire, char* data, int64_t n, Dtype dtype, ReduceOp op,
                 int32_t root) {
  const int32_t v = wrap(g.rank - root, g.size);
  const int64_t item = item_size(dtype);
  const int64_t step = kSegmentBytes / item;
  char* staging = wire.memory(min(n, step) * item);
  SmallVec<Transfers, 32> sent;
  for (int64_t at = 0; at < n; at += step) {
    const int64_t m = min(step, n - at);
    for (int32_t mask = 1; mask < g.size; mask *= 2) {
      if (v & mask) {
        sent.push_back(wire.send(wrap(v - mask + root, g.size), data + at * item, m * item));
        break;
      }
      if (v + mask >= g.size) continue;
      wire.wait(wire.receive(wrap(v + mask + root, g.size), staging, m * item));
      reduce_into(op, dtype, data + at * item, staging, m);
    }
  }
  for (const Transfers& t : sent) wire.wait(t);
  if (!v && op == ReduceOp::kMean) divide_by(dtype, data, n, g.size);
}

// ---- each with each ----

// Every rank gets the data of all ranks; they are reduced in the order of the ranks.
void all_reduce_direct(Group& g, Wire& wire, char* data, int64_t n, Dtype dtype, ReduceOp op) {
  const int64_t bytes = n * item_size(dtype);
  char* all = wire.memory(bytes * g.size);
  memcpy(all + g.rank * bytes, data, size_t(bytes));
  SmallVec<Transfers, 32> transfers;
  for (int32_t k = 1; k < g.size; k++) {
    const int32_t to = wrap(g.rank + k, g.size);
    const int32_t from = wrap(g.rank - k, g.size);
    transfers.push_back(wire.receive(from, all + from * bytes, bytes));
    transfers.push_back(wire.send(to, all + g.rank * bytes, bytes));
  }
  for (const Transfers& t : transfers) wire.wait(t);
  memcpy(data, all, size_t(bytes));
  for (int32_t r = 1; r < g.size; r++) reduce_into(op, dtype, data, all + r * bytes, n);
  if (op == ReduceOp::kMean) divide_by(dtype, data, n, g.size);
}

void all_reduce(Group& g, Wire& wire, const Job& job) {
  Tensor& t = const_cast<Tensor&>(*job.output.get());
  const int64_t bytes = t.numel * t.item_size();
  if (!bytes) return;
  if (bytes <= kSmallBytes && g.size <= kDirectRanks)
    return all_reduce_direct(g, wire, t.data, t.numel, t.dtype, job.op);
  if (bytes <= kSmallBytes) {
    reduce_tree(g, wire, t.data, t.numel, t.dtype, job.op, 0);
    return broadcast_tree(g, wire, t.data, bytes, 0);
  }
  Ring ring(g, wire, t.data, t.numel, t.item_size());
  ring.reduce(job.op, t.dtype, 0);
  ring.run(true);
}

void reduce(Group& g, Wire& wire, const Job& job) {
  const Tensor& t = *job.output;
  char* data = t.data;
  const int64_t bytes = t.numel * t.item_size();
  if (g.rank != job.root) {
    data = wire.memory(bytes);
    memcpy(data, t.data, size_t(bytes));
  }
  reduce_tree(g, wire, data, t.numel, t.dtype, job.op, job.root);
}

void all_gather(Group& g, Wire& wire, const Job& job) {
  const int64_t bytes = job.input->numel * job.input->item_size();
  memcpy(job.output->data + g.rank * bytes, job.input->data, size_t(bytes));
  Ring ring(g, wire, job.output->data, bytes * g.size, 1);
  ring.run(true);
}

void reduce_scatter(Group& g, Wire& wire, const Job& job) {
  const Tensor& in = *job.input;
  const int64_t bytes = in.numel * in.item_size();
  const int64_t mine = bytes / g.size;
  char* data = wire.memory(bytes);
  memcpy(data, in.data, size_t(bytes));
  Ring ring(g, wire, data, in.numel, in.item_size());
  ring.reduce(job.op, in.dtype, -1);
  ring.run(false);
  memcpy(job.output->data, data + g.rank * mine, size_t(mine));
}

void all_to_all(Group& g, Wire& wire, const Job& job) {
  const int64_t bytes = job.input->numel * job.input->item_size() / g.size;
  const auto in = [&](int32_t r) { return job.input->data + r * bytes; };
  const auto out = [&](int32_t r) { return job.output->data + r * bytes; };
  memcpy(out(g.rank), in(g.rank), size_t(bytes));
  for (int32_t k = 1; k < g.size; k++) {
    const int32_t to = wrap(g.rank + k, g.size);
    const int32_t from = wrap(g.rank - k, g.size);
    const Transfers received = wire.receive(from, out(from), bytes);
    const Transfers sent = wire.send(to, in(to), bytes);
    wire.wait(received);
    wire.wait(sent);
  }
}

void gather(Group& g, Wire& wire, const Job& job) {
  const int64_t bytes = job.input->numel * job.input->item_size();
  if (g.rank != job.root) return wire.wait(wire.send(job.root, job.input->data, bytes));
  SmallVec<Transfers, 32> received;
  for (int32_t r = 0; r < g.size; r++) {
    char* to = job.output->data + r * bytes;
    if (r == g.rank) memcpy(to, job.input->data, size_t(bytes));
    else received.push_back(wire.receive(r, to, bytes));
  }
  for (const Transfers& t : received) wire.wait(t);
}

void scatter(Group& g, Wire& wire, const Job& job) {
  const int64_t bytes = job.output->numel * job.output->item_size();
  if (g.rank != job.root) return wire.wait(wire.receive(job.root, job.output->data, bytes));
  SmallVec<Transfers, 32> sent;
  for (int32_t r = 0; r < g.size; r++) {
    const char* from = job.input->data + r * bytes;
    if (r == g.rank) memcpy(job.output->data, from, size_t(bytes));
    else sent.push_back(wire.send(r, from, bytes));
  }
  for (const Transfers& t : sent) wire.wait(t);
}

// ---- transfers of the application: the signature, then the elements ----

void send_tensor(Group& g, Work& w, Wire& wire) {
  const Job& job = w.job;
  auto* s = reinterpret_cast<Signature*>(wire.memory(sizeof(Signature)));
  *s = signature_of(g, job);
  const Tensor& t = *job.input;
  const Transfers head = wire.send(job.root, s, sizeof *s, user_tag(job));
  if (!t.is_cpu()) {
    wire.wait(head);
    return run_on_device(g, w, wire);
  }
  const Transfers body = wire.send(job.root, t.data, t.numel * t.item_size(), user_tag(job) + 1);
  wire.wait(head);
  wire.wait(body);
}

void receive_tensor(Group& g, Work& w, Wire& wire) {
  const Job& job = w.job;
  auto* s = reinterpret_cast<Signature*>(wire.memory(sizeof(Signature)));
  int32_t from = job.root;
  if (from == kAnyRank) {
    const int32_t peer = wire.receive_any(s, sizeof *s, user_tag(job));
    for (from = 0; g.members[from] != peer;) from++;
  } else {
    wire.wait(wire.receive(from, s, sizeof *s, user_tag(job)));
  }
  const Tensor& t = *job.output;
  const bool same_kind = s->dtype == int32_t(t.dtype) && s->device == t.device.type;
  if (!same_kind || s->numel != t.numel) {
    char text[300];
    const Ints theirs = {s->shape, min<int64_t>(s->ndim, kShownDims)};
    const FmtArg args[] = {
        g.peer(from),   fmt(Dtype(s->dtype)), s->device == TT_CUDA ? "CUDA " : "", theirs,
        g.peer(g.rank), fmt(t.dtype),         t.is_cpu() ? "" : "CUDA ",           t.sizes()};
    format_to(text, int64_t(sizeof text),
              "rank {} sends a {} {}tensor {}, rank {} receives into a {} {}tensor {}", args);
    fail_broken(g, text);
  }
  if (!t.is_cpu()) return run_on_device(g, w, wire);
  wire.wait(wire.receive(from, t.data, t.numel * t.item_size(), user_tag(job) + 1));
  Lock lock(w.mutex);
  w.source = from;
}

// A group of one process: what is gathered or exchanged is the input.
void copy_alone(const Job& job) {
  if (!job.input || !job.output || job.input.get() == job.output.get()) return;
  const MaskGuard no_grad(bit(kKeyAutograd));
  op::copy_(*op::view(*job.output, job.input->sizes()), *job.input);
}

// After all ranks have agreed on the call.
void run_agreed(Group& g, Work& w) {
  const Job& job = w.job;
  if (g.size == 1) return copy_alone(job);
  const bool transfer = is_transfer(job.call);
  Wire wire(g, w, true);
  const Tensor* t = job.output ? job.output.get() : job.input.get();
  if (!transfer && t && !t->is_cpu()) return run_on_device(g, w, wire);
  switch (job.call) {
    case DistCall::kBarrier:
    case DistCall::kStop: return;
    case DistCall::kAllReduce: return all_reduce(g, wire, job);
    case DistCall::kReduce: return reduce(g, wire, job);
    case DistCall::kBroadcast:
      return broadcast_tree(g, wire, t->data, t->numel * t->item_size(), job.root);
    case DistCall::kAllGather: return all_gather(g, wire, job);
    case DistCall::kReduceScatter: return reduce_scatter(g, wire, job);
    case DistCall::kAllToAll: return all_to_all(g, wire, job);
    case DistCall::kGather: return gather(g, wire, job);
    case DistCall::kScatter: return scatter(g, wire, job);
    case DistCall::kSend: return send_tensor(g, w, wire);
    case DistCall::kReceive: return receive_tensor(g, w, wire);
  }
}

}  // namespace

bool run_job(Group& g, Work& w, int64_t patience) {
  const Job& job = w.job;
  const bool transfer = is_transfer(job.call);
  if (g.connection) check_unbroken(g);
  if (!transfer && job.run && g.size > 1 && job.run == g.failed_run)
    fail(TT_DISTRIBUTED, "a call of this backward has failed before");
  if (!transfer && !check_agreement(g, w, patience)) return false;
  run_agreed(g, w);
  return true;
}

}  // namespace TT_NS
