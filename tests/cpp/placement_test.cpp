// Memory of plans: what lives at one time does not overlap, for random lives and for plans of
// random graphs.
#include "tt.h"

#include "capi/api.h"
#include "graph/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace TT_NS {
namespace {

class Dice {
 public:
  explicit Dice(uint32_t seed) : state_(seed) {}
  int64_t roll(int64_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return int64_t(state_ >> 8) % n;
  }

 private:
  uint32_t state_;
};

bool live_together(const Placement& a, const Placement& b) {
  return a.birth <= b.death && b.birth <= a.death;
}
bool overlap(const Placement& a, const Placement& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// One that is shared lies in another, which lives at least as long.
void check_placements(const Placement* all, int64_t n, int64_t arena) {
  for (int64_t i = 0; i < n; i++) {
    ASSERT_GE(all[i].offset, 0);
    ASSERT_LE(all[i].offset + all[i].bytes, arena);
    bool held = !all[i].shared;
    for (int64_t j = 0; j < n; j++) {
      if (i == j || all[j].shared) continue;
      const bool clash = !all[i].shared && live_together(all[i], all[j]) && overlap(all[i], all[j]);
      ASSERT_FALSE(clash) << i << " and " << j;
      held |= all[j].birth <= all[i].birth && all[j].death >= all[i].death &&
              all[j].offset <= all[i].offset &&
              all[j].offset + all[j].bytes >= all[i].offset + all[i].bytes;
    }
    ASSERT_TRUE(held) << i;
  }
}

class Plans : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tt_ctx_new(nullptr, &c), TT_OK);
    ASSERT_EQ(tt_scope_push(c), TT_OK);
  }
  void TearDown() override {
    EXPECT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
    tt_ctx_release(c);
  }
  tt_tensor* randn(int64_t rows, int64_t columns) {
    const int64_t shape[] = {rows, columns};
    tt_tensor* t = nullptr;
    EXPECT_EQ(tt_randn(c, shape, 2, nullptr, &t), TT_OK);
    return t;
  }
  tt_tensor* program(Dice& dice, tt_tensor* x);
  void check_offsets(std::vector<Placement>& all);
  tt_ctx* c = nullptr;
};

TEST_F(Plans, RandomLives) {
  for (uint32_t seed = 1; seed <= 200; seed++) {
    Dice dice(seed);
    std::vector<Placement> all;
    const int64_t n = 1 + dice.roll(60);
    for (int64_t i = 0; i < n; i++) {
      Placement p;
      p.bytes = 1 + dice.roll(dice.roll(2) ? 100 : 10000);
      p.birth = dice.roll(100);
      p.death = dice.roll(10) ? p.birth + dice.roll(20) : INT64_MAX;
      all.push_back(p);
    }
    int64_t arena = 0;
    api_call(c, "placement", [&](Ctx&) { arena = place_greedily({all.data(), n}); });
    check_placements(all.data(), n, arena);
  }
}

// Places the memories and checks some offsets: each is the lowest at which there is room beside the
// larger ones that live at that time.
void Plans::check_offsets(std::vector<Placement>& all) {
  const auto n = int64_t(all.size());
  int64_t arena = 0;
  api_call(c, "placement", [&](Ctx&) { arena = place_greedily({all.data(), n}); });
  std::vector<int64_t> order;  // the largest first
  for (int64_t i = 0; i < n; i++) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return all[size_t(a)].bytes > all[size_t(b)].bytes;
  });
  const auto of = [&](int64_t i) -> const Placement& { return all[size_t(order[size_t(i)])]; };
  for (int64_t i = 0; i < n; i += 17) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (int64_t k = 0; k < i; k++)
      if (live_together(of(i), of(k))) taken.push_back({of(k).offset, of(k).bytes});
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [offset, bytes] : taken) {
      if (offset >= at + of(i).bytes) break;
      at = std::max(at, (offset + bytes + 63) / 64 * 64);
    }
    ASSERT_EQ(of(i).offset, at) << i;
    ASSERT_LE(at + of(i).bytes, arena);
  }
}

TEST_F(Plans, ManyLives) {
  constexpr int64_t kMany = 5000;
  Dice dice(7);
  std::vector<Placement> all;
  for (int64_t i = 0; i < kMany; i++) {
    Placement p;
    p.bytes = 1 + dice.roll(500);
    p.birth = dice.roll(4 * kMany);
    p.death = p.birth + dice.roll(dice.roll(20) ? 12 : 3 * kMany);
    if (!dice.roll(100)) p.death = INT64_MAX;
    all.push_back(p);
  }
  check_offsets(all);
}

// As inputs and outputs of a plan: most live until the end, some end before others are born.
TEST_F(Plans, EndlessLives) {
  for (uint32_t seed = 1; seed <= 20; seed++) {
    Dice dice(seed);
    std::vector<Placement> all;
    for (int64_t i = 0; i < 900; i++) {
      Placement p;
      p.bytes = 1 + dice.roll(seed % 2 ? 4 : 2000);
      p.birth = dice.roll(5) ? i : dice.roll(900);
      p.death = dice.roll(4) ? INT64_MAX : p.birth + dice.roll(400);
      all.push_back(p);
    }
    check_offsets(all);
  }
}

