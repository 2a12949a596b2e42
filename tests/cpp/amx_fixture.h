// The fixture of tests that use the tiles of AMX: those of the processor, else emulated ones.
#pragma once

#include "tt.h"

#include "base/amx.h"
#include "base/cpuid.h"

#include "amx_emulator.h"

#include <gtest/gtest.h>

namespace TT_NS {

class AmxTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tt_ctx_new(nullptr, &c), TT_OK);
    ASSERT_EQ(tt_scope_push(c), TT_OK);
    of_processor = has_amx_products();
    usable = of_processor;
#if TT_AMX_EMULATOR
    if (best_isa() == kIsaAvx512 && has_bf16_products() && !of_processor) {
      amx_emulator::install();
      usable = true;
    }
#endif
  }
  void TearDown() override {
    assume_amx_products(of_processor);
    EXPECT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
    tt_ctx_release(c);
  }

  tt_ctx* c = nullptr;
  bool of_processor = false;
  bool usable = false;
};

}  // namespace TT_NS
