// Weights that are packed once: where a convolution or a product packs a constant that the pass
// TT_PASS_FOLD has frozen, the plan is given the panels, in memory of its own, and no run packs it.
#pragma once

#include "graph/plan/plan.h"

namespace TT_NS {

struct MatmulPlan;

class Prepacking {
 public:
  Prepacking(const Graph& g, Plan& p) : g_(g), p_(p) {}
  void begin_node() { frozen_ = {}; }
  // The node reads value v at this address.
  void note_argument(int32_t v, const char* data);
  // Whether a launch only packs frozen weights, so that runs do without it.
  bool only_packs(const Kernel& k, const void* plan) const;
  // Runs such a launch.
  void pack(const Kernel& k, const void* plan, Isa isa);
  // Lets the plan of another launch of the node, in memory of its own, read what has been packed.
  void use(const Kernel& k, void* plan, Isa isa);

 private:
  bool is_frozen(const char* data) const;
  char* new_memory(int64_t bytes);
  // What `path` makes of the b of a product, as other products of the plan read it.
  struct PackedB {
    const char* from;
    int64_t m, n, k, row, col;
    int32_t dtype, path;
    char* memory;
  };
  // Finds the memory for what `path` makes of p's b; returns whether an earlier launch filled it.
  bool find_or_add(const MatmulPlan& p, int32_t path, int64_t bytes, char** memory);
  // Lets a product by pieces read a copy of a frozen b.
  void copy_b(MatmulPlan* p);
  // Packs a product's b for its path `packed`: runs the path `packs`, which writes `bytes` to c.
  void pack_b(const Kernel& k, MatmulPlan* p, Isa isa, int32_t packs, int32_t packed,
              int64_t bytes);

  const Graph& g_;
  Plan& p_;
  SmallVec<const char*, 4> frozen_;  // addresses of frozen arguments
  const char* from_ = nullptr;       // the place where the launch would have packed
  char* packed_ = nullptr;           // where it did
  SmallVec<PackedB, 4> packed_b_;
};

}  // namespace TT_NS
