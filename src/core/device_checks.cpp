#include "core/kept_checks.h"

#include "core/ctx.h"

namespace TT_NS {

namespace {

// What `of` makes.
struct AllChecks : DeviceChecks {
  Mutex kept_mutex;
  KeptChecks* kept = nullptr;
};
AllChecks& all_of(CudaDevice& d) { return *static_cast<AllChecks*>(d.checks); }

}  // namespace

DeviceChecks* DeviceChecks::of(CudaDevice& d) {
  if (!d.backend->pinned_alloc || !d.backend->stream_done) return nullptr;
  if (DeviceChecks* known = atomic_load(&d.checks, kAcquire)) return known;
  Lock lock(d.mutex);
  if (d.checks) return d.checks;
  void* places = nullptr;
  if (d.backend->pinned_alloc(d.index, kPlaces * sizeof(int64_t), &places) != TT_OK) return nullptr;
  void* memory = os_alloc(sizeof(AllChecks), 64);
  if (!memory) {
    d.backend->pinned_free(d.index, places);
    return nullptr;
  }
  auto* checks = new (memory) AllChecks;
  checks->places_ = static_cast<int64_t*>(places);
  checks->first_ = checks->n_ = 0;
  atomic_store(&d.checks, checks, kRelease);
  return checks;
}

void DeviceChecks::destroy(CudaDevice& d) noexcept {
  AllChecks* checks = static_cast<AllChecks*>(d.checks);
  if (!checks) return;
  d.checks = nullptr;
  if (!d.lost && *d.alive) {
    // Kernels may still write to the places.
    for (DeviceStream* s : d.streams)
      if (s) d.backend->stream_sync(d.index, s->handle);
    d.backend->pinned_free(d.index, checks->places_);
  }
  checks->~AllChecks();
  os_free(checks);
}

static bool has_passed(const DeviceCheck& check, const int64_t* place) noexcept {
  if (check.is_flag)
    return atomic_load(reinterpret_cast<const unsigned char*>(place), kAcquire) != 0;
  return atomic_load(place, kAcquire) == kCheckPassed;
}

// Ends the checks of a stream that passed, in order; stops before one that found something.
void DeviceChecks::end_passed(int32_t stream) noexcept {
  for (int64_t k = 0; k < n_; k++) {
    const int64_t i = (first_ + k) % kPlaces;
    Started& s = started_[i];
    if (s.passed || (stream != kAllStreams && s.stream != stream)) continue;
    if (!has_passed(s.check, &places_[i])) break;
    s.passed = true;
    s.check.values.reset();
  }
  while (n_ && started_[first_].passed) {
    first_ = (first_ + 1) % kPlaces;
    n_--;
  }
}

int64_t* DeviceChecks::place(CudaDevice& d) {
  bool full;
  {
    Lock lock(mutex_);
    const int32_t own = 0;
    if (n_ >= kPlaces / 4 && d.backend->stream_done(d.index, d.own.handle) == 1) end_passed(own);
    full = n_ == kPlaces;
  }
  if (full) cuda_synchronize(d);
  Lock lock(mutex_);
  if (n_ == kPlaces) fail(TT_DEVICE, "too many threads check values of one device");
  const int64_t i = (first_ + n_) % kPlaces;
  n_++;
  started_[i].passed = true;  // until it starts
  started_[i].stream = kAllStreams;
  places_[i] = kCheckPassed;
  return &places_[i];
}

void DeviceChecks::start(CudaDevice& d, int64_t* place, DeviceCheck&& check) noexcept {
  Lock lock(mutex_);
  Started& s = started_[place - places_];
  s.check = static_cast<DeviceCheck&&>(check);
  s.stream = current_stream(d).number;
  s.passed = false;
}

// The first kept check that found something; the places are good for the next run again.
static int64_t take_kept(CudaDevice& d, DeviceCheck* failed) {
  int64_t found = kCheckPassed;
  AllChecks& all = all_of(d);
  Lock lock(all.kept_mutex);
  for (KeptChecks* kept = all.kept; kept; kept = kept->next) {
    for (int64_t i = 0; i < kept->checks.n; i++) {
      int64_t* place = &kept->places[i];
      if (has_passed(kept->checks[i], place)) continue;
      if (!failed->report) {
        found = *place;
        *failed = kept->checks[i];
      }
      atomic_store(place, kCheckPassed, kRelease);
    }
  }
  return found;
}

void keep_checks(CudaDevice& d, KeptChecks& more) noexcept {
  AllChecks& all = all_of(d);
  Lock lock(all.kept_mutex);
  more.next = all.kept;
  all.kept = &more;
}
void forget_checks(CudaDevice& d, KeptChecks& which) noexcept {
  if (!d.checks) return;
  AllChecks& all = all_of(d);
  Lock lock(all.kept_mutex);
  for (KeptChecks** at = &all.kept; *at; at = &(*at)->next)
    if (*at == &which) {
      *at = which.next;
      return;
    }
}

void DeviceChecks::report(CudaDevice& d, bool all) {
  DeviceCheck failed;
  int64_t found = kCheckPassed;
  {
    Lock lock(mutex_);
    const int32_t stream = all ? kAllStreams : current_stream(d).number;
    end_passed(stream);
    for (int64_t k = 0; k < n_; k++) {
      const int64_t i = (first_ + k) % kPlaces;
      Started& s = started_[i];
      if (s.passed || (!all && s.stream != stream)) continue;
      if (has_passed(s.check, &places_[i])) continue;
      found = places_[i];
      failed = static_cast<DeviceCheck&&>(s.check);
      break;
    }
    // The first one counts: what followed it computed with wrong values.
    for (int64_t k = 0; failed.report && k < n_; k++) {
      Started& s = started_[(first_ + k) % kPlaces];
      s.passed = true;
      s.check.values.reset();
    }
    if (failed.report) n_ = 0;
  }
  if (!failed.report) found = take_kept(d, &failed);
  if (!failed.report) return;
  struct Name {  // the message begins with the operator that failed
    const char* before;
    explicit Name(const char* op) : before(tls.op) { tls.op = op; }
    ~Name() { tls.op = before; }
  } name(failed.op);
  failed.report(failed, found);
}

}  // namespace TT_NS