// Where comparisons run out, memories do not overlap either. Those that all live at one time are
// one above the other as before; of others the arena grows, by less than a half.
TEST_F(Plans, FewComparisons) {
  for (uint32_t seed = 1; seed <= 6; seed++) {
    Dice dice(seed);
    std::vector<Placement> all;
    const int64_t n = 700 + dice.roll(200);
    const bool nested = seed % 2;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
      Placement p;
      p.bytes = 1 + dice.roll(1000);
      p.birth = nested ? i : dice.roll(300);
      p.death = nested ? 2 * n - i : p.birth + dice.roll(dice.roll(5) ? 10 : 300);
      if (!dice.roll(20)) p.death = INT64_MAX;
      sum += (p.bytes + 63) / 64 * 64;
      all.push_back(p);
    }
    int64_t least = 0;
    int64_t arena = 0;
    api_call(c, "placement", [&](Ctx&) {
      least = place_greedily({all.data(), n});
      arena = place_greedily({all.data(), n}, kArenaAlign, 100);
    });
    check_placements(all.data(), n, arena);
    ASSERT_LT(2 * arena, 3 * least) << seed;
    if (nested) {
      ASSERT_EQ(arena, sum);
    }
  }
}

// Memories of no bytes take no place from the others, however many live at one time.
TEST_F(Plans, MemoriesOfNoBytes) {
  std::vector<Placement> all(1200);
  for (size_t i = 0; i < all.size(); i++) {
    all[i].bytes = i % 100 ? 0 : 64;
    all[i].birth = int64_t(i);
    all[i].death = int64_t(3 * all.size() - i);
  }
  int64_t arena = 0;
  api_call(c, "placement", [&](Ctx&) {
    arena = place_greedily({all.data(), int64_t(all.size())}, kArenaAlign, 0);
  });
  ASSERT_EQ(arena, 12 * 64);
  check_placements(all.data(), int64_t(all.size()), arena);
}

// Products, elementwise work, in place and not, softmax, copies of views, with a gradient.
tt_tensor* Plans::program(Dice& dice, tt_tensor* x) {
  constexpr int64_t kColumns = 96;
  tt_tensor* w = randn(kColumns, kColumns);
  EXPECT_EQ(tt_requires_grad_(c, w, 1), TT_OK);
  std::vector<tt_tensor*> values = {x};
  const auto any = [&] { return values[size_t(dice.roll(int64_t(values.size())))]; };
  for (int i = 0; i < 12; i++) {
    tt_tensor *a = any(), *b = any(), *made = nullptr;
    switch (dice.roll(7)) {
      case 0: EXPECT_EQ(tt_linear(c, a, w, nullptr, &made), TT_OK); break;
      case 1: EXPECT_EQ(tt_add(c, a, b, &made), TT_OK); break;
      case 2: EXPECT_EQ(tt_tanh(c, a, &made), TT_OK); break;
      case 3: EXPECT_EQ(tt_mul(c, a, b, &made), TT_OK); break;
      case 4: EXPECT_EQ(tt_softmax(c, a, -1, nullptr, &made), TT_OK); break;
      case 5:
        EXPECT_EQ(tt_clone(c, a, nullptr, &made), TT_OK);
        EXPECT_EQ(tt_mul_f64_(c, made, 0.5), TT_OK);
        break;
      default: EXPECT_EQ(tt_flip(c, a, std::vector<int64_t>{1}.data(), 1, &made), TT_OK);
    }
    values.push_back(made);
  }
  tt_tensor *y = nullptr, *loss = nullptr;
  EXPECT_EQ(tt_linear(c, values.back(), w, nullptr, &y), TT_OK);
  EXPECT_EQ(tt_sum(c, y, nullptr, &loss), TT_OK);
  EXPECT_EQ(tt_backward(c, loss, nullptr), TT_OK);
  tt_tensor* grad = nullptr;
  EXPECT_EQ(tt_tensor_grad(c, w, &grad), TT_OK);
  return grad;
}

TEST_F(Plans, RandomGraphs) {
  for (uint32_t seed = 1; seed <= 40; seed++) {
    Dice dice(seed);
    tt_graph* g = nullptr;
    tt_plan* p = nullptr;
    ASSERT_EQ(tt_scope_push(c), TT_OK);
    tt_tensor* x = randn(8 + dice.roll(200), 96);
    ASSERT_EQ(tt_capture_begin(c, &x, 1, nullptr), TT_OK);
    tt_tensor* grad = program(dice, x);
    ASSERT_EQ(tt_capture_end(c, &grad, 1, &g), TT_OK);
    ASSERT_EQ(tt_plan_new(c, g, nullptr, &p), TT_OK);
    const auto& plan = *reinterpret_cast<const Plan*>(p);
    check_placements(plan.placements.data(), plan.placements.size(), plan.arena_bytes);
    tt_plan_release(p);
    tt_graph_release(g);
    ASSERT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
  }
}

}  // namespace
}  // namespace TT_NS
