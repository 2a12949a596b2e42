// Span<T>: borrowed pointer and length.
#pragma once

#include "base/platform.h"

#include <type_traits>

namespace TT_NS {

template <class T> struct Span {
  T* ptr = nullptr;
  int64_t n = 0;

  constexpr Span() = default;
  constexpr Span(T* p, int64_t count) : ptr(p), n(count) {}
  template <size_t N> constexpr Span(T (&a)[N]) : ptr(a), n(int64_t(N)) {}
  constexpr operator Span<const T>() const { return {ptr, n}; }

  constexpr int64_t size() const { return n; }
  constexpr bool empty() const { return n == 0; }
  constexpr T* data() const { return ptr; }
  constexpr T& operator[](int64_t i) const { return ptr[i]; }
  constexpr T* begin() const { return ptr; }
  constexpr T* end() const { return ptr + n; }
  constexpr T& back() const { return ptr[n - 1]; }
  constexpr Span slice(int64_t from, int64_t to) const { return {ptr + from, to - from}; }
};

using Ints = Span<const int64_t>;

inline bool same(Ints a, Ints b) {
  if (a.n != b.n) return false;
  for (int64_t i = 0; i < a.n; i++)
    if (a.ptr[i] != b.ptr[i]) return false;
  return true;
}

}  // namespace TT_NS
