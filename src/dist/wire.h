// Wire: the transfers of one work. What has not ended when it is destroyed is cancelled.
#pragma once

#include "dist/group.h"

namespace TT_NS {

// Tags of a channel. Those of the application's transfers have two tags each.
enum WireTag : int32_t { kTagCheck = 0, kTagPayload = 1, kTagUser = 2 };
constexpr int32_t kMaxUserTag = (kMaxDistTag - kTagUser) / 2 - 1;

inline int32_t user_tag(const Job& job) { return kTagUser + 2 * job.tag; }

// Transfers [first, first + n) of a wire: a long message is several.
struct Transfers {
  int64_t first = 0, n = 0;
};

class Wire {
 public:
  // polls: while data move, the application is polled that runs the work itself.
  Wire(Group& g, Work& w, bool polls) : group_(g), work_(w), polls_(polls) {}
  ~Wire();
  Wire(const Wire&) = delete;
  // Memory for messages, which lives as long as the work.
  char* memory(int64_t bytes);
  // Ranks are those of the group.
  Transfers send(int32_t to, const void* data, int64_t bytes, int32_t tag = kTagPayload);
  Transfers receive(int32_t from, void* data, int64_t bytes, int32_t tag = kTagPayload);
  // The same; return false instead of failing themselves.
  bool try_send(int32_t to, const void* data, int64_t bytes, int32_t tag, Transfers* out,
                DistFailure* why);
  bool try_receive(int32_t from, void* data, int64_t bytes, int32_t tag, Transfers* out,
                   DistFailure* why);
  // Receives one message from any rank; returns the rank in the connection.
  int32_t receive_any(void* data, int64_t bytes, int32_t tag);
  void wait(const Transfers& t) { wait(t, group_.timeout_ns); }
  void wait(const Transfers& t, int64_t timeout_ns);
  // The same; returns the rank that failed, -1 if none, instead of failing itself.
  int32_t try_wait(const Transfers& t, int64_t timeout_ns, DistFailure* why);
  bool is_pending(const Transfers& t) const;

 private:
  struct Transfer {
    void* request;  // NULL: ended
    int32_t peer;   // rank in the group
  };
  bool start(int32_t peer, char* data, int64_t bytes, int32_t tag, bool receives, Transfers* out,
             DistFailure* why);
  Transfers started(int32_t peer, char* data, int64_t bytes, int32_t tag, bool receives);
  void pause();
  Group& group_;
  Work& work_;
  bool polls_;
  SmallVec<Transfer, 16> transfers_;
  int64_t last_tick_ = os_now_ns();
};

// Fails with DISTRIBUTED, and breaks the connection of the group. abort: other ranks that wait for
// this one fail, too.
[[noreturn]] void fail_broken(Group& g, const char* text, bool abort = true);
void check_unbroken(Group& g);
// Wakes the threads that wait for the work, which may poll the application.
void tick(Work& w) noexcept;

// Polls the application that runs the work itself. Returns false if it wants to stop.
bool poll_caller(Work& w) noexcept;

// Runs the job of a work, on its lane or in its place: collectives.cpp. Returns false, with the
// work half done, if other ranks take longer than `patience` to make the same call.
bool run_job(Group& g, Work& w, int64_t patience);
void end_agreement(Work& w) noexcept;  // frees what a half-done work has kept

}  // namespace TT_NS
