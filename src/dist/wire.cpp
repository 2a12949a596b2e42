#include "dist/wire.h"

#include <string.h>

namespace TT_NS {

constexpr int64_t kSliceNs = 50'000'000;  // between ticks

void check_unbroken(Group& g) {
  Connection& c = *g.connection;
  Lock lock(c.mutex);
  if (c.broken) fail(TT_DISTRIBUTED, "the connection failed before: {}", c.reason);
}

void fail_broken(Group& g, const char* text, bool abort) {
  Connection& c = *g.connection;
  bool first = false;
  {
    Lock lock(c.mutex);
    first = !c.broken;
    c.broken = true;
    const FmtArg args[] = {tls.op, text};
    if (first) format_to(c.reason, int64_t(sizeof c.reason), "{}: {}", args);
  }
  if (first && abort) c.engine->abort(c.handle);
  fail(TT_DISTRIBUTED, "{}", text);
}

void tick(Work& w) noexcept {
  atomic_fetch_add(&w.changed, 1, kRelease);
  os_wake(&w.changed, INT32_MAX);
}

// Called now and then by waits for other ranks.
void Wire::pause() {
  tick(work_);
  if (!polls_ || !work_.caller || poll_caller(work_)) return;
  fail_broken(group_, "the application has cancelled it while data were moved");
}

bool Wire::is_pending(const Transfers& all) const {
  for (int64_t i = all.first; i < all.first + all.n; i++)
    if (transfers_[i].request) return true;
  return false;
}

Wire::~Wire() {
  Connection* c = group_.connection.get();
  bool in_use = false;
  for (Transfer& t : transfers_)
    if (t.request) in_use |= c->engine->cancel(c->handle, t.request) != 0;
  // The engine may write to the memory as long as the process lives: it is never freed.
  if (in_use) ref_inc(&work_.refs);
}

char* Wire::memory(int64_t bytes) {
  work_.scratch.push_back(new_tensor({&bytes, 1}, Dtype::kU8, kCpuDevice));
  return work_.scratch.back()->data;
}

bool Wire::start(int32_t peer, char* data, int64_t bytes, int32_t tag, bool receives,
                 Transfers* out, DistFailure* why) {
  Connection& c = *group_.connection;
  const int32_t at_peer = group_.peer(peer);
  *out = {transfers_.size(), 0};
  for (int64_t at = 0; at < bytes;) {
    const size_t n = size_t(min<int64_t>(bytes - at, int64_t(kMaxDistMessage)));
    void* request = nullptr;
    transfers_.reserve(transfers_.size() + 1);
    const int32_t status =
        receives
            ? c.engine->receive(c.handle, at_peer, group_.channel, tag, data + at, n, &request, why)
            : c.engine->send(c.handle, at_peer, group_.channel, tag, data + at, n, &request, why);
    if (status) return false;
    transfers_.push_back({request, peer});
    out->n++;
    at += int64_t(n);
  }
  return true;
}
Transfers Wire::started(int32_t peer, char* data, int64_t bytes, int32_t tag, bool receives) {
  Transfers all;
  DistFailure why = {-1, ""};
  if (start(peer, data, bytes, tag, receives, &all, &why)) return all;
  char text[700];
  const FmtArg args[] = {group_.peer(peer), group_.connection->rank, why.text};
  format_to(text, int64_t(sizeof text), "rank {} cannot be reached from rank {}: {}", args);
  fail_broken(group_, text);
}
Transfers Wire::send(int32_t to, const void* data, int64_t bytes, int32_t tag) {
  return started(to, static_cast<char*>(const_cast<void*>(data)), bytes, tag, false);
}
Transfers Wire::receive(int32_t from, void* data, int64_t bytes, int32_t tag) {
  return started(from, static_cast<char*>(data), bytes, tag, true);
}
bool Wire::try_send(int32_t to, const void* data, int64_t bytes, int32_t tag, Transfers* out,
                    DistFailure* why) {
  return start(to, static_cast<char*>(const_cast<void*>(data)), bytes, tag, false, out, why);
}
bool Wire::try_receive(int32_t from, void* data, int64_t bytes, int32_t tag, Transfers* out,
                       DistFailure* why) {
  return start(from, static_cast<char*>(data), bytes, tag, true, out, why);
}

int32_t Wire::receive_any(void* data, int64_t bytes, int32_t tag) {
  Connection& c = *group_.connection;
  DistFailure why = {-1, ""};
  void* request = nullptr;
  const int64_t end = os_now_ns() + group_.timeout_ns;
  int32_t status = c.engine->receive(c.handle, kAnyRank, group_.channel, tag, data, size_t(bytes),
                                     &request, &why);
  const int64_t slot = transfers_.size();
  if (!status) transfers_.push_back({request, group_.rank});  // ends with the wire
  while (!status) {
    const int64_t left = end - os_now_ns();
    status = c.engine->wait(c.handle, request, clamp<int64_t>(left, 0, kSliceNs), &why);
    if (status != kDistTimeout) transfers_[slot].request = nullptr;
    if (status == kDistOk) return why.peer;
    if (status == kDistTimeout && left > 0) {
      status = kDistOk;
      pause();
    }
  }
  char text[700];
  const FmtArg args[] = {group_.connection->rank, double(group_.timeout_ns / 1'000'000) / 1000};
  const FmtArg others[] = {group_.connection->rank, why.text};
  if (status == kDistTimeout)
    format_to(text, int64_t(sizeof text), "no rank has sent to rank {} within {} s", args);
  else format_to(text, int64_t(sizeof text), "rank {} cannot receive from any rank: {}", others);
  fail_broken(group_, text);
}

int32_t Wire::try_wait(const Transfers& all, int64_t timeout_ns, DistFailure* why) {
  Connection& c = *group_.connection;
  for (int64_t i = all.first; i < all.first + all.n; i++) {
    Transfer& t = transfers_[i];
    const int64_t begin = os_now_ns();
    while (t.request) {
      const int64_t left = timeout_ns - (os_now_ns() - begin);
      const int32_t status =
          c.engine->wait(c.handle, t.request, clamp<int64_t>(left, 0, kSliceNs), why);
      if (status != kDistTimeout) t.request = nullptr;
      if (status == kDistFailed) return t.peer;
      if (status == kDistTimeout && left <= 0) {
        const FmtArg args[] = {double(timeout_ns / 1'000'000) / 1000};
        format_to(why->text, int64_t(sizeof why->text), "no answer within {} s", args);
        return t.peer;
      }
      const int64_t now = os_now_ns();
      if (now - last_tick_ > kSliceNs) {
        last_tick_ = now;
        pause();
      }
    }
  }
  return -1;
}

void Wire::wait(const Transfers& t, int64_t timeout_ns) {
  DistFailure why = {-1, ""};
  const int32_t peer = try_wait(t, timeout_ns, &why);
  if (peer < 0) return;
  char text[700];
  const FmtArg args[] = {group_.peer(peer), group_.connection->rank, why.text};
  format_to(text, int64_t(sizeof text), "rank {} has failed, seen from rank {}: {}", args);
  fail_broken(group_, text);
}

}  // namespace TT_NS
