// Doubles to decimal digits by exact integer arithmetic: R. G. Burger and R. K. Dybvig, "Printing
// Floating-Point Numbers Quickly and Accurately", PLDI 1996 (free-format algorithm); fixed counts
// by plain long division.
#include "base/text/format.h"
#include "base/arith.h"

#include <string.h>

namespace TT_NS {

namespace {

// Natural number of up to 1,280 bits; the largest here is 10^324 · 2^55 < 2^1135.
struct Big {
  static constexpr int kLimbs = 40;
  int n = 0;  // limbs in use; the top one is not 0
  uint32_t limb[kLimbs];

  explicit Big(uint64_t v) {
    for (; v; v >>= 32) limb[n++] = uint32_t(v);
  }
  Big(const Big& o) : n(o.n) { memcpy(limb, o.limb, sizeof(uint32_t) * size_t(n)); }

  void mul(uint32_t m) {
    uint64_t carry = 0;
    for (int i = 0; i < n; i++) {
      carry += uint64_t(limb[i]) * m;
      limb[i] = uint32_t(carry);
      carry >>= 32;
    }
    if (carry) limb[n++] = uint32_t(carry);
  }

  void mul_pow10(int k) {
    for (; k >= 9; k -= 9) mul(1000000000);
    uint32_t m = 1;
    for (; k > 0; k--) m *= 10;
    mul(m);
  }

  void shl(int bits) {
    if (n == 0) return;
    const int words = bits / 32;
    const int rest = bits % 32;
    if (rest) {
      uint64_t carry = 0;
      for (int i = 0; i < n; i++) {
        carry |= uint64_t(limb[i]) << rest;
        limb[i] = uint32_t(carry);
        carry >>= 32;
      }
      if (carry) limb[n++] = uint32_t(carry);
    }
    if (words) {
      memmove(limb + words, limb, sizeof(uint32_t) * size_t(n));
      memset(limb, 0, sizeof(uint32_t) * size_t(words));
      n += words;
    }
  }

