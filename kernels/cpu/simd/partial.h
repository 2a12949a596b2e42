// Partial loads and stores of units without masks. Included by their headers.
#pragma once

TT_ISA_BEGIN

template <class T> struct Part {
  int n;
  TT_INLINE explicit Part(int lanes) : n(lanes) {}
};
template <class T> TT_INLINE Vec<T> load(const T* p, Part<T> m) {
  Vec<T> v = {};
  for (int i = 0; i < kLanes<T>; i++)
    if (i < m.n) v[i] = p[i];
  return v;
}
template <class T> TT_INLINE void store(T* p, Vec<T> v, Part<T> m) {
  for (int i = 0; i < kLanes<T>; i++)
    if (i < m.n) p[i] = v[i];
}

TT_ISA_END
