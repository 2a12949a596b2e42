// The inverse of erf for vector units that look up 32 entries. Included by special.h.
//
// erfinv(x) = x Q(u), u = 1 - |x|. Q is a polynomial of degree 9 on each of 32 intervals of u: the
// halves of the octaves from 2^-8 to 1, and the octaves from 2^-24 to 2^-8. Its argument t runs
// from -1/2 to 1/2 on each; its error is 2^-31. The coefficients are tt's own interpolations at
// Chebyshev nodes, computed in 40 digits; the two largest have two parts, so that the result is
// rounded almost once.
#pragma once

#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN
namespace math {

enum ErfinvRow {
  kErfinv0,
  kErfinv0Low,
  kErfinv1,
  kErfinv1Low,
  kErfinv2,
  kErfinv9 = kErfinv2 + 7,
  kNumErfinvRows
};

// clang-format off
alignas(64) constexpr float kErfinvTable[kNumErfinvRows][kTableSize] = {
    {0x1.ccb71cp+1f, 0x1.c0ac2ep+1f, 0x1.b45234p+1f, 0x1.a7a2f2p+1f, 0x1.9a9754p+1f,
     0x1.8d274ep+1f, 0x1.7f49b2p+1f, 0x1.70f3f8p+1f, 0x1.621a1cp+1f, 0x1.52ae78p+1f,
     0x1.42a1c8p+1f, 0x1.31e36ep+1f, 0x1.206264p+1f, 0x1.0e0f3p+1f, 0x1.00012p+1f, 0x1.ecfa98p+0f,
     0x1.d85edap+0f, 0x1.c48a0ep+0f, 0x1.af24a2p+0f, 0x1.9aa96cp+0f, 0x1.84b912p+0f,
     0x1.6fec22p+0f, 0x1.59ebeap+0f, 0x1.456798p+0f, 0x1.302d1ep+0f, 0x1.1cf6dp+0f, 0x1.09ee68p+0f,
     0x1.f3b952p-1f, 0x1.d7e1fp-1f, 0x1.c79ed4p-1f, 0x1.e3f558p+1f, 0x1.d87886p+1f},
    {-0x1.3be492p-26f, 0x1.2cf54cp-27f, 0x1.7577dep-25f, -0x1.6bbe7ep-25f, -0x1.598d82p-26f,
     0x1.54817ap-24f, -0x1.c59952p-24f, -0x1.fa6a2ap-24f, -0x1.0b7104p-25f, 0x1.e1156p-24f,
     -0x1.9a9e7ep-25f, -0x1.98159p-26f, 0x1.e29a1ap-26f, 0x1.e7f35ep-27f, 0x1.39fc36p-24f,
     0x1.7e3dbap-26f, -0x1.9577bcp-25f, -0x1.74de6ep-26f, 0x1.0977b6p-28f, 0x1.5927b4p-25f,
     0x1.29756ap-25f, 0x1.ec326p-27f, -0x1.9582fcp-25f, -0x1.8db154p-27f, -0x1.9c8d26p-26f,
     0x1.55340ep-26f, -0x1.0baa76p-27f, 0x1.3e920cp-26f, -0x1.0510dap-29f, -0x1.85fdc8p-26f,
     -0x1.7502c4p-24f, -0x1.54090ap-24f},
    {-0x1.6e1ec6p-4f, -0x1.77473p-4f, -0x1.81241ep-4f, -0x1.8bcd2cp-4f, -0x1.975e14p-4f,
     -0x1.a3f76p-4f, -0x1.b1bf02p-4f, -0x1.c0e092p-4f, -0x1.d18caep-4f, -0x1.e3f682p-4f,
     -0x1.f84d9cp-4f, -0x1.07587cp-3f, -0x1.138b4p-3f, -0x1.208fe2p-3f, -0x1.661898p-4f,
     -0x1.054abep-4f, -0x1.75b1d4p-4f, -0x1.0fddap-4f, -0x1.830b6ap-4f, -0x1.17e622p-4f,
     -0x1.8b16ep-4f, -0x1.1aaf36p-4f, -0x1.8923dap-4f, -0x1.14274p-4f, -0x1.762044p-4f,
     -0x1.fbc826p-5f, -0x1.45837ap-4f, -0x1.940d48p-5f, -0x1.a4a7a2p-5f, -0x1.e375ap-7f,
     -0x1.5d9df2p-4f, -0x1.6596c4p-4f},
    {-0x1.57ce8ap-29f, 0x1.a9cf1p-29f, 0x1.020946p-29f, 0x1.5eb276p-30f, -0x1.12de76p-30f,
     -0x1.caf0aep-29f, -0x1.caf55cp-30f, 0x1.c67e04p-29f, 0x1.31b20ap-29f, -0x1.b98622p-30f,
     0x1.c5c6b8p-30f, -0x1.74b2e4p-28f, -0x1.d244d2p-28f, 0x1.c51ecep-28f, -0x1.44770cp-30f,
     0x1.d270ep-30f, -0x1.6e2dacp-29f, 0x1.973546p-29f, 0x1.5ec4bcp-31f, 0x1.f8cdbep-29f,
     -0x1.3b4ad2p-30f, -0x1.6d81d4p-32f, 0x1.f5072cp-29f, 0x1.78f9d8p-29f, 0x1.926f8p-32f,
     0x1.49b55cp-30f, -0x1.3ab7b8p-29f, -0x1.2fa12p-30f, -0x1.bfdd72p-31f, -0x1.f92b16p-35f,
     0x1.ef94c6p-29f, -0x1.d51c86p-30f},
    {0x1.d72b24p-6f, 0x1.e21a2p-6f, 0x1.edcff4p-6f, 0x1.fa64ccp-6f, 0x1.03fa84p-5f, 0x1.0b5114p-5f,
     0x1.1349f8p-5f, 0x1.1bfceep-5f, 0x1.25865p-5f, 0x1.3007f8p-5f, 0x1.3ba9ep-5f, 0x1.489a12p-5f,
     0x1.570a7ep-5f, 0x1.672a1ep-5f, 0x1.0bfafp-6f, 0x1.182432p-7f, 0x1.19cb32p-6f, 0x1.26c62ep-7f,
     0x1.288fep-6f, 0x1.360f2p-7f, 0x1.377758p-6f, 0x1.44cea2p-7f, 0x1.44f006p-6f, 0x1.5112fep-7f,
     0x1.4ef5b2p-6f, 0x1.595e76p-7f, 0x1.56862ap-6f, 0x1.6604f2p-7f, 0x1.7c620ap-6f,
     0x1.f45184p-7f, 0x1.c351aap-6f, 0x1.ccee46p-6f},
    {-0x1.9c0952p-7f, -0x1.a548cap-7f, -0x1.af2aaep-7f, -0x1.b9c20cp-7f, -0x1.c52524p-7f,
     -0x1.d16e1ep-7f, -0x1.debbe2p-7f, -0x1.ed3336p-7f, -0x1.fd0004p-7f, -0x1.072b7ap-6f,
     -0x1.10bb84p-6f, -0x1.1b5586p-6f, -0x1.2724ep-6f, -0x1.34592ap-6f, -0x1.13af2ep-8f,
     -0x1.9b6528p-10f, -0x1.2184f4p-8f, -0x1.b096fp-10f, -0x1.30c4aap-8f, -0x1.c7ac3cp-10f,
     -0x1.410fc4p-8f, -0x1.dfb074p-10f, -0x1.515302p-8f, -0x1.f64c1ep-10f, -0x1.5f332ep-8f,
     -0x1.034d56p-9f, -0x1.657248p-8f, -0x1.010a4ap-9f, -0x1.456a5ep-8f, -0x1.138ceep-10f,
     -0x1.8b323cp-7f, -0x1.935bdep-7f},
    {0x1.97f234p-8f, 0x1.a0e8d6p-8f, 0x1.aa797ap-8f, 0x1.b4b5ccp-8f, 0x1.bfb25ap-8f,
     0x1.cb873cp-8f, 0x1.d850dap-8f, 0x1.e630dcp-8f, 0x1.f54f68p-8f, 0x1.02ee48p-7f, 0x1.0c09p-7f,
     0x1.161a54p-7f, 0x1.214afep-7f, 0x1.2dc98ep-7f, 0x1.434418p-10f, 0x1.585334p-12f,
     0x1.530648p-10f, 0x1.69a2p-12f, 0x1.649132p-10f, 0x1.7cc4aep-12f, 0x1.77bc86p-10f,
     0x1.9153e4p-12f, 0x1.8bca38p-10f, 0x1.a60e3ap-12f, 0x1.9ee172p-10f, 0x1.b849b6p-12f,
     0x1.add6fp-10f, 0x1.c5abcp-12f, 0x1.c3b7b8p-10f, 0x1.31245p-11f, 0x1.8797f6p-8f,
     0x1.8f8654p-8f},
    {-0x1.afd5b4p-9f, -0x1.b92d5p-9f, -0x1.c322eap-9f, -0x1.cdc854p-9f, -0x1.d93244p-9f,
     -0x1.e578fp-9f, -0x1.f2b8ccp-9f, -0x1.0089c4p-8f, -0x1.085898p-8f, -0x1.10e0d8p-8f,
     -0x1.1a3f44p-8f, -0x1.249652p-8f, -0x1.300f04p-8f, -0x1.3cd91cp-8f, -0x1.96e884p-12f,
     -0x1.35694ep-14f, -0x1.aa445ep-12f, -0x1.449ea8p-14f, -0x1.bfe7b2p-12f, -0x1.558bfap-14f,
     -0x1.d7ccbep-12f, -0x1.6804dp-14f, -0x1.f160ecp-12f, -0x1.7b43aep-14f, -0x1.05757cp-11f,
     -0x1.8d5b92p-14f, -0x1.104d6ep-11f, -0x1.99f8fcp-14f, -0x1.10f29p-11f, -0x1.28b07ap-14f,
     -0x1.9ec4b8p-9f, -0x1.a70ca4p-9f},
    {0x1.d34932p-10f, 0x1.dd47ap-10f, 0x1.e7ed18p-10f, 0x1.f34c36p-10f, 0x1.ff7a94p-10f,
     0x1.0648b4p-9f, 0x1.0d5722p-9f, 0x1.14fa0ep-9f, 0x1.1d4636p-9f, 0x1.265464p-9f, 0x1.30425p-9f,
     0x1.3b33aap-9f, 0x1.47531p-9f, 0x1.54d29ap-9f, 0x1.0b2a9ep-13f, 0x1.2291c6p-16f,
     0x1.179f84p-13f, 0x1.30944ap-16f, 0x1.25927ep-13f, 0x1.4039cep-16f, 0x1.3510aep-13f,
     0x1.5173d6p-16f, 0x1.45dfb8p-13f, 0x1.63c148p-16f, 0x1.57260ep-13f, 0x1.75b6dcp-16f,
     0x1.66e5cp-13f, 0x1.848fa8p-16f, 0x1.74a4bcp-13f, 0x1.e231ecp-16f, 0x1.c102eep-10f,
     0x1.c9e1a6p-10f},
    {-0x1.095674p-10f, -0x1.0ef4aap-10f, -0x1.14efd2p-10f, -0x1.1b522ap-10f, -0x1.222792p-10f,
     -0x1.297de4p-10f, -0x1.316556p-10f, -0x1.39f106p-10f, -0x1.4337a4p-10f, -0x1.4d543ep-10f,
     -0x1.586746p-10f, -0x1.6497aap-10f, -0x1.721408p-10f, -0x1.811386p-10f, -0x1.6a785p-15f,
     -0x1.198396p-18f, -0x1.7b14dp-15f, -0x1.26dce2p-18f, -0x1.8db2f2p-15f, -0x1.35ccb6p-18f,
     -0x1.a272fep-15f, -0x1.46561ap-18f, -0x1.b9282ep-15f, -0x1.58217ep-18f, -0x1.d0f0e6p-15f,
     -0x1.6a141cp-18f, -0x1.e78704p-15f, -0x1.79a96ap-18f, -0x1.f66c26p-15f, -0x1.400492p-18f,
     -0x1.fe1cc2p-11f, -0x1.040c48p-10f},
    {0x1.8c35eap-11f, 0x1.947f36p-11f, 0x1.9d4fe6p-11f, 0x1.a6b6b6p-11f, 0x1.b0c4b8p-11f,
     0x1.bb8dbep-11f, 0x1.c728fep-11f, 0x1.d3b1c6p-11f, 0x1.e1486ep-11f, 0x1.f01376p-11f,
     0x1.00207ep-10f, 0x1.09042ap-10f, 0x1.12d5f2p-10f, 0x1.1dbd4ap-10f, 0x1.110afp-16f,
     0x1.229d98p-20f, 0x1.1d5854p-16f, 0x1.302ed6p-20f, 0x1.2b2366p-16f, 0x1.3f61aep-20f,
     0x1.3a8c64p-16f, 0x1.5045f2p-20f, 0x1.4b85b6p-16f, 0x1.629e8ep-20f, 0x1.5d9068p-16f,
     0x1.758146p-20f, 0x1.6f43b2p-16f, 0x1.86c18p-20f, 0x1.7e54b6p-16f, 0x1.c77ad8p-20f,
     0x1.7d07c8p-11f, 0x1.84672ap-11f},
    {-0x1.d65f1ep-12f, -0x1.e023bcp-12f, -0x1.ea86cap-12f, -0x1.f5996ep-12f, -0x1.00b7bap-11f,
     -0x1.070fecp-11f, -0x1.0de2bep-11f, -0x1.153ffcp-11f, -0x1.1d3a56p-11f, -0x1.25e806p-11f,
     -0x1.2f63a6p-11f, -0x1.39cd2p-11f, -0x1.454ac2p-11f, -0x1.520a38p-11f, -0x1.82183ep-18f,
     -0x1.252bc8p-22f, -0x1.93446cp-18f, -0x1.32aeecp-22f, -0x1.a685a6p-18f, -0x1.41d454p-22f,
     -0x1.bc1068p-18f, -0x1.52b484p-22f, -0x1.d3e3a6p-18f, -0x1.652676p-22f, -0x1.ed7434p-18f,
     -0x1.7867fep-22f, -0x1.03879cp-17f, -0x1.8a89bap-22f, -0x1.0e446p-17f, -0x1.6dc1acp-22f,
     -0x1.c47772p-12f, -0x1.cd2a0ap-12f},
};
// clang-format on

// Within 0.51 ulp.
TT_INLINE F32v erfinv(F32v x) {
  using Bits = Vec<uint32_t>;
  constexpr uint32_t kFewRows = 0x3b800000u;  // 2^-8
  const F32v a = abs(x);
  const F32v distance = 1.0f - a;
  const F32v u = at_most(distance, 0x1.fffffep-1f);
  const F32v lost = (1.0f - u) - a;  // 1 - a is u + lost
  const Bits bits = Bits(u);
  const Bits of_halves = bits >> 22;
  const Bits of_octaves = (bits >> 23) + 119;
  const Bits entry = chosen(bits < kFewRows, of_octaves, of_halves);
  const Bits moved = chosen(bits < kFewRows, bits, bits << 1);
  const F32v t = F32v((moved & 0x7fffffu) | 0x3f800000u) - 1.5f;
  const auto at = bits_of(F32v(entry));
  const auto row = [&](int r) TT_INLINE_BODY { return look_up(kErfinvTable[r], at); };
  F32v p = row(kErfinv9);
  TT_UNROLL_BY(8)
  for (int r = kErfinv9 - 1; r >= kErfinv2; r--) p = fma(p, t, row(r));
  // Q = c0 + t (c1 + t p), each sum in two parts. lost counts where an interval has length 1/4.
  const F32v step = t * p;
  const F32v c1 = row(kErfinv1);
  const F32v slope = c1 + step;
  const F32v slope_low = ((c1 - slope) + step) + row(kErfinv1Low);
  const F32v change = t * slope;
  const F32v change_low = fma(t, slope_low, fma(t, slope, -change));
  const F32v c0 = row(kErfinv0);
  const F32v q = c0 + change;
  const F32v q_low = ((c0 - q) + change) + (row(kErfinv0Low) + change_low);
  const F32v sum = fma(x, q, x * fma(slope + step, lost * 4.0f, q_low));
  const F32v y = F32v(Bits(sum) | (Bits(x) & 0x80000000u));  // of x = -0, too
  const auto inside = less(F32v{}, distance);
  if (TT_LIKELY(inside == kAllLanes)) return y;
  return select(inside, y, x / F32v(vsqrt(Vec<float>(distance))));  // infinite at 1, else nan
}

}  // namespace math
TT_ISA_END
