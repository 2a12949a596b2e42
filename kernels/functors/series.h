// Special functions by polynomials, of doubles: on the host of a vector at a time, on a device of
// one. Both parts of a function of two ranges are computed, with harmless arguments where the
// other one is chosen. Results that the C library's functions do not serve are within a few ulp.
//
// The coefficients of J0, J1, Y0, Y1 and Ai beyond 2.09 are those of the Cephes library of
// S. Moshier; the others are tt's own: interpolations at Chebyshev nodes, computed in 50 digits.
#pragma once

#include "kernels/functors/functor.h"
#include "plan/special_function.h"
#if !TT_ON_DEVICE
#include "kernels/cpu/math/wide.h"
#endif

// Bodies of hundreds of instructions are called on a device: its kernels have eight copies of what
// is inlined, which nvcc takes minutes for. On the host the longest are called, too: there is a
// loop per dtype and operator.
#if defined(__CUDACC__)
#define TT_LONG_FN __host__ __device__ __noinline__ inline
#define TT_LONGEST_FN TT_LONG_FN
#else
#define TT_LONG_FN TT_INLINE
#define TT_LONGEST_FN TT_NOINLINE inline
#endif

TT_FUNCTORS_BEGIN
namespace series {

#if TT_ON_DEVICE
using Wide = double;
#define TT_SERIES_FN TT_LONG_FN
#define TT_SHARED_FN TT_LONG_FN
#else
#define TT_SERIES_FN TT_INLINE
#define TT_SHARED_FN TT_NOINLINE inline  // by several functors, for the sake of size
#endif

// ---- numbers, on either side ----

#if TT_ON_DEVICE
TT_FN Wide all(double x) { return x; }
TT_FN Wide square_root(Wide x) { return libm::sqrt(x); }
TT_FN Wide magnitude(Wide x) { return libm::fabs(x); }
TT_FN Wide with_sign(Wide x, Wide sign) { return libm::copysign(x, sign); }
TT_FN Wide chosen(bool mask, Wide a, Wide b) { return mask ? a : b; }
TT_FN Wide fused(Wide a, Wide b, Wide c) { return libm::fma(a, b, c); }
TT_FN Wide exp(Wide x) { return libm::exp(x); }
TT_FN Wide log(Wide x) { return libm::log(x); }
TT_FN void sine_and_cosine(Wide x, Wide* sine, Wide* cosine) {
  *sine = libm::sin(x);
  *cosine = libm::cos(x);
}
template <int n> TT_FN Wide polynomial(Wide x, const double (&c)[n]) {
  Wide y = c[n - 1];
  for (int k = n - 2; k >= 0; k--) y = libm::fma(y, x, c[k]);
  return y;
}
#endif

TT_SERIES_FN Wide at_most(Wide x, double most) { return chosen(x > all(most), all(most), x); }
TT_SERIES_FN Wide at_least(Wide x, double least) { return chosen(x < all(least), all(least), x); }

// (a + lost) (c + rest) for a small rest.
TT_SERIES_FN Wide times(Wide a, Wide lost, double c, Wide rest) {
  const Wide product = a * c;
  return product + (fused(a, all(c), -product) + (a * rest + lost * (rest + c)));
}

// ---- tables: the lowest power first, an even number of coefficients ----

#define TT_POLYNOMIAL(name, ...)                      \
  TT_SERIES_FN Wide name(Wide x) {                    \
    static constexpr double kTerms[] = {__VA_ARGS__}; \
    return polynomial(x, kTerms);                     \
  }
// a P(x), rounded once but for the first coefficient's rest: c is P's first coefficient, what
// rounding took from it, and the others.
#define TT_ODD(name, first, ...)                         \
  TT_SERIES_FN Wide name(Wide a, Wide lost, Wide x) {    \
    static constexpr double kTerms[] = {__VA_ARGS__};    \
    return times(a, lost, first, polynomial(x, kTerms)); \
  }
#define TT_QUOTIENT(name) \
  TT_SHARED_FN Wide name(Wide x) { return name##_top(x) / name##_bottom(x); }

// I0(a), of a^2 / 64 up to 1
TT_POLYNOMIAL(i0_near, 0x1p+0, 0x1p+4, 0x1p+6, 0x1.c71c71c71c71dp+6, 0x1.c71c71c71c705p+6,
              0x1.23456789abe2p+6, 0x1.02e85c08974c5p+5, 0x1.522a43f678544p+3, 0x1.522a43f3c5cffp+1,
              0x1.0b3132ac6604fp-1, 0x1.5601859c1e784p-4, 0x1.69cac787efc6fp-7,
              0x1.4195b658aa38cp-10, 0x1.e7477a048e22cp-14, 0x1.3d45e4ad1d75dp-17,
              0x1.71eed78904823p-21, 0x1.38c9bb9def199p-25, 0x1.f2ba28a423f36p-29)
// I1(a) / a
TT_POLYNOMIAL(i1_near, 0x1p-1, 0x1p+2, 0x1.5555555555555p+3, 0x1.c71c71c71c71dp+3,
              0x1.6c16c16c16c12p+3, 0x1.845c8a0ce51aep+2, 0x1.27e4fb77896p+1, 0x1.522a43f663502p-1,
              0x1.2c9758d9e75d3p-3, 0x1.ab81ea929f53p-6, 0x1.f176958771dcap-9,
              0x1.e2639f21e548ep-12, 0x1.8bccbd18b3186p-15, 0x1.166c99e45cc07p-18,
              0x1.52a178808478cp-22, 0x1.70913f872a3cbp-26, 0x1.2bdd01e7485efp-30,
              0x1.b1484aa39d158p-34)
// exp(-a) sqrt(a) I0(a), of 16 / a - 1 for a >= 8
TT_POLYNOMIAL(i0_far, 0x1.9bd428ad249a5p-2, 0x1.b87969bb93bcbp-9, 0x1.1daa72b5ccfadp-13,
              0x1.75e5ee702e57ap-17, 0x1.8e513c6a21829p-20, 0x1.3f49ac32e14bfp-22,
              0x1.7d0cd4fd1f2b8p-24, 0x1.51ccdc47b6c77p-25, 0x1.7288379f891f7p-26,
              0x1.03bcdeab408e2p-27, -0x1.d72c8d3f0b6bcp-28, -0x1.cd5da3da6b614p-27,
              -0x1.58ce729fc478ap-28, 0x1.05248ba2f26ap-27, 0x1.c034e59a2db9bp-28,
              -0x1.ece52144ada18p-29, -0x1.3756a636aa04fp-28, 0x1.ba2352eb42f2p-30,
              0x1.295fc465ff477p-29, -0x1.5be16a36a0dap-31, -0x1.650b3e7f898bp-31,
              0x1.852f5d42d1ca3p-33, 0x1.90df137cc1a36p-34, -0x1.ada2c97f3fdddp-36)
// the same of I1
TT_POLYNOMIAL(i1_far, 0x1.8ebe783a8403p-2, -0x1.3f796198ee63dp-7, -0x1.cbc54df1d28edp-13,
              -0x1.f89c2304c35d3p-17, -0x1.ec8e127b73a3fp-20, -0x1.761383996deap-22,
              -0x1.ad8afba84040bp-24, -0x1.727891f52aef6p-25, -0x1.91e870dc073a7p-26,
              -0x1.21ba2485afab4p-27, 0x1.d68fdf13b4f0fp-28, 0x1.e2d0791db759ap-27,
              0x1.7ee7fbfb39f9p-28, -0x1.0821c71098c2bp-27, -0x1.dd37812c1dd72p-28,
              0x1.e14768d6db225p-29, 0x1.475d4e2f2acfep-28, -0x1.a250a944e85b4p-30,
              -0x1.36f288e187d2ep-29, 0x1.42be4263f9ec5p-31, 0x1.7455f3bd09231p-31,
              -0x1.6612a100e112cp-33, -0x1.a1752f6235857p-34, 0x1.8a72ab2fc6959p-36)
// K0(x) + log(x / 2) I0(x), of x^2 up to 1
TT_POLYNOMIAL(k0_near, -0x1.2788cfc6fb619p-1, 0x1.b0ee6072093d4p-4, 0x1.d877303904625p-7,
              0x1.1dd628654f86ep-11, 0x1.56b9b6809094ap-17, 0x1.f0f17a14cea06p-24,
              0x1.e4ce3ff0917f5p-31, 0x1.5a824e853cbccp-38)
// x (K1(x) - log(x / 2) I1(x))
TT_POLYNOMIAL(k1_near, 0x1p+0, 0x1.3c467e37db015p-5, -0x1.5877303903b48p-5, -0x1.73ddae5f5b94cp-9,
              -0x1.3a47ef483c62ep-14, -0x1.2462a0c16265dp-20, -0x1.5b680a683f0c6p-27,
              -0x1.252de638ffc86p-34)
// exp(x) sqrt(x) K0(x), of 4 / (x + 1) - 1 for x >= 1
TT_POLYNOMIAL(k0_far, 0x1.356417a9f2ee9p+0, -0x1.a932e00d70333p-5, -0x1.287ae72aabd7dp-7,
              -0x1.334777d99b2dap-9, -0x1.2d44324225a5fp-11, -0x1.55615cf2a7fafp-13,
              -0x1.6d1e88d95f604p-15, -0x1.b4900c52ae629p-17, -0x1.e1ff106e55c84p-19,
              -0x1.2dfa16c56bcf8p-20, -0x1.4ceece51a4cd5p-22, -0x1.bad8c954e978p-24,
              -0x1.d2cafb1b9882p-26, -0x1.58cfff70be9abp-27, -0x1.4060e069ead39p-29,
              -0x1.205431270fb77p-30, -0x1.0c5c4d7986181p-33, -0x1.56bbfb4f2e93ep-33,
              -0x1.f1ad847ebc5ap-35, 0x1.c2c44da96f127p-37, 0x1.aded00e6a34fdp-35,
              -0x1.11ab1b9b8e00ap-35, -0x1.7322958e7fc0ep-36, 0x1.b74082e1d4484p-37,
              0x1.9fed2b5fe4d3p-38, -0x1.ef8bc5d8bffb1p-39)
// the same of K1
TT_POLYNOMIAL(k1_far, 0x1.65a260862b35ep+0, 0x1.6b98e74488341p-3, 0x1.6595f9d3a06d7p-5,
              0x1.9e097c3c605bep-7, 0x1.e4076193a99ep-9, 0x1.276b51f27aa29p-10,
              0x1.68d7d917e1a47p-12, 0x1.c3cd0b46f704p-14, 0x1.197da271245a3p-15,
              0x1.6622043eac6b6p-17, 0x1.c2c0efadb0abcp-19, 0x1.2275785adfde7p-20,
              0x1.6eb6278531614p-22, 0x1.df565220e21fp-24, 0x1.2d31ae24f8219p-25,
              0x1.916c5cc0cda3ep-27, 0x1.e84914d9e6abap-29, 0x1.6014025558c58p-30,
              0x1.cc4025386a08cp-32, 0x1.c6a8e0118e625p-34, -0x1.8f7f722d0bfe4p-37,
              0x1.9b4541a8794aep-35, 0x1.ba4c7829d85e6p-36, -0x1.b80bb551f4e1p-37,
              -0x1.7e8bd80c8081fp-38, 0x1.1e5ab57af41bep-38)
// exp(a^2) erfc(a) (a + 1), of (a - 3) / (a + 3)
TT_POLYNOMIAL(erfcx_terms, 0x1.6e9827d229d2dp-1, -0x1.d8f06dfac798dp-3, 0x1.9596c92adb036p-4,
              -0x1.4f64aa4aa2441p-7, -0x1.8600d91465a5ep-6, 0x1.67c18994f53d7p-6,
              -0x1.3f82b5cfce21fp-7, 0x1.a84c55e290829p-10, 0x1.5297b6e7ccce8p-11,
              -0x1.812140eb99806p-12, -0x1.58cc64c5fc46dp-16, 0x1.d6c3991840e93p-15,
              -0x1.9687c7da4ba1bp-20, -0x1.2daa84744b79ep-17, 0x1.17fde2867a994p-22,
              0x1.aaa852fa8bb47p-20, 0x1.04a870614f012p-24, -0x1.3c2c01a8caedfp-22,
              -0x1.9354de53812dap-25, 0x1.bead74709fed4p-25, 0x1.1687edc23249bp-26,
              -0x1.08f468bd8d24ep-27, -0x1.ddca63c162a25p-29, 0x1.b38639da094bep-31,
              0x1.941d56f2acc9dp-32, -0x1.4b98f5eb9077bp-35)
// erf(a) / a - 1, of a^2 up to 1: 2^-56 relative to erf(a)
TT_POLYNOMIAL(erf_near, 0x1.06eba8214db68p-3, -0x1.812746b0379bdp-2, 0x1.ce2f21a040d14p-4,
              -0x1.b82ce311fa8c0p-6, 0x1.565bccf92a3ddp-8, -0x1.c02db03db5753p-11,
              0x1.f9a2baa61464bp-14, -0x1.f4ca4d45a777ep-17, 0x1.b97fd25b64e36p-20,
              -0x1.5c071e62f8eccp-23, 0x1.d71ad77ba22cdp-27, -0x1.abadac1e78c2ap-31)
// the inverse of erf by y, of y^2 up to 9/16
TT_ODD(odd_erf_inverse, 0x1.c5bf891b4ef6bp-1, -0x1.64a8e90204ffcp-55, 0x1.db29fb2fee5fdp-3,
       0x1.053c2c0ab70d8p-3, 0x1.62847c4a09427p-4, 0x1.0a13180126181p-4, 0x1.a7c891c480764p-5,
       0x1.5ee501f277832p-5, 0x1.2b39c6524a702p-5, 0x1.f7eb556ecaecdp-6, 0x1.3e683ed2b52d3p-5,
       -0x1.2da679cfb3a7ap-4, 0x1.74502695055fp-1, -0x1.fe4eaa152f865p+1, 0x1.24d22f710a448p+4,
       -0x1.0c7c7d0d66afep+6, 0x1.8d04b786ebe5cp+7, -0x1.d6c05e691a204p+8, 0x1.bc546a1d2aee2p+9,
       -0x1.4945f1795d207p+10, 0x1.76f6d38c1f42dp+10, -0x1.3cd4fdeec22d2p+10, 0x1.76aaf2549281fp+9,
       -0x1.15378d75853b7p+8, 0x1.83e675ad1e4e3p+5)
TT_ODD(times_near_inverse, 0x1.bd0f7c3ee449ap-1, 0x1.e9e00025a4f4fp-55, -0x1.192e117680629p-3,
       -0x1.57b60dae2b534p-5, -0x1.548ffd213e35ap-9, 0x1.ece50a5c70dcep-11, 0x1.d07e4f762a145p-12,
       0x1.b822a4241a0eap-15, -0x1.8beebcaf4d6aep-18, -0x1.ce1cb23727039p-18,
       -0x1.3ad1960243afep-20, -0x1.bb5eebde21e75p-24, 0x1.1546c26c1c70ap-23, 0x1.4c43cc29fdebdp-26,
       0x1.2438b001fea2ap-27, -0x1.c7da805e7684cp-29, 0x1.51d4c01e08b4fp-33, -0x1.e940bd3287089p-32,
       0x1.319ebd49d59e6p-33, -0x1.5a5945f205cc3p-34, 0x1.833c6db6a333bp-35, 0x1.0303d4c1b096ep-37,
       -0x1.01c90fc2ea61dp-38, -0x1.165de8fb9fde3p-37, 0x1.ed021f5e5446ap-39)
TT_ODD(times_far_inverse, 0x1.f90b1ad297758p-1, 0x1.86d117fcdb8efp-55, -0x1.f3d50f3336638p-7,
       -0x1.11e7baf7ee7c6p-8, -0x1.17e9841e0c64ep-14, -0x1.1d450613835ddp-15, 0x1.0b68fd0154923p-17,
       -0x1.4454c6eb000a3p-19, 0x1.dddca94482b5p-21, -0x1.6efc1ea3a3c4ep-22, 0x1.2c596d95cb1ebp-23,
       -0x1.00e7902b7b66cp-24, 0x1.c70398069120ep-26, -0x1.9a0f2913700b4p-27, 0x1.7e0b0ef90ea96p-28,
       -0x1.97294f9931c17p-29, 0x1.8ed02dce33e4ep-30, -0x1.d6da8a619423cp-33, 0x1.858bd37ab1ba6p-34,
       -0x1.3715265e87ebfp-31, 0x1.4a9ce16ed8a1cp-32, 0x1.a3acf497a34edp-33, -0x1.c9135edde1be3p-34,
       -0x1.536dae4b71c22p-34, 0x1.6c44df21187c7p-35)
TT_POLYNOMIAL(j0_near_top, 0x1.13ef869ff5fb4p+53, -0x1.c5614e0d900f7p+47, 0x1.c7751c772990dp+40,
              -0x1.1dc53ad1c8325p+32)
TT_POLYNOMIAL(j0_near_bottom, 0x1.7be34c7b662ccp+60, 0x1.c41417e7b2e9cp+54, 0x1.1a6a28c9748e9p+48,
              0x1.ebeb372182e46p+40, 0x1.4d5b009444914p+33, 0x1.719342eac0634p+25,
              0x1.536cb36a21a67p+17, 0x1.f3902a696b78cp+8, 0x1p+0, 0.0)
TT_QUOTIENT(j0_near)
TT_POLYNOMIAL(j0_cos_top, 0x1p+0, 0x1.53684a59425a1p+2, 0x1.17e8c69409888p+3, 0x1.5c9fbe97a0956p+2,
              0x1.3d5214e680b98p+0, 0x1.534b0b35dd1cfp-4, 0x1.a1d30983b6b27p-11, 0.0)
TT_POLYNOMIAL(j0_cos_bottom, 0x1p+0, 0x1.53965ed423a19p+2, 0x1.18618ea1b21a1p+3,
              0x1.5e247e68162bbp+2, 0x1.40e72c9b3069fp+0, 0x1.5ebc5ab5454e3p-4,
              0x1.e4a80ce039737p-11, 0.0)
TT_QUOTIENT(j0_cos)
TT_POLYNOMIAL(j0_sin_top, -0x1.83358d1b9a1ddp+2, -0x1.9b48c55b218cdp+5, -0x1.2627aec17392dp+7,
              -0x1.635cc20cae8eap+7, -0x1.74d2f5a6de8c4p+6, -0x1.38dcff50e2c0cp+4,
              -0x1.4853b3a321174p+0, -0x1.7474238a5384ap-7)
TT_POLYNOMIAL(j0_sin_bottom, 0x1.e402f06280a54p+7, 0x1.01c2fc7319e82p+11, 0x1.72aba1d733b11p+12,
              0x1.c4877bdefd63ep+12, 0x1.e54cdbd748cb5p+11, 0x1.ac370b1759c7fp+9,
              0x1.01457413c25acp+6, 0x1p+0)
TT_QUOTIENT(j0_sin)
TT_POLYNOMIAL(j1_near_top, 0x1.a2b42a697c482p+51, -0x1.08a92e6ccf175p+46, 0x1.a52ba0d438c6bp+38,
              -0x1.ad23c4cda4fc5p+29)
TT_POLYNOMIAL(j1_near_bottom, 0x1.2779576702939p+62, 0x1.3e0bff4653f81p+56, 0x1.64b0a3eccf45fp+49,
              0x1.146fb8076ffa8p+42, 0x1.4a13f7befeac1p+34, 0x1.3e954dc92a1b1p+26,
              0x1.f5eda0dd701b2p+17, 0x1.366b11b7086e7p+9, 0x1p+0, 0.0)
TT_QUOTIENT(j1_near)
TT_POLYNOMIAL(j1_cos_top, 0x1p+0, 0x1.4dbaa142f81a2p+2, 0x1.0d91c8b5d2f16p+3, 0x1.472c4f8b13a6ap+2,
              0x1.208fec21596d6p+0, 0x1.2b948a3fec4b6p-4, 0x1.8f92c4c6c651bp-11, 0.0)
TT_POLYNOMIAL(j1_cos_bottom, 0x1p+0, 0x1.4d6dd4762b4d9p+2, 0x1.0ccb9dda2fd65p+3,
              0x1.44ba2f7d251a1p+2, 0x1.1aea9b850eed6p+0, 0x1.19fdd5948aa83p-4,
              0x1.2b89b13443d69p-11, 0.0)
TT_QUOTIENT(j1_cos)
TT_POLYNOMIAL(j1_sin_top, 0x1.934ff4d159eb5p+4, 0x1.a760a4c54bb0bp+7, 0x1.2abeab9e802dp+9,
              0x1.636d9b66f6e5p+9, 0x1.6ec7947aa180dp+8, 0x1.2f4b99acf1c67p+6, 0x1.3edb5c66d8fd6p+2,
              0x1.a27fa6b70ba4p-5)
TT_POLYNOMIAL(j1_sin_bottom, 0x1.5017f6ae75997p+8, 0x1.61462b4bd1781p+11, 0x1.f3d0aa6973d14p+12,
              0x1.2ad28d280d118p+13, 0x1.37a691bfdfe81p+12, 0x1.081cba20e5f6fp+10,
              0x1.28f3060895077p+6, 0x1p+0)
TT_QUOTIENT(j1_sin)
TT_POLYNOMIAL(y0_near_top, -0x1.06d4b5906367bp+54, 0x1.3a94b660b4003p+55, -0x1.8a121d1d8cc02p+51,
              0x1.3ea723cc3ac2dp+46, -0x1.c957be1d6bd2bp+39, 0x1.43f78f0284cddp+32,
              -0x1.bf81f32e48896p+23, 0x1.e7437e896898fp+13)
TT_POLYNOMIAL(y0_near_bottom, 0x1.bd25fbcf9b5dp+57, 0x1.68910dfeb596dp+51, 0x1.275fcc57e828ep+44,
              0x1.41ddb2b8664bcp+36, 0x1.007635164d101p+28, 0x1.31b76a907bc0cp+19,
              0x1.04522576dfcb6p+10, 0x1p+0)
TT_QUOTIENT(y0_near)
TT_POLYNOMIAL(y1_near_top, -0x1.59e415dde2b17p+59, 0x1.679ad0b7366b1p+57, -0x1.ce01a37a1b083p+52,
              0x1.a0954b0910fefp+46, -0x1.2d72d58836521p+39, 0x1.2d2be62f9b6c5p+30)
TT_POLYNOMIAL(y1_near_bottom, 0x1.b90f190f6747fp+61, 0x1.e83e3c547a488p+55, 0x1.1a326d71d1e4ep+49,
              0x1.c3f5efda99316p+41, 0x1.178c3906b7b83p+34, 0x1.184efa9c8aceep+26,
              0x1.cc160be58ef7fp+17, 0x1.29269a93f7ac2p+9, 0x1p+0, 0.0)
TT_QUOTIENT(y1_near)
TT_POLYNOMIAL(airy_sin_top, -0x1.2041cf68ea2d2p-26, -0x1.74a781d42366dp-19, -0x1.4e06eaf4b009cp-13,
              -0x1.0a401c8d9e09p-8, -0x1.92f6ef47dbd8ap-5, -0x1.1e7ea4bb3f40bp-2,
              -0x1.62e59c2f79f7dp-1, -0x1.40bee98566852p-1, -0x1.0db6cd50ae6fbp-3, 0.0)
TT_POLYNOMIAL(airy_sin_bottom, 0x1.e52b9b99518a7p-22, 0x1.3c8d7af76e73bp-14, 0x1.208cae03af617p-8,
              0x1.d9dacb4045a2bp-4, 0x1.79acb39de9319p+0, 0x1.25fc82ac99873p+3, 0x1.abc98a3b7341p+4,
              0x1.0575c44787b1ap+5, 0x1.ab64b2572edf2p+3, 0x1p+0)
TT_QUOTIENT(airy_sin)
TT_POLYNOMIAL(airy_cos_top, 0x1.778a47d97ee7ap-32, 0x1.5ca92bbad11c8p-24, 0x1.d4f3d69f8574ep-18,
              0x1.28976600e17a2p-12, 0x1.7fe99f12f5043p-8, 0x1.03a4121e90978p-4,
              0x1.67e69cea8fe1dp-2, 0x1.e0daca0ef1acbp-1, 0x1.10d833a2034ebp+0,
              0x1.907d5006437b7p-2, 0x1.43525ddcfbbdep-6, 0.0)
TT_POLYNOMIAL(airy_cos_bottom, 0x1.51fc73dd589d4p-28, 0x1.3a845db0724e8p-20, 0x1.a8b61d603a5ap-14,
              0x1.0e7046be393bbp-8, 0x1.6221ded64a9eep-4, 0x1.e8992c195ece3p-1,
              0x1.5e84e2b79dbcep+2, 0x1.f211b7ea7dc35p+3, 0x1.3d5d5c0ef18d4p+4, 0x1.29e2bf3d56b4p+3,
              0x1p+0, 0.0)
TT_QUOTIENT(airy_cos)
TT_POLYNOMIAL(airy_right_top, 0x1p+0, 0x1.c0d8d5c2a0f4dp+3, 0x1.1a24f4f4cea4fp+6,
              0x1.3f8345ba1fddfp+7, 0x1.502daee40073cp+7, 0x1.311e50de2e1e3p+6,
              0x1.803e3871a9067p+3, 0x1.62dae2537b658p-2)
TT_POLYNOMIAL(airy_right_bottom, 0x1p+0, 0x1.c311b950d9d81p+3, 0x1.1de94ee91d35fp+6,
              0x1.487829a9ffa61p+7, 0x1.62a2dc730b7bp+7, 0x1.520e3b04d51ap+6, 0x1.d833405332ca5p+3,
              0x1.229bc02624d31p-1)
TT_QUOTIENT(airy_right)
// Ai by its Taylor series: of x^3
TT_POLYNOMIAL(airy_even, 0x1.6b8c7962715b8p-2, 0x1.e4bb4c8341cf6p-5, 0x1.028606ac675d8p-9,
              0x1.cb98ef6b626d6p-16, 0x1.bdab92d4bc892p-23, 0x1.0fa587d220059p-30,
              0x1.c685121afb044p-39, 0x1.150a67aeebe55p-47, 0x1.00f719ad605ep-56,
              0x1.76d51d6eae1eap-66, 0x1.b92ea0951a9fap-76, 0x1.abd01f9857e0ap-86,
              0x1.5baed49910f79p-96, 0x1.e077fe0ffbcfp-107, 0x1.1db6da46c1266p-117,
              0x1.2786d45387231p-128, 0x1.0c478fba94189p-139, 0x1.aeee3a985212fp-151)
// and x times
TT_POLYNOMIAL(airy_odd, -0x1.0907f42b70f8bp-2, -0x1.615ff039ebf63p-6, -0x1.0d3ce7ca9b664p-11,
              -0x1.7eea883c98befp-18, -0x1.3a3006c2216ecp-25, -0x1.4f2229579b20cp-33,
              -0x1.f5b861d27f717p-42, -0x1.16026d9da4d12p-50, -0x1.da78328b56ba4p-60,
              -0x1.415577907bc08p-69, -0x1.61d011233754dp-79, -0x1.42e8c9d290808p-89,
              -0x1.f07c3714164c2p-100, -0x1.45e5e28356d76p-110, -0x1.71914dfa25cf2p-121,
              -0x1.6da3cb8a692dep-132, -0x1.3e61586a96cbap-143, -0x1.ebbc935ebce28p-155)
// (a - tanh(a)) / a^3, of a^2 up to 1
TT_POLYNOMIAL(tanhshrink_near, 0x1.5555555555555p-2, -0x1.111111111111p-3, 0x1.ba1ba1ba1b8c3p-5,
              -0x1.664f4882b9d51p-6, 0x1.226e355d240fap-7, -0x1.d6d3d09a58b38p-9,
              0x1.7da35f3845119p-10, -0x1.3557e29b035b5p-11, 0x1.f578a02336539p-13,
              -0x1.965c1c0a7a029p-14, 0x1.48c835d08eb0bp-15, -0x1.082ba06836cbp-16,
              0x1.9e8b9d82261bap-18, -0x1.31a4334500a8ep-19, 0x1.8bd6f5c8dad4cp-21,
              -0x1.97237d2c00d33p-23, 0x1.1d780e216e2dp-25, -0x1.8e4da3a2aa99ap-29)
// sin(pi r) / r, of r^2 up to 1/4
TT_POLYNOMIAL(sin_pi_part, 0x1.921fb54442d18p+1, -0x1.4abbce625be52p+2, 0x1.466bc6775aa7dp+1,
              -0x1.32d2cce627c86p-1, 0x1.5078348551854p-4, -0x1.e3074dfaf87afp-8,
              0x1.e8f3675ee37ddp-12, -0x1.6f7acdb8f6580p-16, 0x1.9d462020fcc78p-21, 0.0)
#undef TT_POLYNOMIAL
#undef TT_ODD
#undef TT_QUOTIENT

// ---- elementary functions ----

TT_SERIES_FN Wide tanhshrink(Wide x) {
  const Wide a = magnitude(x);
  const Wide small = at_most(a, 1.0);
  const Wide z = small * small;
  const Wide near = small * z * tanhshrink_near(z);
  const Wide e = exp(-2.0 * a);
  const Wide far = a - (1.0 - e) / (1.0 + e);
  return with_sign(chosen(a > all(1.0), far, near), x);
}
// sin(pi x) / (pi x): the period is taken out exactly, so that it is 0 at integers.
TT_SERIES_FN Wide sinc(Wide x) {
  const Wide a = magnitude(x);
  const Wide shifted = at_most(a, 0x1p51) + 0x1p52;  // a number of this size is an integer
  const Wide r = at_most(a, 0x1p51) - (shifted - 0x1p52);
#if TT_ON_DEVICE
  const bool odd = libm::fmod(shifted, 2.0) == 1.0;
#else
  const auto odd = (Bits(shifted) & 1) != Bits{};
#endif
  const Wide sine = r * sin_pi_part(r * r);
  const Wide y = chosen(odd, -sine, sine) / (3.14159265358979323846 * a);
  const Wide finite = chosen(a == all(0.0), all(1.0), y);
  return chosen(a == all(kInf), all(kNan), finite);
}

// An orthogonal polynomial of order n >= 0.
TT_SERIES_FN Wide orthogonal(Wide at, int32_t kind, int64_t n) {
  const Wide x = kind & kShifted ? at * 2.0 - 1.0 : at;
  kind &= kShifted - 1;
  const PolynomialStep first = first_step(kind);
  Wide before = all(1.0);
  if (n == 0) return before;
  Wide last = x * first.slope + first.offset;
  for (int64_t k = 2; k <= n; k++) {
    const PolynomialStep s = polynomial_step(kind, double(k));
    const Wide next = (x * s.slope + s.offset) * last - s.before * before;
    before = last;
    last = next;
  }
  return last;
}

// ---- modified Bessel functions ----

// I of order 0 or 1, or exp(-|x|) I.
template <int order, bool scaled> TT_SERIES_FN Wide bessel_i(Wide x) {
  const Wide a = magnitude(x);
  const Wide small = at_most(a, 8.0);
  const Wide large = at_least(a, 8.0);
  const Wide w = small * small * 0x1p-6;
  const Wide t = 16.0 / large - 1.0;
  Wide near = (order ? i1_near(w) : i0_near(w));
  if constexpr (order) near = near * small;
  Wide far = (order ? i1_far(t) : i0_far(t)) / square_root(large);
  if constexpr (scaled) {
    near = near * exp(-small);
  } else {
    const Wide half = exp(large * 0.5);  // exp(a) may overflow where the result does not
    far = far * half * half;
  }
  const Wide y = chosen(a > all(8.0), far, near);
  const Wide limit = chosen(a == all(kInf), all(scaled ? 0.0 : kInf), y);
  return order ? with_sign(limit, x) : limit;
}
// K of order 0 or 1, or exp(x) K: nan below 0.
template <int order, bool scaled> TT_SERIES_FN Wide bessel_k(Wide x) {
  const Wide small = at_most(x, 1.0);
  const Wide large = at_least(x, 1.0);
  const Wide w = small * small;
  const Wide log_half = log(small * 0.5);
  const Wide i = (order ? i1_near(w * 0x1p-6) : i0_near(w * 0x1p-6));
  const Wide rest = (order ? k1_near(w) : k0_near(w));
  Wide near = order ? log_half * i * small + rest / small : rest - log_half * i;
  Wide far = (order ? k1_far(4.0 / (large + 1.0) - 1.0) : k0_far(4.0 / (large + 1.0) - 1.0)) /
             square_root(large);
  if constexpr (scaled) near = near * exp(small);
  else far = far * exp(-large);
  const Wide y = chosen(x > all(1.0), far, near);
  const Wide positive = chosen(x == all(kInf), all(0.0), y);
  return chosen(x == all(0.0), all(kInf), positive);
}

// ---- Bessel functions ----

// The forms for large x, with w = 5 / x: (P A + w Q B) / sqrt(pi x), where A and B are sums and
// differences of sin(x) and cos(x), which are a cosine and a sine behind x by a phase.
template <int order, bool second> TT_SERIES_FN Wide bessel_wave(Wide x) {
  const Wide w = 5.0 / x;
  const Wide z = w * w;
  const Wide steady = order ? j1_cos(z) : j0_cos(z);
  const Wide changing = w * (order ? j1_sin(z) : j0_sin(z));
  Wide s, c;
  sine_and_cosine(x, &s, &c);
  const Wide sum = s + c;
  const Wide difference = s - c;
  Wide y;
  if constexpr (order == second) y = steady * sum;
  else y = steady * difference;
  if constexpr (order && second) y = changing * difference - y;
  else if constexpr (order || second) y = y + changing * sum;
  else y = y - changing * difference;
  return y / square_root(x * 3.14159265358979323846);
}
TT_SHARED_FN Wide bessel_j_near(Wide x, int order) {
  const Wide z = x * x;
  if (order) {
    const Wide zeros = (z - 1.46819706421238932572e1) * (z - 4.92184563216946036703e1);
    return x * zeros * j1_near(z);
  }
  const Wide zeros = (z - 5.78318596294678452118) * (z - 3.04712623436620863991e1);
  return zeros * j0_near(z);
}
template <int order> TT_SERIES_FN Wide bessel_j(Wide x) {
  const Wide a = magnitude(x);
  const Wide near = bessel_j_near(at_most(a, 5.0), order);
  const Wide y = chosen(a > all(5.0), bessel_wave<order, false>(at_least(a, 5.0)), near);
  return order ? Wide(chosen(x < all(0.0), -y, y)) : y;
}
template <int order> TT_SERIES_FN Wide bessel_y(Wide x) {
  constexpr double kTwoByPi = 0.63661977236758134308;
  const Wide small = at_most(x, 5.0);
  const Wide z = small * small;
  const Wide j = bessel_j_near(small, order) * log(small);
  Wide near;
  if constexpr (order) near = small * y1_near(z) + kTwoByPi * (j - 1.0 / small);
  else near = y0_near(z) + kTwoByPi * j;
  const Wide y = chosen(x > all(5.0), bessel_wave<order, true>(at_least(x, 5.0)), near);
  return chosen(x == all(0.0), all(-kInf), y);
}
// The Airy function Ai.
TT_SERIES_FN Wide airy(Wide x) {
  constexpr double kLimit = 2.09;
  constexpr double kRootPi = 1.77245385090551602730;
  const Wide a = at_least(magnitude(x), kLimit);
  const Wide root = square_root(a);
  const Wide zeta = a * root * (2.0 / 3);
  const Wide w = 1.0 / zeta;
  const Wide z = w * w;
  const Wide scale = 1.0 / (kRootPi * square_root(root));
  Wide s, c;
  sine_and_cosine(zeta, &s, &c);
  const Wide steady = z * airy_sin(z) + 1.0;
  const Wide changing = w * airy_cos(z);
  const Wide waves = ((s + c) * steady - (c - s) * changing) * 0.70710678118654752440 * scale;
  const Wide decay = airy_right(w) * exp(-zeta) * scale * 0.5;
  const Wide inside = at_least(at_most(x, kLimit), -kLimit);
  const Wide cube = inside * inside * inside;
  const Wide near = airy_even(cube) + inside * airy_odd(cube);
  const Wide left = chosen(x == all(-kInf), all(kNan), waves);
  const Wide right = chosen(x == all(kInf), all(0.0), decay);
  const Wide far = chosen(x < all(0.0), left, right);
  return chosen(magnitude(x) < all(kLimit), near, Wide(chosen(x == x, far, x)));
}

// ---- the error function ----

// exp(a^2) erfc(a), a >= 0.
TT_SHARED_FN Wide erfcx_of_positive(Wide a) {
  const Wide t = chosen(a < all(kInf), 1.0 - 6.0 / (a + 3.0), all(1.0));
  return erfcx_terms(t) / (a + 1.0);
}
// What rounding took from square = a^2.
TT_SERIES_FN Wide rest_of_square(Wide a, Wide square) {
#if TT_ON_DEVICE
  return libm::fma(a, a, -square);
#else
  const Wide high = Wide(Bits(a) & ~int64_t(0x7ffffff));  // its square is exact
  return (high * high - square) + (a - high) * (a + high);
#endif
}
// exp(-a^2 factor), without the rounding of a^2, which would show in the tail.
TT_SHARED_FN Wide bell(Wide a, double factor) {
  const Wide c = at_most(a, 60.0);
  const Wide square = c * c;
  const Wide y = exp(-factor * square);
  return y - y * (factor * rest_of_square(c, square));
}
TT_SERIES_FN Wide erf(Wide x) {
  const Wide a = magnitude(x);
  const Wide near = a + a * erf_near(a * a);
  const Wide far = 1.0 - erfcx_of_positive(a) * bell(a, 1.0);
  return with_sign(chosen(a < all(1.0), near, far), x);
}
TT_SERIES_FN Wide erfcx(Wide x) {
  const Wide a = magnitude(x);
  const Wide right = erfcx_of_positive(a);
  const Wide square = a * a;
  const Wide power = exp(square);  // rounding a^2 < 27^2 costs 2^-53 a^2
  const Wide whole = power + power * rest_of_square(a, square);
  const Wide left = chosen(a < all(27.0), 2.0 * whole - right, all(kInf));
  return chosen(x < all(0.0), left, right);
}
// 1 - Phi(a) for the normal distribution's function Phi, a >= 0.
TT_SHARED_FN Wide normal_tail(Wide a) {
  return 0.5 * erfcx_of_positive(a * 0.70710678118654752440) * bell(a, 0.5);
}
TT_SERIES_FN Wide ndtr(Wide x) {
  const Wide tail = normal_tail(magnitude(x));
  return chosen(x < all(0.0), tail, 1.0 - tail);
}
TT_SERIES_FN Wide log_ndtr(Wide x) {
  const Wide a = magnitude(x);
  const Wide scaled = 0.5 * erfcx_of_positive(a * 0.70710678118654752440);
  // Right of -1: log1p(-t), t = 1 - Phi(x), by the logarithm of u = 1 - t and what rounding took.
  const Wide tail = scaled * bell(a, 0.5);
  const Wide t = chosen(x < all(0.0), 1.0 - tail, tail);
  const Wide u = 1.0 - t;
  const Wide y = log(chosen(x < all(-1.0), scaled, u));
  const Wide correct = chosen(u == all(1.0), -t, y * (t / (1.0 - u)));
  return chosen(x < all(-1.0), y - 0.5 * a * a, correct);
}
// The inverse of erfc for 0 < q <= 1/4: s P(t), s = sqrt(-log(q)), t of a + b / (s + 1.25), whose
// zero is factored out.
TT_SHARED_FN Wide erfc_inverse(Wide q) {
  const Wide square = -log(q);
  const Wide s = square_root(square);
  const Wide lost = fused(-s, s, square) / (2.0 * s);
  const Wide u = 1.0 / (s + 1.25);
  const Wide near =
      times_near_inverse(s, lost, -0x1.fb539a391ea31p+0 * (s - 0x1.32111589e0dfp+1) * u);
  const Wide far =
      times_far_inverse(s, lost, -0x1.a8ba2e8ba2e8cp+0 * (s - 0x1.4bd5eaf57abd6p+3) * u);
  return chosen(s < all(6.1), near, far);
}
// The inverse of erf at y = 1 - q or q - 1, of y's sign.
TT_SERIES_FN Wide erf_inverse(Wide y, Wide q) {
  const Wide a = at_most(magnitude(y), 0.75);
  const Wide near = odd_erf_inverse(a, all(0.0), a * a);
  const Wide far = erfc_inverse(at_most(q, 0.25));
  const Wide inside = chosen(q > all(0.25), near, far);
  const Wide finite = chosen(q > all(0.0), inside, all(kInf));
  return chosen(q >= all(0.0), with_sign(finite, y), all(kNan));
}
TT_SERIES_FN Wide erfinv(Wide y) { return erf_inverse(y, 1.0 - magnitude(y)); }
TT_SERIES_FN Wide ndtri(Wide p) {
  const Wide y = 2.0 * (p - 0.5);
  const Wide q = chosen(p < all(0.5), 2.0 * p, 2.0 - 2.0 * p);
  return 1.41421356237309504880 * erf_inverse(y, q);
}

}  // namespace series
TT_FUNCTORS_END
