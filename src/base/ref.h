// Ref<T>: owning pointer to an object with an intrusive atomic count (`refs`) and a static
// T::destroy(T*).
#pragma once

#include "base/platform.h"

#include <utility>

namespace TT_NS {

using RefCount = int32_t;

TT_INLINE void ref_inc(RefCount* c) { atomic_fetch_add(c, 1, kRelaxed); }
// For applications, which may leak any number of references: past 2^30 the object is immortal, and
// the count never overflows.
inline void ref_inc_external(RefCount* c) {
  constexpr RefCount kMany = 1 << 30;
  const RefCount before = atomic_fetch_add(c, 1, kRelaxed);
  if (TT_UNLIKELY(before < 0 || before >= kMany)) atomic_store(c, -kMany, kRelaxed);
}
// Returns true if this was the last reference. A sole owner needs no locked instruction.
TT_INLINE bool ref_dec(RefCount* c) {
  if (atomic_load(c, kAcquire) == 1) return true;
  return atomic_fetch_sub(c, 1, kAcqRel) == 1;
}

template <class T> class Ref {
 public:
  Ref() = default;
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) ref_inc(&p_->refs);
  }
  Ref(Ref&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) unref(p_);
  }
  // Takes over a reference from the caller.
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  // Adds a reference.
  static Ref share(const T* p) {
    if (p) ref_inc(&const_cast<T*>(p)->refs);
    return adopt(const_cast<T*>(p));
  }
  // Hands the reference to the caller.
  T* leak() {
    T* p = p_;
    p_ = nullptr;
    return p;
  }
  // Inlined on the hot paths that end an object; the destructor is not.
  TT_INLINE void reset() {
    T* p = leak();
    if (p && ref_dec(&p->refs)) T::destroy(p);
  }
  T* get() const { return p_; }
  T& operator*() const { return *p_; }
  T* operator->() const { return p_; }
  operator const T&() const { return *p_; }  // borrows
  explicit operator bool() const { return p_ != nullptr; }

 private:
  // Out of line: every use has the destructor twice, once for exceptions.
  static TT_NOINLINE void unref(T* p) noexcept {
    if (ref_dec(&p->refs)) T::destroy(p);
  }

  T* p_ = nullptr;
};

}  // namespace TT_NS
