// Table of tanh for vector units that look up 32 entries: 8 octaves from 2^-4, four intervals each.
// tanh(c + d) = t0 + d (t1 + d (t2 + …)) up to d^5, for 0 <= c + d <= 9.25: 2^-26 relative to tanh.
// Centers c are floats near the middle whose tanh is close to a float; the first interval starts at
// 0, where c = t0 = t2 = 0 and t1 = 1. Minimax fits, rounded coefficient by coefficient, each
// refitted after those before it. The entry of a float is its bits >> 21, modulo 32; the three
// zeros after the last interval are unused.
#pragma once

#include "kernels/cpu/simd/lanes.h"

TT_ISA_BEGIN
namespace math {

enum TanhRow { kTanhCenter, kTanh0, kTanh1, kTanh2, kTanh3, kTanh4, kTanh5, kNumTanhRows };
constexpr float kTanhFirst = 0x1p-4f;
constexpr float kTanhLast = 9.25f;  // tanh is 1 from here on

// clang-format off
alignas(64) constexpr float kTanhTable[kNumTanhRows][kTableSize] = {
    {0x1.1ff226p+1f, 0x1.600afcp+1f, 0x1.a00e1ep+1f, 0x1.e0081cp+1f, 0x1.2004d2p+2f,
     0x1.6005f2p+2f, 0x1.9ff06p+2f, 0x1.e00f9ep+2f, 0x1.140f9ep+3f, 0, 0, 0, 0, 0x1.5ff334p-4f,
     0x1.9ffde6p-4f, 0x1.e00434p-4f, 0x1.1ff20ep-3f, 0x1.6006ap-3f, 0x1.a009b8p-3f, 0x1.dff0bcp-3f,
     0x1.1ff652p-2f, 0x1.600068p-2f, 0x1.a0044cp-2f, 0x1.dff4c6p-2f, 0x1.1ff3a2p-1f,
     0x1.5ffc7cp-1f, 0x1.a004fp-1f, 0x1.dff95ap-1f, 0x1.2008dep+0f, 0x1.60064p+0f, 0x1.9fff1p+0f,
     0x1.e00076p+0f},
    {0x1.f4bd6ep-1f, 0x1.fbd5cp-1f, 0x1.fe76dp-1f, 0x1.ff6f2ap-1f, 0x1.ffdfacp-1f, 0x1.fffbap-1f,
     0x1.ffff68p-1f, 0x1.ffffecp-1f, 0x1.fffffep-1f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0, 0x1.5f161ep-4f,
     0x1.9e9142p-4f, 0x1.ddd4b8p-4f, 0x1.1e1024p-3f, 0x1.5c9976p-3f, 0x1.9a687p-3f, 0x1.d757e8p-3f,
     0x1.189aa6p-2f, 0x1.52c322p-2f, 0x1.8a8b8ap-2f, 0x1.bfa556p-2f, 0x1.04ff48p-1f,
     0x1.31559cp-1f, 0x1.578bb6p-1f, 0x1.77d528p-1f, 0x1.9e62d4p-1f, 0x1.c27b78p-1f,
     0x1.d9c6b6p-1f, 0x1.e878b4p-1f},
    {0x1.645bfp-5f, 0x1.097a76p-6f, 0x1.889912p-8f, 0x1.21831p-9f, 0x1.0299ccp-11f,
     0x1.1800fep-14f, 0x1.2ff44p-17f, 0x1.47d598p-20f, 0x1.13e6cap-23f, 0, 0, 0, 0x1p+0f,
     0x1.fc3d04p-1f, 0x1.fac14cp-1f, 0x1.f9083cp-1f, 0x1.f602cp-1f, 0x1.f12a74p-1f, 0x1.eb706ap-1f,
     0x1.e4e15cp-1f, 0x1.d98daap-1f, 0x1.c7f704p-1f, 0x1.b3fdc6p-1f, 0x1.9e27a6p-1f,
     0x1.7af43cp-1f, 0x1.49e972p-1f, 0x1.197c2ap-1f, 0x1.d83dd4p-2f, 0x1.613c34p-2f,
     0x1.ce9364p-3f, 0x1.266032p-3f, 0x1.6fce64p-4f},
    {-0x1.5c8318p-5f, -0x1.074dbcp-6f, -0x1.8764a4p-8f, -0x1.212bbep-9f, -0x1.0236bap-11f,
     -0x1.17a496p-14f, -0x1.2edd78p-17f, -0x1.c35a26p-20f, -0x1.dc811ep-23f, 0, 0, 0, 0,
     -0x1.5c81d4p-4f, -0x1.9a51d8p-4f, -0x1.d753bp-4f, -0x1.187b56p-3f, -0x1.527fd2p-3f,
     -0x1.89ed56p-3f, -0x1.be608ap-3f, -0x1.038888p-2f, -0x1.2dafdap-2f, -0x1.4ff91ep-2f,
     -0x1.6a195ap-2f, -0x1.8259eap-2f, -0x1.897d76p-2f, -0x1.79befcp-2f, -0x1.5aa5e4p-2f,
     -0x1.1de45ep-2f, -0x1.96ffaep-3f, -0x1.106656p-3f, -0x1.5ee77ap-4f},
    {0x1.bc25f8p-6f, 0x1.59597ap-7f, 0x1.035c2ep-8f, 0x1.80b4a2p-10f, 0x1.5814b4p-12f,
     0x1.74c9d8p-15f, 0x1.95154ap-18f, 0x1.b2f05cp-21f, 0x1.6b571p-24f, 0, 0, 0, -0x1.5555b6p-2f,
     -0x1.4a04ccp-2f, -0x1.47fc22p-2f, -0x1.447c84p-2f, -0x1.3b593cp-2f, -0x1.2ef2ap-2f,
     -0x1.1ff036p-2f, -0x1.1038ecp-2f, -0x1.e8f212p-3f, -0x1.982df6p-3f, -0x1.42722ap-3f,
     -0x1.d7106p-4f, -0x1.bd96fep-5f, 0x1.d7c1bap-7f, 0x1.071b6ap-4f, 0x1.84231p-4f,
     0x1.c6905ap-4f, 0x1.97d0f8p-4f, 0x1.33e114p-4f, 0x1.a859f4p-5f},
    {-0x1.961ebap-7f, -0x1.5121d2p-8f, -0x1.030738p-9f, -0x1.83614ap-11f, -0x1.6864f8p-13f,
     -0x1.86e41p-16f, -0x1.b4617cp-19f, 0x1.7bff5cp-20f, 0x1.9f8accp-23f, 0, 0, 0, 0x1.40f324p-14f,
     0x1.e30e28p-5f, 0x1.f0f3e8p-5f, 0x1.13b816p-4f, 0x1.6903b6p-4f, 0x1.acc538p-4f,
     0x1.f10b5ap-4f, 0x1.111698p-3f, 0x1.33478ep-3f, 0x1.5036dp-3f, 0x1.5c2b46p-3f, 0x1.584c1ap-3f,
     0x1.3a0596p-3f, 0x1.e96e84p-4f, 0x1.472832p-4f, 0x1.63055p-5f, 0x1.ddeaf6p-9f,
     -0x1.5a0c0cp-6f, -0x1.9bb8d8p-6f, -0x1.55a006p-6f},
    {0x1.04a99p-8f, 0x1.f66d02p-10f, 0x1.945dcp-11f, 0x1.332e98p-12f, 0x1.1fb1bap-14f,
     0x1.38b1bcp-17f, 0x1.4f017p-20f, 0x1.a72136p-23f, 0x1.882d92p-26f, 0, 0, 0, 0x1.0ee0d8p-3f,
     -0x1.09a026p+4f, 0x1.a4413cp+2f, 0x1.335d6ap+4f, 0x1.dabf5cp-1f, 0x1.10b978p+0f,
     -0x1.2472dep-1f, 0x1.21adeep+0f, -0x1.932f2ep-6f, -0x1.fbc7d6p-6f, 0x1.dd905ep-7f,
     -0x1.a74cbp-5f, -0x1.584c94p-5f, -0x1.0e1a8ap-4f, -0x1.d3090ep-5f, -0x1.a76352p-5f,
     -0x1.06da7ep-5f, -0x1.39ba3cp-7f, 0x1.685fdcp-10f, 0x1.2e956p-8f},
};
// clang-format on

}  // namespace math
TT_ISA_END