  void sub(const Big& o) {  // requires this >= o
    int64_t borrow = 0;
    for (int i = 0; i < n; i++) {
      borrow += int64_t(limb[i]) - (i < o.n ? o.limb[i] : 0);
      limb[i] = uint32_t(borrow);
      borrow >>= 32;
    }
    while (n && limb[n - 1] == 0) n--;
  }
};

int compare(const Big& a, const Big& b) {
  if (a.n != b.n) return a.n < b.n ? -1 : 1;
  for (int i = a.n - 1; i >= 0; i--)
    if (a.limb[i] != b.limb[i]) return a.limb[i] < b.limb[i] ? -1 : 1;
  return 0;
}

// Compares a + b with c.
int compare_sum(const Big& a, const Big& b, const Big& c) {
  Big sum(a);
  for (; sum.n < b.n || sum.n == 0; sum.n++) sum.limb[sum.n] = 0;
  uint64_t carry = 0;
  for (int i = 0; i < sum.n; i++) {
    carry += uint64_t(sum.limb[i]) + (i < b.n ? b.limb[i] : 0);
    sum.limb[i] = uint32_t(carry);
    carry >>= 32;
  }
  if (carry) sum.limb[sum.n++] = uint32_t(carry);
  while (sum.n && sum.limb[sum.n - 1] == 0) sum.n--;
  return compare(sum, c);
}

// Returns the quotient r / s, for r < 10 s; leaves the remainder in r.
char divide(Big* r, const Big& s) {
  char d = '0';
  for (; compare(*r, s) >= 0; d++) r->sub(s);
  return d;
}

// A finite value > 0 as f · 2^e.
struct Binary {
  uint64_t f;
  int e;
  // the gap to the next smaller double is half of the gap to the next larger one
  bool lower_gap_half;
};

Binary decode(double v, bool as_f32) {
  if (as_f32) {
    const float s = float(v);
    uint32_t b;
    memcpy(&b, &s, 4);
    const int x = int(b >> 23) & 255;
    const uint32_t m = b & 0x7fffff;
    if (x == 0) return {m, -149, false};
    return {m | 0x800000, x - 150, m == 0 && x > 1};
  }
  uint64_t b;
  memcpy(&b, &v, 8);
  const int x = int(b >> 52) & 2047;
  const uint64_t m = b & ((uint64_t(1) << 52) - 1);
  if (x == 0) return {m, -1074, false};
  return {m | (uint64_t(1) << 52), x - 1075, m == 0 && x > 1};
}

// Returns k with 10^(k-1) <= v < 10^k, or one less.
int estimate_k(const Binary& b) {
  const int top = b.e + 63 - leading_zeros(b.f);  // 2^top <= v
  const double x = double(top) * 0.30102999566398120 - 1e-10;
  const int k = int(x);
  return double(k) < x ? k + 1 : k;
}

struct Digits {
  char d[512];  // no leading zero (empty: the value rounds to 0)
  int n = 0;
  int k = 0;  // value = 0.d[0]d[1]… · 10^k
};

// v = r / s
struct Ratio {
  Big r, s;
  Ratio(const Binary& b) : r(b.f), s(1) {
    if (b.e >= 0) r.shl(b.e);
    else s.shl(-b.e);
  }
};

void shortest(const Binary& b, Digits* out) {
  const bool even = (b.f & 1) == 0;
  const int shift = b.lower_gap_half ? 2 : 1;
  Ratio v(b);
  Big plus(1);
  Big minus(1);  // half the gaps to the neighbours, over s
  v.r.shl(shift);
  v.s.shl(shift);
  if (b.lower_gap_half) plus.shl(1);
  if (b.e >= 0) {
    plus.shl(b.e);
    minus.shl(b.e);
  }
  int k = estimate_k(b);
  if (k >= 0) v.s.mul_pow10(k);
  else {
    v.r.mul_pow10(-k);
    plus.mul_pow10(-k);
    minus.mul_pow10(-k);
  }
  const int over = compare_sum(v.r, plus, v.s);
  if (over > 0 || (over == 0 && even)) k++;
  else {
    v.r.mul(10);
    plus.mul(10);
    minus.mul(10);
  }
  out->k = k;
  for (;;) {
    char d = divide(&v.r, v.s);
    const int lo = compare(v.r, minus);
    const int hi = compare_sum(v.r, plus, v.s);
    const bool low = lo < 0 || (lo == 0 && even);
    const bool high = hi > 0 || (hi == 0 && even);
    if (low || high) {
      const int half = compare_sum(v.r, v.r, v.s);
      if (high && (!low || half > 0 || (half == 0 && (d & 1)))) d++;
      out->d[out->n++] = d;
      return;
    }
    out->d[out->n++] = d;
    v.r.mul(10);
    plus.mul(10);
    minus.mul(10);
  }
}

// Adds one to the last digit.
void round_up(Digits* out) {
  int i = out->n - 1;
  while (i >= 0 && out->d[i] == '9') out->d[i--] = '0';
  if (i >= 0) {
    out->d[i]++;
    return;
  }
  memmove(out->d + 1, out->d, size_t(out->n));
  out->d[0] = '1';
  out->n++;
  out->k++;
}

// Writes `count` digits, or, if count < 0, up to `places` places after the point. Ties to even.
void rounded(const Binary& b, int count, int places, Digits* out) {
  Ratio v(b);
  int k = estimate_k(b);
  if (k >= 0) v.s.mul_pow10(k);
  else v.r.mul_pow10(-k);
  if (compare(v.r, v.s) >= 0) {
    k++;
    v.s.mul(10);
  }
  out->k = k;  // r / s in [0.1, 1)
  const int want = count >= 0 ? count : k + places;
  if (want < 0) return;
  for (int i = 0; i < want; i++) {
    v.r.mul(10);
    out->d[out->n++] = divide(&v.r, v.s);
  }
  const int half = compare_sum(v.r, v.r, v.s);
  const bool odd = out->n && (out->d[out->n - 1] & 1);
  if (half < 0 || (half == 0 && !odd)) return;
  round_up(out);
  if (count >= 0) out->n = count;
}

// Writes the sign and the values without digits; *done tells whether the text is complete.
int prefix(char* out, double* v, bool* done) {
  uint64_t bits;
  memcpy(&bits, v, 8);
  const bool negative = bits >> 63;
  const bool special = ((bits >> 52) & 2047) == 2047;
  const bool nan = special && (bits << 12) != 0;
  int n = 0;
  if (negative && !nan) out[n++] = '-';
  *done = special;
  if (special) {
    memcpy(out + n, nan ? "nan" : "inf", 3);
    n += 3;
  }
  if (negative) *v = -*v;
  return n;
}

int put_exponent(char* out, int e) {
  int n = 0;
  out[n++] = 'e';
  out[n++] = e < 0 ? '-' : '+';
  if (e < 0) e = -e;
  if (e < 10) out[n++] = '0';
  return n + format_int(out + n, e);
}

int put_zeros(char* out, int n) {
  for (int i = 0; i < n; i++) out[i] = '0';
  return n > 0 ? n : 0;
}

int clamp_digits(int digits) { return digits < 0 ? 0 : min(kMaxDigits, digits); }

}  // namespace

int format_uint(char* out, uint64_t v) noexcept {
  char t[20];
  int n = 0;
  do t[n++] = char('0' + v % 10);
  while (v /= 10);
  for (int i = 0; i < n; i++) out[i] = t[n - 1 - i];
  return n;
}

int format_int(char* out, int64_t v) noexcept {
  if (v >= 0) return format_uint(out, uint64_t(v));
  out[0] = '-';
  return 1 + format_uint(out + 1, 0 - uint64_t(v));
}

int format_double(char* out, double v, bool as_f32) noexcept {
  bool done;
  if (as_f32) v = double(float(v));
  int n = prefix(out, &v, &done);
  if (done) return n;
  Digits g;
  if (v == 0) {
    g.d[0] = '0';
    g.n = 1;
    g.k = 1;
  } else shortest(decode(v, as_f32), &g);
  if (g.k > 16 || g.k < -3) {
    out[n++] = g.d[0];
    if (g.n > 1) {
      out[n++] = '.';
      memcpy(out + n, g.d + 1, size_t(g.n - 1));
      n += g.n - 1;
    }
    return n + put_exponent(out + n, g.k - 1);
  }
  const int whole = g.k <= 0 ? 0 : min(g.k, g.n);  // digits before the point
  if (g.k <= 0) out[n++] = '0';
  memcpy(out + n, g.d, size_t(whole));
  n += whole;
  n += put_zeros(out + n, g.k - whole);
  out[n++] = '.';
  n += put_zeros(out + n, -g.k);
  if (whole == g.n) out[n++] = '0';
  memcpy(out + n, g.d + whole, size_t(g.n - whole));
  return n + g.n - whole;
}

int format_fixed(char* out, double v, int digits) noexcept {
  bool done;
  int n = prefix(out, &v, &done);
  if (done) return n;
  digits = clamp_digits(digits);
  Digits g;
  if (v != 0) rounded(decode(v, false), -1, digits, &g);
  if (g.n == 0) g.k = -digits;
  const int whole = max<int64_t>(g.k, 0);
  if (whole == 0) out[n++] = '0';
  memcpy(out + n, g.d, size_t(whole));
  n += whole;
  if (digits == 0) return n;
  out[n++] = '.';
  n += put_zeros(out + n, g.k < 0 ? -g.k : 0);
  memcpy(out + n, g.d + whole, size_t(g.n - whole));
  return n + g.n - whole;
}

int format_sci(char* out, double v, int digits) noexcept {
  bool done;
  int n = prefix(out, &v, &done);
  if (done) return n;
  digits = clamp_digits(digits);
  Digits g;
  if (v != 0) rounded(decode(v, false), digits + 1, 0, &g);
  else {
    g.n = put_zeros(g.d, digits + 1);
    g.k = 1;
  }
  out[n++] = g.d[0];
  if (digits) {
    out[n++] = '.';
    memcpy(out + n, g.d + 1, size_t(digits));
    n += digits;
  }
  return n + put_exponent(out + n, g.k - 1);
}

}  // namespace TT_NS
