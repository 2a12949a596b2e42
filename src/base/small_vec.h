// SmallVec<T, N>: growable array with N inline elements; spills into the running call's heap.
#pragma once

#include "base/arith.h"
#include "base/memory/heap.h"
#include "base/ref.h"

#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

namespace TT_NS {

// Whether a T may be moved by copying its bytes and forgetting the original.
template <class T> inline constexpr bool kMovedAsBytes = std::is_trivially_copyable_v<T>;
template <class T> inline constexpr bool kMovedAsBytes<Ref<T>> = true;

// The members that every SmallVec begins with; its inline elements follow them.
struct TT_MAY_ALIAS VecHead {
  void* p;
  int64_t n, cap;
};
// Makes room for `need` elements of `item` bytes, which are moved as bytes.
void grow_vec(VecHead* v, int64_t need, int64_t item);
// Frees elements that need no destructor: the vector is empty, with room for `inline_cap` of them.
void drop_vec(VecHead* v, int64_t item, int64_t inline_cap) noexcept;

template <class T, int N> class SmallVec {
 public:
  SmallVec() = default;
  // Delegates to SmallVec(), so that a copy that fails half-way is destroyed.
  explicit SmallVec(Span<const T> s) : SmallVec() { append(s); }
  SmallVec(std::initializer_list<T> l) : SmallVec() { append({l.begin(), int64_t(l.size())}); }
  SmallVec(const SmallVec& o) : SmallVec() { append({o.p_, o.n_}); }
  SmallVec(SmallVec&& o) noexcept { take(o); }
  SmallVec& operator=(const SmallVec& o) {
    if (this != &o) {
      clear();
      append({o.p_, o.n_});
    }
    return *this;
  }
  SmallVec& operator=(SmallVec&& o) noexcept {
    if (this != &o) {
      drop();
      take(o);
    }
    return *this;
  }
  ~SmallVec() {
    if (std::is_trivially_destructible_v<T> ? p_ != local() : n_ || p_ != local()) drop();
  }

  int64_t size() const { return n_; }
  bool empty() const { return n_ == 0; }
  T* data() { return p_; }
  const T* data() const { return p_; }
  T& operator[](int64_t i) { return p_[i]; }
  const T& operator[](int64_t i) const { return p_[i]; }
  T* begin() { return p_; }
  T* end() { return p_ + n_; }
  const T* begin() const { return p_; }
  const T* end() const { return p_ + n_; }
  T& back() { return p_[n_ - 1]; }
  operator Span<const T>() const { return {p_, n_}; }
  Span<const T> span() const { return {p_, n_}; }
  Span<T> mut() { return {p_, n_}; }

  void push_back(T v) {
    if (n_ == cap_) grow(n_ + 1);
    new (p_ + n_++) T(std::move(v));
  }
  void append(Span<const T> s) {
    if (n_ + s.n > cap_) grow(n_ + s.n);
    for (const T& v : s) {
      new (p_ + n_) T(v);
      n_++;
    }
  }
  void insert(int64_t at, T v) {
    push_back(std::move(v));
    for (int64_t i = n_ - 1; i > at; i--) std::swap(p_[i], p_[i - 1]);
  }
  void erase(int64_t at) {
    for (int64_t i = at; i + 1 < n_; i++) p_[i] = std::move(p_[i + 1]);
    pop_back();
  }
  void pop_back() { p_[--n_].~T(); }
  void resize(int64_t n, const T& fill = T()) {
    if (n > cap_) grow(n);
    while (n_ > n) pop_back();
    while (n_ < n) new (p_ + n_++) T(fill);
  }
  void reserve(int64_t n) {
    if (n > cap_) grow(n);
  }
  // Makes room for n more elements at the end. The caller constructs them, then calls `extended`.
  T* room_for(int64_t n) {
    reserve(n_ + n);
    return p_ + n_;
  }
  void extended(int64_t n) { n_ += n; }
  void clear() {
    while (n_) pop_back();
  }

 private:
  T* local() { return reinterpret_cast<T*>(buf_); }
  const T* local() const { return reinterpret_cast<const T*>(buf_); }
  int64_t owned() const { return p_ == local() ? 0 : cap_; }
  // Vectors whose elements are moved as bytes share the bodies of these.
  VecHead* head() {
    static_assert(offsetof(SmallVec, buf_) == sizeof(VecHead));
    return reinterpret_cast<VecHead*>(this);
  }
  TT_INLINE void grow(int64_t need) {
    if constexpr (kMovedAsBytes<T> && kHasHead) {
      grow_vec(head(), need, sizeof(T));
    } else {
      grow_each(need);
    }
  }
  TT_NOINLINE void grow_each(int64_t need) {
    const int64_t cap = max(cap_ * 2, need);
    T* p = static_cast<T*>(mem_grow(nullptr, 0, 0, cap, sizeof(T)));
    for (int64_t i = 0; i < n_; i++) {
      new (p + i) T(std::move(p_[i]));
      p_[i].~T();
    }
    mem_free_items(p_, owned(), sizeof(T));
    p_ = p;
    cap_ = cap;
  }
  TT_INLINE void drop() noexcept {
    if constexpr (std::is_trivially_destructible_v<T> && kHasHead) {
      drop_vec(head(), sizeof(T), N);
    } else {
      drop_each();
    }
  }
  TT_NOINLINE void drop_each() noexcept {
    clear();
    if (p_ != local()) mem_free_items(p_, cap_, sizeof(T));  // most never left it
    p_ = local();
    cap_ = N;
  }
  void take(SmallVec& o) {
    if (o.p_ == o.local()) {
      for (int64_t i = 0; i < o.n_; i++) new (p_ + i) T(std::move(o.p_[i]));
      n_ = o.n_;
      o.clear();
    } else {
      p_ = o.p_;
      n_ = o.n_;
      cap_ = o.cap_;
      o.p_ = o.local();
      o.n_ = 0;
      o.cap_ = N;
    }
  }

  static constexpr bool kHasHead = alignof(T) <= alignof(VecHead);

  T* p_ = local();
  int64_t n_ = 0, cap_ = N;
  alignas(T) unsigned char buf_[sizeof(T) * size_t(N)];
};

}  // namespace TT_NS
